"""Manifests of the reference, where binding and status are part of the object, as the joined views that
Podyard's services read."""

from typing import Any

import msgspec

from podyard.cluster.changes import Change, Origin
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.objects import decoding, kinds
from podyard.proto import subjects
from podyard.proto.placement import Release
from tests.conformance.deliveries import Manifest, binding_of, namespace_of, placed_in, uid_of


def resource_of(manifest: Manifest) -> str:
    """The plural under which Podyard keeps such objects."""
    return kinds.kind_for(manifest["apiVersion"], manifest["kind"]).resource


def version_of(manifest: Manifest) -> int:
    """What stands for the sequence of the object's version; 0 if it names none."""
    return int(manifest["metadata"].get("resourceVersion") or 0)


def node_of(manifest: Manifest | None) -> str:
    """The node that a pod's manifest is bound to, or empty."""
    return "" if manifest is None else (manifest.get("spec") or {}).get("nodeName") or ""


def view_of(manifest: Manifest) -> Any:
    """A pod or node as a view; an object of another kind as its type."""
    resource = resource_of(manifest)
    if resource == subjects.PODS:
        return pod_view(manifest)
    namespace = namespace_of(manifest) if kinds.kind_of_resource(resource).namespaced else ""
    stored: Any = decoding.decode(resource, msgspec.json.encode(placed_in(manifest, namespace)))
    if resource == subjects.NODES:
        return NodeView(stored, stored.metadata.name, stored.metadata.uid, version_of(manifest))
    return stored


def pod_view(manifest: Manifest) -> PodView:
    """A pod whose node, if it names one, is told by its binding, as for every pod that was scheduled."""
    key = (namespace_of(manifest), manifest["metadata"]["name"])
    node = node_of(manifest)
    stored = {**placed_in(manifest, key[0]), "spec": {**manifest["spec"], "nodeName": ""}}
    pod: Any = decoding.decode(subjects.PODS, msgspec.json.encode(stored))
    bound = binding_of(manifest) if node else None
    return PodView(pod, key, uid_of(manifest), version_of(manifest), bound)


def change_of(old: Manifest | None, new: Manifest | None) -> list[Change]:
    """The step from one manifest to the next as a view tells it; none for a version told again.

    A pod that gets its node gets its binding; a bound pod that is gone is one whose binding was released.
    """
    manifest = new if new is not None else old
    if manifest is None:
        raise ValueError("a change has an old or a new version")
    if old is not None and new is not None and told_again(old, new):
        return []
    was, now = node_of(old), node_of(new)
    before = None if old is None else view_of(old)
    after = None if new is None else view_of(new)
    is_pod = manifest["kind"] == "Pod"
    release = None
    if is_pod and was and new is None:
        namespace, name = before.key
        release = Release(namespace=namespace, name=name, uid=before.uid, node=was, reason="terminated")
    origin = Origin(version_of(manifest))
    bound = is_pod and bool(now) and not was
    return [Change(resource_of(manifest), uid_of(manifest), before, after, origin, bound=bound, release=release)]


def told_again(old: Manifest, new: Manifest) -> bool:
    """A delivery of a version that is known is none. Bound pods are told again by the reference's resync, as
    an update."""
    return not node_of(old) and 0 != version_of(old) == version_of(new)
