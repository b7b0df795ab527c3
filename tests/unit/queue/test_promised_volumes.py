"""Pods that wait in the binder for their volumes stay in `binding`; volumes that were promised in vain wake
who waits for some.
"""

import msgspec
import pytest

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import ClusterEvent, Registration
from podyard.proto.actions import ActionType
from podyard.proto.queue_api import PoppedPod, SessionHeartbeat
from podyard.queue.core.effects import Judged
from podyard.queue.core.hints import Hints
from podyard.queue.core.queued_pod import QueuedPod
from tests.unit.queue.test_leader import Stage

VOLUMES = ClusterEvent(events.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE)


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    registry = EventRegistry({"OnVolumes": (Registration(VOLUMES),)})
    stage.queue.hints = Hints({"default-scheduler": registry}, lambda: 0.0)
    return stage


def binding(stage: Stage, name: str) -> tuple[QueuedPod, PoppedPod]:
    (pod,) = stage.add(name)
    popped = stage.take()
    stage.done(popped, "scheduled", node="n1")
    return pod, popped


def beat(stage: Stage, *waiting: PoppedPod, session: str = "s") -> None:
    attempts = tuple(one.attempt for one in waiting)
    stage.leader.heartbeat(SessionHeartbeat(session=session, waiting=attempts), stage.now)
    stage.leader.tick(stage.now)


def with_claim(pod: QueuedPod) -> None:
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    pod.pod = msgspec.structs.replace(pod.pod, spec=msgspec.convert(spec, type(pod.pod.spec)))


def test_a_pod_that_waits_in_the_binder_stays_as_long_as_its_scheduler_says_so(stage: Stage) -> None:
    pod, popped = binding(stage, "a")
    for _ in range(120):
        stage.now += 5
        beat(stage, popped)
    assert pod.pool == "binding"
    for _ in range(5):
        stage.now += 5
        beat(stage)
    assert pod.pool == "binding"
    stage.now += 5.1
    beat(stage)
    assert pod.pool == "errorBackoffQ"


def test_others_go_back_before_one_that_waits(stage: Stage) -> None:
    waiting, popped = binding(stage, "a")
    other, _ = binding(stage, "b")
    stage.now += 20
    beat(stage, popped)
    stage.now += 10.1
    beat(stage, popped)
    assert (waiting.pool, other.pool) == ("binding", "errorBackoffQ")


def test_nothing_waits_for_a_session_that_dies(stage: Stage) -> None:
    pod, popped = binding(stage, "a")
    beat(stage, popped)
    for _ in range(12):
        stage.now += 1
        stage.leader.tick(stage.now)
    assert pod.pool != "binding"


def test_nobody_says_that_pods_of_another_session_wait(stage: Stage) -> None:
    pod, popped = binding(stage, "a")
    for _ in range(7):
        stage.now += 5
        beat(stage)
        beat(stage, popped, session="t")
    assert pod.pool != "binding"


def test_a_pod_with_claims_that_loses_its_place_wakes_who_waits_for_volumes(stage: Stage) -> None:
    waiting = stage.park("w", "OnVolumes")
    pod, popped = binding(stage, "a")
    with_claim(pod)
    stage.queue.take_effects()
    stage.done(popped, "bindError", assumed="n1", message="too late")
    assert waiting.pool == "backoffQ"
    (judged,) = [effect for effect in stage.queue.take_effects() if isinstance(effect, Judged)]
    assert (judged.incoming.event.label, judged.incoming.id) == (
        "PersistentVolumeUpdate",
        f"dropped-{popped.attempt}-volumes",
    )
    assert judged.incoming.why == "its place on n1 was given up: too late"


def test_a_pod_without_claims_wakes_nobody_who_waits_for_volumes(stage: Stage) -> None:
    waiting = stage.park("w", "OnVolumes")
    _, popped = binding(stage, "a")
    stage.done(popped, "bindError", assumed="n1")
    assert waiting.pool == "unschedulable"


def test_an_attempt_that_goes_on_tells_of_its_volumes_too(stage: Stage) -> None:
    waiting = stage.park("w", "OnVolumes")
    pod, popped = binding(stage, "a")
    with_claim(pod)
    stage.done(msgspec.structs.replace(popped, attempt=f"{popped.attempt}/1"), "bindError", assumed="n1")
    assert waiting.pool == "backoffQ"


def test_an_attempt_without_claims_that_goes_on_wakes_nobody(stage: Stage) -> None:
    waiting = stage.park("w", "OnVolumes")
    _, popped = binding(stage, "a")
    stage.done(msgspec.structs.replace(popped, attempt=f"{popped.attempt}/1"), "bindError", assumed="n1")
    assert waiting.pool == "unschedulable"


def test_volumes_that_went_with_the_pod_to_that_node_are_not_given_back(stage: Stage) -> None:
    waiting = stage.park("w", "OnVolumes")
    pod, popped = binding(stage, "a")
    with_claim(pod)
    stage.bound[pod.uid] = "n1"
    stage.done(popped, "bindError", assumed="n1")
    assert waiting.pool == "unschedulable"
