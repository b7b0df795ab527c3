"""RemovePodsViolatingNodeTaints: evicts pods that do not tolerate their node's taints (any more).

NoExecute is not its business: the taint manager (workloads) ends those pods.
Source: pkg/framework/plugins/removepodsviolatingnodetaints (v0.36.0).
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import ClassVar, Final

from podyard.descheduler.core import arguments, event_hints, tolerations
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs, SelectorArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Registration, Run, Target, Verdict, evict_each
from podyard.objects import taints
from podyard.objects.affinity import Taint
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "RemovePodsViolatingNodeTaints"


class NodeTaintsArgs(PluginArgs, frozen=True, kw_only=True):
    """Taints are named `key` or `key=value`. `included_taints` None includes all, an empty list none."""

    namespaces: Namespaces | None = None
    label_selector: SelectorArgs | None = None
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
        self._candidates = Candidates(handle.evictor, args.namespaces, args.label_selector)

    @classmethod
    def faults(cls, args: NodeTaintsArgs) -> list[str]:
        """What is wrong with the arguments."""
        found = arguments.namespace_faults(args.namespaces) + arguments.selector_faults(args.label_selector)
        if args.included_taints and args.excluded_taints:
            found.append("either includedTaints or excludedTaints can be set, but not both")
        return found

    @classmethod
    def events_to_register(cls, args: NodeTaintsArgs) -> tuple[Registration, ...]:
        """Taints that it looks at."""
        return (event_hints.node_taints(partial(_considers, args)),)

    def deschedule(self, nodes: list[Node]) -> Run:
        """Node by node, pod by pod."""
        for node in nodes:
            if not any(_considers(self._args, taint) for taint in node.spec.taints):
                continue
            # Listed and filtered before the first of the node goes, as the reference does.
            pods = [pod for pod in self._handle.state.pods_on(node.metadata.name) if self._candidates.may_go(pod)]
            if (yield from evict_each(self._violating(node, pods))) is Answer.TOTAL_LIMIT:
                return

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Where it tolerates all taints that the plugin looks at."""
        taint = next((one for one in target.node.spec.taints if self._violated(one, pod)), None)
        return Verdict(taint is None, () if taint is None else (f"it does not tolerate its taint {_text(taint)}",))

    def _violating(self, node: Node, pods: Iterable[Pod]) -> Iterator[Evict]:
        for pod in pods:
            taint = next((one for one in node.spec.taints if self._violated(one, pod)), None)
            if taint is not None:
                yield Evict(pod, f"does not tolerate the taint {_text(taint)} of its node")

    def _violated(self, taint: Taint, pod: Pod) -> bool:
        return not tolerations.all_tolerated(pod.spec.tolerations, (taint,), partial(_considers, self._args))


def _considers(args: NodeTaintsArgs, taint: Taint) -> bool:
    """Whether the plugin looks at such a taint."""
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
