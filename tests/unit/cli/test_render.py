"""Queue, events and times as text."""

import io
from collections import Counter

import pytest
from rich.console import Console

from podyard.cli.render import queue as queue_view
from podyard.cli.render import tables, times, watch_counts
from podyard.cli.render import watch as watch_view
from podyard.cli.watching import Filter
from podyard.objects import label_text
from podyard.proto import codec
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import BareEvent
from podyard.proto.operations import DeadLetter
from podyard.proto.queue_api import OutsidePod, QueuedPodInfo, QueueListReply
from podyard.proto.requeues import HintCall, PodMove, PodSkip, RequeueRecord
from podyard.telling import names
from podyard.telling import queued as queued_words
from podyard.telling.queued import waits_for

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.012, "12ms"),
        (59.9, "59s"),
        (119, "119s"),
        (125, "2m5s"),
        (120, "2m"),
        (3600, "60m"),
        (4 * 3600 + 120, "4h2m"),
        (30 * 3600, "30h"),
        (76 * 3600, "3d4h"),
        (-5, "0s"),
    ],
)
def test_durations_as_kubectl_writes_ages(seconds, text):
    assert times.duration(seconds) == text


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        ("pods", "pod/a"),
        ("deployments", "deployment.apps/a"),
        ("widgets.v1.example.com", "widgets.example.com/a"),
        ("???", "???/a"),
    ],
)
def test_objects_by_kubectls_names(resource, text):
    assert names.of_resource(resource, "a") == text


def test_tables_for_pipes_are_aligned_and_end_without_blanks():
    assert tables.plain_lines(("A", "LONG"), [("xyz", ""), ("1", "2")]) == ["A     LONG", "xyz", "1     2"]


def queued(pool, **more):
    return QueuedPodInfo(namespace="default", name="web", uid="u", pool=pool, since=NOW - 30, **more)


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (queued("gated", gating_plugin="SchedulingGates"), "gate of SchedulingGates"),
        (
            queued("gated", gating_plugin="A", unschedulable_plugins=("A", "B"), message="m"),
            "gate of A: m; rejected by B",
        ),
        (
            queued(
                "unschedulable",
                unschedulable_plugins=("A",),
                message='0/2 nodes are available: "d" not found. not found',
            ),
            'rejected by A: 0/2 nodes are available: "d" not found.',
        ),
        (queued("unschedulable", unschedulable_plugins=("A", "B"), message="0/2"), "rejected by A, B: 0/2"),
        (queued("unschedulable", pending_plugins=("C",)), "pending in C"),
        (queued("inFlight", session="s-1"), "with s-1"),
        (queued("activeQ", nominated_node="n1"), "nominated to n1"),
        (queued("errorBackoffQ", message="boom"), "boom"),
        (queued("activeQ"), ""),
    ],
)
def test_what_a_queued_pod_waits_for(info, text):
    assert waits_for(info) == text


def test_the_queue_says_what_is_where_since_when_until_when():
    reply = QueueListReply(
        epoch=3,
        position=17,
        leader="queue-1",
        counts={"activeQ": 0, "backoffQ": 2},
        pods=(queued("backoffQ", priority=5, attempts=2, until=NOW + 4),),
        sessions={"s-1": 7},
    )
    lines = queue_view.lines(reply, NOW)
    assert lines[:3] == [
        "activeQ 0 · backoffQ 2",
        "leader queue-1 (epoch 3), position 17",
        "s-1: 7 in flight",
    ]
    assert lines[-1].split() == ["backoffQ", "default", "web", "5", "2", "30s", "in", "4s"]


NO_NODE = (
    "0/3 nodes are available: 1 Insufficient memory, 3 Insufficient cpu. no new claims to deallocate, preemption: "
    "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)


def parked(number, **more):
    name = f"a-deployment-with-a-long-name-546549b95b-{number:05}"
    rejected = {"unschedulable_plugins": ("NodeResourcesFit",), "message": NO_NODE}
    info = {"namespace": "default", "pool": "unschedulable", "since": NOW - 30, **rejected, **more}
    return QueuedPodInfo(name=name, uid=name, **info)


def shown_at(width, *pods, height=None, left_out=0):
    """What a terminal of that many columns shows."""
    reply = QueueListReply(epoch=3, counts={"gated": 0, "unschedulable": 9}, pods=pods, left_out=left_out)
    console = Console(width=width, file=io.StringIO(), highlight=False)
    with console.capture() as caught:
        console.print(queue_view.view(reply, NOW, width, height))
    return [line.rstrip() for line in caught.get().splitlines()]


def test_at_80_columns_the_queue_says_name_since_plugin_and_reason():
    lines = shown_at(80, parked(1), parked(2))
    assert lines[0] == "unschedulable 9", "pools without pods do not matter"
    assert lines[2:4] == [
        "all: pool unschedulable, namespace default",
        "NAME                            SINCE   WAITS FOR",
    ]
    assert [line.split()[0] for line in lines[4:]] == [
        "a-deployment-w…6549b95b-00001",
        "a-deployment-w…6549b95b-00002",
    ]
    assert all("30s     NodeResourcesFit: 1 Insufficient memory…" in line for line in lines[4:])
    assert max(map(len, lines)) <= 80


def test_what_differs_between_pods_is_never_left_out():
    lines = shown_at(80, parked(1), parked(2, pool="backoffQ", namespace="other", until=NOW + 4))
    assert lines[3].split()[:5] == ["POOL", "NAMESPACE", "NAME", "SINCE", "UNTIL"]
    assert max(map(len, lines)) <= 80


def test_a_wide_terminal_shows_everything():
    heads = shown_at(200, parked(1), parked(2))[3]
    assert heads.split() == " ".join(queue_view.HEADERS).split()


def test_a_live_queue_takes_no_more_lines_than_there_are():
    lines = shown_at(80, *map(parked, range(50)), height=10, left_out=7)
    assert len(lines) <= 10
    assert lines[-1].startswith("... and 53 more")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (NO_NODE, "1 Insufficient memory, 3 Insufficient cpu (0/3 nodes)"),
        (
            "0/3 nodes are available: 3 node(s) had untolerated taint(s).",
            "3 node(s) had untolerated taint(s) (0/3 nodes)",
        ),
        ("claim not found", "claim not found"),
    ],
)
def test_a_rejection_in_short(message, text):
    assert queued_words.in_short(message) == text


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (queued("gated", gating_plugin="SchedulingGates", message="g"), "SchedulingGates: g"),
        (queued("unschedulable", unschedulable_plugins=("A",), pending_plugins=("C",), message="m"), "A, C: m"),
        (queued("inFlight", session="s-1"), "with s-1"),
        (queued("activeQ", nominated_node="n1"), "nominated to n1"),
        (queued("activeQ"), ""),
    ],
)
def test_what_a_queued_pod_waits_for_in_short(info, text):
    assert queued_words.waits_in_short(info) == text


def record(**more):
    return RequeueRecord(event_id="e", event="NodeAdd", resource="Node", object="n1", at=NOW, **more)


def test_a_requeue_says_what_moved_and_what_not_and_why():
    move = PodMove(namespace="default", name="a", uid="1", to="activeQ", plugin="P")
    hint = HintCall(plugin="Q", answer="QueueSkip", reason="too small")
    skip = PodSkip(namespace="default", name="b", uid="2", hints=(hint,))
    line = watch_view.requeue(record(moved=(move,), skipped=(skip,)))
    assert line.text == "NodeAdd of n1: moved a to activeQ (P); skipped 1 (Q: too small)"


def test_an_attempt_says_who_rejected():
    found = watch_view.attempt(
        AttemptRecord(
            namespace="default",
            name="web",
            uid="u",
            attempt="1-1",
            number=2,
            outcome="unschedulable",
            at=NOW,
            unschedulable_plugins=("P",),
            message="0/3 nodes",
        )
    )
    assert found.text == "pod/web P: 0/3 nodes, attempt 2 unschedulable"


def test_bare_events_and_dead_letters():
    bare = BareEvent(id="1", resource="Node", actions=("Add",), who="me", old=codec.NULL, new=codec.NULL)
    assert watch_view.bare(bare, NOW).text == "Node/Add published by me"
    dead = DeadLetter(service="queue", subject="cluster.pods.x.y", reason="not JSON")
    assert watch_view.dead(dead).text == "queue could not use a message on cluster.pods.x.y: not JSON"


def nobody(*_):
    """Nothing is known of any object."""


def line(kind="change", **more):
    return watch_view.Line(at=NOW, kind=kind, text="", **more)


@pytest.mark.parametrize(
    ("chosen", "shown", "wanted"),
    [
        (Filter(frozenset()), line(), True),
        (Filter(frozenset({"dead"})), line(), False),
        (Filter(frozenset(), namespace="a"), line(namespace="b"), False),
        (Filter(frozenset(), name="x"), line(name="x"), True),
        (Filter(frozenset(), resource="pods"), line(resource="nodes"), False),
        (Filter(frozenset(), name="x"), line("bare"), False),
    ],
)
def test_filters(chosen, shown, wanted):
    assert chosen.wants(shown, nobody) is wanted


def test_a_requeue_passes_a_pods_filter_if_it_mentions_the_pod():
    skip = PodSkip(namespace="default", name="web", uid="2")
    about = watch_view.requeue(record(skipped=(skip,)))
    assert Filter(frozenset(), namespace="default", name="web").wants(about, nobody)
    assert not Filter(frozenset(), name="other").wants(about, nobody)


WEB = Filter(frozenset(), selector=label_text.parse("app=web"))


def labelled(resource, namespace, name):
    """Pods are labelled by their name."""
    return {"app": name} if resource == "pods" else None


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (line(resource="pods", name="web"), True),
        (line(resource="pods", name="db"), False),
        (line(resource="nodes", name="web"), False),
        (line("attempt", resource="pods", name="web"), True),
        (line("bare"), False),
        (line("dead"), False),
        (watch_view.requeue(record(moved=(PodMove(namespace="d", name="web", uid="1", to="activeQ"),))), True),
        (watch_view.requeue(record(skipped=(PodSkip(namespace="d", name="db", uid="1", hints=()),))), False),
    ],
)
def test_a_selector_goes_by_the_labels_of_what_a_line_is_about(shown, wanted):
    assert WEB.wants(shown, labelled) is wanted


def test_a_terminal_shows_plugin_and_reason_and_cuts_the_end():
    name = "web-546549b95b-5r8d9"
    fields = {"namespace": "default", "name": name, "uid": "u", "attempt": "1-1", "number": 1, "at": NOW}
    found = watch_view.attempt(
        AttemptRecord(outcome="unschedulable", unschedulable_plugins=("NodeResourcesFit",), message=NO_NODE, **fields)
    )
    narrow = watch_view.text(found, 80).plain
    assert len(narrow) == 80
    assert narrow[8:] == f"  attempt pod/{name} NodeResourcesFit: 1 Insufficient mem…"
    assert watch_view.text(found).plain.endswith("(0/3 nodes), attempt 1 unschedulable")
    name = "a-deployment-with-a-long-name-546549b95b-00001"
    long = watch_view.Line(at=NOW, kind="change", name=name, text=f"pod/{name} is Running")
    assert watch_view.text(long, 80).plain[18:] == "pod/a-deployment-…6549b95b-00001 is Running"
    other = watch_view.text(line(namespace="other", resource="pods", name="x"), 140).plain
    assert other.split()[1:] == ["change", "other"]


def test_what_happened_is_counted_bindings_and_releases_by_themselves():
    lines = [line(), line(act="bound"), line(act="bound"), line(act="released"), line("attempt"), line("gap")]
    counts = Counter(map(watch_counts.counted_as, lines))
    assert watch_counts.told(counts, 90) == "in 90s: 1 change, 2 bound, 1 released, 1 attempt, 1 gap"
    assert watch_counts.told({}, 5) == "in 5s: nothing"


def test_what_is_too_much_for_a_terminal_is_counted_and_told_once_a_second():
    flow = watch_counts.Flow(most=2)
    taken = [flow.takes(line(act="bound"), 10.0 + number / 10) for number in range(5)]
    assert taken == [True, True, False, False, False]
    assert flow.held(10.5) == ""
    assert flow.takes(line(), 11.1) is False, "nothing passes what was held back"
    assert flow.held(11.2) == "… and 4 more in 1s: 1 change, 3 bound"
    assert flow.held(12.5) == ""
    assert flow.takes(line(), 11.3)


def outside_reply(number, **more):
    named = [OutsidePod(namespace="default", name=f"p{at}", uid=f"u{at}", scheduler="batch") for at in range(number)]
    return QueueListReply(epoch=3, outside=tuple(named), outside_total=number, **more)


def test_pods_that_nobody_schedules_stand_below_the_queue():
    lines = queue_view.lines(outside_reply(1), NOW)
    assert lines[-2:] == [
        "1 pod is in no pool: nobody schedules it",
        "  default/p0: schedulerName is batch, and no profile has that name",
    ]
    lines = queue_view.outside(outside_reply(1200))
    assert (lines[0], len(lines), lines[-1]) == (
        "1,200 pods are in no pool: nobody schedules them",
        7,
        "  ... and 1,195 more",
    )
    assert queue_view.outside(outside_reply(0)) == []


def test_a_table_shows_what_looks_like_markup():
    console = Console(width=80, file=io.StringIO())
    console.print(tables.table(["NAME", "WAITS FOR"], [["p", "SchedulingGates: [example.com/quota]"]]))
    assert "SchedulingGates: [example.com/quota]" in console.file.getvalue()
