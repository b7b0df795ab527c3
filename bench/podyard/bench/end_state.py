"""What a run has left, judged from the stream alone: how full nodes are, who fits and was not bound, which
rule was broken."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from podyard.bench import mixed
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.cluster.room import CPU, Room
from podyard.cluster.view import ClusterView
from podyard.framework.cycle import Cycle
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot


class EndState(msgspec.Struct, frozen=True, kw_only=True):
    """All is at one position of the stream."""

    bound: int
    unbound: int
    cpu_filled: float
    """Requests of bound pods, as a share of what the nodes have."""
    fitting: dict[str, str]
    """Unbound pods that some node takes -> one that does. Always empty, or a pod was forgotten."""
    overloaded: tuple[str, ...]
    """Nodes that hold more than they have."""
    too_close: tuple[str, ...]
    """Nodes with two pods of an app that keeps its pods apart."""


def judge(view: ClusterView, profile: Profile) -> EndState:
    """Every unbound pod against every node, by the profile's filters, as the scheduler would.

    :param view: a listing of everything
    """
    table = _table(view)
    cycle = Cycle(profile, Snapshot(table, view))
    unbound = [pod for pod in view.pods.values() if pod.bound is None and not pod.released]
    fitting: dict[str, str] = {}
    for pod in unbound:
        feasibility = cycle.judge(pod)
        if feasibility.feasible_count:
            fitting[pod.name] = table.names[int(feasibility.feasible[0])]
    room, rows = table.room, table.rows()
    return EndState(
        bound=sum(1 for pod in view.pods.values() if pod.bound is not None),
        unbound=len(unbound),
        cpu_filled=float(room.requested[CPU, rows].sum() / max(1, room.allocatable[CPU, rows].sum())),
        fitting=fitting,
        overloaded=tuple(table.names[row] for row in sorted(table.row_of.values()) if _is_overloaded(room, row)),
        too_close=tuple(name for name in sorted(table.row_of) if _too_close(view.pods_on(name))),
    )


def _is_overloaded(room: Room, row: int) -> bool:
    whole = room.whole(row)
    return any(amount > whole.get(resource, 0) for resource, amount in room.taken(row).requests.items())


def _table(view: ClusterView) -> NodeTable:
    table = NodeTable()
    for node in view.nodes.values():
        table.set_node(node.node)
    for pod in view.pods.values():
        if pod.bound is not None:
            table.place(pod)
    return table


def _too_close(pods: Mapping[str, PodView]) -> bool:
    """Counted by hand, not by the plugin that is to be checked."""
    counts = Counter(pod.labels.get(mixed.APP) for pod in pods.values() if pod.stored.spec.affinity is not None)
    return any(number > 1 for number in counts.values())
