"""What `bench growth` plays: pods that come, change, fail and go, and nodes that change all the time, with
names never seen before.

Whatever a service remembers by something from outside meets a new one in every round: labels and their keys,
amounts, selectors, taints with times, extended resources, kinds. How many there are of all this at one moment
stays the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from podyard.bench import load
from podyard.bench.versions import version
from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.signals import NodeHeartbeat
from podyard.runtime.settings import PREFIX, RetentionSettings

NAMESPACE: Final = "default"
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
AGENT: Final = "podyard.io/agent"
RUN_DURATION: Final = "podyard.io/run-duration"
APPS: Final = 20
"""Apps at one moment; a new one replaces the oldest every few rounds."""
ROUNDS_AN_APP: Final = 8

Document = dict[str, Any]

CREATED: Final = 64
"""Pods that a round creates; as many are deleted."""
RELABELLED: Final = 48
NODES_CHANGED: Final = 64


def plays_agent(number: int) -> bool:
    """Whether the benchmark plays the agent of this node: every other one, so that pods can fail; the others'
    is the node agent."""
    return number % 2 == 1


def node_name(number: int) -> str:
    """Of the `number`-th node."""
    return f"node-{number:05}"


def node(number: int, round_: int) -> Document:
    """A node in a round: with a taint that tells a time, a label with a key of its own, an extended resource
    of its own."""
    document = load.node(number)
    metadata, status = document["metadata"], document["status"]
    if plays_agent(number):
        metadata["annotations"] = {AGENT: "external"}
    if not round_:
        return document
    what = (number + round_) % 4
    if what == 0:
        document["spec"] = {"taints": [_taint(round_)]}
    elif what == 1:
        metadata["labels"][f"key-{round_}-{number}.example.com/seen"] = "true"
    elif what == 2:
        size = {**status["allocatable"], f"example.com/device-{round_}-{number}": "4"}
        document["status"] = {"capacity": size, "allocatable": size}
    else:
        metadata["labels"]["example.com/round"] = f"round-{round_}"
    return document


def _taint(round_: int) -> dict[str, str]:
    """As an autoscaler writes it: the value is a time."""
    return {
        "key": "DeletionCandidateOfClusterAutoscaler",
        "value": str(1_700_000_000 + round_),
        "effect": "PreferNoSchedule",
    }


def pod(number: int, round_: int) -> Document:
    """The `number`-th pod. Of sixteen, eight differ from all others in more than their name."""
    app = f"app-{round_ // ROUNDS_AN_APP}-{number % APPS}"
    own = {"matchLabels": {"app": app}}
    labels = {"app": app, "example.com/round": f"round-{round_}"}
    spec: Document = {"containers": [_container(f"{100 + 10 * (number % 5)}m", f"registry.example/{app}:1")]}
    document: Document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:08}", "namespace": NAMESPACE, "labels": labels},
        "spec": spec,
    }
    match number % 16:
        case 0:
            labels[f"key-{number}.example.com/own"] = f"value-{number}"
        case 1 | 2:
            spec["containers"] = [
                _container(f"{100 + number % 900}m", f"registry.example/image-{number}:1", f"{100_000_000 + number}")
            ]
        case 3:
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": own}
            ]
        case 4:
            term = {"topologyKey": HOST, "labelSelector": own}
            spec["affinity"] = {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]
                }
            }
        case 5:
            spec["tolerations"] = [{"key": f"key-{number}", "operator": "Exists"}]
        case 6:
            spec["nodeSelector"] = {f"nobody-{number}.example.com/has": "this"}
        case 7:
            spec["nodeName"] = f"missing-{number}"
        case 8 | 9:
            document["metadata"]["annotations"] = {RUN_DURATION: "2s"}
            spec["restartPolicy"] = "Never"
        case 10:
            requests = spec["containers"][0]["resources"]["requests"]
            requests[f"example.com/device-{number}"] = "1"
            spec["containers"][0]["resources"]["limits"] = {f"example.com/device-{number}": "1"}
        case _:
            pass
    return document


def _container(cpu: str, image: str, memory: str = "200Mi") -> Document:
    return {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def relabelled(document: Document, round_: int) -> Document:
    """The pod with a label of this round; every fourth with a key of its own."""
    metadata = document["metadata"]
    key = f"key-{metadata['name']}-{round_}.example.com/new" if round_ % 4 == 0 else "example.com/round"
    return {**document, "metadata": {**metadata, "labels": {**metadata["labels"], key: f"round-{round_}"}}}


def custom(round_: int) -> Document:
    """An object of a kind that nobody has seen before."""
    return {
        "apiVersion": f"group-{round_}.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "thing", "namespace": NAMESPACE},
        "spec": {"round": round_},
    }


def custom_reference(round_: int) -> ObjectRef:
    """The same, for its deletion."""
    return ObjectRef(resource=f"things.v1.group-{round_}.example.com", namespace=NAMESPACE, name="thing")


class StoredNode:
    """A node, and the sequence of its last version."""

    __slots__ = ("number", "sequence", "uid")

    def __init__(self, number: int, uid: str, sequence: int) -> None:
        self.number = number
        self.uid = uid
        self.sequence = sequence

    def change(self, round_: int) -> Outgoing:
        """Its version of a round."""
        document = node(self.number, round_)
        document["metadata"]["uid"] = self.uid
        return version(subjects.NODES, document, self.sequence)


def failed(namespace: str, name: str, uid: str, node_: str) -> Outgoing:
    """What the agent of a node says of a pod that has failed."""
    fact = PodStatusFact(
        namespace=namespace,
        name=name,
        uid=uid,
        node=node_,
        phase="Failed",
        reason="Error",
        message="exit code 1",
        ended=True,
    )
    return Outgoing(subjects.pod_status(node_, namespace, name, uid), codec.encode(fact), expect=0)


def heartbeat(number: int) -> Outgoing:
    """The sign of life of a node whose agent is played."""
    name = node_name(number)
    return Outgoing(subjects.heartbeat(name), codec.encode(NodeHeartbeat(node=name, agent="bench")))


def forgotten(status: Outgoing, sequence: int) -> Outgoing:
    """The marker in the place of a pod's status, after the pod."""
    return Outgoing(status.subject, b"", expect=sequence, deleted=True, expires=True)


def references(documents: Sequence[Document]) -> tuple[ObjectRef, ...]:
    """Pods by name."""
    return tuple(
        ObjectRef(resource=subjects.PODS, namespace=NAMESPACE, name=document["metadata"]["name"])
        for document in documents
    )


def retention(divided_by: int) -> dict[str, int]:
    """A part of the usual retention, by setting."""
    usual: dict[str, int] = msgspec.structs.asdict(RetentionSettings())
    return {name: max(1, value // divided_by) for name, value in usual.items()}


def variables(retention: Mapping[str, int]) -> dict[str, str]:
    """The same as variables of services."""
    return {f"{PREFIX}_RETENTION_{name.upper()}": str(value) for name, value in retention.items()}
