"""The drawing of the imports: no loop, and services in one shape."""

from pathlib import Path
from typing import Final

import pytest

from podyard.cli import services
from tests.support import imports

REPOSITORY: Final = Path(__file__).parents[3]
FILES: Final = imports.modules([REPOSITORY / part for part in ("proto", "libs", "services", "bench")])
GRAPH: Final = imports.imports(FILES)

DOOR: Final = "api"
"""The service that answers each request by itself: it decides nothing over time, so it has no core."""

WITH_CORE: Final = [name for name in services.NAMES if name != DOOR]


def written(directory: Path, **texts: str) -> imports.Imports:
    """The graph of a package `p` of these modules."""
    package = directory / "p"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    return imports.imports(imports.modules([directory]))


def of_service(name: str) -> dict[str, frozenset[str]]:
    """The modules of one service, and what each imports of the same service."""
    package = f"podyard.{name}"
    mine = {module for module in GRAPH if module == package or module.startswith(f"{package}.")}
    return {module: GRAPH[module] & mine for module in mine}


@pytest.mark.parametrize(
    "back",
    [
        pytest.param("import p.a", id="at the top"),
        pytest.param("from p import a", id="by its package"),
        pytest.param("from .a import x", id="relatively"),
        pytest.param("def f():\n    from p.a import x", id="in a function"),
        pytest.param("if TYPE_CHECKING:\n    from p.a import x", id="for the type checker"),
    ],
)
def test_a_loop_is_seen_wherever_the_import_stands(tmp_path: Path, back: str):
    graph = written(tmp_path, a="from p.b import y", b="from p.c import z", c=back, d="import p.a")
    assert imports.loops(graph) == [["p.a", "p.b", "p.c"]]


def test_what_is_imported_twice_is_no_loop(tmp_path: Path):
    assert imports.loops(written(tmp_path, a="import p.b, p.c", b="import p.c", c="import json")) == []


def test_no_modules_import_each_other():
    assert "podyard.framework.interfaces" in GRAPH["podyard.framework.profile"], "the graph is that of the product"
    assert imports.loops(GRAPH) == []


def test_no_folders_import_each_other():
    drawing = imports.folders(GRAPH, FILES)
    assert "podyard.cli.render" in drawing["podyard.cli.commands"], "the drawing is that of the product"
    assert imports.loops(drawing) == []


@pytest.mark.parametrize("name", services.NAMES)
def test_a_service_is_begun_by_its_module_service_which_nobody_imports(name: str):
    entry = f"podyard.{name}.service"
    assert [module for module, imported in GRAPH.items() if entry in imported] == []
    around = {module for module in of_service(name) if not module.startswith(f"podyard.{name}.core")}
    assert around - imports.reached(GRAPH, [entry]) == set()


@pytest.mark.parametrize("name", WITH_CORE)
def test_a_core_knows_nothing_of_what_stands_around_it(name: str):
    core = f"podyard.{name}.core"
    known = {one for module, imported in of_service(name).items() if module.startswith(core) for one in imported}
    assert known
    assert [one for one in known if not one.startswith(core)] == []


@pytest.mark.parametrize("name", services.NAMES)
@pytest.mark.parametrize("leaf", ["settings", "instruments", "reference_metrics"])
def test_settings_and_instruments_know_the_core_alone(name: str, leaf: str):
    """The instruments also know those that have the reference's names."""
    imported = of_service(name).get(f"podyard.{name}.{leaf}", ())
    known = (f"podyard.{name}.core.", f"podyard.{name}.reference_metrics")
    assert [one for one in imported if not one.startswith(known)] == []


@pytest.mark.parametrize("name", services.NAMES)
def test_a_service_says_what_it_is_and_runs_in_its_module_service(name: str):
    definition = services.definition(name)
    assert definition.name == name
    assert definition.main.__module__ == f"podyard.{name}.service"


@pytest.mark.parametrize("name", services.NAMES)
def test_a_service_has_its_settings_in_its_module_settings(name: str):
    assert services.definition(name).settings_type.__module__ == f"podyard.{name}.settings"


def test_a_service_that_leads_has_what_it_does_as_leader_in_its_module_term():
    lead = [name for name in services.NAMES if "podyard.shell.leading" in GRAPH[f"podyard.{name}.service"]]
    assert {"binder", "workloads"} <= set(lead)
    assert [name for name in lead if f"podyard.{name}.term" not in GRAPH[f"podyard.{name}.service"]] == []


AUTHORS: Final = {"podyard.framework.one_at_a_time"}
"""What authors of plugins derive from (docs/write-a-plugin.md): it stands with the interfaces, whoever
imports it here."""


def test_the_framework_has_no_module_that_plugins_alone_use():
    users = {
        module: {other.split(".")[1] for other, imported in GRAPH.items() if module in imported}
        for module in GRAPH
        if module.startswith("podyard.framework.")
    }
    assert {module for module, tops in users.items() if tops <= {"plugins"}} == AUTHORS


ENTRIES: Final = (
    "podyard.cli.__main__",
    "podyard.cli.kubectl_plugin",
    *(module for module in GRAPH if module.startswith("podyard.cli.commands.")),
    *(f"podyard.{name}.service" for name in services.NAMES),
    "podyard.bench.commands.app",
    "podyard.bus._launcher",
    "podyard.proto.schema",
)
"""The command line, also as a plugin of kubectl, and what is begun by name: commands, services, benchmarks,
the launcher of nats-server, `make schema`."""


def test_nobody_imports_the_benchmarks():
    """A wheel is without them: `podyard bench` looks for them by name."""
    assert "podyard.bench.basic" in GRAPH
    users = {module for module, imported in GRAPH.items() if any(one.startswith("podyard.bench") for one in imported)}
    assert [module for module in users if not module.startswith("podyard.bench")] == []


def test_every_module_is_of_use_to_the_product():
    assert sorted(set(GRAPH) - imports.reached(GRAPH, ENTRIES)) == []
