"""DefaultEvictor: which pods may be evicted, for all plugins of its profile.

Source: pkg/framework/plugins/defaultevictor (v0.36.0); data in tests/conformance/data/deschedule (`filter`).
"""

from typing import ClassVar, Final

from podyard.cluster.keys import NamespacedName
from podyard.descheduler.core import arguments, evictor_args, protections
from podyard.descheduler.core.arguments import Args
from podyard.descheduler.core.evictor_args import DefaultEvictorArgs
from podyard.descheduler.core.framework import Handle, Verdict
from podyard.descheduler.core.node_fit import NodeFit
from podyard.objects import label_text
from podyard.objects.errors import SelectorError
from podyard.objects.pod import Pod
from podyard.objects.selectors import Selector

NAME: Final = "DefaultEvictor"
EVICT_ANNOTATION: Final = "descheduler.alpha.kubernetes.io/evict"
"""On a pod, with any value: it may always be considered."""

REASON_NO_FIT: Final = (
    "pod does not fit on any other node because of nodeSelector(s), Taint(s), or nodes marked as unschedulable"
)
REASON_NAMESPACE: Final = "pod namespace do not match the namespaceLabelSelector filter in the policy parameter"


class DefaultEvictor:
    """Answers for one profile and one cycle."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = DefaultEvictorArgs

    def __init__(self, args: DefaultEvictorArgs, handle: Handle) -> None:
        """
        :raises ValueError: if a selector makes no sense
        """
        self._args = args
        self._handle = handle
        try:
            self._checks = protections.checks(args, handle.state, handle.now)
        except SelectorError as error:
            raise ValueError(error.detail) from error
        self._namespaces = _namespace_selector(args)
        self._node_fit: NodeFit | None = None
        self._judged: dict[NamespacedName, tuple[Pod, Verdict]] = {}
        """What the filter said of pods that have not changed since."""

    @classmethod
    def faults(cls, args: DefaultEvictorArgs) -> list[str]:
        """What is wrong with the arguments."""
        return evictor_args.faults(args)

    def filter(self, pod: Pod) -> Verdict:
        """All checks are made, so that a person sees all reasons. Plugins ask of the same pods: only a number
        of replicas changes meanwhile."""
        if self._args.min_replicas > 1:
            return self._judge(pod)
        known = self._judged.get(pod.key)
        if known is not None and known[0] is pod:
            return known[1]
        verdict = self._judge(pod)
        self._judged[pod.key] = pod, verdict
        return verdict

    def _judge(self, pod: Pod) -> Verdict:
        annotations = pod.metadata.annotations
        if EVICT_ANNOTATION in annotations:
            return Verdict(True)
        if (
            self._args.no_eviction_policy == evictor_args.MANDATORY
            and evictor_args.NO_EVICTION_ANNOTATION in annotations
        ):
            return Verdict(False)
        reasons = tuple(reason for check in self._checks if (reason := check(pod)))
        return Verdict(not reasons, reasons)

    def pre_eviction_filter(self, pod: Pod) -> Verdict:
        """Whether another node would take the pod, and its namespace is one that is looked at."""
        if self._args.node_fit and not self._fit().elsewhere(pod):
            return Verdict(False, (REASON_NO_FIT,))
        if self._namespaces is not None:
            namespace = self._handle.state.namespaces.get(pod.metadata.namespace)
            if namespace is None or not self._namespaces.matches(namespace.metadata.labels):
                return Verdict(False, (REASON_NAMESPACE,))
        return Verdict(True)

    def _fit(self) -> NodeFit:
        """Of ready nodes that the evictor's own selector takes; the policy's plays no part. A selector that
        makes no sense is found here, not when the plugin is built: nothing goes then."""
        if self._node_fit is None:
            selector, state = label_text.parse(self._args.node_selector), self._handle.state
            chosen = (node for node in state.ready_nodes() if selector.matches(node.metadata.labels))
            self._node_fit = NodeFit(chosen, state)
        return self._node_fit


def _namespace_selector(args: DefaultEvictorArgs) -> Selector | None:
    """The namespaces that are looked at; None means all."""
    try:
        selector = arguments.compiled(args.namespace_label_selector)
    except SelectorError as error:
        raise ValueError(f"unable to convert namespaceLabelSelector to label selector: {error.detail}") from error
    return None if selector.everything else selector
