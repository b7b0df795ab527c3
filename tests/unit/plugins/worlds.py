"""Random small clusters for tests of one plugin: the same nodes and pods as manifests, for a plain reading,
and in a node table."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.cycle_state import CycleState
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status
from podyard.proto.placement import BoundPod
from tests.support import objects

Manifest = dict[str, Any]
NAMES = tuple(f"n{number}" for number in range(5))


def node(name: str, *, labels: Mapping[str, str] | None = None, **status: Any) -> Manifest:
    """A node that has nothing but what keywords say; they are fields of its status."""
    return {**objects.node(name, bare=True, labels=labels), "status": status}


def pod(**spec: Any) -> Manifest:
    """A pod without containers, unless keywords say some; they are fields of its spec."""
    return objects.pod("incoming", **{"containers": [], **spec})


def view_of(manifest: Manifest, name: str = "incoming") -> PodView:
    """The pod for plugins."""
    return objects.view(manifest | {"metadata": manifest["metadata"] | {"name": name, "uid": f"uid-{name}"}})


class World:
    """One cluster twice."""

    def __init__(self) -> None:
        self.nodes: dict[str, Manifest] = {}
        self.placed: dict[str, tuple[Manifest, str]] = {}
        self.snapshot = Snapshot(NodeTable())
        self._count = 0

    def set_node(self, manifest: Manifest) -> None:
        self.nodes[manifest["metadata"]["name"]] = manifest
        self.snapshot.nodes.set_node(objects.decoded("nodes", manifest))

    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.snapshot.nodes.remove_node(name)

    def place(self, manifest: Manifest, name: str) -> None:
        self._count += 1
        view = view_of(manifest, f"placed{self._count}")
        bound = BoundPod(namespace="default", name=view.name, uid=view.uid, node=name, usage=view.usage)
        self.placed[view.uid] = (manifest, name)
        self.snapshot.nodes.place(view.with_placement(bound, None))

    def unplace(self, choice: int) -> None:
        if self.placed:
            uid = list(self.placed)[choice % len(self.placed)]
            del self.placed[uid]
            self.snapshot.nodes.remove(uid)

    def on(self, name: str) -> list[Manifest]:
        """Pods on a node."""
        return [manifest for manifest, where in self.placed.values() if where == name]

    def carry_out(self, step: Any) -> None:
        """One of `steps`."""
        match step:
            case ("node", manifest):
                self.set_node(manifest)
            case ("gone", name):
                self.remove_node(name)
            case ("pod", manifest, name):
                self.place(manifest, name)
            case (_, choice):
                self.unplace(choice)


def steps(nodes: st.SearchStrategy[Manifest], pods: st.SearchStrategy[Manifest]) -> st.SearchStrategy[Any]:
    """Changes of a cluster made of such nodes and pods."""
    return st.one_of(
        st.tuples(st.just("node"), nodes),
        st.tuples(st.just("pod"), pods, st.sampled_from(NAMES)),
        st.tuples(st.just("gone"), st.sampled_from(NAMES)),
        st.tuples(st.just("ends"), st.integers(0, 100)),
    )


def histories(nodes: st.SearchStrategy[Manifest], pods: st.SearchStrategy[Manifest]) -> st.SearchStrategy[list[Any]]:
    """A few nodes, then any changes."""
    first = st.lists(st.tuples(st.just("node"), nodes), max_size=4)
    return st.tuples(first, st.lists(steps(nodes, pods), max_size=8)).map(lambda parts: [*parts[0], *parts[1]])


def filtered(plugin: Any, incoming: PodView, snapshot: Snapshot) -> dict[str, Status | None] | None:
    """What Filter says of every node (None: it passes), or None if PreFilter skips; one node is judged as all
    are."""
    state = CycleState()
    answer = plugin.pre_filter(state, incoming, snapshot)
    if answer.status.code == Code.SKIP:
        return None
    assert answer.status.ok
    table = snapshot.nodes
    rows = table.rows()
    codes = plugin.filter(state, incoming, snapshot, rows).tolist()
    assert codes == [plugin.filter_one(state, incoming, snapshot, row) for row in rows.tolist()]
    found = {table.names[row]: code for row, code in zip(rows.tolist(), codes, strict=True)}
    return {name: plugin.verdict(state, code) if code else None for name, code in found.items()}


def scored(plugin: Any, incoming: PodView, snapshot: Snapshot) -> dict[str, int] | None:
    """What Score says of every node, or None if PreScore skips; one node is scored as all are."""
    state, table = CycleState(), snapshot.nodes
    rows = table.rows()
    if hasattr(plugin, "pre_score") and plugin.pre_score(state, incoming, snapshot, rows).code == Code.SKIP:
        return None
    points = plugin.score(state, incoming, snapshot, rows).tolist()
    assert points == [plugin.score_one(state, incoming, snapshot, row) for row in rows.tolist()]
    return {table.names[row]: point for row, point in zip(rows.tolist(), points, strict=True)}
