"""Why a pod is Pending: each cause is brought about in a whole cluster, real services on the bus in memory.
What `podyard explain pod` and `podyard queue` say of it names the cause, with its number or name, and what
would help.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from rich.console import Console, RenderableType

from podyard.bus import Bus
from podyard.cli import objects_client
from podyard.cli.demo.actions import RefusedError
from podyard.cli.explain import gather
from podyard.cli.render import explain as rendered
from podyard.cli.render import queue as rendered_queue
from podyard.proto.message import ObjectRef
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from podyard.runtime import clock
from podyard.telling import explanation
from podyard.telling.explanation import Explanation
from tests.memory_nats import LoopTimers, MemoryServer
from tests.support import objects
from tests.support.buses import connector
from tests.support.holding import holding
from tests.support.objects import ZONE, Document
from tests.support.waiting import eventually
from tests.support.whole import Whole, whole

ZONED: Final = (objects.node("n1", labels={ZONE: "a"}), objects.node("n2", labels={ZONE: "b"}))
WEB: Final = {"matchLabels": {"app": "web"}}
GPU: Final = "example.com/gpu"
PARKED: Final = frozenset({"unschedulable", "gated", "backoffQ", "errorBackoffQ"})


class Scene(NamedTuple):
    """A cluster in which the pod `p` has to wait for one cause."""

    cause: str
    pod: Document
    explain: tuple[str, ...]
    """What `podyard explain pod p` says, in its lines."""
    queue: str
    """What `podyard queue` says in short."""
    there: tuple[Document, ...] = (objects.node("n1"),)
    """Nodes and other objects."""
    running: tuple[Document, ...] = ()
    """Pods that run before `p` is made."""


def pod(**more: Any) -> Document:
    return objects.pod("p", **more)


def claim(name: str, storage_class: str | None, *, metadata: Document | None = None, **spec: Any) -> Document:
    named = {} if storage_class is None else {"storageClassName": storage_class}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **named,
            **spec,
        },
    }


def volume_on(name: str, node: str) -> Document:
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
        },
    }


def storage_class(name: str, mode: str) -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }


def using(*claims: str, **more: Any) -> Document:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(volumes=volumes, **more)


def priority_class(name: str, value: int, policy: str) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


def of_namespace(kind: str, name: str, **spec: Any) -> Document:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def limited(cpu: str) -> Document:
    return {"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}


def near(key: str, kind: str) -> Document:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": WEB, "topologyKey": key}]}}


def spread(key: str) -> list[Document]:
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}]


def on_port(name: str) -> Document:
    return objects.pod(name, container={"ports": [{"containerPort": 80, "hostPort": 8080}]})


MAKE_ROOM: Final = "NodeResourcesFit: ask for less, add a node, or end pods on a node that is large enough"
WEB_RUNS: Final = (objects.pod("web-1", labels={"app": "web"}),)
ONLY_N2: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
        }
    }
}

SCENES: Final = (
    Scene(
        "cpu",
        pod(cpu="2"),
        ("NodeResourcesFit rejected 1 node: Insufficient cpu", "n1: wants 2 cpu, free 1 of 4", MAKE_ROOM),
        "NodeResourcesFit: 1 Insufficient cpu (0/1 nodes)",
        running=(objects.pod("big", cpu="3"),),
    ),
    Scene(
        "more cpu than any node has",
        pod(cpu="10"),
        (
            "NodeResourcesFit rejected 1 node: Insufficient cpu",
            "n1: wants 10 cpu, the whole node has 4",
            "NodeResourcesFit: ask for less, or add a larger node",
        ),
        "NodeResourcesFit: 1 Insufficient cpu (0/1 nodes)",
    ),
    Scene(
        "memory",
        pod(memory="6Gi"),
        ("Insufficient memory", "n1: wants 6Gi memory, free 5.5Gi of 8Gi", MAKE_ROOM),
        "NodeResourcesFit: 1 Insufficient memory (0/1 nodes)",
        running=(objects.pod("big", memory="2560Mi"),),
    ),
    Scene(
        "extended resource",
        pod(container={"resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}),
        (f"Insufficient {GPU}", f"n1: wants 1 {GPU}, no node has any", "NodeResourcesFit: ask for less, or add"),
        f"NodeResourcesFit: 1 Insufficient {GPU} (0/1 nodes)",
    ),
    Scene(
        "too many pods",
        pod(),
        (
            "rejected 1 node: Too many pods",
            "n1: has 1 of at most 1 pods",
            "free a place there, add a node, or raise the node's limit of pods",
        ),
        "NodeResourcesFit: 1 Too many pods (0/1 nodes)",
        (objects.node("n1", pods="1"),),
        WEB_RUNS,
    ),
    Scene(
        "taint",
        pod(),
        (
            "TaintToleration rejected 1 node",
            "n1: does not tolerate taint dedicated=gpu:NoSchedule",
            "TaintToleration: add a toleration to the pod, or apply the node without the taint (spec.taints)",
        ),
        "TaintToleration: 1 node(s) had untolerated taint(s) (0/1 nodes)",
        (objects.node("n1", taints=[{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]),),
    ),
    Scene(
        "node selector",
        pod(nodeSelector={"disk": "ssd"}),
        (
            "NodeAffinity rejected 1 node: node(s) didn't match Pod's node affinity/selector",
            "n1: wants disk=ssd, has no label disk",
            "NodeAffinity: give a node these labels, or ask for others",
        ),
        "NodeAffinity: 1 node(s) didn't match Pod's node affinity/selector (0/1 nodes)",
    ),
    Scene(
        "node affinity by name",
        pod(affinity=ONLY_N2),
        (
            "node(s) didn't satisfy plugin(s) [NodeAffinity]",
            "only n2 may take the pod, and there is no node n2",
            "NodeAffinity: make room on the nodes that it names, create them, or name others",
        ),
        "NodeAffinity: 1 node(s) didn't satisfy plugin(s) [NodeAffinity] (0/1 nodes)",
    ),
    Scene(
        "pod anti-affinity",
        pod(affinity=near(objects.HOSTNAME, "podAntiAffinity")),
        (
            "InterPodAffinity rejected 1 node: node(s) didn't match pod anti-affinity rules",
            "n1: must be apart from pods with app=web; default/web-1 is in kubernetes.io/hostname=n1",
            "InterPodAffinity: add a node in another domain, or make the anti-affinity preferred",
        ),
        "InterPodAffinity: 1 node(s) didn't match pod anti-affinity rules (0/1 nodes)",
        running=WEB_RUNS,
    ),
    Scene(
        "anti-affinity of another pod",
        pod(labels={"app": "web"}),
        (
            "node(s) didn't satisfy existing pods anti-affinity rules",
            "n1: default/alone is in kubernetes.io/hostname=n1 and must be apart from pods with app=web",
            "InterPodAffinity: add a node in another domain",
        ),
        "InterPodAffinity: 1 node(s) didn't satisfy existing pods anti-affinity rules (0/1 nodes)",
        running=(objects.pod("alone", affinity=near(objects.HOSTNAME, "podAntiAffinity")),),
    ),
    Scene(
        "pod affinity",
        pod(affinity=near(ZONE, "podAffinity")),
        (
            "InterPodAffinity rejected 2 nodes: node(s) didn't match pod affinity rules",
            f"n1: no pod with app=web is in {ZONE}=a",
            "InterPodAffinity: place such a pod first, or make the affinity preferred",
        ),
        "InterPodAffinity: 2 node(s) didn't match pod affinity rules (0/2 nodes)",
        ZONED,
    ),
    Scene(
        "topology spread",
        pod(
            labels={"app": "web"},
            nodeSelector={ZONE: "a"},
            topologySpreadConstraints=[{**spread(ZONE)[0], "nodeAffinityPolicy": "Ignore"}],
        ),
        (
            "PodTopologySpread rejected 1 node: node(s) didn't match pod topology spread constraints",
            f"n1: {ZONE}=a has 1 of these pods, b has 0: with one more they would differ by more than 1 (maxSkew)",
            "PodTopologySpread: make room in the emptiest domain, raise maxSkew, or choose ScheduleAnyway",
        ),
        "NodeAffinity, PodTopologySpread: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't match",
        ZONED,
        (objects.pod("web-1", labels={"app": "web"}, nodeSelector={ZONE: "a"}),),
    ),
    Scene(
        "label of topology spread",
        pod(labels={"app": "web"}, topologySpreadConstraints=spread("rack")),
        ("(missing required label)", "n1: has no label rack", "PodTopologySpread: give the node this label"),
        "PodTopologySpread: 1 node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    Scene(
        "host port",
        on_port("p"),
        (
            "NodePorts rejected 1 node",
            "n1: host port 8080/TCP is taken by default/first",
            "NodePorts: another host port, or a node where it is free",
        ),
        "NodePorts: 1 node(s) didn't have free ports for the requested pod ports (0/1 nodes)",
        running=(on_port("first"),),
    ),
    Scene(
        "missing claim",
        using("data"),
        (
            'VolumeRestrictions rejected 1 node: persistentvolumeclaim "data" not found',
            "VolumeRestrictions: create what is not found, or name one that there is",
        ),
        'VolumeRestrictions: persistentvolumeclaim "data" not found (0/1 nodes)',
    ),
    Scene(
        "missing storage class",
        using("data"),
        (
            "pod has unbound immediate PersistentVolumeClaims",
            "claim data wants storage class fast, and there is no such class",
            "VolumeBinding: create that storage class, or a claim of one that there is",
        ),
        "VolumeBinding: pod has unbound immediate PersistentVolumeClaims (0/1 nodes)",
        (objects.node("n1"), claim("data", "fast")),
    ),
    Scene(
        "claim without a class",
        using("data"),
        (
            "claim data has no storage class, and no volume without one fits it",
            "VolumeBinding: create a volume that fits it, or a claim with a storageClassName",
        ),
        "VolumeBinding: pod has unbound immediate PersistentVolumeClaims (0/1 nodes)",
        (objects.node("n1"), claim("data", None)),
    ),
    Scene(
        "claim without a volume",
        using("data"),
        (
            "claim data of class now (volumeBindingMode Immediate) has no volume yet",
            "VolumeBinding: create a volume that fits, or a claim of a class that makes one",
        ),
        "VolumeBinding: pod has unbound immediate PersistentVolumeClaims (0/1 nodes)",
        (objects.node("n1"), storage_class("now", "Immediate"), claim("data", "now")),
    ),
    Scene(
        "volume of another node",
        using("data"),
        (
            "n1: claim data is bound to volume disk, not to be had there, only where kubernetes.io/hostname=n9",
            "VolumeBinding: make room where the volume is, or a volume where there is room",
        ),
        "VolumeBinding: 1 node(s) didn't match PersistentVolume's node affinity (0/1 nodes)",
        (
            objects.node("n1"),
            volume_on("disk", "n9"),
            claim("data", "", metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, volumeName="disk"),
        ),
    ),
    Scene(
        "no volume to bind",
        using("data"),
        (
            "n1: claim data finds no free volume of 1Gi there, and class later makes none there",
            "VolumeBinding: make room where the volume is, or a volume where there is room",
        ),
        "VolumeBinding: 1 node(s) didn't find available persistent volumes to bind (0/1 nodes)",
        (objects.node("n1"), storage_class("later", "WaitForFirstConsumer"), claim("data", "later")),
    ),
    Scene(
        "scheduling gate",
        pod(schedulingGates=[{"name": "example.com/quota"}]),
        (
            "in gated",
            "gate of SchedulingGates: waiting for scheduling gates: [example.com/quota]",
            "SchedulingGates: remove the gate from spec.schedulingGates when the pod may go",
        ),
        "SchedulingGates: [example.com/quota]",
    ),
    Scene(
        "cordon",
        pod(),
        (
            "NodeUnschedulable rejected 1 node: node(s) were unschedulable  (n1)",
            "NodeUnschedulable: uncordon the node: apply it without spec.unschedulable",
        ),
        "NodeUnschedulable: 1 node(s) were unschedulable (0/1 nodes)",
        (objects.node("n1", unschedulable=True),),
    ),
    Scene(
        "unknown schedulerName",
        pod(schedulerName="batch"),
        (
            "pending, and nobody schedules it: schedulerName is batch, and no profile has that name",
            "make the pod anew with schedulerName default-scheduler, or add a profile of that name (--scheduler-config)",
        ),
        "default/p: schedulerName is batch, and no profile has that name",
    ),
    Scene(
        "nodeName of no node",
        pod(node="n9"),
        (
            "pending, and nobody schedules it: nodeName is n9, and there is no such node",
            "NodeName: create a node of that name, or make the pod anew without spec.nodeName",
        ),
        "default/p: nodeName is n9, and there is no such node",
    ),
    Scene(
        "preemptionPolicy Never",
        pod(cpu="2", priorityClassName="polite"),
        (
            "n1: wants 2 cpu, free 1 of 4",
            "preemption: not eligible due to preemptionPolicy=Never.",
            "DefaultPreemption: a priority class whose preemptionPolicy is not Never would let it take the place of",
        ),
        "NodeResourcesFit: 1 Insufficient cpu (0/1 nodes)",
        (objects.node("n1"), priority_class("polite", 1000, "Never")),
        (objects.pod("big", cpu="3"),),
    ),
    Scene(
        "nobody of lower priority",
        pod(cpu="2"),
        ("n1: wants 2 cpu, free 1 of 4", "1 No preemption victims found for incoming pod", MAKE_ROOM),
        "NodeResourcesFit: 1 Insufficient cpu (0/1 nodes)",
        (objects.node("n1"), priority_class("high", 1000, "PreemptLowerPriority")),
        (objects.pod("big", cpu="3", priorityClassName="high"),),
    ),
    Scene(
        "missing resource claim",
        pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
        (
            'gate of DynamicResources: could not find claim "default/gpu"',
            "DynamicResources: create the resource claim, or make the pod without it",
        ),
        'DynamicResources: could not find claim "default/gpu"',
    ),
    Scene(
        "no node",
        pod(),
        ("no nodes available to schedule pods", "add a node: there is none"),
        "no nodes available to schedule pods",
        (),
    ),
)
NAMES: Final = [one.cause for one in SCENES]


class Told(NamedTuple):
    """What people read of one scene."""

    story: Explanation
    explain: str
    queue: str
    """On a wide terminal."""
    narrow: str
    """On one of 80 columns."""
    piped: str


class Played(NamedTuple):
    """What came of all scenes."""

    told: dict[str, Told]
    refused: tuple[str, ...]
    """What the api said of pods beyond the limits, and the quota, of their namespace: they never wait."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One cluster, in which one scene after the other is played."""
    return asyncio.run(_play(tmp_path_factory.mktemp("causes")))


@pytest.fixture
def told(played: Played) -> dict[str, Told]:
    return played.told


async def _play(directory: Path) -> Played:
    found: dict[str, Told] = {}
    async with cluster(directory) as here:
        for scene in SCENES:
            found[scene.cause] = await _played(here, scene)
            await _emptied(here)
        return Played(found, await _refused(here))


async def _refused(here: Whole) -> tuple[str, ...]:
    quota = of_namespace("ResourceQuota", "few", hard={"requests.cpu": "500m"})
    limits = of_namespace("LimitRange", "small", limits=[{"type": "Container", "max": {"cpu": "1"}}])
    said: list[str] = []
    for keeps, wanted in ((quota, "1"), (limits, "2")):
        await here.do.apply([keeps], "of the scene")
        said.append(await eventually("a refusal", partial(_refusal, here, wanted)))
    return tuple(said)


async def _refusal(here: Whole, wanted: str) -> str:
    """What the api says of a pod with this limit of CPU; empty while it says to try again, since the quota is
    not counted yet."""
    with pytest.raises(RefusedError) as refused:
        await here.do.apply([objects.written(pod(container=limited(wanted)))], "of the scene")
    said = str(refused.value)
    return "" if said.endswith("try again") else said


@asynccontextmanager
async def cluster(directory: Path) -> AsyncIterator[Whole]:
    server = MemoryServer(LoopTimers(clock.now))
    async with holding() as hold, whole(connector(server, hold), directory) as here:
        yield here


async def _played(here: Whole, scene: Scene) -> Told:
    nodes = [one for one in scene.there if one["kind"] == "Node"]
    others = [objects.written(one) for one in scene.there if one["kind"] != "Node"]
    await here.nodes(*nodes)
    if others:
        await here.do.apply(others, "of the scene")
    if scene.running:
        await here.do.apply([objects.written(one) for one in scene.running], "of the scene")
        await here.settled(len(scene.running))
    await here.do.apply([objects.written(scene.pod)], "of the scene")
    reply = await eventually(f"{scene.cause}: p waits", lambda: _waits(here.bus))
    story = explanation.build(await gather.gather(here.bus, "default", "p"))
    now = clock.now()
    return Told(
        story,
        _text(rendered.view(story, now), 1000),
        _text(rendered_queue.view(reply, now, 200), 200),
        _text(rendered_queue.view(reply, now, 80), 80),
        "\n".join(rendered_queue.lines(reply, now)),
    )


async def _waits(bus: Bus) -> QueueListReply | None:
    """What the queue says, once it has parked the pod or knows that nobody schedules it."""
    reply = await gather.queue_says(bus, QueueListRequest(namespace="default", name="p"))
    if reply is None:
        return None
    waits = any(one.pool in PARKED and (one.message or one.gating_plugin) for one in reply.pods)
    return reply if waits or reply.outside else None


async def _emptied(here: Whole) -> None:
    view = here.seen.view
    await _delete(here, [ObjectRef(resource="pods", namespace=space, name=name) for space, name in view.pods])
    await here.seen.until("the end of all pods", lambda: not view.pods_by_uid, 30.0)
    kinds = {kind: view.objects(kind) for kind in view.resources if kind != "namespaces"}
    rest = [
        ObjectRef(resource=kind, namespace=space, name=name) for kind, found in kinds.items() for space, name in found
    ]
    await _delete(here, [*(ObjectRef(resource="nodes", name=name) for name in view.nodes), *rest])
    await here.seen.until("the end of all else", lambda: not view.nodes, 30.0)


async def _delete(here: Whole, targets: Iterable[ObjectRef]) -> None:
    await objects_client.delete(here.bus, list(targets), grace_period_s=0, why="the scene is over", who="tests")


def _text(shown: RenderableType, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, no_color=True).print(shown)
    return out.getvalue()


@pytest.mark.parametrize("scene", SCENES, ids=NAMES)
def test_explain_names_the_cause_and_what_would_help(told: dict[str, Told], scene: Scene) -> None:
    text = told[scene.cause].explain
    assert [one for one in scene.explain if one not in text] == [], text
    assert told[scene.cause].story.help


@pytest.mark.parametrize("scene", SCENES, ids=NAMES)
def test_the_queue_names_the_cause_in_short(told: dict[str, Told], scene: Scene) -> None:
    said = told[scene.cause]
    assert scene.queue in said.queue, said.queue
    assert all(len(line) <= 80 for line in said.narrow.splitlines())
    assert scene.queue[:36] in said.narrow, said.narrow


def test_a_pod_beyond_a_quota_or_a_limit_is_refused_with_the_numbers(played: Played) -> None:
    quota, limit = played.refused
    assert "exceeded quota: few, requested: requests.cpu=1, used: requests.cpu=0, limited: requests.cpu=500m" in quota
    assert "maximum cpu usage per Container is 1, but limit is 2" in limit


def test_a_missing_claim_is_said_to_be_missing_once(told: dict[str, Told]) -> None:
    said = told["missing claim"]
    for text in (said.explain, said.queue, said.piped):
        assert {line.count("not found") for line in text.splitlines()} == {0, 1}, text
