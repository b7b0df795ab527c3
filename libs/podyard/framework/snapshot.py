"""The cluster of a cycle, as plugins are shown it: a narrow handle, never the bus."""

from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from podyard.cluster.node_table import NodeTable
from podyard.cluster.nominations import Nominations
from podyard.framework import status as statuses
from podyard.framework.faults import Faults
from podyard.framework.permits import WaitingPods
from podyard.framework.plugin_times import PluginTimes
from podyard.framework.rivals import Rivals
from podyard.framework.status import PluginError, Status, described

ObjectsByName: TypeAlias = Mapping[tuple[str, str], Any]
"""Typed objects by (namespace, name); the namespace is empty for cluster-scoped kinds."""

NO_OBJECTS: Final[ObjectsByName] = {}


class Objects(Protocol):
    """Where other objects than pods and nodes are found (`podyard.cluster.view.ClusterView` is one, and
    `Snapshot`)."""

    def objects(self, resource: str) -> ObjectsByName:
        """All objects of a resource (`persistentvolumes`, ...); none if nobody follows it."""
        ...

    def version(self, resource: str) -> int:
        """Another number whenever an object of this resource is another, came or went."""
        ...


@runtime_checkable
class Documents(Protocol):
    """Where whole documents are found, if the snapshot is the binder's (`podyard.cluster.view.ClusterView` is
    one)."""

    def document(self, resource: str, key: tuple[str, str]) -> dict[str, Any] | None:
        """An object's whole document with its version, for whoever writes a new one; `None` if it is not
        known."""
        ...


class Snapshot:
    """Nodes with what is placed (and assumed) on them, and the other objects that plugins registered for.

    It is live: nothing changes during one pod's cycle, and the next pod sees what the last one took.
    """

    __slots__ = ("_objects", "faults", "nodes", "nominated", "rivals", "timing", "waiting")

    def __init__(
        self,
        nodes: NodeTable,
        objects: Objects | None = None,
        waiting: WaitingPods | None = None,
        nominated: Nominations | None = None,
    ) -> None:
        self.nodes = nodes
        self.nominated = Nominations() if nominated is None else nominated
        """Unbound pods that wait for room on a node; one that is placed in the table (assumed) does not count
        here any more."""
        self.rivals = Rivals(nodes, self.nominated)
        """Who is to have room on which node, though not there yet."""
        self.waiting = WaitingPods() if waiting is None else waiting
        """Pods that wait at Permit: a plugin may allow or reject them."""
        self.faults = Faults()
        """What plugins did amiss that were shown this snapshot."""
        self.timing: PluginTimes | None = None
        """Where calls of plugins are timed; `None`: this cycle's are not."""
        self._objects = objects

    def failed(self, fault: PluginError) -> Status:
        """The plugin's answer is ERROR, and its fault is noted."""
        self.faults.note(fault)
        return statuses.error(str(fault)).by(fault.plugin)

    def take_faults(self) -> list[PluginError]:
        """What plugins, and the indexes that they made of the table, did amiss since last asked."""
        if not self.nodes.failures and not self.faults:
            return []
        broken = [PluginError(one.name, "index", described(one.fault)) for one in self.nodes.take_failures()]
        return [*broken, *self.faults.take()]

    def objects(self, resource: str) -> ObjectsByName:
        """All objects of a resource; none if nobody follows it."""
        return NO_OBJECTS if self._objects is None else self._objects.objects(resource)

    def version(self, resource: str) -> int:
        """For tokens: another number whenever an object of this resource is another, came or went."""
        return 0 if self._objects is None else self._objects.version(resource)

    def document(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        """A PersistentVolume or claim as it is stored, all of it, for PreBind; its `metadata.resourceVersion`
        is the version to replace."""
        return self._objects.document(resource, (namespace, name)) if isinstance(self._objects, Documents) else None
