"""Two plugins that work against each other: each takes pods off the nodes of one zone."""

from typing import Any

from podyard.descheduler.core.arguments import PluginArgs
from podyard.descheduler.core.framework import Evict, Run


class Args(PluginArgs, frozen=True, kw_only=True):
    """None."""


class _Off:
    ARGS = Args
    ZONE = ""

    def __init__(self, args: Any, handle: Any) -> None:
        del args
        self._handle = handle

    @classmethod
    def faults(cls, args: Any) -> list[str]:
        del args
        return []

    def deschedule(self, nodes: Any) -> Run:
        for node in nodes:
            if node.metadata.labels.get("zone") == self.ZONE:
                for pod in self._handle.state.pods_on(node.metadata.name):
                    yield Evict(pod, f"its node is in zone {self.ZONE}")


class OffA(_Off):
    NAME = "OffA"
    ZONE = "a"


class OffB(_Off):
    NAME = "OffB"
    ZONE = "b"
