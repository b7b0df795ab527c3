"""RemovePodsViolatingNodeTaints: evicts pods that do not tolerate their node's taints (any more).

NoExecute is not its business: the taint manager (workloads) ends those pods.
Source: pkg/framework/plugins/removepodsviolatingnodetaints (v0.36.0).
"""

from typing import ClassVar, Final

from podyard.descheduler.core import arguments, tolerations
from podyard.descheduler.core.arguments import Args, Namespaces
from podyard.descheduler.core.framework import Answer, Evict, Handle, Run
from podyard.objects import taints
from podyard.objects.affinity import Taint
from podyard.objects.meta import LabelSelector
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "RemovePodsViolatingNodeTaints"


class NodeTaintsArgs(Args, frozen=True, kw_only=True):
    """Taints are named `key` or `key=value`. `included_taints` None includes all, an empty list none."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None
    include_prefer_no_schedule: bool = False
    excluded_taints: tuple[str, ...] = ()
    included_taints: tuple[str, ...] | None = None


class RemovePodsViolatingNodeTaints:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = NodeTaintsArgs

    def __init__(self, args: NodeTaintsArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._selector = arguments.compiled(args.label_selector)
        self._namespaces = args.namespaces or arguments.EVERY_NAMESPACE

    @classmethod
    def faults(cls, args: NodeTaintsArgs) -> list[str]:
        """What is wrong with the arguments."""
        found = arguments.namespace_faults(args.namespaces) + arguments.selector_faults(args.label_selector)
        if args.included_taints and args.excluded_taints:
            found.append("either includedTaints or excludedTaints can be set, but not both")
        return found

    def deschedule(self, nodes: list[Node]) -> Run:
        """Node by node, pod by pod."""
        for node in nodes:
            if not any(map(self._considers, node.spec.taints)):
                continue
            # Listed and filtered before the first of the node goes, as the reference does.
            candidates = [pod for pod in self._handle.state.pods_on(node.metadata.name) if self._takes(pod)]
            for pod in candidates:
                taint = next((one for one in node.spec.taints if self._violated(one, pod)), None)
                if taint is None:
                    continue
                answer = yield Evict(pod, f"does not tolerate the taint {_text(taint)} of its node")
                if answer is Answer.TOTAL_LIMIT:
                    return
                if answer is Answer.NODE_LIMIT:
                    break

    def _takes(self, pod: Pod) -> bool:
        evictor = self._handle.evictor
        return (
            self._namespaces.takes(pod.metadata.namespace)
            and self._selector.matches(pod.metadata.labels)
            and evictor.filter(pod).allowed
            and evictor.pre_eviction_filter(pod).allowed
        )

    def _violated(self, taint: Taint, pod: Pod) -> bool:
        return not tolerations.all_tolerated(pod.spec.tolerations, (taint,), self._considers)

    def _considers(self, taint: Taint) -> bool:
        args = self._args
        wanted = taint.effect == taints.NO_SCHEDULE or (
            args.include_prefer_no_schedule and taint.effect == taints.PREFER_NO_SCHEDULE
        )
        if not wanted or _named(taint, args.excluded_taints):
            return False
        return args.included_taints is None or _named(taint, args.included_taints)


def _named(taint: Taint, names: tuple[str, ...]) -> bool:
    return taint.key in names or (bool(taint.value) and f"{taint.key}={taint.value}" in names)


def _text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
