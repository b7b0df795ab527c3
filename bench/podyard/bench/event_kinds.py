"""The kinds of events that `bench events` measures. Each begins with the nodes as `node` makes them and
everybody parked.

Left out, since the reference's rules wake pods of ten plugins: new nodes, other taints; and pods that leave,
which wake all that lack room.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from podyard.bench import parked
from podyard.bench.leading import Leading
from podyard.bench.parked import Cast, Document
from podyard.bus import Delivery
from podyard.proto import subjects
from podyard.proto.placement import BoundPod

NODES: Final = 100
ROUNDS: Final = 200
"""Events of each kind."""
CPUS: Final = 8
"""Of a node: too few for all that want room."""
ELSEWHERE: Final = "elsewhere"
"""A namespace that nobody's affinity means."""


class Kind(NamedTuple):
    """One kind of event. `events` does what must come before each event itself, and yields it."""

    name: str
    cast: Cast
    events: Callable[[Leading], Iterator[Delivery]]
    wakes: int = 0
    """How many parked pods each of them wakes."""


def node(number: int, *, cpu: int = CPUS, labels: dict[str, str] | None = None, **more: Any) -> Document:
    """A node. `more`: annotations, or the heartbeat and reason of its condition."""
    size = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    name = f"node-{number:05}"
    own = {parked.HOST: name, parked.ZONE: f"zone-{number % 3}", **(labels or {})}
    heard, reason = more.get("heard", 0), more.get("reason", "KubeletReady")
    ready = {"type": "Ready", "status": "True", "reason": reason, "lastHeartbeatTime": f"2026-01-01T00:00:{heard:02}Z"}
    metadata = {"name": name, "uid": f"uid-{name}", "labels": own, "annotations": more.get("annotations", {})}
    status = {"capacity": size, "allocatable": size, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def _nodes(change: Callable[[int], Document]) -> Callable[[Leading], Iterator[Delivery]]:
    """A change of one node after the other."""

    def events(leading: Leading) -> Iterator[Delivery]:
        for turn in range(ROUNDS):
            yield leading.put(subjects.NODES, change(turn))

    return events


def _nodes_back(change: Callable[[int], Document]) -> Callable[[Leading], Iterator[Delivery]]:
    """A change of one node after the other, each undone before the next."""

    def events(leading: Leading) -> Iterator[Delivery]:
        for turn in range(ROUNDS):
            leading.happen(leading.put(subjects.NODES, node((turn - 1) % NODES)))
            leading.park_again()
            yield leading.put(subjects.NODES, change(turn))

    return events


def _pod(name: str, app: str, namespace: str = parked.NAMESPACE, **labels: str) -> Document:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": {"app": app, **labels}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "main", "image": "app"}], "schedulerName": "another"},
    }


def _binding(document: Document) -> BoundPod:
    metadata = document["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    return BoundPod(
        namespace=namespace, name=name, uid=metadata["uid"], node="node-00001", labels=dict(metadata["labels"])
    )


def _bound(app: str, namespace: str = parked.NAMESPACE) -> Callable[[Leading], Iterator[Delivery]]:
    """Pods of another scheduler are bound, one by one."""

    def events(leading: Leading) -> Iterator[Delivery]:
        for turn in range(ROUNDS):
            document = _pod(f"bound-{app}-{turn}", app, namespace)
            leading.happen(leading.put(subjects.PODS, document))
            leading.park_again()
            yield leading.commit((_binding(document),))

    return events


def _relabelled(before: str, after: str) -> Callable[[Leading], Iterator[Delivery]]:
    """A placed pod changes its labels, and has them back before the next event."""

    def events(leading: Leading) -> Iterator[Delivery]:
        name = f"changing-{after}"
        leading.happen(leading.put(subjects.PODS, _pod(name, before)))
        leading.happen(leading.commit((_binding(_pod(name, before)),)))
        for turn in range(ROUNDS):
            leading.happen(leading.put(subjects.PODS, _pod(name, before, turn=str(turn))))
            leading.park_again()
            yield leading.put(subjects.PODS, _pod(name, after, turn=str(turn)))

    return events


def _new(resource: str, make: Callable[[int], Document]) -> Callable[[Leading], Iterator[Delivery]]:
    """New objects."""

    def events(leading: Leading) -> Iterator[Delivery]:
        for turn in range(ROUNDS):
            leading.park_again()
            yield leading.put(resource, make(turn))

    return events


def _changing(resource: str, make: Callable[[int], Document]) -> Callable[[Leading], Iterator[Delivery]]:
    """Changes of an object that is there already."""

    def events(leading: Leading) -> Iterator[Delivery]:
        leading.happen(leading.put(resource, make(0)))
        leading.park_again()
        for turn in range(ROUNDS):
            yield leading.put(resource, make(turn + 1))

    return events


def _object(kind: str, api: str, name: str, **fields: Any) -> Document:
    namespaced = {"namespace": parked.NAMESPACE} if kind == "PersistentVolumeClaim" else {}
    metadata = {"name": name, "uid": f"uid-{name}", **namespaced, **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def _claim(name: str) -> Document:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return _object("PersistentVolumeClaim", "v1", name, spec=spec)


def _volume(turn: int) -> Document:
    """It grows, where it was."""
    spec = {"capacity": {"storage": f"{turn + 1}Gi"}, "accessModes": ["ReadWriteOnce"]}
    return _object("PersistentVolume", "v1", "volume", spec=spec, metadata={"labels": {parked.ZONE: "zone-1"}})


def _csi_node(turn: int) -> Document:
    """It may have fewer volumes."""
    driver = {"name": "csi.example.com", "nodeID": "n", "allocatable": {"count": ROUNDS + 1 - turn}}
    return _object("CSINode", "storage.k8s.io/v1", "node-00001", spec={"drivers": [driver]})


def _whose_claim(turn: int) -> str:
    """The claim of one of the pods that have one."""
    return parked.claim_name(turn * 10 + 9)


KINDS: Final = (
    Kind("node: heartbeat", parked.plain, _nodes(lambda turn: node(turn % NODES, heard=turn // NODES + 1))),
    Kind(
        "node: another annotation", parked.plain, _nodes(lambda turn: node(turn % NODES, annotations={"a": str(turn)}))
    ),
    Kind("node: another condition", parked.plain, _nodes(lambda turn: node(turn % NODES, reason=f"Reason{turn}"))),
    Kind("node: grows, still too small", parked.plain, _nodes(lambda turn: node(turn % NODES, cpu=9 + turn // NODES))),
    Kind(
        "node: a label nobody selects", parked.plain, _nodes(lambda turn: node(turn % NODES, labels={"t": str(turn)}))
    ),
    Kind("pod: a stranger is bound", parked.plain, _bound("stranger")),
    Kind("pod: bound where nobody means it", parked.plain, _bound("app-3", ELSEWHERE)),
    Kind("pod: a stranger's labels change", parked.plain, _relabelled("stranger", "other-stranger")),
    Kind(
        "claim: new, nobody's",
        parked.with_claims,
        _new("persistentvolumeclaims", lambda turn: _claim(f"nobodys-{turn}")),
    ),
    Kind("volume: grows where it is", parked.in_zones, _changing("persistentvolumes", _volume)),
    Kind("CSINode: holds fewer volumes", parked.with_claims, _changing("csinodes", _csi_node)),
    Kind(
        "node: a label one pod selects",
        parked.plain,
        _nodes_back(lambda turn: node(turn % NODES, labels={"disk": parked.THE_CHOOSY_DISK})),
        wakes=1,
    ),
    Kind(
        "node: grows, one pod fits",
        parked.plain,
        _nodes_back(lambda turn: node(turn % NODES, cpu=parked.THE_SMALLEST_MILLI // 1000)),
        wakes=1,
    ),
    Kind("pod: bound, one wants to be near", parked.plain, _bound(parked.THE_FRIEND_APP), wakes=1),
    Kind("pod: counts for one pod's spread", parked.plain, _relabelled("stranger", parked.THE_SPREAD_APP), wakes=1),
    Kind(
        "claim: new, one pod's",
        parked.with_claims,
        _new("persistentvolumeclaims", lambda turn: _claim(_whose_claim(turn))),
        wakes=1,
    ),
)
"""In the order of the table."""
