"""Plays whoever makes volumes, on a stage of the binder."""

from typing import Any

import msgspec

from podyard.proto import codec, subjects
from podyard.proto.events import ClusterEvent
from tests.unit.binder.stage import Stage
from tests.unit.plugins.volume_binding.test_promises import volume

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"


def stored(stage: Stage, resource: str, namespace: str, name: str) -> dict[str, Any]:
    payload = stage.stream.messages[subjects.object_(resource, namespace, name)].payload
    return msgspec.json.decode(codec.decode(ClusterEvent, payload).object)


def selected(stage: Stage, name: str) -> str | None:
    """The node for which the claim's volume is to be made."""
    return stored(stage, "persistentvolumeclaims", "default", name)["metadata"].get("annotations", {}).get(SELECTED)


def put_claim(stage: Stage, document: dict[str, Any]) -> None:
    metadata = document["metadata"]
    stage.put_object("persistentvolumeclaims", "default", metadata["name"], metadata["uid"], document)


def provision(stage: Stage, name: str) -> None:
    """Make a volume for the claim, and bind it on both sides."""
    made = volume(f"made-{name}", claim={"namespace": "default", "name": name, "uid": f"uid-{name}"})
    made["spec"]["storageClassName"] = "made"
    stage.put_object("persistentvolumes", "", made["metadata"]["name"], made["metadata"]["uid"], made)
    document = stored(stage, "persistentvolumeclaims", "default", name)
    document["spec"]["volumeName"] = made["metadata"]["name"]
    document["metadata"]["annotations"][COMPLETED] = "yes"
    document["status"] = {"phase": "Bound"}
    put_claim(stage, document)


def fail(stage: Stage, name: str) -> None:
    """Take the node away again: the volume cannot be made there."""
    document = stored(stage, "persistentvolumeclaims", "default", name)
    del document["metadata"]["annotations"][SELECTED]
    put_claim(stage, document)
