"""Podyard where nothing but an archive of it and the runtime lock is installed; each test runs for the wheel
and for the sdist."""

import json
import re
import tomllib
from collections.abc import Iterable
from typing import Any

import pytest

from tests.release.archives import REPOSITORY
from tests.release.bare import RUNTIME_LOCK, Bare
from tests.support import story


def names_of(requirements: Iterable[str]) -> set[str]:
    """The packages that are asked for."""
    return {re.split("[<>]", one)[0] for one in requirements}


PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = names_of(one for extra in PROJECT["optional-dependencies"].values() for one in extra)
"""Packages that are asked for by an extra only."""

FROM_VENV = {"pip", "setuptools"}
"""What `python -m venv` puts there by itself; Python 3.12 and later leave setuptools out."""

NAMES = """
import json
from importlib.metadata import distributions
print(json.dumps([one.metadata["Name"] for one in distributions()]))
"""

METADATA = """
import json
from importlib.metadata import distribution
found = distribution("podyard")
scripts = {one.name: one.value for one in found.entry_points.select(group="console_scripts")}
print(json.dumps({
    "name": found.metadata["Name"], "version": found.version, "licence": found.metadata["License-Expression"],
    "python": found.metadata["Requires-Python"], "needs": found.requires, "scripts": scripts,
}))
"""

MODULES = """
import importlib, json, sys
from importlib.metadata import files
extras = json.loads(sys.argv[1])
without = []
paths = [file for file in files("podyard") if file.suffix == ".py"]
names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]
for name in names:
    if name.endswith((".__main__", "._launcher")):
        continue
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in extras:
            raise
        without.append(name)
found = {name: module.__file__ for name, module in sys.modules.items() if name in names}
print(json.dumps([found, without]))
"""
"""Import every module but those that are programs: a program does its work when it is imported. Those that
need an extra, whose packages are the argument, say so."""


def test_nothing_is_installed_but_podyard_and_its_runtime_lock(bare: Bare) -> None:
    locked = set(re.findall(r"^([\w.-]+)==", RUNTIME_LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    names = {one.lower().replace("_", "-") for one in json.loads(bare.python(NAMES))}
    assert names - FROM_VENV == locked | {"podyard"}
    assert not names & {"pytest", "hypothesis", "hatchling"}


def test_the_lock_is_all_that_the_metadata_asks_for(bare: Bare) -> None:
    said = bare.python("import subprocess, sys; subprocess.run([sys.executable, '-m', 'pip', 'check'])")
    assert "No broken requirements found." in said


def test_the_metadata_is_that_of_the_project(bare: Bare) -> None:
    found = json.loads(bare.python(METADATA))
    needs = found.pop("needs")
    of_extras = {one for one in needs if "extra ==" in one}
    assert names_of(set(needs) - of_extras) == names_of(PROJECT["dependencies"])
    assert names_of(of_extras) == EXTRAS
    assert found == {
        "name": "podyard",
        "version": PROJECT["version"],
        "licence": PROJECT["license"],
        "python": PROJECT["requires-python"],
        "scripts": PROJECT["scripts"],
    }


def test_every_module_can_be_imported_from_there(bare: Bare) -> None:
    files, without = json.loads(bare.python(MODULES, json.dumps(sorted(EXTRAS))))
    assert {"podyard.cli.app", "podyard.queue.core", "podyard.proto.schema"} <= files.keys()
    assert [file for file in files.values() if not file.startswith(str(bare.place))] == []
    assert without == []


def test_it_says_its_version(bare: Bare) -> None:
    for words in ("version", "--version"):
        assert bare.podyard(words) == (0, f"podyard {PROJECT['version']}\n", "")


def test_it_is_a_plugin_of_kubectl(bare: Bare) -> None:
    """kubectl runs what is called `kubectl-podyard` on the path, with the words that follow."""
    assert bare.kubectl_plugin("version") == bare.podyard("version")


def test_a_red_check_is_one_step_from_its_page(bare: Bare) -> None:
    """As `/readyz` says: `or run: podyard checks NAME`."""
    page = (REPOSITORY / "docs" / "checks.md").read_text(encoding="utf-8")
    done = bare.podyard("checks", "lease")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("## lease\n")
    assert done.out in page


def test_run_names_every_service(bare: Bare) -> None:
    done = bare.podyard("run", "--help")
    assert done.code == 0, done.err
    for service in ("api", "queue", "scheduler", "binder", "node_agent", "descheduler", "workloads"):
        assert service in done.out


@pytest.mark.parametrize("words", [(), ("cycle",), ("basic", "--nodes", "500", "-o", "json")], ids=" ".join)
def test_bench_says_where_the_benchmarks_are(bare: Bare, words: tuple[str, ...]) -> None:
    done = bare.podyard("bench", *words)
    assert (done.code, done.out) == (2, "")
    said = " ".join(("podyard bench", *words))
    assert done.err.startswith(f"error: {said}: the benchmarks are not in the wheel\nhint: ")
    assert "git clone" in done.err
    assert "make setup" in done.err


def test_help_says_where_the_benchmarks_are(bare: Bare) -> None:
    for words in (("--help",), ("bench", "--help"), ("bench", "cycle", "--help")):
        done = bare.podyard(*words)
        assert (done.code, done.err) == (0, "")
        assert "not in the wheel" in done.out


def test_the_demo_tells_its_story(bare: Bare) -> None:
    done = bare.podyard("demo")
    assert done.code == 0, done.out + done.err
    assert story.untold(done.out) == [], done.out
    *_, explained = done.out.split("== podyard explain pod trainer")
    last = [line for line in explained.splitlines() if line.strip()]
    assert "started on node-6, now Running" in last[-2], "it ends with an explained decision"
    assert last[-1].startswith("All steps were seen.")
