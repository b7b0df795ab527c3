"""PodLifeTime: evicts pods that are too old, or in states that they should have left.

Source: pkg/framework/plugins/podlifetime (v0.36.0).
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from podyard.descheduler.core import ages, arguments, container_states
from podyard.descheduler.core.arguments import Args, Int32, Namespaces, PluginArgs, SelectorArgs, Unsigned
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Run
from podyard.objects.meta import Condition
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "PodLifeTime"

PHASES: Final = ("Running", "Pending", "Succeeded", "Failed", "Unknown")
POD_REASONS: Final = ("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError")
WAITING_REASONS: Final = (
    "PodInitializing",
    "ContainerCreating",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "ErrImagePull",
    "CreateContainerError",
    "InvalidImageName",
)
TERMINATED_REASONS: Final = (
    "OOMKilled",
    "Error",
    "Completed",
    "DeadlineExceeded",
    "Evicted",
    "ContainerCannotRun",
    "StartError",
)
STATES: Final = tuple(sorted((*PHASES, *POD_REASONS, *WAITING_REASONS, *TERMINATED_REASONS)))


class OwnerKinds(Args, frozen=True, kw_only=True):
    """Pods with an owner of one of these kinds only, or those with none of them."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class ConditionFilter(Args, frozen=True, kw_only=True):
    """A condition that has all of this. What is left out is not looked at."""

    type: str = ""
    status: str = ""
    reason: str = ""
    min_time_since_last_transition_seconds: Unsigned | None = None


class PodLifeTimeArgs(PluginArgs, frozen=True, kw_only=True):
    """All that is set must hold; of a list, one entry."""

    namespaces: Namespaces | None = None
    label_selector: SelectorArgs | None = None
    owner_kinds: OwnerKinds | None = None
    max_pod_life_time_seconds: Unsigned | None = None
    states: tuple[str, ...] = ()
    """Phases of pods, reasons of pods, reasons of containers."""
    conditions: tuple[ConditionFilter, ...] = ()
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False
    """Looked at for `states` only."""


class PodLifeTime:
    """One run over all nodes, oldest pods first."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = PodLifeTimeArgs

    def __init__(self, args: PodLifeTimeArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces, args.label_selector)

    @classmethod
    def faults(cls, args: PodLifeTimeArgs) -> list[str]:
        """What is wrong with the arguments."""
        found = arguments.namespace_faults(args.namespaces)
        if args.owner_kinds is not None and args.owner_kinds.include and args.owner_kinds.exclude:
            found.append("only one of Include/Exclude ownerKinds can be set")
        found += arguments.selector_faults(args.label_selector)
        if not set(args.states) <= set(STATES):
            found.append(f"states must be one of [{' '.join(STATES)}]")
        needed = "at least one of type, status, reason, or minTimeSinceLastTransitionSeconds must be set"
        found += [f"conditions[{at}]: {needed}" for at, one in enumerate(args.conditions) if one == ConditionFilter()]
        if args.max_pod_life_time_seconds is None and not (args.states or args.conditions or args.exit_codes):
            criteria = "maxPodLifeTimeSeconds, states, conditions, or exitCodes"
            found.append(f"at least one filtering criterion must be specified ({criteria})")
        return found

    def deschedule(self, nodes: list[Node]) -> Run:
        """All nodes together, also pods that have ended. A node that has reached its limit keeps its pods,
        others go on."""
        pods = sorted(self._found(nodes), key=ages.created_at)
        for pod in pods:
            answer = yield Evict(pod, self._reason())
            if answer is Answer.TOTAL_LIMIT:
                return

    def _found(self, nodes: list[Node]) -> Iterator[Pod]:
        for node in nodes:
            for pod in self._handle.state.all_pods_on(node.metadata.name):
                if self._matches(pod) and self._candidates.may_go(pod):
                    yield pod

    def _reason(self) -> str:
        oldest = self._args.max_pod_life_time_seconds
        return "its state matches the policy" if oldest is None else f"is older than {oldest} s"

    def _matches(self, pod: Pod) -> bool:
        args = self._args
        return (
            self._old_enough(pod)
            and (not args.states or self._in_state(pod))
            and self._owned(pod)
            and (not args.conditions or self._has_condition(pod))
            and (not args.exit_codes or self._ended_with(pod))
        )

    def _old_enough(self, pod: Pod) -> bool:
        """Strictly older, in whole seconds."""
        oldest = self._args.max_pod_life_time_seconds
        if oldest is None:
            return True
        age = ages.pod_age_s(pod, self._handle.now)
        return age is not None and age > oldest

    def _in_state(self, pod: Pod) -> bool:
        args = self._args
        found = list(
            container_states.statuses(
                pod, init=args.including_init_containers, ephemeral=args.including_ephemeral_containers
            )
        )
        told = (
            pod.status.phase,
            pod.status.reason,
            *container_states.waiting_reasons(found),
            *container_states.terminated_reasons(found),
        )
        return any(state in args.states for state in told)

    def _owned(self, pod: Pod) -> bool:
        wanted = self._args.owner_kinds
        if wanted is None:
            return True
        kinds = {owner.kind for owner in pod.metadata.owner_references}
        if wanted.include:
            return not kinds.isdisjoint(wanted.include)
        return kinds.isdisjoint(wanted.exclude)

    def _has_condition(self, pod: Pod) -> bool:
        return any(
            self._fulfils(condition, wanted) for wanted in self._args.conditions for condition in pod.status.conditions
        )

    def _fulfils(self, condition: Condition, wanted: ConditionFilter) -> bool:
        if wanted.type not in ("", condition.type) or wanted.status not in ("", condition.status):
            return False
        if wanted.reason not in ("", condition.reason):
            return False
        least = wanted.min_time_since_last_transition_seconds
        if least is None:
            return True
        if not condition.last_transition_time:
            return False
        since = ages.age_s(condition.last_transition_time, self._handle.now)
        return since is not None and since >= least

    def _ended_with(self, pod: Pod) -> bool:
        found = container_states.statuses(pod, init=self._args.including_init_containers)
        return any(code in self._args.exit_codes for code in container_states.exit_codes(found))
