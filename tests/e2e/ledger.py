"""What the CLUSTER stream says about placements, read back and added up again, independent of every service's
own sums."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import anyio

from podyard.bus import Bus, Delivery, WatchSpec
from podyard.cluster.nodes import NodeView
from podyard.cluster.view import ClusterView
from podyard.objects import quantity
from podyard.proto import codec, streams, subjects
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Placement


class Ledger(NamedTuple):
    """Commits in their order, and what the subject of each binding holds, by uid."""

    commits: list[CommitRecord]
    placements: dict[str, Placement]
    after: int = 0
    """The commit before the first of them, when nothing was bound."""

    @property
    def live(self) -> dict[str, BoundPod]:
        """Bindings that are not released, by uid."""
        return {uid: one for uid, one in self.placements.items() if isinstance(one, Binding)}


def beginning(view: ClusterView) -> int:
    """The last commit so far, for a `read_back` of what comes. Nothing may be bound now."""
    return view.fence.n if view.fence is not None else 0


async def read_back(bus: Bus, after: int = 0) -> Ledger:
    """Everything below `placement.` as it is stored now.

    :param after: without this commit and those before it
    """
    found = _Collected()
    wanted = (subjects.ALL_COMMITS, subjects.ALL_BINDINGS)
    spec = WatchSpec(stream=streams.CLUSTER.name, list_subjects=wanted, follow_subjects=wanted)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bus.watch(spec, found).run)
        with anyio.fail_after(10):
            await found.complete.wait()
        tasks.cancel_scope.cancel()
    commits = [record for record in found.commits if record.n > after]
    return Ledger(sorted(commits, key=lambda record: record.n), found.placements, after)


def check_commits(ledger: Ledger, nodes: Mapping[str, NodeView]) -> None:
    """Play all commits again: no uid is bound twice, no node ever holds more than it has, what is left is
    what the bindings say.

    :raises AssertionError: naming the commit
    """
    bound: dict[str, BoundPod] = {}
    ever: set[str] = set()
    numbers = [record.n for record in ledger.commits]
    assert numbers == list(range(ledger.after + 1, ledger.after + len(numbers) + 1)), (
        f"commits are missing: there are {numbers}"
    )
    for record in ledger.commits:
        for pod in record.bindings:
            assert pod.uid not in ever, f"commit {record.n} binds {pod.name} {pod.uid} again"
            ever.add(pod.uid)
            bound[pod.uid] = pod
        for release in record.releases:
            assert bound.pop(release.uid).node == release.node, f"commit {record.n} releases {release.name} elsewhere"
        for node, used in usage(bound.values()).items():
            room = allocatable(nodes[node])
            over = {name: (amount, room.get(name, 0)) for name, amount in used.items() if amount > room.get(name, 0)}
            assert not over, f"commit {record.n} overloads {node}: {over}"
    left, stored = ({uid: pod.node for uid, pod in pods.items()} for pods in (bound, ledger.live))
    assert left == stored, f"the commits leave {left}, the bindings say {stored}"
    taken, told = usage(bound.values()), usage(ledger.live.values())
    assert taken == told, f"the commits take {taken}, the bindings say {told}"


def usage(pods: Iterable[BoundPod]) -> dict[str, Counter[str]]:
    """What pods take from each node, the pods themselves counted."""
    taken: dict[str, Counter[str]] = {}
    for pod in pods:
        taken.setdefault(pod.node, Counter()).update({**pod.usage.requests, "pods": 1})
    return taken


def allocatable(node: NodeView) -> dict[str, int]:
    """What a node has for pods: cpu in milli-CPU, others whole."""
    amounts = node.node.status.allocatable
    return {name: quantity.milli(text) if name == "cpu" else quantity.value(text) for name, text in amounts.items()}


class _Collected:
    """Keeps commits and placements of a listing."""

    def __init__(self) -> None:
        self.commits: list[CommitRecord] = []
        self.placements: dict[str, Placement] = {}
        self.complete = anyio.Event()

    def listing(self, target: int, reason: str) -> None:
        self.commits.clear()
        self.placements.clear()

    def deliver(self, delivery: Delivery) -> None:
        if delivery.deleted:
            return
        if delivery.subject.startswith(subjects.ALL_COMMITS.removesuffix(">")):
            self.commits.append(codec.decode(CommitRecord, delivery.payload))
        else:
            placement = codec.decoder(Placement).decode(delivery.payload)
            self.placements[placement.uid] = placement

    def synced(self, position: int) -> None:
        self.complete.set()

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...
