"""Which nodes are the agent's."""

from typing import Final

import msgspec

from podyard.objects.node import Node

AGENT: Final = "podyard.io/agent"
"""Annotation of a node that says who plays its agent: `external` if another one reports about it."""

EXTERNAL: Final = "external"
"""Its value for a node that another agent reports about."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes by name and labels. Empty `names` and `labels` leave all."""

    names: frozenset[str] = frozenset()
    labels: dict[str, str] = {}
    host: str = ""
    """The node that is the host itself, empty: none is; it is the agent's, whatever its annotation says."""

    @property
    def everything(self) -> bool:
        """Whether it narrows nothing."""
        return not self.names and not self.labels

    def may_take(self, name: str) -> bool:
        """Whether the agent might play a node of this name, as far as the name tells."""
        return not self.names or name in self.names

    def takes(self, node: Node) -> bool:
        """Whether the agent plays this node."""
        if self.host and node.metadata.name == self.host:
            return True
        if node.metadata.annotations.get(AGENT) == EXTERNAL:
            return False
        if self.names and node.metadata.name not in self.names:
            return False
        labels = node.metadata.labels
        return all(labels.get(key) == value for key, value in self.labels.items())
