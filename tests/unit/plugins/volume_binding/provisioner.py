"""Plays whoever makes volumes, on a stage of the binder."""

from typing import Any

from podyard.proto import subjects
from tests.support.stored import document
from tests.unit.binder.stage import Stage
from tests.unit.plugins.volume_binding.test_promises import volume

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"


def stored(stage: Stage, resource: str, namespace: str, name: str) -> dict[str, Any]:
    return document(stage.stream.messages[subjects.object_(resource, namespace, name)])


def selected(stage: Stage, name: str) -> str | None:
    """The node for which the claim's volume is to be made."""
    return stored(stage, "persistentvolumeclaims", "default", name)["metadata"].get("annotations", {}).get(SELECTED)


def put_claim(stage: Stage, claim: dict[str, Any]) -> None:
    stage.put_object("persistentvolumeclaims", claim)


def provision(stage: Stage, name: str) -> None:
    """Make a volume for the claim, and bind it on both sides."""
    made = volume(f"made-{name}", claim={"namespace": "default", "name": name, "uid": f"uid-{name}"})
    made["spec"]["storageClassName"] = "made"
    stage.put_object("persistentvolumes", made)
    claim = stored(stage, "persistentvolumeclaims", "default", name)
    claim["spec"]["volumeName"] = made["metadata"]["name"]
    claim["metadata"]["annotations"][COMPLETED] = "yes"
    claim["status"] = {"phase": "Bound"}
    put_claim(stage, claim)


def fail(stage: Stage, name: str) -> None:
    """Take the node away again: the volume cannot be made there."""
    claim = stored(stage, "persistentvolumeclaims", "default", name)
    del claim["metadata"]["annotations"][SELECTED]
    put_claim(stage, claim)
