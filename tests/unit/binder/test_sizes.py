"""What is too large for the server is refused with the reason; it neither comes back for ever nor keeps its
mates from being bound."""

import json
from typing import Any, ClassVar

import msgspec
import pytest

from podyard.binder.core import batch as batches
from podyard.binder.core import effects
from podyard.binder.core.usage_check import ROUND_STEPS
from podyard.framework.interfaces import ObjectWrite, PreBindResult
from podyard.framework.profile import Enabled, resolve
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.proto import streams
from tests.unit.binder.stage import Stage

LABEL = "x" * 60


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="1000", pods="1000")
    return stage


def labelled(stage: Stage, name: str, size_bytes: int, node: str = "") -> None:
    """A pod whose labels take about so many bytes."""
    labels = {f"label-{number:07}": LABEL for number in range(size_bytes // 80)}
    assert len(json.dumps(labels)) >= size_bytes * 0.9
    stage.pod(name, "1m", labels=labels, node=node)


def test_a_binding_that_is_too_large_is_refused_and_its_mates_are_bound(stage: Stage) -> None:
    stage.pod("a")
    labelled(stage, "big", batches.MAX_BINDING_BYTES * 2)
    binder = stage.serving()
    first, second = binder.answers(binder.ask(stage.decide("big"), stage.decide("a")))
    assert (first.result, first.cause, second.result) == ("error", "size", "bound")
    assert "fewer labels" in first.reasons[0]
    assert binder.bind(stage.decide("a")) == ["bound"]
    assert stage.stream.live() == {"a": "n1"}


def test_a_decision_record_that_is_too_large_is_refused(stage: Stage) -> None:
    stage.pod("a")
    binder = stage.serving()
    decision = stage.decide("a")
    assert decision.record is not None
    record = msgspec.structs.replace(decision.record, message="x" * batches.MAX_BINDING_BYTES)
    (answer,) = binder.answers(binder.ask(msgspec.structs.replace(decision, record=record)))
    assert (answer.result, answer.cause) == ("error", "size")


def test_many_large_bindings_go_in_several_commits(stage: Stage) -> None:
    """Each is small enough, all together are not: the record of their commit would be above what the server
    takes."""
    names = [f"p{number}" for number in range(30)]
    for name in names:
        labelled(stage, name, 200_000)
    binder = stage.serving()
    ticket = binder.ask(*(stage.decide(name) for name in names))
    for _ in range(4):
        stage.pass_time(0.02)
    assert {answer.result for answer in binder.answers(ticket)} == {"bound"}
    assert len(stage.stream.commits) > 1
    assert stage.stream.live().keys() == set(names)
    assert streams.MAX_PAYLOAD_BYTES < 30 * 200_000


def test_forced_bindings_are_held_to_the_same_sizes(stage: Stage) -> None:
    names = [f"p{number}" for number in range(30)]
    binder = stage.serving()
    labelled(stage, "big", batches.MAX_BINDING_BYTES * 2, node="n1")
    for name in names:
        labelled(stage, name, 200_000, node="n1")
    for _ in range(4):
        stage.pass_time(0.02)
    assert stage.stream.live().keys() == set(names)
    assert len(stage.stream.commits) > 1
    assert binder.core.idle


class Writing:
    """PreBind: so many objects are to be written with the binding."""

    name: ClassVar[str] = "Writing"

    def __init__(self, objects: int) -> None:
        self.objects = objects

    def pre_bind(self, state: Any, pod: Any, cluster: Any, node_name: str) -> PreBindResult:
        names = [f"{pod.name}-{number}" for number in range(self.objects)]
        return PreBindResult(
            writes=tuple(
                ObjectWrite(
                    resource="persistentvolumeclaims",
                    namespace="default",
                    name=name,
                    document={"metadata": {"name": name, "namespace": "default", "uid": name}},
                )
                for name in names
            )
        )


@pytest.mark.parametrize("objects", [batches.MAX_OBJECTS, batches.MAX_OBJECTS + 1])
def test_a_batch_never_has_more_messages_than_the_server_takes(stage: Stage, objects: int) -> None:
    profile = resolve("default-scheduler", [Enabled(plugin=PrioritySort()), Enabled(plugin=Writing(objects))])
    names = [f"p{number}" for number in range(20)]
    for name in names:
        stage.pod(name)
    binder = stage.serving(profile=profile)
    ticket = binder.ask(*(stage.decide(name) for name in names))
    for _ in range(6):
        stage.pass_time(0.02)
    expected = {("bound", "")} if objects <= batches.MAX_OBJECTS else {("error", "size")}
    assert {(answer.result, answer.cause) for answer in binder.answers(ticket)} == expected
    assert max(len(send.writes) for send in binder.sends) > 500 or objects > batches.MAX_OBJECTS


def test_the_usage_check_looks_at_its_share_of_the_nodes_a_step(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Continuous and cheap: with 3,000 nodes 100 a second, about a millisecond of CPU."""
    for number in range(299):
        stage.node(f"m{number}")
    binder = stage.serving()
    looked: list[int] = []
    check = binder.core._check
    monkeypatch.setattr(check, "differences", lambda names: looked.append(len(names)) or [])
    for _ in range(2 * ROUND_STEPS):
        stage.pass_time(1.0)
    assert looked == [300 // ROUND_STEPS] * 2 * ROUND_STEPS
    assert not binder.of(effects.UsageDrift)
