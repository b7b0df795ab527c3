"""`metrics.k8s.io`: what nodes and pods use, out of what agents say. Pure.

What nobody says anything of is left out, as metrics-server leaves out what it did not measure.

Source: metrics-server v0.8.0, pkg/api/node.go, pod.go, filter.go, table.go.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.usages import Usages, of_containers
from podyard.kube_api.core import errors, tabling
from podyard.kube_api.core.columns import Column
from podyard.kube_api.core.forms import META_VERSION
from podyard.kube_api.core.items import Item
from podyard.kube_api.core.media import TABLE
from podyard.kube_api.core.order import METRICS
from podyard.kube_api.core.selecting import Selection
from podyard.kube_api.core.served import Served
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Store
from podyard.objects import quantity, times
from podyard.objects.containers import Container
from podyard.objects.documents import Document
from podyard.objects.errors import QuantityError
from podyard.objects.kinds import Kind, StoredObject
from podyard.objects.pod_requests import is_sidecar
from podyard.objects.quantity import NANO, Format, Quantity
from podyard.proto import subjects
from podyard.proto.signals import NodeUsage, PodUsage

VERSION: Final = f"{METRICS}/v1beta1"
KINDS: Final = {
    resource: Kind(kind=kind, api_version=VERSION, resource=resource, type=StoredObject, namespaced=namespaced)
    for resource, kind, namespaced in ((subjects.NODES, "NodeMetrics", False), (subjects.PODS, "PodMetrics", True))
}
"""By the resource of the core group whose usage they tell. No such object is stored."""


class Used(NamedTuple):
    """What an object uses, one after the other."""

    item: Item
    usage: NodeUsage
    """Of its node."""
    amounts: tuple[tuple[str, int, int], ...]
    """Of each container its name, nanocores and bytes; of a node one without a name."""

    def document(self, served: Served, now: float) -> Document:
        """A NodeMetrics, or a PodMetrics."""
        key = self.item.key
        metadata: Document = {"name": key.name}
        if key.namespace:
            metadata["namespace"] = key.namespace
        metadata["creationTimestamp"] = times.rfc3339(now)
        if self.item.labels:
            metadata["labels"] = dict(self.item.labels)
        found: Document = {
            "kind": served.kind,
            "apiVersion": served.api_version,
            "metadata": metadata,
            "timestamp": times.rfc3339(self.usage.at),
            "window": _window(self.usage),
        }
        if served.resource == subjects.NODES:
            (_, cpu, memory), *_ = self.amounts
            return {**found, "usage": _usage(cpu, memory)}
        parts = [{"name": name, "usage": _usage(cpu, memory)} for name, cpu, memory in self.amounts]
        return {**found, "containers": parts}

    def cells(self) -> list[str]:
        """Of a table."""
        used = _usage(sum(cpu for _, cpu, _ in self.amounts), sum(memory for _, _, memory in self.amounts))
        return [self.item.key.name, used["cpu"], used["memory"], _window(self.usage)]


class Metering:
    """Answers out of the store and of what was heard."""

    def __init__(self, store: Store, usages: Usages) -> None:
        self._store = store
        self._usages = usages

    def one(self, served: Served, key: ObjectKey, now: float) -> Used:
        """What one object uses.

        :raises ApiError: it is not there, or nobody says what it uses
        """
        item = self._store.item(key)
        found = None if item is None else self._used(item, now)
        if found is None:
            group = "" if item is None else served.group
            raise errors.not_found(served.resource, group, _named(served, key, there=item is not None))
        return found

    def several(self, scope: Scope, selection: Selection, now: float) -> list[Used]:
        """What those use that are meant, in the order of lists."""
        items = (item for item in self._store.items(scope) if selection.selects(item))
        return [found for item in items if (found := self._used(item, now)) is not None]

    def _used(self, item: Item, now: float) -> Used | None:
        viewed: Any = item.moment.viewed
        if isinstance(viewed, NodeView):
            usage = self._usages.fresh(viewed.name, now)
            return None if usage is None else Used(item, usage, (("", usage.cpu_nanocores, usage.memory_bytes),))
        if not isinstance(viewed, PodView) or viewed.bound is None:
            return None
        usage = self._usages.fresh(viewed.bound.node, now)
        running = list(_running(viewed))
        if usage is None or not running:
            return None
        return Used(item, usage, _of_pod(viewed, usage, running))


def _named(served: Served, key: ObjectKey, *, there: bool) -> str:
    """As metrics-server calls it: a pod that is there and was not measured by its namespace, too."""
    return f"{key.namespace}/{key.name}" if there and served.namespaced else key.name


def _running(pod: PodView) -> Iterator[Container]:
    """Containers that run, as their agent says."""
    if pod.status is None:
        return
    told = {one.name: one for one in (*pod.status.init_containers, *pod.status.containers)}
    spec = pod.stored.spec
    for container in (*filter(is_sidecar, spec.init_containers), *spec.containers):
        fact = told.get(container.name)
        if fact is not None and fact.started_at and fact.end is None:
            yield container


def _of_pod(pod: PodView, usage: NodeUsage, running: Sequence[Container]) -> tuple[tuple[str, int, int], ...]:
    namespace, name = pod.key
    used = next((one for one in usage.pods if (one.namespace, one.name) == pod.key), None)
    used = used or PodUsage(namespace=namespace, name=name)
    names = [container.name for container in running]
    weights = [_requested(container) for container in running]
    cpu, memory = (of_containers(used, what, names, weights) for what in ("cpu", "memory"))
    return tuple(zip(names, cpu, memory, strict=True))


def _requested(container: Container) -> int:
    """Memory, by which is shared out what is said of the pod alone."""
    try:
        return quantity.value(container.resources.requests.get("memory", "0"))
    except QuantityError:
        return 0


def _usage(nanocores: int, memory: int) -> dict[str, str]:
    return {"cpu": str(Quantity(nanocores)), "memory": str(Quantity(memory * NANO, Format.BINARY_SI))}


def _window(usage: NodeUsage) -> str:
    """As Go writes a length of time."""
    minutes, seconds = divmod(round(usage.window_s, 3), 60)
    shown = f"{seconds:.3f}".rstrip("0").rstrip(".")
    return f"{int(minutes)}m{shown}s" if minutes else f"{shown}s"


# ---- answers -----------------------------------------------------------------------------------------------


def one(served: Served, found: Used, wanted: str, include: str, now: float) -> bytes:
    """An object's answer, in the form that `media.form` tells."""
    if wanted == TABLE:
        return _table(served, [found], include, now)
    document = found.document(served, now)
    return msgspec.json.encode(_partial(document) if wanted else document) + b"\n"


def several(served: Served, found: Sequence[Used], wanted: str, include: str, now: float) -> bytes:
    """A list's answer; it has no version."""
    if wanted == TABLE:
        return _table(served, found, include, now)
    items = [used.document(served, now) for used in found]
    kind, api_version = served.list_kind, served.api_version
    if wanted:
        items, kind, api_version = [_partial(item) for item in items], "PartialObjectMetadataList", META_VERSION
    else:
        for item in items:
            del item["kind"], item["apiVersion"]
    return msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}) + b"\n"


_NAME: Final = Column("Name", format_="name", description="Name of the resource")
_COLUMNS: Final = (_NAME, Column("cpu", format_="quantity"), Column("memory", format_="quantity"))
_WINDOW: Final = Column("Window", format_="duration")


def _table(served: Served, found: Sequence[Used], include: str, now: float) -> bytes:
    columns = [column.document() for column in (*_COLUMNS, _WINDOW)]
    rows: list[Document] = []
    for used in found:
        document: Document | None = used.document(served, now)
        if include != tabling.OBJECT:
            document = None if include == tabling.NOTHING else _partial(document)
        rows.append({"cells": used.cells(), "object": document})
    whole: Document = {
        "kind": TABLE,
        "apiVersion": META_VERSION,
        "metadata": {},
        "columnDefinitions": columns,
        "rows": rows,
    }
    return msgspec.json.encode(whole) + b"\n"


def _partial(document: Document) -> Document:
    return {"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": document["metadata"]}
