"""docs/rules.md, plugins-see-one-snapshot: plugins know of the cluster what the snapshot of their cycle
shows, and nothing by ways of their own."""

import ast
from pathlib import Path

import podyard.plugins
from podyard.framework.cycle import Cycle
from tests.unit.framework.builders import make_node, make_pod, on, profile, snapshot_of

FOLDER = Path(podyard.plugins.__file__).parent
MAY_KNOW = (
    *(
        f"podyard.cluster.{part}"
        for part in ("keys", "node_table", "node_columns", "pod_columns", "selector_counts", "domain_sums", "room")
    ),
    *("podyard.framework", "podyard.memory", "podyard.objects", "podyard.plugins", "podyard.proto"),
)
"""None of these can read a stream, keep a cache of the cluster, or tell the time: names of objects, the node
table, its columns, and the indexes it feeds."""

CLOCKS_AND_TASKS = {"anyio", "asyncio", "threading", "time", "socket", "nats"}


def imported(path: Path) -> set[str]:
    """Modules that a source file imports."""
    found: set[str] = set()
    for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(one, ast.Import):
            found |= {alias.name for alias in one.names}
        elif isinstance(one, ast.ImportFrom) and one.module:
            found.add(one.module)
    return found


def test_no_plugin_can_watch_anything() -> None:
    sources = list(FOLDER.rglob("*.py"))
    assert len(sources) > 10
    names = {(path.relative_to(FOLDER).as_posix(), name) for path in sources for name in imported(path)}
    own = {(path, name) for path, name in names if name.startswith("podyard") and not name.startswith(MAY_KNOW)}
    assert own == set()
    assert {(path, name) for path, name in names if name.partition(".")[0] in CLOCKS_AND_TASKS} == set()


def test_all_plugins_of_a_cycle_see_the_room_that_one_table_shows() -> None:
    """Placed and gone through one door: filter and score follow it at once, together."""
    snapshot = snapshot_of(make_node("a", cpu="2"), make_node("b", cpu="1"))
    cycle = Cycle(profile(), snapshot)
    assert cycle.run(make_pod("p", cpu="1")).node == "a"
    big = make_pod("big", cpu="2")
    snapshot.nodes.place(on(big, "a"))
    taken = cycle.run(make_pod("q", cpu="1"))
    assert (taken.node, taken.nodes_feasible) == ("b", 1)
    snapshot.nodes.remove(big.uid)
    free = cycle.run(make_pod("r", cpu="1"))
    assert (free.node, free.nodes_feasible) == ("a", 2)
