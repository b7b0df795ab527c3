"""The scale of what has replicas: a Scale out of an object, and an object with the replicas of a Scale. Pure.

Source: kubernetes v1.36.2, pkg/registry/apps/deployment/storage/storage.go (scaleFromDeployment) and its
sisters; apiextensions-apiserver/pkg/registry/customresource/etcd.go for custom kinds.
"""

from typing import Any

from podyard.kube_api.core import errors
from podyard.kube_api.core.patching.field_sets import of_path
from podyard.kube_api.core.patching.managers import managed_of
from podyard.kube_api.core.served import Served
from podyard.objects import decoding, selectors
from podyard.objects.documents import Document, child, copy, mapping
from podyard.objects.errors import ObjectError
from podyard.objects.label_text import text_of
from podyard.objects.meta import LabelSelector

_REPLICAS = ".spec.replicas"
_STATUS = ".status.replicas"


def scale_of(document: Document, served: Served) -> Document:
    """The Scale of an object."""
    metadata = mapping(document, "metadata")
    about = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec: dict[str, Any] = {}
    replicas = _at(document, _path(served, "specReplicasPath", _REPLICAS))
    if replicas:
        spec["replicas"] = replicas
    status: dict[str, Any] = {"replicas": _at(document, _path(served, "statusReplicasPath", _STATUS)) or 0}
    selector = _selector(document, served)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in about if key in metadata},
        "spec": spec,
        "status": status,
    }


def with_replicas(document: Document, scale: Document, served: Served) -> Document:
    """The object with as many replicas as the Scale says.

    :raises ApiError: 422, that is no number of replicas; 409, the Scale is of another version
    """
    replicas = mapping(scale, "spec").get("replicas", 0)
    name = str(mapping(document, "metadata").get("name"))
    if not isinstance(replicas, int) or isinstance(replicas, bool) or not 0 <= replicas < 2**31:
        cause = errors.Cause(
            "FieldValueInvalid", f"Invalid value: {replicas}: must be greater than or equal to 0", "spec.replicas"
        )
        raise errors.invalid("Scale", "autoscaling", name, [cause])
    found = copy(document)
    version = mapping(scale, "metadata").get("resourceVersion")
    if version:
        child(found, "metadata")["resourceVersion"] = version
    place = found
    *steps, last = _path(served, "specReplicasPath", _REPLICAS)
    for step in steps:
        place = child(place, step)
    place[last] = replicas
    return found


def has_owner(document: Document, served: Served) -> bool:
    """Whether somebody owns the number of replicas. While nobody does, a Scale looks like an object that
    nobody is tracked on, and stays so. Source: apimachinery v0.36.2, pkg/util/managedfields/scalehandler.go
    (ToSubresource), internal/skipnonapplied.go."""
    try:
        managed = managed_of(document)
    except ValueError:
        return False
    replicas = of_path(*_path(served, "specReplicasPath", _REPLICAS))
    return any(owned.fields & replicas for owned in managed.values())


def _path(served: Served, name: str, usual: str) -> list[str]:
    given = served.scale.get(name) if served.scale is not None else None
    return str(given or usual).strip(".").split(".")


def _at(document: Document, path: list[str]) -> Any:
    *steps, last = path
    return mapping(document, *steps).get(last)


def _selector(document: Document, served: Served) -> str:
    if served.scale is not None:
        given = served.scale.get("labelSelectorPath")
        found = _at(document, str(given).strip(".").split(".")) if given else ""
        return found if isinstance(found, str) else ""
    selector = mapping(document, "spec", "selector")
    if served.kind == "ReplicationController":
        return text_of(selectors.compile_map(selector))
    try:
        return text_of(selectors.compile_labels(decoding.convert(LabelSelector, copy(selector))))
    except ObjectError:
        return ""  # it selects nothing that anybody could spell
