"""What LowNodeUtilization and HighNodeUtilization share: thresholds, which nodes are below and above them,
and moving pods from one kind of node to the other.

Amounts are nano-units; percentages and what a threshold leaves of a node are computed from milli-CPU and
whole units in floats, as the reference does. Source: pkg/framework/plugins/nodeutilization (v0.36.0).
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from podyard.descheduler.core import ordering, tolerations
from podyard.descheduler.core.arguments import Namespaces
from podyard.descheduler.core.framework import Answer, Evict, Handle, PluginError, Run
from podyard.descheduler.core.measured import Amounts
from podyard.descheduler.core.usage import BASIC, CPU, METRIC, PODS, Usage
from podyard.objects import quantity
from podyard.objects.affinity import Taint
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.quantity import Quantity

Thresholds: TypeAlias = dict[str, float]
"""Percent by resource."""

MIN_PERCENT: Final = 0
MAX_PERCENT: Final = 100
_ALL_OF_METRIC: Final = 100
"""Of how much the share is that a query tells."""


def threshold_fault(thresholds: Thresholds | None) -> str:
    """The first thing that is wrong with thresholds; empty if nothing is."""
    if not thresholds:
        return "no resource threshold is configured"
    for name in sorted(thresholds):
        if not MIN_PERCENT <= thresholds[name] <= MAX_PERCENT:
            return f"{name} threshold not in [{MIN_PERCENT}, {MAX_PERCENT}] range"
    return ""


def namespace_fault(namespaces: Namespaces | None) -> str:
    """What is wrong with the namespaces whose pods may go; empty if nothing is."""
    if namespaces is not None and namespaces.include:
        return "only Exclude namespaces can be set, inclusion is not supported"
    return ""


def resources_of(thresholds: Thresholds) -> tuple[str, ...]:
    """What is counted: what has a threshold; cpu, memory and pods in any case."""
    return tuple(dict.fromkeys((*thresholds, *BASIC)))


def percentages(used: Amounts, node: Node) -> Thresholds:
    """How much of a node is used. What the node does not know has no percentage, what it has none of 0."""
    found: Thresholds = {}
    for name, amount in used.items():
        capacity = _capacity(node, name)
        if capacity is not None:
            whole = _units(name, capacity)
            found[name] = float(_units(name, amount)) / float(whole) * 100 if whole > 0 else 0.0
    return found


def is_below(used: Thresholds, thresholds: Thresholds) -> bool:
    """Whether nothing is used more than its threshold. Equal is below
    (docs/rules.md, usage-at-a-threshold-is-below-it)."""
    return all(percent >= used.get(name, 0.0) for name, percent in thresholds.items())


def is_above(used: Thresholds, thresholds: Thresholds) -> bool:
    """Whether something is used more than its threshold. Equal is not above."""
    return not is_below(used, thresholds)


def around_average(used: Iterable[Thresholds], below: Thresholds, above: Thresholds) -> tuple[Thresholds, Thresholds]:
    """Thresholds that lie so far below and above the average of all nodes, within 0 and 100."""
    sums: dict[str, tuple[float, int]] = {}
    for one in used:
        for name, percent in one.items():
            total, count = sums.get(name, (0.0, 0))
            sums[name] = total + percent, count + 1
    average = {name: total / count for name, (total, count) in sums.items()}
    low = {name: _clamped(percent - below.get(name, 0.0)) for name, percent in average.items()}
    high = {name: _clamped(percent + above.get(name, 0.0)) for name, percent in average.items()}
    return low, high


def _clamped(percent: float) -> float:
    return min(max(percent, float(MIN_PERCENT)), float(MAX_PERCENT))


class NodeState:
    """A node that pods are moved from or to. `used` changes as pods go."""

    __slots__ = ("cap", "node", "pods", "used")

    def __init__(self, node: Node, used: dict[str, int], pods: list[Pod], cap: dict[str, int]) -> None:
        """
        :param pods: those that had not ended when usage was looked at
        :param cap: how much of it may be used
        """
        self.node = node
        self.used = used
        self.pods = pods
        self.cap = cap

    def over_cap(self) -> bool:
        """Whether more of something is used than may be."""
        return any(self.cap[name] < amount for name, amount in self.used.items())

    def total(self) -> int:
        """For sorting by usage: milli-CPU, bytes and pieces in one sum, as the reference adds them."""
        return sum(_units(name, amount) for name, amount in self.used.items())


def capped(node: Node, thresholds: Thresholds, resources: Iterable[str]) -> dict[str, int]:
    """How much of a node its thresholds allow: all of what has none, nothing of what the node does not
    know."""
    return {name: _cap(_capacity(node, name), thresholds.get(name), name) for name in resources}


def with_pods(used: Amounts, pods: Iterable[Pod], usage: Usage) -> dict[str, int] | None:
    """What is used of a node with these pods besides; None if nobody knows what pods use.

    :raises PluginError: if it is not known of one of them
    """
    found = dict(used)
    for pod in pods:
        more = usage.of_pod(pod)
        if more is None:
            return None
        for name in found:
            found[name] += quantity.NANO if name == PODS else more.get(name, 0)
    return found


def _cap(capacity: int | None, percent: float | None, name: str) -> int:
    if capacity is None or percent is None:
        return capacity or 0
    unit = quantity.NANO_PER_MILLI if name == CPU else quantity.NANO
    return int(percent * 0.01 * float(_units(name, capacity))) * unit


def _capacity(node: Node, name: str) -> int | None:
    """What a node has of a resource: allocatable, or capacity if nothing is said to be allocatable. None: it
    does not know the resource."""
    if name == METRIC:
        return _ALL_OF_METRIC * quantity.NANO
    listed = node.status.allocatable or node.status.capacity
    return quantity.nano(listed[name]) if name in listed else None


def _units(name: str, nano: int) -> int:
    """Milli-CPU, or whole units, rounded up."""
    return Quantity(nano).milli() if name == CPU else Quantity(nano).value()


class Move(NamedTuple):
    """What is moved, by which rules."""

    handle: Handle
    usage: Usage
    resources: tuple[str, ...]
    namespaces: Namespaces | None
    may_leave: Callable[[Pod], bool]
    goes_on: Callable[[NodeState, Mapping[str, int]], bool]
    """Whether more pods are to leave a node, by what is available at the destinations."""
    per_node: int | None
    """How many pods may leave a node in this run; None: as many as need be."""
    reason: str

    def run(self, sources: Iterable[NodeState], destinations: list[NodeState]) -> Run:
        """Node by node in the order of `sources`."""
        available = {name: sum(one.cap[name] - one.used[name] for one in destinations) for name in self.resources}
        taints = {one.node.spec.taints for one in destinations}
        for source in sources:
            pods = ordering.least_important_first(pod for pod in source.pods if self.may_leave(pod))
            if pods and (yield from self._leave(source, pods, available, taints)) is Answer.TOTAL_LIMIT:
                return

    def _leave(
        self, source: NodeState, pods: list[Pod], available: dict[str, int], taints: set[tuple[Taint, ...]]
    ) -> Generator[Evict, Answer, Answer | None]:
        """The pods of one node, until enough have gone or no more may go."""
        if not self.goes_on(source, available):
            return None
        gone = 0
        for pod in pods:
            if self.per_node is not None and gone >= self.per_node:
                return None
            if not tolerates_one(pod, taints) or not self._may_go(pod):
                continue
            try:
                used = self.usage.of_pod(pod)
            except PluginError:
                continue  # what it would free is not known: it stays
            answer = yield Evict(pod, self.reason)
            if answer in (Answer.TOTAL_LIMIT, Answer.NODE_LIMIT):
                return answer
            if answer is not Answer.EVICTED:
                continue
            gone += 1
            if used is None:
                if self.per_node is None:
                    return None  # nobody knows what that freed: one at a time
                continue
            for name in available:
                amount = quantity.NANO if name == PODS else used.get(name, 0)
                source.used[name] -= amount
                available[name] -= amount
            if not self.goes_on(source, available):
                return None
        return None

    def _may_go(self, pod: Pod) -> bool:
        if self.namespaces is not None and pod.metadata.namespace in self.namespaces.exclude:
            return False
        return self.handle.evictor.pre_eviction_filter(pod).allowed


def anything_left(available: Mapping[str, int]) -> bool:
    """Whether the destinations have something left of every resource."""
    return all(amount > 0 for amount in available.values())


def tolerates_one(pod: Pod, destinations: Iterable[tuple[Taint, ...]]) -> bool:
    """Whether the pod tolerates all taints of one destination, PreferNoSchedule too. One with more taints
    than the pod has tolerations does not count (docs/rules.md, tolerations-of-a-moved-pod-are-counted)."""
    held = pod.spec.tolerations
    return any(
        len(held) >= len(found) and tolerations.all_tolerated(held, found, lambda _taint: True)
        for found in destinations
    )
