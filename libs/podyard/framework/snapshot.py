"""The cluster of a cycle, as plugins are shown it: a narrow handle, never the bus."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from podyard.cluster.node_table import NodeTable

ObjectsByName: TypeAlias = Mapping[tuple[str, str], Any]
"""Typed objects by (namespace, name); the namespace is empty for cluster-scoped kinds."""


class Snapshot:
    """Nodes with what is placed (and assumed) on them, and the other objects that plugins registered for.

    It is live: nothing changes during one pod's cycle, and the next pod sees what the last one took.
    """

    __slots__ = ("_others", "nodes")

    def __init__(self, nodes: NodeTable, others: Mapping[str, ObjectsByName] | None = None) -> None:
        """
        :param others: by resource (`persistentvolumes`, ...), all but pods and nodes
        """
        self.nodes = nodes
        self._others: Mapping[str, ObjectsByName] = {} if others is None else others

    def objects(self, resource: str) -> ObjectsByName:
        """All objects of a resource; none if nobody follows it."""
        return self._others.get(resource, {})
