"""Podyard where nothing but an archive of it and the runtime lock is installed; each test runs for the wheel and for the sdist."""

import json
import re
import tomllib
from typing import Any

from tests.release.archives import REPOSITORY
from tests.release.bare import RUNTIME_LOCK, Bare
from tests.support import story

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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
[script] = found.entry_points.select(group="console_scripts")
print(json.dumps({
    "name": found.metadata["Name"], "version": found.version, "licence": found.metadata["License-Expression"],
    "python": found.metadata["Requires-Python"], "needs": found.requires, "script": [script.name, script.value],
}))
"""

MODULES = """
import importlib, json, sys
from importlib.metadata import files
paths = [file for file in files("podyard") if file.suffix == ".py"]
names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]
for name in names:
    if not name.endswith((".__main__", "._launcher")):
        importlib.import_module(name)
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if name in names}))
"""
"""Import every module but those that are programs: a program does its work when it is imported."""


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
    assert {re.split("[<>]", need)[0] for need in found.pop("needs")} == {
        re.split("[<>]", need)[0] for need in PROJECT["dependencies"]
    }
    assert found == {
        "name": "podyard",
        "version": PROJECT["version"],
        "licence": PROJECT["license"],
        "python": PROJECT["requires-python"],
        "script": ["podyard", PROJECT["scripts"]["podyard"]],
    }


def test_every_module_can_be_imported_from_there(bare: Bare) -> None:
    files = json.loads(bare.python(MODULES))
    assert {"podyard.cli.app", "podyard.queue.core", "podyard.proto.schema"} <= files.keys()
    assert [file for file in files.values() if not file.startswith(str(bare.place))] == []


def test_it_says_its_version(bare: Bare) -> None:
    for words in ("version", "--version"):
        assert bare.podyard(words) == (0, f"podyard {PROJECT['version']}\n", "")


def test_run_names_every_service(bare: Bare) -> None:
    done = bare.podyard("run", "--help")
    assert done.code == 0, done.err
    for service in ("api", "queue", "scheduler", "binder", "node_agent", "descheduler", "workloads"):
        assert service in done.out


def test_a_benchmark_measures(bare: Bare) -> None:
    done = bare.podyard("bench", "cycle", "--nodes", "300", "--no-curve", "-o", "json")
    assert done.code == 0, done.err
    costs = json.loads(done.out)["kinds"]
    assert {"plain", "spread", "affinity"} <= costs.keys()
    assert all(0 < cost["seen_us"] < cost["first_us"] for cost in costs.values()), "a pod seen before costs less"


def test_the_demo_tells_its_story(bare: Bare) -> None:
    done = bare.podyard("demo")
    assert done.code == 0, done.out + done.err
    assert story.untold(done.out) == [], done.out
    *_, explained = done.out.split("== podyard explain pod trainer")
    last = [line for line in explained.splitlines() if line.strip()]
    assert "started on node-6, now Running" in last[-2], "it ends with an explained decision"
    assert last[-1].startswith("All steps were seen.")
