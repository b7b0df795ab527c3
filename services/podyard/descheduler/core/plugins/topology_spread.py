"""RemovePodsViolatingTopologySpreadConstraint: evicts pods from domains that have too many of them.

Source: pkg/framework/plugins/removepodsviolatingtopologyspreadconstraint (v0.36.0). minDomains is not looked
at.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Self

import msgspec

from podyard.descheduler.core import arguments, columns, event_hints, node_fit, ordering, tolerations
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs, SelectorArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Registration, Run, Target, Verdict
from podyard.descheduler.core.labelled import Labelled
from podyard.descheduler.core.node_fit import NodeFit
from podyard.descheduler.core.state import CycleState
from podyard.memory.latest import Latest
from podyard.objects import selectors
from podyard.objects.affinity import Toleration, TopologySpreadConstraint
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.selectors import RequiredNodeAffinity, Selector

NAME: Final = "RemovePodsViolatingTopologySpreadConstraint"
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
CONSTRAINTS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
HONOR: Final = "Honor"
IGNORE: Final = "Ignore"

KEPT_FITS: Final = 16
"""Sets of nodes of which a run keeps what it found out, the last ones asked for. Zones are few, and their
sets come again; those of host names hardly ever do, and each is as large as the cluster."""


class TopologySpreadArgs(PluginArgs, frozen=True, kw_only=True):
    """`constraints`: what they say to do with a pod that cannot be placed within the skew."""

    namespaces: Namespaces | None = None
    label_selector: SelectorArgs | None = None
    constraints: tuple[str, ...] = ()
    topology_balance_node_fit: bool | None = None
    """Only pods that a node of a smaller domain would take go."""

    def completed(self) -> Self:
        """Hard constraints only, and pods that fit."""
        return msgspec.structs.replace(
            self,
            constraints=self.constraints or (DO_NOT_SCHEDULE,),
            topology_balance_node_fit=self.topology_balance_node_fit is not False,
        )


class _Counted(NamedTuple):
    """Which nodes a constraint counts; that of many constraints is the same."""

    topology_key: str
    affinity: RequiredNodeAffinity | None
    tolerations: tuple[Toleration, ...] | None


class _Constraint(NamedTuple):
    """A constraint as pods carry it; the same from several pods is one."""

    max_skew: int
    topology_key: str
    selector: Selector
    affinity: RequiredNodeAffinity | None
    """Nodes that do not fulfil it have no domain. None: all do."""
    tolerations: tuple[Toleration, ...] | None
    """Nodes with other taints have no domain. None: taints are not looked at."""

    @property
    def counted(self) -> _Counted:
        """Which nodes it counts."""
        return _Counted(self.topology_key, self.affinity, self.tolerations)

    def counts(self, node: Node) -> bool:
        """Whether the node's domain is one of the constraint's, even without pods."""
        if self.affinity is not None and not node_fit.holds(self.affinity, node):
            return False
        return self.tolerations is None or tolerations.all_tolerated(
            self.tolerations, node.spec.taints, columns.is_hard
        )


class _Nodes:
    """The nodes of one run. What constraints ask of them is looked at once for all that ask the same."""

    def __init__(self, nodes: list[Node], state: CycleState) -> None:
        self._nodes = nodes
        self._state = state
        self._values: dict[str, dict[str, str]] = {}
        self._counted: dict[_Counted, list[Node]] = {}
        self._domains: dict[_Counted, tuple[str, ...]] = {}
        self._fits = Latest[tuple[_Counted, frozenset[str]], NodeFit](KEPT_FITS)

    def values(self, topology_key: str) -> dict[str, str]:
        """The value of the key by node; nodes without one are left out."""
        found = self._values.get(topology_key)
        if found is None:
            found = self._values[topology_key] = {
                node.metadata.name: node.metadata.labels[topology_key]
                for node in self._nodes
                if topology_key in node.metadata.labels
            }
        return found

    def counted(self, constraint: _Constraint) -> list[Node]:
        """The nodes with the key that the constraint counts."""
        kind = constraint.counted
        found = self._counted.get(kind)
        if found is None:
            values = self.values(constraint.topology_key)
            found = self._counted[kind] = [
                node for node in self._nodes if node.metadata.name in values and constraint.counts(node)
            ]
        return found

    def domains(self, constraint: _Constraint) -> tuple[str, ...]:
        """The values of the key on the nodes that the constraint counts, each once."""
        kind = constraint.counted
        found = self._domains.get(kind)
        if found is None:
            values = self.values(constraint.topology_key)
            nodes = self.counted(constraint)
            found = self._domains[kind] = tuple(dict.fromkeys(values[node.metadata.name] for node in nodes))
        return found

    def fit(self, constraint: _Constraint, values: frozenset[str]) -> NodeFit:
        """Whether a node that the constraint counts, of a domain with one of these values, would take a pod.
        Nothing moves while constraints are looked at: what one has found out holds for the next of the same
        nodes."""
        asked = constraint.counted, values
        found = self._fits.get(asked)
        if found is None:
            value_of = self.values(constraint.topology_key)
            chosen = (node for node in self.counted(constraint) if value_of[node.metadata.name] in values)
            found = NodeFit(chosen, self._state)
        self._fits.keep(asked, found)
        return found


class _Domain:
    """One domain; its pods, of which those at the end go first."""

    __slots__ = ("pods", "value")

    def __init__(self, value: str) -> None:
        self.value = value
        self.pods: list[Pod] = []


class _Crowded:
    """A constraint for which pods are to go, and how many pods its domains have left."""

    __slots__ = ("constraint", "sizes", "value_of")

    def __init__(self, constraint: _Constraint, value_of: dict[str, str], sizes: dict[str, int]) -> None:
        """
        :param value_of: the value of the topology key by node
        :param sizes: pods by value
        """
        self.constraint = constraint
        self.value_of = value_of
        self.sizes = sizes

    def left(self, pod: Pod) -> None:
        """It has gone."""
        self.sizes[self.value_of[pod.spec.node_name]] -= 1

    def size(self, value: str, coming: Mapping[str, Sequence[Pod]], namespace: str) -> int:
        """How many pods a domain has, with those that go there."""
        selector, count = self.constraint.selector, self.sizes.get(value, 0)
        for node, pods in coming.items():
            if self.value_of.get(node) == value:
                count += sum(
                    pod.metadata.namespace == namespace and selector.matches(pod.metadata.labels) for pod in pods
                )
        return count


class RemovePodsViolatingTopologySpreadConstraint:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = TopologySpreadArgs

    def __init__(self, args: TopologySpreadArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces, args.label_selector)
        self._crowded: dict[tuple[str, str], _Crowded] = {}
        """Why pods are to go in the run that is on, by their names."""

    @classmethod
    def faults(cls, args: TopologySpreadArgs) -> list[str]:
        """What is wrong with the arguments."""
        found = arguments.namespace_faults(args.namespaces) + arguments.selector_faults(args.label_selector)
        known = " ".join(f"{name}:{{}}" for name in CONSTRAINTS)
        found += [f"constraint {one} is not one of map[{known}]" for one in args.constraints if one not in CONSTRAINTS]
        return found

    @classmethod
    def events_to_register(cls, args: TopologySpreadArgs) -> tuple[Registration, ...]:
        """New nodes, pods that leave, other labels of either: domains come, or have other numbers of pods."""
        return event_hints.NODE_CAME, event_hints.NODE_LABELS, event_hints.POD_LEFT, event_hints.POD_LABELS

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Where the domain has fewer pods than the pod's own would have without it."""
        found = self._crowded[pod.key]
        key = found.constraint.topology_key
        here, there = pod.spec.node_name, target.node.metadata.labels.get(key)
        if there is None:
            return Verdict(False, (f"it has no label {key}",))
        fits = found.size(there, target.coming, pod.metadata.namespace) + 1 < found.sizes[found.value_of[here]]
        return Verdict(fits, () if fits else (f"its domain of {key} would have as many pods",))

    def balance(self, nodes: list[Node]) -> Run:
        """All namespaces are looked at before the first pod goes. A node that has reached its limit keeps its
        pods, others go on."""
        full: set[str] = set()
        self._crowded.clear()
        for pod, reason in self._too_many(nodes).values():
            if pod.spec.node_name in full or not self._candidates.may_go(pod):
                continue
            answer = yield Evict(pod, reason)
            if answer is Answer.TOTAL_LIMIT:
                return
            if answer is Answer.NODE_LIMIT:
                full.add(pod.spec.node_name)
            if answer is Answer.EVICTED:
                self._crowded[pod.key].left(pod)

    def _too_many(self, nodes: list[Node]) -> dict[tuple[str, str], Evict]:
        """The pods that are to go, by name; a pod is named once, whatever the number of its constraints."""
        by_namespace: dict[str, list[Pod]] = {}
        for node in nodes:
            for pod in self._handle.state.pods_on(node.metadata.name):
                if self._candidates.passes_filter(pod):
                    by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
        found: dict[tuple[str, str], Evict] = {}
        asked = _Nodes(nodes, self._handle.state)
        for pods in by_namespace.values():
            counted = Labelled(pod for pod in pods if pod.metadata.deletion_timestamp is None)
            for constraint in self._constraints(pods):
                for ask, crowded in self._beyond(constraint, counted, asked):
                    found.setdefault(ask.pod.key, ask)
                    self._crowded.setdefault(ask.pod.key, crowded)
        return found

    def _constraints(self, pods: list[Pod]) -> list[_Constraint]:
        """Those of a namespace, each once; one whose selector makes no sense is passed over."""
        found: dict[_Constraint, None] = {}
        for pod in pods:
            for constraint in pod.spec.topology_spread_constraints:
                if constraint.when_unsatisfiable not in self._args.constraints:
                    continue
                try:
                    found[_compiled(constraint, pod)] = None
                except SelectorError:
                    continue
        return list(found)

    def _beyond(self, constraint: _Constraint, pods: Labelled, nodes: _Nodes) -> Iterator[tuple[Evict, _Crowded]]:
        """The pods of a namespace that go for one constraint."""
        domains = _domains(constraint, pods, nodes)
        sizes = [len(domain.pods) for domain in domains]
        if not domains or max(sizes) - min(sizes) <= constraint.max_skew:
            return
        average = sum(sizes) / len(domains)
        counts = {domain.value: len(domain.pods) for domain in domains}
        crowded = _Crowded(constraint, nodes.values(constraint.topology_key), counts)
        for domain in domains:
            domain.pods.sort(key=self._place)
        domains.sort(key=lambda domain: (len(domain.pods), domain.value))
        below = frozenset(domain.value for domain in domains if len(domain.pods) < average)
        fits = _Fits(nodes.fit(constraint, below))
        reason = (
            f"its domain of {constraint.topology_key} has too many pods, with a skew of more than {constraint.max_skew}"
        )
        for pod in self._moved(domains, average, constraint.max_skew, fits):
            yield Evict(pod, reason), crowded

    def _place(self, pod: Pod) -> tuple[bool, bool, tuple[bool, int]]:
        """Where a pod stands in its domain: those that may not go, those that choose their nodes, all others;
        each by ascending priority (docs/rules.md, spreading-takes-the-most-important-first)."""
        affinity = pod.spec.affinity
        chooses = bool(pod.spec.node_selector) or (affinity is not None and affinity.node_affinity is not None)
        return self._handle.evictor.filter(pod).allowed, not chooses, ordering.priority_rank(pod)

    def _moved(self, domains: list[_Domain], average: float, max_skew: int, fits: "_Fits") -> Iterator[Pod]:
        """From large domains to small ones, until all are as near to the average as the skew asks for. A pod
        that fits nowhere counts as moved, but stays."""
        small, large = 0, len(domains) - 1
        while small < large:
            if len(domains[large].pods) <= average:
                large -= 1
            above, below = domains[large].pods, domains[small].pods
            skew = len(above) - len(below)
            if skew <= max_skew:
                small += 1
                continue
            count = min(
                math.ceil(len(above) - average), math.ceil(average - len(below)), math.ceil((skew - max_skew) / 2)
            )
            if count <= 0:
                small += 1
                continue
            above.sort(key=fits)
            leaving = above[-count:]
            yield from (pod for pod in leaving if not self._args.topology_balance_node_fit or fits(pod))
            domains[large].pods = above[:-count]
            below += leaving


class _Fits:
    """Whether one of the nodes that need more pods would take a pod. Nothing moves while this is asked, so
    each pod is looked at once."""

    def __init__(self, fit: NodeFit) -> None:
        self._fit = fit
        self._known: dict[tuple[str, str], bool] = {}

    def __call__(self, pod: Pod) -> bool:
        found = self._known.get(pod.key)
        if found is None:
            found = self._known[pod.key] = self._fit.elsewhere(pod)
        return found


def _compiled(constraint: TopologySpreadConstraint, pod: Pod) -> _Constraint:
    """
    :raises SelectorError: if its selector makes no sense
    """
    selector = selectors.compile_labels(constraint.label_selector)
    labels = pod.metadata.labels
    own = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    if own and not selector.nothing:
        both = (*selectors.compile_map(own).requirements, *selector.requirements)
        selector = Selector(tuple(sorted(both, key=lambda one: one.key)))
    by_affinity = (constraint.node_affinity_policy or HONOR) == HONOR
    by_taints = (constraint.node_taints_policy or IGNORE) == HONOR
    return _Constraint(
        constraint.max_skew,
        constraint.topology_key,
        selector,
        selectors.required_node_affinity(pod) if by_affinity else None,
        pod.spec.tolerations if by_taints else None,
    )


def _domains(constraint: _Constraint, pods: Labelled, nodes: _Nodes) -> list[_Domain]:
    """The domains of the nodes that count, and those with pods, each with the pods that are counted."""
    value_of = nodes.values(constraint.topology_key)
    found = {value: _Domain(value) for value in nodes.domains(constraint)}
    for pod in pods.matching(constraint.selector):
        value = value_of.get(pod.spec.node_name)
        if value is None:
            continue
        if value not in found:
            found[value] = _Domain(value)
        found[value].pods.append(pod)
    return list(found.values())
