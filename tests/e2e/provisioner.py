"""Plays whoever makes volumes in a real cluster: a CSI provisioner and the volume controller, seen from the
objects that they write."""

from collections.abc import Callable
from typing import Any, Final

from podyard.bus import Bus
from podyard.bus.errors import Conflict
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from tests.support import stored

SELECTED: Final = "volume.kubernetes.io/selected-node"
COMPLETED: Final = "pv.kubernetes.io/bind-completed"


class Provisioner:
    """Makes volumes, or says that it cannot, when the test wants it."""

    def __init__(self, bus: Bus, namespace: str = "default") -> None:
        """:param namespace: of the claims"""
        self._bus = bus
        self._namespace = namespace

    async def make(self, claim: str) -> None:
        """A volume that can be reached from everywhere, bound to the claim on both sides."""
        name = f"made-{claim}"
        claimed = await self._read("persistentvolumeclaims", self._namespace, claim)
        reference = {"namespace": self._namespace, "name": claim, "uid": claimed.uid, "kind": "PersistentVolumeClaim"}
        volume = {
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "made",
                "claimRef": reference,
            },
            "status": {"phase": "Bound"},
        }
        await self._write("persistentvolumes", volume, 0)

        def bind(document: dict[str, Any]) -> None:
            document["spec"]["volumeName"] = name
            document["metadata"].setdefault("annotations", {})[COMPLETED] = "yes"
            document["status"] = {"phase": "Bound"}

        await self._change(claim, bind)

    async def fail(self, claim: str) -> None:
        """The volume cannot be made on the node that the claim names: take it away, so that the scheduler
        tries again."""
        await self._change(claim, lambda document: document["metadata"]["annotations"].pop(SELECTED))

    async def _change(self, claim: str, change: Callable[[dict[str, Any]], object]) -> None:
        while True:
            found = await self._bus.get(
                streams.CLUSTER.name, subjects.object_("persistentvolumeclaims", self._namespace, claim)
            )
            assert found is not None, claim
            document = stored.document(found)
            change(document)
            try:
                await self._write("persistentvolumeclaims", document, found.sequence)
            except Conflict:
                continue
            return

    async def _read(self, resource: str, namespace: str, name: str) -> ClusterEvent:
        found = await self._bus.get(streams.CLUSTER.name, subjects.object_(resource, namespace, name))
        assert found is not None, name
        return codec.decode(ClusterEvent, found.payload)

    async def _write(self, resource: str, document: dict[str, Any], expect: int) -> None:
        await self._bus.publish(stored.version(resource, document, who="a provisioner").but(expect=expect))
