"""Manifests as what an informer is delivered: object versions, nominations and commit records, numbered as a
stream numbers them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from podyard.bus import Delivery
from podyard.objects import decoding, kinds, pod_requests
from podyard.objects.priority import pod_priority
from podyard.proto.facts import Nomination
from podyard.proto.placement import BoundPod, Release, ReleaseReason
from tests.support import stored
from tests.support.stream import ClusterStream

WHO: Final = "conformance"

Manifest = Mapping[str, Any]


class Stream:
    """Writes what the api, the queue and the binder would write, in the order of the calls."""

    def __init__(self) -> None:
        self._stream = ClusterStream()
        self._commits = 0

    def put(self, manifest: Manifest) -> Delivery:
        """A version of an object, as it is."""
        return self._stream.put(stored.version(*_placed(manifest), who=WHO))

    def remove(self, manifest: Manifest) -> Delivery:
        """The marker of an object, with its last version."""
        return self._stream.put(stored.marker(*_placed(manifest), who=WHO))

    def nominate(self, manifest: Manifest, node: str) -> Delivery:
        """The fact that a pod is nominated to `node`; the marker that ends its nomination if that is
        empty."""
        namespace, name, uid = namespace_of(manifest), manifest["metadata"]["name"], uid_of(manifest)
        fact = Nomination(namespace=namespace, name=name, uid=uid, node=node)
        return self._stream.put(stored.nomination(fact, over=not node))

    def commit(self, bound: Iterable[Manifest] = (), released: Iterable[BoundPod] = ()) -> Delivery:
        """One commit record: pods take room on the node that their manifest names, others give theirs back;
        in this order."""
        self._commits += 1
        bindings = [binding_of(manifest) for manifest in bound]
        releases = [_release(one, "terminated") for one in released]
        return self._stream.put(stored.record(self._commits, bindings=bindings, releases=releases))


def _placed(manifest: Manifest) -> tuple[str, dict[str, Any]]:
    """Resource and object as the api would store it."""
    kind = kinds.kind_for(manifest["apiVersion"], manifest["kind"])
    document = placed_in(manifest, namespace_of(manifest) if kind.namespaced else "")
    if not kind.namespaced:
        document["metadata"].pop("namespace", None)
    return kind.resource, document


def namespace_of(manifest: Manifest) -> str:
    """The namespace of a namespaced object: `default` if it names none."""
    return manifest["metadata"].get("namespace") or "default"


def name_of(manifest: Manifest) -> str:
    """`namespace/name` of a namespaced object."""
    return f"{namespace_of(manifest)}/{manifest['metadata']['name']}"


def uid_of(manifest: Manifest) -> str:
    """The object's uid; one made of its kind and name if it has none."""
    return manifest["metadata"].get("uid") or f"{manifest['kind']}:{name_of(manifest)}"


def placed_in(manifest: Manifest, namespace: str) -> dict[str, Any]:
    """The manifest with what the API server would have set: the namespace and a uid."""
    metadata = {**manifest["metadata"], "uid": uid_of(manifest)}
    if namespace:
        metadata["namespace"] = namespace
    return {**manifest, "metadata": metadata}


def binding_of(manifest: Manifest) -> BoundPod:
    """What the binder would commit for a pod that is to be on the node it names."""
    pod = decoding.decode("pods", msgspec.json.encode(manifest))
    return BoundPod(
        namespace=namespace_of(manifest),
        name=manifest["metadata"]["name"],
        uid=uid_of(manifest),
        node=pod.spec.node_name,
        priority=pod_priority(pod),
        labels=pod.metadata.labels,
        usage=pod_requests.usage(pod),
    )


def _release(bound: BoundPod, reason: ReleaseReason) -> Release:
    return Release(namespace=bound.namespace, name=bound.name, uid=bound.uid, node=bound.node, reason=reason)


def batches(items: Sequence[Manifest], size: int) -> Iterable[Sequence[Manifest]]:
    """`items` in portions of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
