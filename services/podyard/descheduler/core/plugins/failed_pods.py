"""RemoveFailedPods: evicts pods in the phase Failed, so that what owns them makes others.

Source: pkg/framework/plugins/removefailedpods (v0.36.0).
"""

from typing import ClassVar, Final, Self

import msgspec

from podyard.descheduler.core import ages, arguments, container_states
from podyard.descheduler.core.arguments import Args, Int32, Namespaces, PluginArgs, SelectorArgs, Unsigned
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Run, evict_each
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "RemoveFailedPods"
DEFAULT_AGE_S: Final = 3600


class FailedPodsArgs(PluginArgs, frozen=True, kw_only=True):
    """All that is set must hold; of a list, one entry."""

    namespaces: Namespaces | None = None
    label_selector: SelectorArgs | None = None
    exclude_owner_kinds: tuple[str, ...] = ()
    min_pod_lifetime_seconds: Unsigned | None = None
    reasons: tuple[str, ...] = ()
    """Of the pod, or of a container that waits or has ended."""
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False

    def completed(self) -> Self:
        """Pods that have just failed stay."""
        if self.min_pod_lifetime_seconds is not None:
            return self
        return msgspec.structs.replace(self, min_pod_lifetime_seconds=DEFAULT_AGE_S)


class RemoveFailedPods:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = FailedPodsArgs

    def __init__(self, args: FailedPodsArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces, args.label_selector)

    @classmethod
    def faults(cls, args: FailedPodsArgs) -> list[str]:
        """What is wrong with the arguments."""
        return arguments.namespace_faults(args.namespaces) + arguments.selector_faults(args.label_selector)

    def deschedule(self, nodes: list[Node]) -> Run:
        """Node by node."""
        for node in nodes:
            pods = self._handle.state.all_pods_on(node.metadata.name)
            failed = [pod for pod in pods if self._matches(pod) and self._candidates.may_go(pod)]
            if (yield from evict_each(Evict(pod, "has failed") for pod in failed)) is Answer.TOTAL_LIMIT:
                return

    def _matches(self, pod: Pod) -> bool:
        args = self._args
        if pod.status.phase != "Failed" or not self._old_enough(pod):
            return False
        if any(owner.kind in args.exclude_owner_kinds for owner in pod.metadata.owner_references):
            return False
        found = list(container_states.statuses(pod, init=args.including_init_containers))
        if args.reasons:
            told = (
                pod.status.reason,
                *container_states.waiting_reasons(found),
                *container_states.terminated_reasons(found),
            )
            if not any(reason and reason in args.reasons for reason in told):
                return False
        return not args.exit_codes or any(code in args.exit_codes for code in container_states.exit_codes(found))

    def _old_enough(self, pod: Pod) -> bool:
        """At least that old, in whole seconds."""
        least = self._args.min_pod_lifetime_seconds
        if least is None:
            return True
        age = ages.pod_age_s(pod, self._handle.now)
        return age is not None and age >= least
