"""What the demo's steps take as seen, told from records made by hand."""

from typing import Any

import msgspec
import pytest

from podyard.bus import Delivery
from podyard.cli.demo.actions import Actions, manifest
from podyard.cli.demo.evidence import Evidence, NotSeenError
from podyard.cli.demo.story import Story
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import BoundPod, CommitRecord
from podyard.proto.requeues import HintCall, PodMove, PodSkip, RequeueRecord

PATIENCE_S = 0.01


class NobodyAsked(Actions):
    """A person who does nothing."""

    def __init__(self) -> None: ...


async def see(seen: Evidence, name: str) -> str:
    """What a step says it saw."""
    [step] = [step for step in Story(NobodyAsked(), seen, PATIENCE_S).steps() if step.name == name]
    return await step.see()


def attempt(pod: str, plugin: str, message: str = "") -> AttemptRecord:
    return AttemptRecord(
        namespace="default",
        name=pod,
        uid=pod,
        attempt=f"{pod}-1",
        outcome="unschedulable",
        at=1.0,
        unschedulable_plugins=(plugin,),
        message=message,
    )


def hint(answer: Any, reason: str = "because", plugin: str = "NodeResourcesFit") -> tuple[HintCall, ...]:
    return (HintCall(plugin=plugin, answer=answer, reason=reason),)


def grown(*skipped: PodSkip, moved: tuple[PodMove, ...] = (), node: str = "node-7") -> RequeueRecord:
    return RequeueRecord(
        event_id="1",
        event="NodeUpdateNodeAllocatable",
        resource="Node",
        object=node,
        at=1.0,
        skipped=skipped,
        moved=moved,
    )


def skip(pod: str, hints: tuple[HintCall, ...]) -> PodSkip:
    return PodSkip(namespace="default", name=pod, uid=pod, hints=hints)


def move(pod: str, plugin: str, hints: tuple[HintCall, ...]) -> PodMove:
    return PodMove(namespace="default", name=pod, uid=pod, to="activeQ", plugin=plugin, hints=hints)


@pytest.mark.parametrize("name", ["nodes", "caches", "web", "park", "skip", "wake-b", "wake-a"])
async def test_nothing_stored_is_nothing_seen(name: str) -> None:
    with pytest.raises(NotSeenError) as raised:
        await see(Evidence(), name)
    assert raised.value.what in str(raised.value)
    assert len(raised.value.what) > 10


async def test_what_is_stored_while_a_step_waits_is_seen() -> None:
    seen = Evidence()
    found: list[int] = []

    def question() -> list[int]:
        if not found:
            found.append(7)
            seen.note()
            return []
        return found

    assert await seen.until("a number", question, 5.0) == [7]


async def test_parking_needs_a_rejection_of_each_pod_by_the_plugin_that_should() -> None:
    seen = Evidence()
    seen.attempts = [attempt("trainer", "TaintToleration", "tainted"), attempt("report", "NodeResourcesFit", "full")]
    assert await see(seen, "park") == "A: tainted  B: full"
    seen.attempts = [attempt("trainer", "NodeAffinity"), attempt("report", "NodeResourcesFit")]
    with pytest.raises(NotSeenError, match="an attempt for A that TaintToleration rejected"):
        await see(seen, "park")
    seen.attempts = [attempt("trainer", "TaintToleration")]
    with pytest.raises(NotSeenError, match="an attempt for B that NodeResourcesFit rejected"):
        await see(seen, "park")


async def test_a_skip_is_told_with_the_hints_reason() -> None:
    seen = Evidence()
    seen.requeues = [grown(skip("report", hint("QueueSkip", "3Gi is below 12Gi")))]
    assert (await see(seen, "skip")).endswith("3Gi is below 12Gi")


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(grown(skip("report", hint("QueueSkip")), node="node-8"), id="another node"),
        pytest.param(grown(skip("report", hint("QueueSkip", plugin="NodeAffinity"))), id="another plugin"),
        pytest.param(grown(moved=(move("report", "NodeResourcesFit", hint("Queue")),)), id="moved, not skipped"),
        pytest.param(
            grown(skip("report", hint("QueueSkip")), skip("trainer", hint("QueueSkip"))), id="pod A was asked too"
        ),
    ],
)
async def test_a_record_that_says_something_else_is_no_skip(record: RequeueRecord) -> None:
    seen = Evidence()
    seen.requeues = [record]
    with pytest.raises(NotSeenError, match="hint skipped B for node-7"):
        await see(seen, "skip")


def untainted(plugin: str) -> RequeueRecord:
    return RequeueRecord(
        event_id="2",
        event="NodeUpdateNodeTaint",
        resource="Node",
        object="node-6",
        at=1.0,
        moved=(move("trainer", plugin, hint("Queue", "taint is gone", plugin)),),
    )


async def test_pod_a_must_be_moved_by_the_hint_and_run_where_the_taint_was() -> None:
    seen = Evidence()
    seen.requeues = [untainted("TaintToleration")]
    with pytest.raises(NotSeenError, match="A running on node-6"):
        await see(seen, "wake-a")
    run(Stored(seen), "node-1")
    with pytest.raises(NotSeenError, match="A running on node-6"):
        await see(seen, "wake-a")


async def test_pod_a_moved_and_running_is_seen() -> None:
    seen = Evidence()
    seen.requeues = [untainted("TaintToleration")]
    run(Stored(seen), "node-6")
    assert await see(seen, "wake-a") == "A moved by TaintToleration's hint (taint is gone); A runs on node-6"
    seen.requeues = [untainted("NodeAffinity")]
    with pytest.raises(NotSeenError, match="a record that TaintToleration's hint moved A"):
        await see(seen, "wake-a")


class Stored:
    """Delivers messages to the evidence's view as the CLUSTER stream would."""

    def __init__(self, seen: Evidence) -> None:
        self._view = seen.view
        self._view.begin_listing()
        self._view.end_listing(0)

    def put(self, subject: str, message: msgspec.Struct) -> None:
        self._view.apply(Delivery(subject, codec.encode(message), self._view.position + 1))


def run(store: Stored, node: str) -> None:
    """The trainer is made, bound and started."""
    [document] = manifest("trainer.yaml")
    document["metadata"] |= {"namespace": "default", "uid": "trainer"}
    made = ClusterEvent(
        resource="pods",
        namespace="default",
        name="trainer",
        uid="trainer",
        who="test",
        object=msgspec.Raw(msgspec.json.encode(document)),
    )
    bound = BoundPod(namespace="default", name="trainer", uid="trainer", node=node)
    store.put(subjects.object_("pods", "default", "trainer"), made)
    store.put(subjects.commit(1), CommitRecord(n=1, epoch=1, batch="b", bindings=(bound,)))
    fact = PodStatusFact(namespace="default", name="trainer", uid="trainer", node=node, phase="Running")
    store.put(subjects.pod_status(node, "default", "trainer", "trainer"), fact)
