"""A queue full of parked pods for `bench events`: pods of many shapes, each with the plugins that would
reject it. Pure.

A cast says how many of which: events that concern nobody in one cast wake many in another, by the reference's
rules.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from podyard.proto.queue_api import AttemptResult, PoppedPod

SIZES: Final = 500
"""Different sizes of pods that found no room."""
WORKLOADS: Final = 50
TOO_LARGE_MILLI: Final = 40_000
"""No pod that found no room wants less CPU, but one."""
THE_SMALLEST: Final = 0
THE_SMALLEST_MILLI: Final = 20_000
THE_CHOOSY: Final = 10
"""Number of the one pod with a node selector of its own."""
THE_CHOOSY_DISK: Final = "rare"
THE_SPREAD: Final = 14
"""Number of the one pod whose spread counts pods of this label:"""
THE_SPREAD_APP: Final = "solo"
THE_FRIEND: Final = 16
"""Number of the one pod that wants to be near pods of this label:"""
THE_FRIEND_APP: Final = "rare-friend"
NAMESPACE: Final = "default"
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"

FIT: Final = "NodeResourcesFit"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
Document = dict[str, Any]


def rejected(pod: PoppedPod, rejectors: tuple[str, ...]) -> AttemptResult:
    """What a scheduler tells the queue of a pod that these plugins rejected."""
    return AttemptResult(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        attempt=pod.attempt,
        outcome="unschedulable",
        unschedulable_plugins=rejectors,
    )


class Parked(NamedTuple):
    """A pod and the plugins that rejected it."""

    document: Document
    rejectors: tuple[str, ...]


class Shape(NamedTuple):
    """What is special about a pod."""

    spec: Document
    rejectors: tuple[str, ...]
    cpu_milli: int = 100
    memory_gib: int = 1


def plain(number: int) -> Parked:
    """Of twenty pods ten want more room than there is, three a node label, two a toleration, two a zone in
    balance, one to be near and one to be apart from others, one a host port: of some 50 workloads."""
    return _pod(number, _PLAIN[number % len(_PLAIN)](number))


def with_claims(number: int) -> Parked:
    """Of ten pods four have volumes, of which one waits for its volume to be bound."""
    if number % 10 < 6:
        return plain(number)
    plugin = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeZone", "VolumeBinding")[number % 10 - 6]
    return _pod(number, Shape(_claim(number), (plugin,)))


def in_zones(number: int) -> Parked:
    """The same, but none waits for its volume to be bound: any change of a volume would wake it."""
    found = with_claims(number)
    return found if found.rejectors != ("VolumeBinding",) else Parked(found.document, ("VolumeZone",))


def short_of_room(number: int) -> Parked:
    """All want more room than there is."""
    return _pod(number, _large(number))


Cast = Callable[[int], Parked]


def _large(number: int) -> Shape:
    milli = TOO_LARGE_MILLI + number % SIZES * 10 if number != THE_SMALLEST else THE_SMALLEST_MILLI
    return Shape({}, (FIT,), milli, 8 + number % 7)


def _large_and_choosy(number: int) -> Shape:
    large = _large(number)
    return large._replace(spec=_choosy(number).spec, rejectors=(FIT, "NodeAffinity"))


def _large_and_intolerant(number: int) -> Shape:
    large = _large(number)
    return large._replace(spec=_intolerant(number).spec, rejectors=(FIT, "TaintToleration"))


def _choosy(number: int) -> Shape:
    disk = f"kind-{_workload(number)}" if number != THE_CHOOSY else THE_CHOOSY_DISK
    return Shape({"nodeSelector": {"disk": disk}}, ("NodeAffinity",))


def _choosy_by_terms(number: int) -> Shape:
    wanted = {"key": "model", "operator": "In", "values": [f"m{_workload(number)}", f"n{_workload(number)}"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return Shape({"affinity": {"nodeAffinity": {REQUIRED: terms}}}, ("NodeAffinity",))


def _intolerant(number: int) -> Shape:
    return Shape({"tolerations": [{"key": _workload(number), "operator": "Exists"}]}, ("TaintToleration",))


def _spread(number: int) -> Shape:
    app = _workload(number) if number != THE_SPREAD else THE_SPREAD_APP
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return Shape({"topologySpreadConstraints": [constraint]}, ("PodTopologySpread",))


def _near(number: int) -> Shape:
    app = f"friend-of-{_workload(number)}" if number != THE_FRIEND else THE_FRIEND_APP
    return _affine("podAffinity", app)


def _apart(number: int) -> Shape:
    return _affine("podAntiAffinity", _workload(number))


def _affine(kind: str, app: str) -> Shape:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return Shape({"affinity": {kind: {REQUIRED: [term]}}}, ("InterPodAffinity",))


def _with_port(number: int) -> Shape:
    port = 8000 + number // 20 % WORKLOADS
    return Shape({"ports": [{"containerPort": port, "hostPort": port}]}, ("NodePorts",))


_PLAIN: Final[tuple[Callable[[int], Shape], ...]] = (
    *((_large,) * 8),
    _large_and_choosy,
    _large_and_intolerant,
    *((_choosy,) * 2),
    _choosy_by_terms,
    _intolerant,
    *((_spread,) * 2),
    _near,
    _apart,
    _with_port,
    _intolerant,
)


def _claim(number: int) -> Document:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name(number)}}]}


def claim_name(number: int) -> str:
    """Of the claim of pod `number`."""
    return f"claim-{number:06}"


def _workload(number: int) -> str:
    return f"app-{number // 20 % WORKLOADS}"


def _pod(number: int, shape: Shape) -> Parked:
    spec = dict(shape.spec)
    container: Document = {
        "name": "main",
        "image": "app",
        "resources": {"requests": {"cpu": f"{shape.cpu_milli}m", "memory": f"{shape.memory_gib}Gi"}},
    }
    if "ports" in spec:
        container["ports"] = spec.pop("ports")
    name = f"parked-{number:06}"
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": {"app": _workload(number)}}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}
    return Parked(document, shape.rejectors)
