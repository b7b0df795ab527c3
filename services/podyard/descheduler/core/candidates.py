"""Which pods a plugin looks at: its own namespaces and labels first, then what the profile's filters say.

Source: pkg/descheduler/pod/pods.go, Options.BuildFilterFunc, WrapFilterFuncs.
"""

from podyard.descheduler.core import arguments
from podyard.descheduler.core.arguments import Namespaces, SelectorArgs
from podyard.descheduler.core.framework import Evictor
from podyard.objects.pod import Pod


class Candidates:
    """The choice of one plugin."""

    def __init__(
        self, evictor: Evictor, namespaces: Namespaces | None = None, selector: SelectorArgs | None = None
    ) -> None:
        """
        :raises SelectorError: if the selector makes no sense
        """
        self._evictor = evictor
        self._namespaces = namespaces or arguments.EVERY_NAMESPACE
        self._selector = arguments.compiled(selector)

    def chosen(self, pod: Pod) -> bool:
        """Whether the arguments choose the pod, whoever holds it back."""
        return self._namespaces.takes(pod.metadata.namespace) and self._selector.matches(pod.metadata.labels)

    def passes_filter(self, pod: Pod) -> bool:
        """Whether it is chosen, and may be considered."""
        return self.chosen(pod) and self._evictor.filter(pod).allowed

    def may_go(self, pod: Pod) -> bool:
        """Whether it is chosen, may be considered, and may go now."""
        return self.passes_filter(pod) and self._evictor.pre_eviction_filter(pod).allowed
