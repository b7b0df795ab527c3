"""RemovePodsHavingTooManyRestarts: evicts pods whose containers were restarted too often on their node.

Source: pkg/framework/plugins/removepodshavingtoomanyrestarts (v0.36.0).
"""

from collections.abc import Iterable
from typing import ClassVar, Final

from podyard.descheduler.core import arguments, container_states
from podyard.descheduler.core.arguments import Args, Int32, Namespaces, PluginArgs, SelectorArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Run, evict_each
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "RemovePodsHavingTooManyRestarts"
STATES: Final = ("CrashLoopBackOff", "Running")


class TooManyRestartsArgs(PluginArgs, frozen=True, kw_only=True):
    """`states` narrows to pods in one of them: a phase, or why a container waits."""

    namespaces: Namespaces | None = None
    label_selector: SelectorArgs | None = None
    pod_restart_threshold: Int32 = 0
    including_init_containers: bool = False
    states: tuple[str, ...] = ()


class RemovePodsHavingTooManyRestarts:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = TooManyRestartsArgs

    def __init__(self, args: TooManyRestartsArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces, args.label_selector)

    @classmethod
    def faults(cls, args: TooManyRestartsArgs) -> list[str]:
        """What is wrong with the arguments."""
        found = arguments.namespace_faults(args.namespaces) + arguments.selector_faults(args.label_selector)
        if args.pod_restart_threshold < 1:
            found.append("invalid PodsHavingTooManyRestarts threshold")
        if not set(args.states) <= set(STATES):
            found.append(f"states must be one of [{' '.join(STATES)}]")
        return found

    def deschedule(self, nodes: list[Node]) -> Run:
        """Node by node, the most restarted first; also pods that have ended."""
        for node in nodes:
            pods = self._matching(self._handle.state.all_pods_on(node.metadata.name))
            asks = (Evict(pod, f"was restarted {self._restarts(pod)} times on its node") for pod in pods)
            if (yield from evict_each(asks)) is Answer.TOTAL_LIMIT:
                return

    def _matching(self, pods: Iterable[Pod]) -> list[Pod]:
        least = self._args.pod_restart_threshold
        found = [pod for pod in pods if self._restarts(pod) >= least and self._in_state(pod)]
        return sorted(filter(self._candidates.may_go, found), key=self._restarts, reverse=True)

    def _restarts(self, pod: Pod) -> int:
        found = container_states.statuses(pod, init=self._args.including_init_containers)
        return sum(one.restart_count for one in found)

    def _in_state(self, pod: Pod) -> bool:
        states = self._args.states
        found = container_states.statuses(pod, init=self._args.including_init_containers)
        return (
            not states
            or pod.status.phase in states
            or not set(container_states.waiting_reasons(found)).isdisjoint(states)
        )
