"""What is counted on which node, and what waits where, as rows for people who doubt it.

Source: kube-scheduler v1.36.2, pkg/scheduler/backend/cache/debugger/dumper.go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from podyard.cluster.node_table import NodeTable
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView, requested_by
from podyard.cluster.view import ClusterView


class PodRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A pod on a node, or nominated to it."""

    namespace: str
    name: str
    uid: str
    phase: str = ""
    """Empty: who shows it does not follow what agents say of pods."""
    nominated_node: str = ""
    own: str = ""
    """Why it is counted though the stream does not say so."""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A node as it is counted."""

    name: str
    deleted: bool
    """Whether there is no such node, and pods are counted on it all the same."""
    requested: dict[str, str]
    allocatable: dict[str, str]
    pod_count: int
    pods: tuple[PodRow, ...]
    nominated: tuple[PodRow, ...] = ()
    left_out: int = 0
    """Pods, and nominated ones, beyond those that are shown."""


class NodesDump(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The nodes, by name."""

    position: int
    """CLUSTER sequence up to which the cluster is known."""
    count: int
    nodes: tuple[NodeRow, ...]
    left_out: int
    """Nodes beyond those that are shown."""


class WaitingRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A pod that waits in a service. Times are seconds since 1970, UTC."""

    namespace: str
    name: str
    uid: str
    where: str
    attempt: str = ""
    node: str = ""
    """The node that it is to have."""
    since: float | None = None
    until: float | None = None
    """When it is given up, or looked at again."""
    why: str = ""


class WaitingDump(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What waits in a service."""

    counts: dict[str, int]
    pods: tuple[WaitingRow, ...]
    left_out: int


def of_waiting(rows: Iterable[WaitingRow], most: int) -> WaitingDump:
    """The first of the rows, and how many there are of each kind."""
    counts: dict[str, int] = {}
    shown: list[WaitingRow] = []
    for row in rows:
        counts[row.where] = counts.get(row.where, 0) + 1
        if len(shown) < most:
            shown.append(row)
    return WaitingDump(counts=counts, pods=tuple(shown), left_out=sum(counts.values()) - len(shown))


def of_table(
    table: NodeTable,
    nominated: Nominations,
    own: Mapping[str, str],
    *,
    position: int,
    most: int,
    most_pods: int,
) -> NodesDump:
    """The nodes of a table.

    :param own: by uid: why a pod is counted that the stream does not bind
    :param most: nodes that are shown
    :param most_pods: pods of each
    """

    def row(name: str) -> NodeRow:
        at = table.row_of.get(name)
        taken = requested_by(table.pods_on(name).values()) if at is None else table.room.taken(at).requests
        whole: Mapping[str, int] = {} if at is None else table.room.whole(at)
        pods = table.pods_on(name)
        return _row(name, at is None, taken, _texts(whole), pods, nominated.on(name), own, most_pods)

    return _dump({*table.row_of, *table.nodes_with_pods}, row, position, most)


def of_view(view: ClusterView, nominated: Nominations, *, most: int, most_pods: int) -> NodesDump:
    """The nodes of a view, for who keeps no table; as `of_table`."""

    def row(name: str) -> NodeRow:
        node, pods = view.nodes.get(name), view.pods_on(name)
        whole = {} if node is None else dict(node.node.status.allocatable)
        return _row(name, node is None, requested_by(pods.values()), whole, pods, nominated.on(name), {}, most_pods)

    return _dump({*view.nodes, *view.nodes_with_pods}, row, view.position, most)


def _dump(names: set[str], row: Callable[[str], NodeRow], position: int, most: int) -> NodesDump:
    shown = sorted(names)[:most]
    return NodesDump(
        position=position, count=len(names), nodes=tuple(map(row, shown)), left_out=len(names) - len(shown)
    )


def _row(
    name: str,
    deleted: bool,
    requested: Mapping[str, int],
    allocatable: dict[str, str],
    pods: Mapping[str, PodView],
    nominated: Mapping[str, PodView],
    own: Mapping[str, str],
    most_pods: int,
) -> NodeRow:
    return NodeRow(
        name=name,
        deleted=deleted,
        requested=_texts(requested),
        allocatable=allocatable,
        pod_count=len(pods),
        pods=tuple(_pods(islice(pods.values(), most_pods), own)),
        nominated=tuple(_pods(islice(nominated.values(), most_pods), {})),
        left_out=max(0, len(pods) - most_pods) + max(0, len(nominated) - most_pods),
    )


def _pods(pods: Iterable[PodView], own: Mapping[str, str]) -> Iterator[PodRow]:
    for pod in pods:
        yield PodRow(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            phase="" if pod.status is None else pod.status.phase,
            nominated_node=pod.nominated_node,
            own=own.get(pod.uid, ""),
        )


def _texts(amounts: Mapping[str, Any]) -> dict[str, str]:
    """Milli-CPU with their unit; all else is bytes or pieces."""
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in sorted(amounts.items())}
