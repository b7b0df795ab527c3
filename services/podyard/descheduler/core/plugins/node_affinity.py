"""RemovePodsViolatingNodeAffinity: evicts pods whose node is not, or no longer, one that they need or prefer.

Source: pkg/framework/plugins/removepodsviolatingnodeaffinity (v0.36.0); pkg/descheduler/node/node.go;
pkg/utils/predicates.go, GetNodeWeightGivenPodPreferredAffinity.
"""

from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple, TypeAlias

from podyard.descheduler.core import arguments, event_hints, node_fit
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs, SelectorArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Registration, Run, Target, Verdict, evict_each
from podyard.descheduler.core.node_fit import NodeFit
from podyard.objects import selectors
from podyard.objects.affinity import NodeAffinity, PreferredSchedulingTerm
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.selectors import NodeTerms

NAME: Final = "RemovePodsViolatingNodeAffinity"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

Violates: TypeAlias = Callable[[Pod, Node], bool]
"""Whether the pod should not be on that node, which is its own."""


class NodeAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    """`node_affinity_type`: REQUIRED, PREFERRED, in the order in which they are looked at. Others are passed
    over, as the reference does."""

    namespaces: Namespaces | None = None
    label_selector: SelectorArgs | None = None
    node_affinity_type: tuple[str, ...] = ()


class _Preference(NamedTuple):
    weight: int
    terms: NodeTerms


class _Preferences(NamedTuple):
    """What some pods prefer."""

    preferences: list[_Preference]
    most: int
    """What they give to the node that they like best; 0 at least."""


class RemovePodsViolatingNodeAffinity:
    """One run for each type over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = NodeAffinityArgs

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces, args.label_selector)
        self._violates: Violates | None = None
        """Of the type that is looked at."""

    @classmethod
    def faults(cls, args: NodeAffinityArgs) -> list[str]:
        """What is wrong with the arguments."""
        found = [] if args.node_affinity_type else ["nodeAffinityType needs to be set"]
        found += arguments.namespace_faults(args.namespaces)
        return found + arguments.selector_faults(args.label_selector)

    @classmethod
    def events_to_register(cls, args: NodeAffinityArgs) -> tuple[Registration, ...]:
        """Other labels; for what pods prefer, new nodes too."""
        more = (event_hints.NODE_CAME,) if PREFERRED in args.node_affinity_type else ()
        return event_hints.NODE_LABELS, *more

    def deschedule(self, nodes: list[Node]) -> Run:
        """Type by type."""
        for kind in self._args.node_affinity_type:
            if kind == REQUIRED:
                reason, violates = "its node does not fulfil its required node affinity", _needs_another
            elif kind == PREFERRED:
                reason, violates = "another node fulfils its preferred node affinity better", _PrefersAnother(nodes)
            else:
                continue
            yield from self._run(nodes, violates, reason)

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Where what it needs is fulfilled, or what it prefers is fulfilled better: whichever is looked
        at."""
        if self._violates is _needs_another:
            allowed = not _needs_another(pod, target.node)
            return Verdict(allowed, () if allowed else ("its required node affinity is not fulfilled there either",))
        assert isinstance(self._violates, _PrefersAnother), "it is asked during a run"
        here = self._handle.state.node(pod.spec.node_name)
        allowed = here is None or self._violates.weight(pod, here) < self._violates.weight(pod, target.node)
        return Verdict(allowed, () if allowed else ("it does not fulfil what it prefers better",))

    def _run(self, nodes: list[Node], violates: Violates, reason: str) -> Run:
        """A pod goes only if a node would take it, be it the one where it is."""
        state, self._violates = self._handle.state, violates
        fit = NodeFit(nodes, state)
        for node in nodes:
            pods = [
                pod
                for pod in state.pods_on(node.metadata.name)
                if violates(pod, node) and self._candidates.may_go(pod) and fit.somewhere(pod)
            ]
            if (yield from evict_each(Evict(pod, reason) for pod in pods)) is Answer.TOTAL_LIMIT:
                return


def _node_affinity(pod: Pod) -> NodeAffinity | None:
    return None if pod.spec.affinity is None else pod.spec.affinity.node_affinity


def _needs_another(pod: Pod, node: Node) -> bool:
    """A nodeSelector alone does not count, but does together with the affinity."""
    affinity = _node_affinity(pod)
    if affinity is None or affinity.required_during_scheduling_ignored_during_execution is None:
        return False
    return not node_fit.holds(selectors.required_node_affinity(pod), node)


class _PrefersAnother:
    """Whether a node would be liked better. What is liked best is looked for once for all pods that prefer
    the same."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._known: dict[tuple[PreferredSchedulingTerm, ...], _Preferences] = {}

    def __call__(self, pod: Pod, node: Node) -> bool:
        affinity = _node_affinity(pod)
        if affinity is None or not affinity.preferred_during_scheduling_ignored_during_execution:
            return False
        wanted = affinity.preferred_during_scheduling_ignored_during_execution
        found = self._of(wanted)
        return _weight(found.preferences, node) < found.most

    def weight(self, pod: Pod, node: Node) -> int:
        """What the pod gives to a node."""
        affinity = _node_affinity(pod)
        wanted = () if affinity is None else affinity.preferred_during_scheduling_ignored_during_execution
        return _weight(self._of(wanted).preferences, node)

    def _of(self, wanted: tuple[PreferredSchedulingTerm, ...]) -> _Preferences:
        found = self._known.get(wanted)
        if found is None:
            found = self._known[wanted] = self._preferences(wanted)
        return found

    def _preferences(self, wanted: tuple[PreferredSchedulingTerm, ...]) -> _Preferences:
        preferences = [_Preference(one.weight, NodeTerms((selectors.compile_term(one.preference),))) for one in wanted]
        return _Preferences(preferences, max((0, *(_weight(preferences, node) for node in self._nodes))))


def _weight(preferences: list[_Preference], node: Node) -> int:
    """What the pod gives to the node; preferences that make no sense give nothing."""
    return sum(one.weight for one in preferences if node_fit.holds(one.terms, node))
