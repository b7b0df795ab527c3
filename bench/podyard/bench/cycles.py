"""`bench cycle`: what one scheduling cycle costs, in this process, by kind of pod and size of the cluster.

Every pod is assumed on its node after its cycle, so that the next cycle meets a cluster that has changed.
Times are CPU times of this thread, so that other work on the machine counts as little as possible. Pods are
made before the clock starts; what is worked out of a pod for the first time (its requests, its signature)
counts as part of its cycle.
"""

import gc
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Final

import msgspec

from podyard.bench import cluster
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle
from podyard.framework.plugin_times import PluginTimes
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot

FIRST_PODS: Final = 200
"""Pods of each kind that share nothing with an earlier one: more than there are signatures whose results are
kept."""
SEEN_PODS: Final = 200
"""Pods of one signature; the first two are not counted: nobody has seen them."""
NOT_COUNTED: Final = 2
Progress = Callable[[str], None]


class KindCost(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of pod on one cluster. Microseconds, medians."""

    first_us: float
    """Nothing is shared with an earlier pod."""
    seen_us: float
    """An equal pod was scheduled before, and assumed."""
    assume_us: float
    """Counting the pod on its node afterwards, all indexes included; in no other figure."""


class SizeCost(msgspec.Struct, frozen=True, kw_only=True):
    """All kinds on one cluster."""

    nodes: int
    pods: int
    """Placed before the first cycle."""
    kinds: dict[str, KindCost]


class CycleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `bench cycle` found."""

    nodes: int
    pods: int
    kinds: dict[str, KindCost]
    curve: tuple[SizeCost, ...]
    """The same for each size of cluster, ascending."""


class UnplacedError(Exception):
    """A pod of the benchmark found no node: the figures would be of something else."""

    def __init__(self, kind: str, nodes: int, message: str) -> None:
        super().__init__(f"a pod of kind {kind} found no node of {nodes}: {message}")


def measure(profile: Profile, sizes: tuple[int, ...], main: int, progress: Progress = lambda text: None) -> CycleResult:
    """All kinds of pods on clusters of these sizes.

    :param sizes: numbers of nodes, each with two placed pods a node
    :param main: the size whose figures come first; one of `sizes`
    """
    curve = tuple(measure_size(profile, nodes, progress) for nodes in sorted(sizes))
    chosen = next(one for one in curve if one.nodes == main)
    return CycleResult(nodes=chosen.nodes, pods=chosen.pods, kinds=chosen.kinds, curve=curve)


def measure_size(profile: Profile, nodes: int, progress: Progress) -> SizeCost:
    """All kinds of pods on one cluster."""
    progress(f"{nodes:,} nodes: placing {nodes * cluster.PODS_A_NODE:,} pods")
    table = cluster.table(nodes)
    cycle = Cycle(profile, Snapshot(table), time.perf_counter, plugin_times=PluginTimes(time.perf_counter))
    gc.collect()
    gc.freeze()
    kinds: dict[str, KindCost] = {}
    for kind in cluster.KINDS:
        progress(f"{nodes:,} nodes: {kind}")
        kinds[kind] = _measure_kind(cycle, table, kind)
    gc.unfreeze()
    return SizeCost(nodes=nodes, pods=nodes * cluster.PODS_A_NODE, kinds=kinds)


def _measure_kind(cycle: Cycle, table: NodeTable, kind: str) -> KindCost:
    first = _run(cycle, table, kind, cluster.different(kind, FIRST_PODS))
    seen = _run(cycle, table, kind, cluster.alike(kind, SEEN_PODS))[NOT_COUNTED:]
    return KindCost(
        first_us=_us([one for one, _ in first]),
        seen_us=_us([one for one, _ in seen]),
        assume_us=_us([assumed for _, assumed in seen]),
    )


def _run(cycle: Cycle, table: NodeTable, kind: str, pods: Iterator[PodView]) -> list[tuple[float, float]]:
    """Seconds of each pod's cycle, and of assuming it."""
    clock = time.thread_time
    times: list[tuple[float, float]] = []
    for pod in list(pods):
        begun = clock()
        result = cycle.run(pod)
        ended = clock()
        if not result.node:
            raise UnplacedError(kind, len(table), result.message)
        placed = placed_on(pod, result.node)
        assuming = clock()
        table.place(placed)
        times.append((ended - begun, clock() - assuming))
    return times


def placed_on(pod: PodView, node: str) -> PodView:
    """The pod, assumed on a node."""
    return pod.with_placement(pod.bound_to(node), None)


def _us(seconds: list[float]) -> float:
    return round(median(seconds) * 1e6, 1)
