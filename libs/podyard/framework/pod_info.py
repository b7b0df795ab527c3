"""The pod of a cycle, as plugins are shown it."""

from typing import Protocol

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

    __slots__ = ("labels", "name", "namespace", "nominated_node", "pod", "priority", "uid", "usage")

    def __init__(self, pod: PodInfo) -> None:
        self.pod = pod.pod
        self.uid = pod.uid
        self.namespace = pod.namespace
        self.name = pod.name
        self.labels = pod.labels
        self.priority = pod.priority
        self.usage = pod.usage
        self.nominated_node = pod.nominated_node
