"""The pod of a cycle, as plugins are shown it."""

from typing import Protocol

from podyard.cluster.pods import PodView
from podyard.objects.core import Pod
from podyard.proto.placement import Usage


class PodInfo(Protocol):
    """What plugins read of the pod to place (`podyard.cluster.pods.PodView` is one)."""

    @property
    def pod(self) -> Pod:
        """The joined object."""
        ...

    @property
    def uid(self) -> str: ...

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> dict[str, str]: ...

    @property
    def priority(self) -> int: ...

    @property
    def usage(self) -> Usage:
        """What it will take from its node."""
        ...

    @property
    def nominated_node(self) -> str:
        """The node it preempted for, or empty."""
        ...


class PodFacts:
    """A pod's facts read once: plugins look at them some fifty times a cycle."""

    __slots__ = ("_info", "_usage", "labels", "name", "namespace", "nominated_node", "pod", "priority", "uid")

    def __init__(self, pod: PodInfo) -> None:
        self._info = pod
        self._usage: Usage | None = None
        self.pod = pod.pod
        self.uid = pod.uid
        self.namespace = pod.namespace
        self.name = pod.name
        self.labels = pod.labels
        self.priority = pod.priority
        self.nominated_node = pod.nominated_node

    @property
    def usage(self) -> Usage:
        """What it will take from its node; added up when first asked for."""
        if self._usage is None:
            self._usage = self._info.usage
        return self._usage

    def share_usage(self, usage: Usage) -> None:
        """It takes what a pod of the same template takes; also told to the view, whose binding will carry
        it."""
        self._usage = usage
        if isinstance(self._info, PodView):
            self._info.share_usage(usage)
