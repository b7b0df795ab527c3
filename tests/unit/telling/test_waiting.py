"""Pods that wait for the same are told together."""

import pytest

from podyard.plugins.default_preemption import plugin as preemption
from podyard.plugins.in_tree import IN_TREE
from podyard.plugins.inter_pod_affinity import plugin as affinity
from podyard.plugins.taint_toleration import plugin as taints
from podyard.proto.decisions import AttemptRecord, Rejection
from podyard.proto.queue_api import OutsidePod, QueueListReply
from podyard.telling import waiting
from podyard.telling.waiting import WaitingPod
from tests.support import objects

CPU = Rejection(
    plugin="NodeResourcesFit",
    reason="Insufficient cpu",
    nodes=2,
    nearest="n3",
    detail="wants 1 cpu, free 500m of 2",
    lacks="500m",
)
TAINT = Rejection(plugin=taints.NAME, reason=taints.REASON, nodes=5, nearest="n9", detail="does not tolerate a")


def waits(name: str, *rejections: Rejection, at: float = 1.0, **more: object) -> WaitingPod:
    said = {"outcome": "unschedulable", "nodes_total": 7, **more}
    last = AttemptRecord(
        namespace="default",
        name=name,
        uid=name,
        attempt="1",
        at=at,
        rejections=rejections,
        **said,  # pyright: ignore[reportArgumentType] - fields of the record
    )
    return WaitingPod(namespace="default", name=name, uid=name, last=last)


def test_equal_causes_are_one_with_what_the_youngest_attempt_says() -> None:
    old = Rejection(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=1, nearest="n1", lacks="1")
    pods = [*(waits(f"p{number}", old) for number in range(3, -1, -1)), waits("young", CPU, at=2.0)]
    (cause,) = waiting.causes(pods)
    assert (cause.awaits, cause.pods, cause.examples) == ("cpu", 5, ("default/p0", "default/p1", "default/p2"))
    assert (cause.nearest, cause.lacks, cause.nodes, cause.nodes_total) == ("n3", "500m", 2, 7)
    assert cause.help == "ask for less, add a node, or end pods on a node that is large enough"


def test_what_keeps_a_pod_off_the_nearest_node_counts() -> None:
    assert waiting.deciding(waits("p", TAINT, CPU, nearest="n3").last) == CPU  # pyright: ignore[reportArgumentType]
    assert waiting.deciding(waits("p", TAINT, CPU).last) == TAINT  # pyright: ignore[reportArgumentType]


def test_that_of_most_pods_comes_first() -> None:
    causes = waiting.causes([waits("a", TAINT), waits("b", CPU), waits("c", CPU)])
    assert [(one.awaits, one.pods) for one in causes] == [("cpu", 2), ("a node without such taints", 1)]


def test_pods_without_a_rejection() -> None:
    gate = {"outcome": "gated", "nodes_total": 0, "message": "waiting for scheduling gates: [a]"}
    stranger = OutsidePod(namespace="default", name="out", uid="out", scheduler="batch")
    pods = [
        waits("gated", unschedulable_plugins=("SchedulingGates",), **gate),
        waits("none", nodes_total=0, outcome="error", message="no nodes available to schedule pods"),
        waits("soon", CPU, nominated_node="n2"),
        WaitingPod(namespace="default", name="new", uid="new"),
        WaitingPod(namespace="default", name="out", uid="out", outside=stranger),
    ]
    found = {one.examples[0]: one for one in waiting.causes(pods, ("default-scheduler",))}
    assert {name: (one.awaits, one.reason) for name, one in found.items()} == {
        "default/gated": ("the end of a gate", "waiting for scheduling gates: [a]"),
        "default/none": ("a node", "no nodes available to schedule pods"),
        "default/soon": ("its victims", "victims on n2 have to end first"),
        "default/new": ("its turn", "not tried yet"),
        "default/out": ("a scheduler", "schedulerName is batch, and no profile has that name"),
    }
    assert [one.help for one in found.values() if not one.help] == ["", ""]
    assert found["default/gated"].help == "remove the gate from spec.schedulingGates when the pod may go"
    assert found["default/none"].help == "add a node: there is none"


def test_every_plugin_that_rejects_has_a_word_of_its_own() -> None:
    silent = {"DefaultBinder", "ImageLocality", "NodeResourcesBalancedAllocation", "PrioritySort"}
    quiet = {preemption.NAME, "NodeDeclaredFeatures"}
    assert {plugin for plugin in IN_TREE if waiting.in_a_word(plugin, "") == plugin} <= silent | quiet | {
        "NodeResourcesFit"
    }


@pytest.mark.parametrize(
    ("plugin", "reason", "word"),
    [
        ("NodeResourcesFit", "Insufficient example.com/gpu", "example.com/gpu"),
        ("NodeResourcesFit", "Too many pods", "room for a pod"),
        (affinity.NAME, affinity.REASON_AFFINITY, "a pod to be near"),
        (affinity.NAME, affinity.REASON_ANTI_AFFINITY, "a node apart from other pods"),
        ("Mine", "anything", "Mine"),
        ("", "boom", "boom"),
    ],
)
def test_in_a_word(plugin: str, reason: str, word: str) -> None:
    assert waiting.in_a_word(plugin, reason) == word


def test_whose_scheduler_is_not_here_is_seen_though_the_queue_does_not_name_the_pod() -> None:
    pod = objects.view(objects.pod("p", schedulerName="batch"))
    queue = QueueListReply(epoch=1, profiles=("default-scheduler",))
    found = waiting.of_pod(pod, None, queue).outside
    assert found is not None
    assert found.scheduler == "batch"
    assert waiting.of_pod(pod, None, None).outside is None
    assert waiting.of_pod(objects.view(objects.pod("p")), None, queue).outside is None
