"""Pods of one kind whose rules look at each other go to one scheduler, as far as they stand one behind the
other."""

from typing import Any

import pytest

from podyard.objects.core import Pod
from podyard.queue.core import leader
from podyard.queue.core.mates import are_mates
from podyard.queue.core.queued_pod import QueuedPod
from tests.unit.framework.builders import make_pod
from tests.unit.queue.test_leader import Stage

OWN = {"matchLabels": {"app": "a"}}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": OWN}
            ]
        }
    }
}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": OWN}
    ]
}


def made(name: str, spec: dict[str, Any] | None = None, app: str = "a", priority: int = 0) -> Pod:
    return make_pod(name, labels={"app": app}, spec=spec, priority=priority).stored


def queue_with(*pods: Pod) -> Stage:
    stage = Stage()
    for pod in pods:
        stage.queue.add(
            QueuedPod(
                pod,
                key=pod.key,
                uid=pod.metadata.uid,
                priority=pod.spec.priority or 0,
                profile="default-scheduler",
                timestamp=stage.now,
            ),
            stage.now,
        )
    return stage


def names(stage: Stage, max_pods: int) -> list[str]:
    reply = stage.pop(max_pods=max_pods)
    return [] if reply is None else [pod.name for pod in reply.pods]


@pytest.mark.parametrize("spec", [APART, SPREAD], ids=["anti-affinity", "spread"])
def test_a_pop_goes_on_to_the_end_of_the_last_pods_kind(spec: dict[str, Any]):
    stage = queue_with(made("plain"), *(made(f"a-{number}", spec) for number in range(5)), made("b", spec, app="b"))
    assert names(stage, 2) == ["plain", "a-0", "a-1", "a-2", "a-3", "a-4"]
    assert names(stage, 2) == ["b"]


def test_pods_that_do_not_look_at_each_other_are_shared_out():
    stage = queue_with(*(made(f"a-{number}") for number in range(5)))
    assert [names(stage, 2), names(stage, 2), names(stage, 2)] == [["a-0", "a-1"], ["a-2", "a-3"], ["a-4"]]


def test_nobody_is_passed_by_for_a_mate():
    stage = queue_with(
        made("a-0", APART), made("a-1", APART), made("urgent", priority=5), made("a-2", APART, priority=-1)
    )
    assert names(stage, 1) == ["urgent"]
    assert names(stage, 2) == ["a-0", "a-1", "a-2"]
    stage = queue_with(made("a-0", APART), made("other"), made("a-1", APART))
    assert names(stage, 2) == ["a-0", "other"]


def test_who_asks_for_one_pod_gets_one():
    stage = queue_with(made("a-0", APART), made("a-1", APART))
    assert [names(stage, 1), names(stage, 1)] == [["a-0"], ["a-1"]]


def test_mates_end_at_what_one_request_to_the_binder_holds():
    stage = queue_with(*(made(f"a-{number:03}", APART) for number in range(leader.MOST_PODS + 10)))
    assert len(names(stage, 16)) == leader.MOST_PODS
    assert len(names(stage, 16)) == 10


@pytest.mark.parametrize(
    ("one", "other", "mates"),
    [
        (made("p", APART), made("q", APART), True),
        (made("p", APART), made("q", APART, app="b"), False),
        (made("p", APART), made("q", SPREAD), False),
        (made("p", APART | SPREAD), made("q", APART), False),
        (made("p"), made("q"), False),
    ],
    ids=["of one template", "other labels", "other rules", "one rule more", "no rules"],
)
def test_mates_are_alike_in_what_their_rules_look_at(one: Pod, other: Pod, mates: bool):
    assert are_mates(one, other) is mates
