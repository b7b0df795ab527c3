"""A pod's story: put together from records, shown as text."""

import io
import json

import msgspec
import pytest
from rich.console import Console

from podyard.cli.render import explain as rendered
from podyard.proto.decisions import AttemptRecord, NodeScore, Rejection, Victim, WakeUp
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding, Tombstone
from podyard.proto.queue_api import OutsidePod, QueuedPodInfo
from podyard.proto.requeues import HintCall, PodMove, PodSkip, RequeueRecord, SkipCount
from podyard.telling import entries, explanation
from podyard.telling.evidence import Evidence

UID = "u-1"
NOW = 1_800_000_100.0
AT = 1_800_000_000.0


def attempt(number, at, outcome="unschedulable", **more):
    return AttemptRecord(
        namespace="default",
        name="web",
        uid=UID,
        attempt=f"1-{number}",
        number=number,
        at=AT + at,
        outcome=outcome,
        **more,
    )


def requeue(event_id, at, event="NodeUpdateNodeTaint", **more):
    return RequeueRecord(event_id=event_id, event=event, resource="Node", object="node-1", at=AT + at, **more)


def moved(**more):
    return PodMove(namespace="default", name="web", uid=UID, to="activeQ", plugin="TaintToleration", **more)


def skipped(reason="still tainted", uid=UID):
    hint = HintCall(plugin="TaintToleration", answer="QueueSkip", reason=reason)
    return PodSkip(namespace="default", name="web", uid=uid, hints=(hint,))


def evidence(**more):
    return Evidence(namespace="default", name="web", uid=UID, **more)


def kinds(story):
    return [type(entry).__name__ for entry in story.entries]


def shown(story) -> str:
    out = io.StringIO()
    Console(file=out, width=200, no_color=True).print(rendered.view(story, NOW))
    return out.getvalue()


REJECTED = attempt(
    1,
    10,
    nodes_total=8,
    unschedulable_plugins=("TaintToleration",),
    rejections=(
        Rejection(plugin="NodeAffinity", reason="wrong pool", nodes=3, examples=("n1", "n2", "n3")),
        Rejection(plugin="TaintToleration", reason="untolerated taint", nodes=5, examples=("n4", "n5", "n6")),
    ),
)
BOUND = Binding(
    namespace="default",
    name="web",
    uid=UID,
    node="node-1",
    attempt="1-2",
    bound_at=AT + 21,
    decision=attempt(
        2,
        20,
        "scheduled",
        node="node-1",
        nodes_total=8,
        nodes_feasible=2,
        scores=(NodeScore(node="node-1", total=120, plugins={"NodeResourcesFit": 90, "TaintToleration": 30}),),
    ),
)


def test_a_pod_rejected_woken_and_bound_in_the_order_of_time():
    status = PodStatusFact(namespace="default", name="web", uid=UID, node="node-1", phase="Running")
    story = explanation.build(
        evidence(
            attempts=[REJECTED],
            requeues=[requeue("e2", 19, moved=(moved(),)), requeue("e1", 15, skipped=(skipped(),))],
            placement=BOUND,
            status=status,
            started_at=AT + 21,
        )
    )
    assert kinds(story) == ["Attempt", "NotWoken", "Woken", "Attempt", "Bound", "Started"]
    assert story.state == "bound to node-1, Running"
    assert story.node == "node-1"


def test_a_start_in_whole_seconds_does_not_come_before_its_binding():
    status = PodStatusFact(namespace="default", name="web", uid=UID, node="node-1", phase="Running")
    story = explanation.build(evidence(placement=BOUND, status=status, started_at=AT + 20))
    assert kinds(story) == ["Attempt", "Bound", "Started"]


def test_a_reason_that_an_event_gives_is_not_said_twice():
    status = PodStatusFact(
        namespace="default", name="web", uid=UID, node="node-1", phase="Failed", reason="Evicted", message="low memory "
    )
    event = K8sEvent(
        regarding=ObjectRef(resource="pods", namespace="default", name="web"),
        reason="Evicted",
        message="low memory ",
        reporter="node_agent",
        at=AT + 30,
    )
    alone = shown(explanation.build(evidence(placement=BOUND, status=status, started_at=AT + 21)))
    both = shown(explanation.build(evidence(placement=BOUND, status=status, started_at=AT + 21, events=[event])))
    assert alone.count("low memory") == both.count("low memory") == 1
    assert "Evicted: low memory  (node_agent)" in both


def test_what_is_about_another_pod_is_left_out():
    other = requeue("e1", 15, skipped=(skipped(uid="u-2"),))
    assert kinds(explanation.build(evidence(attempts=[REJECTED], requeues=[other]))) == ["Attempt"]


def test_equal_skips_in_a_row_are_counted():
    records = [requeue(f"e{n}", n, skipped=(skipped(),)) for n in range(5)]
    records.append(requeue("other", 6, skipped=(skipped("another reason"),)))
    story = explanation.build(evidence(requeues=records))
    assert [entry.times for entry in story.entries] == [5, 1]
    assert story.entries[0].at == AT + 4


def bound_pods(number):
    """Events of pods that were bound, each with a reason that names its pod."""
    return [
        RequeueRecord(
            event_id=f"e{n}",
            event="AssignedPodAdd",
            resource="Pod",
            object=f"default/web-{n}",
            at=AT + 11 + n / 1000,
            skipped=(skipped(f"default/web-{n} came, which is no pod that the pod wants to be near"),),
        )
        for n in range(number)
    ]


def test_a_storm_of_events_is_one_line_with_its_first_and_last_time():
    taints = [requeue(f"t{n}", 11.0005 + n, skipped=(skipped(),)) for n in range(3)]
    story = explanation.build(evidence(attempts=[REJECTED], requeues=[*bound_pods(3000), *taints]))
    nodes, pods = [entry for entry in story.entries if isinstance(entry, entries.NotWoken)]
    assert (pods.times, pods.first_at, pods.at) == (3000, AT + 11, AT + 11 + 2.999)
    assert (nodes.times, nodes.first_at, nodes.at) == (3, AT + 11.0005, AT + 13.0005)
    text = shown(story)
    assert len(text.splitlines()) < 20
    assert "not woken 3,000 times since " in text
    assert "by AssignedPodAdd, last of default/web-2999" in text


def test_a_reason_that_only_looks_like_another_is_told_apart():
    """`web-1` is no part of `web-10`, and what is said of two objects differs in more than their names."""
    one, other = (
        requeue(name, at, skipped=(skipped(f"the pod wants node-10{more}"),))
        for name, at, more in (("a", 11, ""), ("b", 12, "0"))
    )
    story = explanation.build(evidence(attempts=[REJECTED], requeues=[one, other]))
    assert kinds(story) == ["Attempt", "NotWoken", "NotWoken"]


def test_skips_before_and_after_an_attempt_are_two_groups():
    records = [requeue(f"e{n}", 9 + n, skipped=(skipped(),)) for n in (0, 2, 3)]
    story = explanation.build(evidence(attempts=[REJECTED], requeues=records))
    assert kinds(story) == ["NotWoken", "Attempt", "NotWoken"]
    assert [entry.times for entry in story.entries if isinstance(entry, entries.NotWoken)] == [1, 2]


def test_all_skips_are_told_one_by_one_when_asked_for():
    story = explanation.build(evidence(attempts=[REJECTED], requeues=bound_pods(30)), every=True)
    assert kinds(story) == ["Attempt", *["NotWoken"] * 30]


def test_what_is_in_the_way_on_the_nearest_node_stands_below_the_reason():
    lacking = Rejection(
        plugin="NodeResourcesFit",
        reason="Insufficient cpu",
        nodes=3,
        nearest="node-2",
        detail="wants 10 cpu, free 7.5 of 8",
    )
    other = Rejection(plugin="TaintToleration", reason="untolerated taint", nodes=1)
    record = attempt(1, 1, nodes_total=4, rejections=(lacking, other), nearest="node-2")
    lines = [line.strip() for line in shown(explanation.build(evidence(attempts=[record]))).splitlines()]
    at = lines.index("NodeResourcesFit rejected 3 nodes: Insufficient cpu")
    assert lines[at + 1] == "node-2: wants 10 cpu, free 7.5 of 8"
    assert "node-2 is nearest to taking it" in lines


def test_what_would_help_is_said_while_the_pod_waits_and_no_longer():
    sentence = "TaintToleration: add a toleration to the pod, or apply the node without the taint (spec.taints)"
    assert sentence in shown(explanation.build(evidence(attempts=[REJECTED])))
    assert "add a toleration" not in shown(explanation.build(evidence(attempts=[REJECTED], placement=BOUND)))
    assert "add a toleration" not in shown(explanation.build(evidence(attempts=[REJECTED], deleted=True)))


def test_counts_are_joined_by_rejector_and_time():
    counts = (
        SkipCount(plugin="TaintToleration", reason="still tainted", pods=300),
        SkipCount(plugin="NodeResourcesFit", reason="too small", pods=10),
    )
    early, late = (requeue(f"e{at}", at, skipped_counts=counts) for at in (5, 15))
    story = explanation.build(evidence(attempts=[REJECTED], requeues=[early, late]))
    (entry,) = [entry for entry in story.entries if isinstance(entry, entries.NotWoken)]
    assert entry.at == AT + 15
    assert entry.counted
    assert [hint.plugin for hint in entry.hints] == ["TaintToleration"]


def test_a_wake_up_without_a_record_stands_in_the_attempt():
    wake = WakeUp(event="BackoffComplete", at=AT + 18)
    story = explanation.build(evidence(attempts=[REJECTED, attempt(2, 20, woken_by=wake)]))
    assert kinds(story) == ["Attempt", "Woken", "Attempt"]
    assert story.entries[1].event == "BackoffComplete"


def test_a_wake_up_with_a_record_is_told_once():
    wake = WakeUp(event="NodeUpdateNodeTaint", event_id="e1", at=AT + 18)
    story = explanation.build(
        evidence(attempts=[attempt(2, 20, woken_by=wake)], requeues=[requeue("e1", 18, moved=(moved(),))])
    )
    assert kinds(story) == ["Woken", "Attempt"]


def test_a_wake_up_of_a_pod_that_was_in_flight_is_told_once():
    """Its record's id names the attempt too; the attempt names the event alone."""
    wake = WakeUp(event="NodeUpdateNodeTaint", event_id="12-1", at=AT + 18)
    story = explanation.build(
        evidence(attempts=[attempt(2, 20, woken_by=wake)], requeues=[requeue("12-1-3-1", 18, moved=(moved(),))])
    )
    assert kinds(story) == ["Woken", "Attempt"]


def test_the_same_attempt_from_two_sources_is_one():
    story = explanation.build(evidence(attempts=[BOUND.decision], placement=BOUND))
    assert kinds(story) == ["Attempt", "Bound"]


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "pending; no attempt is recorded yet"),
        ({"attempts": [REJECTED]}, "pending; its last attempt ended unschedulable"),
        ({"unheard": True}, "pending; no attempt is recorded yet; no leader of the queue answers"),
        (
            {"outside": OutsidePod(namespace="default", name="web", uid=UID, scheduler="batch")},
            "pending, and nobody schedules it: schedulerName is batch, and no profile has that name",
        ),
        (
            {"outside": OutsidePod(namespace="default", name="web", uid=UID, node="n9")},
            "pending, and nobody schedules it: nodeName is n9, and there is no such node",
        ),
        ({"deleted": True}, "deleted before it was bound"),
        ({"placement": BOUND}, "bound to node-1, not started yet"),
        ({"placement": BOUND, "deleting": True}, "bound to node-1, not started yet, being deleted"),
        (
            {
                "placement": Tombstone(namespace="default", name="web", uid=UID, node="node-1", reason="terminated"),
                "deleted": True,
            },
            "its binding on node-1 has ended: terminated; the object is deleted",
        ),
        (
            {"queued": QueuedPodInfo(namespace="default", name="web", uid=UID, pool="backoffQ", attempts=1)},
            "pending in backoffQ, 1 attempt so far",
        ),
    ],
)
def test_the_state_in_one_sentence(more, state):
    assert explanation.build(evidence(**more)).state == state


def test_the_text_names_plugins_numbers_reasons_and_scores():
    hint = HintCall(plugin="TaintToleration", answer="Queue", reason="the taint is gone")
    story = explanation.build(
        evidence(
            attempts=[REJECTED],
            requeues=[
                requeue("e1", 15, skipped=(skipped(),), who="ops", why="maintenance"),
                requeue("e2", 19, moved=(moved(hints=(hint,)),)),
            ],
            placement=BOUND,
        )
    )
    text = shown(story)
    for part in (
        "attempt 1: unschedulable  0 of 8 nodes fit",
        "TaintToleration rejected 5 nodes: untolerated taint  (n4, n5, n6, ...)",
        "NodeAffinity rejected 3 nodes: wrong pool  (n1, n2, n3)",
        "not woken by NodeUpdateNodeTaint of node-1",
        "TaintToleration's hint QueueSkip: still tainted",
        "done by ops: maintenance",
        "woken by NodeUpdateNodeTaint of node-1  to activeQ",
        "TaintToleration's hint Queue: the taint is gone",
        "attempt 2: scheduled on node-1  2 of 8 nodes fit",
        "best nodes: node-1 120 (NodeResourcesFit 90 + TaintToleration 30)",
        "bound to node-1",
    ):
        assert part in text, part


def test_the_text_says_that_a_hint_is_podyards_own():
    hint = HintCall(plugin="TaintToleration", answer="Queue", reason="as we know", own=True)
    story = explanation.build(
        evidence(attempts=[REJECTED], requeues=[requeue("e2", 19, moved=(moved(hints=(hint,), own=True),))])
    )
    assert "TaintToleration's hint (Podyard's own) Queue: as we know" in shown(story)
    wake = WakeUp(event_id="e", event="NodeAdd", at=AT + 18, plugin="TaintToleration", reason="as we know", own=True)
    story = explanation.build(evidence(attempts=[REJECTED, attempt(2, 20, woken_by=wake)]))
    assert "TaintToleration's hint (Podyard's own) Queue: as we know" in shown(story)


def test_the_text_names_victims_nominations_and_errors():
    victim = Victim(namespace="default", name="low", uid="v", priority=1, pdb_violation=True)
    failed = attempt(1, 1, "error", message="plugin X failed: boom", nominated_node="n2", victims=(victim,))
    text = shown(explanation.build(evidence(attempts=[failed])))
    assert "nominated to n2" in text
    assert "preempts default/low (priority 1, against its disruption budget)" in text
    assert "plugin X failed: boom" in text


def test_the_text_says_why_preemption_did_not_help_unless_it_could_not():
    message = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to x."
    )
    waits = Rejection(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=1)
    text = shown(explanation.build(evidence(attempts=(attempt(1, 1, rejections=(waits,), message=message),))))
    assert "preemption: not eligible due to x." in text
    assert "no new claims" not in text
    never = msgspec.structs.replace(waits, unresolvable=True)
    text = shown(explanation.build(evidence(attempts=(attempt(1, 1, rejections=(never,), message=message),))))
    assert "not eligible" not in text


def test_an_activation_says_why():
    wake = WakeUp(event="ForceActivate", object="default/web", reason="the preemption for it is over", at=AT + 2)
    text = shown(explanation.build(evidence(attempts=(attempt(2, 3, woken_by=wake),))))
    assert "woken by ForceActivate of default/web" in text
    assert "the preemption for it is over" in text


def test_a_waiting_pod_says_where_since_when_and_for_what():
    queued = QueuedPodInfo(
        namespace="default",
        name="web",
        uid=UID,
        pool="backoffQ",
        since=NOW - 3,
        until=NOW + 5,
        unschedulable_plugins=("NodeAffinity",),
    )
    text = shown(explanation.build(evidence(attempts=[REJECTED], queued=queued)))
    assert "now           in backoffQ for 3s, for another 5s: rejected by NodeAffinity" in text


def test_a_pod_that_nobody_schedules_is_told_what_would_help():
    waits = OutsidePod(namespace="default", name="web", uid=UID, scheduler="batch")
    text = shown(explanation.build(evidence(outside=waits, profiles=("default-scheduler",))))
    assert "make the pod anew with schedulerName default-scheduler, or add a profile of that name" in text


def test_as_json_each_entry_says_what_it_is():
    story = explanation.build(evidence(attempts=[REJECTED], placement=BOUND))
    document = json.loads(msgspec.json.encode(story))
    assert [entry["entry"] for entry in document["entries"]] == ["attempt", "attempt", "bound"]
    assert document["entries"][0]["record"]["rejections"][1]["nodes"] == 5
