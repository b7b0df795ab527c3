"""What is on a node, how full it is, and why pods that wait do not go there."""

from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from podyard.cli.render import node as rendered
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.proto.decisions import AttemptRecord, Rejection
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import BoundPod
from podyard.proto.queue_api import QueueListReply
from podyard.telling import node_story
from podyard.telling.node_story import NodeStory
from tests.support import objects

QUEUE = QueueListReply(epoch=1, profiles=("default-scheduler",))
FIT = Rejection(
    plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=5, examples=("n7", "n8", "n9"), nearest="n8"
)
TAINTS = Rejection(plugin="TaintToleration", reason="node(s) had untolerated taint(s)", nodes=5, examples=("n7",))
SELECTOR = Rejection(plugin="NodeAffinity", reason="node(s) didn't match", nodes=5, examples=("n7",))
CORDON = Rejection(plugin="NodeUnschedulable", reason="node(s) were unschedulable", nodes=5, examples=("n7",))
PORTS = Rejection(plugin="NodePorts", reason="node(s) didn't have free ports", nodes=5, examples=("n7",))
APART = Rejection(plugin="InterPodAffinity", reason="anti-affinity", nodes=5, examples=("n7",), nearest="n7")
CLAIM = Rejection(plugin="VolumeBinding", reason='persistentvolumeclaim "data" not found', nodes=9)
PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}


def on(name: str, **more: Any) -> PodView:
    bound = BoundPod(namespace="default", name=name, uid=f"uid-{name}", node="n1")
    status = PodStatusFact(namespace="default", name=name, uid=f"uid-{name}", node="n1", phase="Running")
    return objects.view(objects.pod(name, **more), sequence=2, bound=bound, status=status)


def waits(name: str = "p", **more: Any) -> PodView:
    return objects.view(objects.pod(name, **more))


def told(
    *pods: PodView,
    rejections: tuple[Rejection, ...] = (),
    queue: QueueListReply | None = QUEUE,
    attempt: dict[str, Any] | None = None,
    **node: Any,
) -> NodeStory:
    placed = {pod.uid: pod for pod in pods if pod.bound is not None}
    view: Any = SimpleNamespace(pods={pod.key: pod for pod in pods}, pods_on=lambda name: placed)
    said = {"outcome": "unschedulable", "nodes_total": 9, "rejections": rejections, **(attempt or {})}
    known = rejections or attempt
    attempts = {
        pod.uid: AttemptRecord(namespace="default", name=pod.name, uid=pod.uid, attempt="1", at=1.0, **said)
        for pod in pods
        if pod.bound is None and known
    }
    found = NodeView(objects.typed_node("n1", **node), "n1", "uid-n1", 1)
    return node_story.story(view, found, attempts, queue)


def why(*pods: PodView, rejections: tuple[Rejection, ...] = (), **more: Any) -> str:
    (only,) = told(*pods, rejections=rejections, **more).kept_off
    return only.why


def test_what_is_on_it_and_how_full_it_is() -> None:
    story = told(on("small", cpu="500m"), on("big", cpu="2", memory="1Gi", priority=7), on("none"))
    assert [(one.resource, one.requested, one.allocatable, one.percent) for one in story.room] == [
        ("cpu", "2.5", "4", 62),
        ("memory", "1Gi", "8Gi", 12),
        ("pods", "3", "110", 2),
    ]
    assert [(one.name, one.status, one.priority, one.requests) for one in story.pods] == [
        ("big", "Running", 7, "2 cpu, 1Gi memory"),
        ("small", "Running", 0, "500m cpu"),
        ("none", "Running", 0, ""),
    ]
    assert (story.state, story.waiting, story.kept_off) == ("Unknown", 0, ())


@pytest.mark.parametrize(
    ("pod", "rejection", "node", "told_of"),
    [
        ({"cpu": "2"}, FIT, {}, "NodeResourcesFit: wants 2 cpu, free 1 of 4"),
        ({"cpu": "9"}, FIT, {}, "NodeResourcesFit: wants 9 cpu, the whole node has 4"),
        ({}, FIT, {"pods": "1"}, "NodeResourcesFit: has 1 of at most 1 pods"),
        (
            {},
            TAINTS,
            {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
            "TaintToleration: does not tolerate a=b:NoSchedule",
        ),
        ({}, CORDON, {"unschedulable": True}, "NodeUnschedulable: the node is cordoned (spec.unschedulable)"),
        ({"nodeSelector": {"disk": "ssd"}}, SELECTOR, {}, "NodeAffinity: wants disk=ssd"),
        ({"container": PORT}, PORTS, {}, "NodePorts: host port 8080/TCP is taken by default/there"),
    ],
)
def test_what_the_node_itself_has_against_a_pod_is_told_as_it_is_now(
    pod: dict[str, Any], rejection: Rejection, node: dict[str, Any], told_of: str
) -> None:
    there = on("there", cpu="3", container=PORT | {"resources": {"requests": {"cpu": "3"}}})
    assert why(there, waits(**pod), rejections=(rejection,), **node) == told_of


def test_only_what_a_plugin_said_in_the_last_attempt_counts() -> None:
    """The cluster may be configured without a plugin, or with other arguments of it."""
    assert why(waits(cpu="9"), rejections=(TAINTS,)) == node_story.MAY_COME


@pytest.mark.parametrize(
    ("rejections", "told_of"),
    [
        ((FIT,), node_story.MAY_COME),
        ((CLAIM,), 'VolumeBinding: persistentvolumeclaim "data" not found'),
        ((FIT, APART), "rejected, with others, by InterPodAffinity; the record does not name each node"),
        ((Rejection(plugin="InterPodAffinity", reason="near", nodes=2, examples=("n1",)),), "InterPodAffinity: near"),
        (
            (Rejection(plugin="InterPodAffinity", reason="r", nodes=2, nearest="n1", detail="web-1 is there"),),
            "InterPodAffinity: web-1 is there",
        ),
    ],
)
def test_what_others_decide_is_told_as_the_record_has_it(rejections: tuple[Rejection, ...], told_of: str) -> None:
    assert why(waits(cpu="1"), rejections=rejections) == told_of


@pytest.mark.parametrize(
    ("pod", "attempt", "told_of"),
    [
        ({}, None, node_story.NOT_TRIED),
        ({"schedulerName": "batch"}, None, "schedulerName is batch, and no profile has that name"),
        ({}, {"nominated_node": "n1"}, "comes when its victims here have ended"),
        ({}, {"nominated_node": "n2"}, "waits for its victims on n2"),
        (
            {},
            {"outcome": "gated", "unschedulable_plugins": ("SchedulingGates",), "message": "waiting for [a]"},
            "SchedulingGates: waiting for [a]",
        ),
    ],
)
def test_pods_that_no_node_was_asked_for(pod: dict[str, Any], attempt: dict[str, Any] | None, told_of: str) -> None:
    assert why(waits(**pod), attempt=attempt) == told_of


def test_equal_reasons_are_told_together_those_of_most_pods_first() -> None:
    pods = [waits(f"p{number}", cpu="9") for number in range(4)]
    story = told(*pods, waits("q", cpu="5"), rejections=(FIT,))
    assert [(one.pods, one.examples) for one in story.kept_off] == [
        (4, ("default/p0", "default/p1", "default/p2")),
        (1, ("default/q",)),
    ]


def test_pods_that_ended_leave_or_have_a_node_do_not_wait() -> None:
    assert told(on("a"), waits("b", deleting=True), waits("c", phase="Succeeded")).waiting == 0


def shown(story: NodeStory, *, every: bool = False) -> list[str]:
    out = StringIO()
    Console(file=out, width=80, no_color=True).print(rendered.view(story, 80, every=every))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_as_text_it_fits_80_columns() -> None:
    lines = shown(told(on("there", cpu="3"), waits(cpu="2"), rejections=(FIT,)))
    assert lines == [
        "Node n1  Unknown, 1 pod",
        "RESOURCE   REQUESTED   ALLOCATABLE   SHARE",
        "cpu        3           4             75%",
        "memory     0           8Gi           0%",
        "pods       1           110           0%",
        "",
        "pods on it",
        "NAMESPACE   NAME    STATUS    PRIORITY   REQUESTS",
        "default     there   Running   0          3 cpu",
        "",
        "why 1 waiting pod does not go there",
        "  1  NodeResourcesFit: wants 2 cpu, free 1 of 4  (default/p)",
    ]


def test_of_many_pods_the_largest_are_shown_unless_all_are_asked_for() -> None:
    story = told(*(on(f"pod-{number:02}", cpu=f"{number}m") for number in range(1, 31)))
    lines = shown(story)
    assert "pod-30" in lines[8]
    assert "... and 10 more, which request less cpu: --all" in lines
    assert any("pod-01" in line for line in shown(story, every=True))
