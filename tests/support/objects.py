"""Pods and nodes for tests, as manifests or as the product reads them.

`pod` and `node` give documents. A test says by keyword what it needs beside the defaults; any other keyword
is a field of `spec`, by its own name:

    pod("web", cpu="2", labels={"app": "web"}, nodeSelector={"disk": "ssd"})
    typed_pod("web", cpu="2")        # podyard.objects.core.Pod
    view(pod("web"), sequence=7)     # podyard.cluster.pods.PodView
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from podyard.cluster.pods import PodView
from podyard.objects import decoding
from podyard.objects.core import Node, Pod

Document = dict[str, Any]
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
DELETED_AT: Final = "2026-01-01T00:00:00Z"


def pod(
    name: str = "a",
    *,
    namespace: str = "default",
    uid: str = "",
    cpu: str = "",
    memory: str = "",
    requests: Mapping[str, str] | None = None,
    container: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    node: str = "",
    nominated: str = "",
    phase: str = "",
    deleting: bool = False,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Document:
    """A pod with one container `main`, which requests nothing unless told.

    :param uid: `uid-<name>` if empty
    :param cpu: requested, as a quantity; `memory` likewise; `requests` for any resources
    :param container: further fields of it, `ports` for example; another list of them by `containers`
    :param node: `spec.nodeName`; `nominated` and `phase` stand in its status
    :param deleting: whether it has a deletion timestamp, `DELETED_AT`
    :param metadata: further fields of it, `status` likewise; everything else is a field of its spec
    """
    asked = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {}), **(requests or {})}
    main = {
        "name": "main",
        "image": "test",
        **({"resources": {"requests": asked}} if asked else {}),
        **(container or {}),
    }
    more = {"namespace": namespace, **({"deletionTimestamp": DELETED_AT} if deleting else {}), **(metadata or {})}
    said = {**({"phase": phase} if phase else {}), **({"nominatedNodeName": nominated} if nominated else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, uid, labels, more),
        "spec": {"containers": [main], **({"nodeName": node} if node else {}), **spec},
        **({"status": {**said, **(status or {})}} if said or status else {}),
    }


def node(
    name: str = "n1",
    *,
    uid: str = "",
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    amounts: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    bare: bool = False,
    taints: Sequence[Mapping[str, str]] = (),
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Document:
    """A node; capacity and allocatable are the same.

    :param uid: `uid-<name>` if empty
    :param amounts: further resources; a value replaces that of `cpu`, `memory`, `pods`
    :param labels: beside the host name's, which is the node's name; `bare` leaves that out
    :param status: further fields of it
    :param spec: further fields of it
    """
    has = {"cpu": cpu, "memory": memory, "pods": pods, **(amounts or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(name, uid, {**({} if bare else {HOSTNAME: name}), **(labels or {})}, metadata),
        "spec": {**({"taints": [dict(taint) for taint in taints]} if taints else {}), **spec},
        "status": {"capacity": has, "allocatable": dict(has), **(status or {})},
    }


def _metadata(name: str, uid: str, labels: Mapping[str, str] | None, more: Mapping[str, Any] | None) -> Document:
    return {"name": name, "uid": uid or f"uid-{name}", **({"labels": dict(labels)} if labels else {}), **(more or {})}


def written(document: Document) -> Document:
    """The document as a person writes it: without the uid, which the api gives."""
    metadata = {name: value for name, value in document["metadata"].items() if name != "uid"}
    return {**document, "metadata": metadata}


def decoded(resource: str, document: Document) -> Any:
    """The object as the product reads it from the stream."""
    return decoding.decode(resource, msgspec.json.encode(document))


def typed_pod(name: str = "a", **more: Any) -> Pod:
    """A pod as the product reads it; `more` as of `pod`."""
    return decoded("pods", pod(name, **more))


def typed_node(name: str = "n1", **more: Any) -> Node:
    """A node as the product reads it; `more` as of `node`."""
    return decoded("nodes", node(name, **more))


def view(document: Document, sequence: int = 1, **more: Any) -> PodView:
    """A pod's manifest as a reader's view holds it; `more` are fields of PodView, such as `bound`."""
    found = decoded("pods", document)
    return PodView(found, found.key, found.metadata.uid, sequence, **more)
