"""AttachedDevice: pods annotated `device: NAME` are bound once somebody has attached that device to their
node.

The plugin asks for it by a custom object of its own, `DeviceRequest`, named as the pod; whoever attaches
devices sets its `status` to Ready, or to Failed.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from podyard.cluster.keys import ObjectKey
from podyard.framework.cycle_state import CycleState
from podyard.framework.events import ClusterEvent, Registration
from podyard.framework.interfaces import ObjectWrite, PreBindResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import error, wait
from podyard.proto.actions import ActionType

REQUESTS = "devicerequests.v1.example.com"


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`attachSeconds`: how long attaching may take."""

    attach_seconds: float = 120.0


def request(pod: PodInfo, node_name: str) -> dict[str, Any]:
    """What is to be attached where. It names its pod's uid: a namesake that comes later does not get the
    device."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "DeviceRequest",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": f"device-{pod.uid}"},
        "device": pod.pod.metadata.annotations["device"],
        "node": node_name,
    }


class AttachedDevice:
    """PreBind."""

    name: ClassVar[str] = "AttachedDevice"

    def __init__(self, args: Args) -> None:
        self.args = args

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ClusterEvent(REQUESTS, ActionType.ADD | ActionType.UPDATE))]

    def pre_bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PreBindResult:
        if "device" not in pod.pod.metadata.annotations:
            return PreBindResult()
        key = ObjectKey(REQUESTS, pod.namespace, pod.name)
        known = cluster.objects(REQUESTS).get(key.namespaced_name)
        if known is None:
            wanted = ObjectWrite(
                resource=REQUESTS, namespace=key.namespace, name=key.name, document=request(pod, node_name)
            )
            return self._wait(key, wanted)
        if known.raw.get("node") != node_name or known.raw.get("status") == "Failed":
            return PreBindResult(status=error(f"the device cannot be attached to {node_name}"))
        return PreBindResult() if known.raw.get("status") == "Ready" else self._wait(key)

    def _wait(self, key: ObjectKey, *writes: ObjectWrite) -> PreBindResult:
        text = "the device is being attached"
        return PreBindResult(status=wait(text), writes=writes, timeout_s=self.args.attach_seconds, waits_for=(key,))
