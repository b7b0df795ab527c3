"""From changes of the cluster to calls of the queue, and what a new leader starts from."""

from typing import Any, NoReturn

import pytest

from podyard.cluster.changes import Change, Origin
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Nomination
from podyard.proto.message import PodRef
from podyard.proto.placement import BoundPod, Release
from podyard.queue.core import recent, restart
from podyard.queue.core.attempts import Attempt
from podyard.queue.core.changes import Changes, is_pending
from podyard.queue.core.effects import Judged, NominationOver
from podyard.queue.core.queued_pod import QueuedPod
from tests.support import objects
from tests.unit.queue.test_leader import Stage

PROFILES = ("default-scheduler",)


def view(name: str, *, labels: tuple[str, ...] = (), node: str = "", uid: str = "", **facts: Any) -> PodView:
    uid = uid or f"uid-{name}"
    document = objects.pod(
        name,
        uid=uid,
        labels=dict.fromkeys(labels, ""),
        node=facts.pop("created_on", ""),
        phase=facts.pop("phase", ""),
        deleting=facts.pop("deleting", False),
        metadata={"creationTimestamp": facts.pop("created")} if "created" in facts else None,
        schedulerName=facts.pop("scheduler", ""),
        priority=facts.pop("priority", 0),
    )
    nominated = facts.pop("nominated", None)
    return objects.view(
        document,
        facts.pop("sequence", 1),
        bound=BoundPod(namespace="default", name=name, uid=uid, node=node, attempt="7-1") if node else None,
        nomination=None if nominated is None else Nomination(namespace="default", name=name, uid=uid, node=nominated),
        **facts,
    )


def lost(name: str) -> PodView:
    """A pod whose place cannot be read."""
    found = view(name)
    found.unknown_place = True
    return found


class Play(Stage):
    """A stage whose cluster changes."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = Changes(self.leader, PROFILES)
        self.sequence = 100

    def apply(self, old: PodView | None, new: PodView | None, **more: Any) -> None:
        self.sequence += 1
        one = new or old
        assert one is not None
        origin = Origin(self.sequence, who="w", why="y", trace=more.pop("trace", ""), causes=more.pop("causes", ()))
        self.changes.apply(Change("pods", one.uid, old, new, origin, **more), self.now)

    def node(self, *labels: str, old: bool = False) -> None:
        self.sequence += 1
        nodes = [
            NodeView(objects.typed_node("n", uid="u", labels=found), "n", "u", 1)
            for found in ({}, dict.fromkeys(labels, ""))
        ]
        self.changes.apply(Change("nodes", "u", nodes[0] if old else None, nodes[1], Origin(self.sequence)), self.now)

    def park_view(self, one: PodView, *plugins: str) -> QueuedPod:
        self.apply(None, one)
        self.done(self.take(), "unschedulable", unschedulable_plugins=plugins)
        pod = self.queue.pods[one.uid]
        assert pod.pool == "unschedulable"
        self.queue.take_effects()
        return pod

    def labels(self) -> list[str]:
        return [one.incoming.event.label for one in self.queue.take_effects() if isinstance(one, Judged)]


@pytest.fixture
def play() -> Play:
    return Play()


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(view("p"), True, id="plain"),
        pytest.param(view("p", scheduler="other"), False, id="another scheduler"),
        pytest.param(view("p", node="n1"), False, id="bound"),
        pytest.param(view("p", created_on="n1"), False, id="created with a node"),
        pytest.param(view("p", deleting=True), True, id="being deleted: let go at its pop"),
        pytest.param(view("p", phase="Failed"), False, id="ended"),
        pytest.param(
            view("p", release=Release(namespace="d", name="p", uid="u", node="n", reason="completed")),
            False,
            id="tombstone",
        ),
        pytest.param(lost("p"), False, id="bound, or not: nobody can say"),
        pytest.param(None, False, id="none"),
    ],
)
def test_pending(one, expected) -> None:
    assert is_pending(one, PROFILES) is expected


def test_a_new_pod_enters_with_what_made_it(play: Play) -> None:
    play.apply(None, view("a"), trace="t1", causes=("t2",))
    assert play.queue.pods["uid-a"].pool == "activeQ"
    assert play.queue.pods["uid-a"].causes == ("t1", "t2")


def test_a_bound_pod_wakes_others_and_leaves(play: Play) -> None:
    waiting = play.park_view(view("b"), "OnPods")
    play.apply(None, view("a", labels=("b",)))
    popped = play.take()
    play.done(popped, "scheduled", node="n1")
    play.apply(view("a", labels=("b",)), view("a", labels=("b",), node="n1"), bound=True)
    assert "uid-a" not in play.queue.pods
    assert play.labels() == ["AssignedPodAdd"]
    assert waiting.pool == "backoffQ"


def test_heartbeats_do_not_push_what_happened_out_of_memory(play: Play) -> None:
    play.node("a")
    for _ in range(recent.KEPT):
        play.node(old=True)
    assert [one.event for one in play.leader.recent.events(0.0)] == ["NodeAdd"]


def test_a_release_is_the_deletion_of_an_assigned_pod(play: Play) -> None:
    bound = view("a", labels=("b",), node="n1")
    play.apply(None, bound)
    waiting = play.park_view(view("b"), "OnPods")
    play.apply(bound, None)
    assert play.labels() == [], "the object's end frees nothing"
    released = Release(namespace="default", name="a", uid="uid-a", node="n1", reason="terminated")
    play.now += 60
    play.apply(bound, None, release=released)
    assert play.labels() == ["AssignedPodDelete"]
    assert waiting.pool != "unschedulable"


def test_a_pod_that_was_bound_and_has_ended_between_two_listings_leaves_the_queue(play: Play) -> None:
    play.apply(None, view("a"))
    popped = play.take()
    released = Release(namespace="default", name="a", uid="uid-a", node="n1", reason="completed")
    play.apply(view("a"), view("a", sequence=2, release=released), release=released, gap=True)
    assert play.queue.pods == {}
    play.done(popped, "scheduled", node="n1")
    assert (play.ended(), play.queue.in_flight.uids()) == ([("a", "error")], ())


def test_the_binding_that_was_awaited_has_come_and_gone_between_two_listings(play: Play) -> None:
    play.apply(None, view("a"))
    play.done(play.take(), "scheduled", node="n1")
    released = Release(namespace="default", name="a", uid="uid-a", node="n1", reason="completed")
    play.apply(view("a"), view("a", sequence=2, release=released), release=released, gap=True)
    assert (play.queue.pods, play.leader.binding) == ({}, {})
    assert play.ended() == [("a", "scheduled")]


def test_a_pod_whose_binding_was_lost_is_to_be_scheduled_again(play: Play) -> None:
    """The last writes of CLUSTER are gone, the binding among them: the listing after that shows the pod
    alone.
    """
    bound = view("a", node="n1")
    play.apply(None, bound)
    released = Release(namespace="default", name="a", uid="uid-a", node="n1", reason="terminated")
    play.apply(bound, view("a"), release=released, gap=True)
    assert play.queue.pods["uid-a"].pool == "activeQ"


def test_after_a_listing_the_queue_has_the_pending_pods_and_no_others(play: Play) -> None:
    names = ("stays", "gone", "bound", "ended", "awaited")
    for name in names:
        play.apply(None, view(name))
    for _ in names[:-1]:
        play.take()
    popped = play.take()
    play.done(popped, "scheduled", node="n1")
    ended = Release(namespace="default", name="ended", uid="uid-ended", node="n1", reason="completed")
    listed = [view("stays"), view("bound", node="n1"), view("ended", release=ended), view("awaited", node="n1")]
    listed += [view("new"), view("another's", scheduler="x")]
    assert play.changes.compare({one.uid: one for one in listed}, play.now) == len(
        {"gone", "bound", "ended", "awaited", "new"}
    )
    assert {pod.key[1]: pod.pool for pod in play.queue.pods.values()} == {"stays": "inFlight", "new": "activeQ"}
    assert (play.leader.binding, play.ended()) == ({}, [("awaited", "scheduled")])
    assert play.changes.compare({one.uid: one for one in listed}, play.now) == 0


def test_a_release_of_an_unknown_pod_counts_as_queue_for_all(play: Play) -> None:
    waiting = play.park_view(view("b"), "OnPods")
    released = Release(namespace="default", name="x", uid="uid-x", node="n1", reason="orphan")
    change = Change("pods", "uid-x", None, None, Origin(5), release=released)
    play.changes.apply(change, play.now)
    assert waiting.pool == "backoffQ"
    assert waiting.woken_by is not None
    assert waiting.woken_by.object == "default/x"


def test_a_pod_that_is_being_deleted_is_never_tried(play: Play) -> None:
    play.apply(None, view("a"))
    play.apply(view("a"), view("a", deleting=True))
    play.done(play.take(), "error", message="the pod is gone", gone=True)
    assert play.queue.pods == {}
    assert play.queue.in_flight.uids() == ()


def test_a_pod_that_only_looked_gone_to_its_scheduler_is_tried_again(play: Play) -> None:
    play.apply(None, view("a"))
    play.done(play.take(), "error", message="the pod is gone", gone=True)
    assert play.queue.pods["uid-a"].pool == "errorBackoffQ"


@pytest.mark.parametrize("gone", [False, True], ids=["is being deleted", "is gone"])
def test_the_end_of_an_assumed_pod_is_news_for_those_that_want_its_room(play: Play, gone: bool) -> None:
    waiting = play.park_view(view("b"), "OnPods")
    play.apply(None, view("a", labels={"b": ""}))
    play.done(play.take(), "scheduled", node="n1")
    play.apply(view("a", labels={"b": ""}), None if gone else view("a", labels={"b": ""}, deleting=True))
    assert play.labels() == ["AssignedPodDelete"]
    assert waiting.pool == "backoffQ"


def test_an_assigned_pods_status_alone_wakes_nobody_without_a_general_registration(play: Play) -> None:
    waiting = play.park_view(view("b"), "OnNodes")
    one = view("a", node="n1")
    play.apply(one, view("a", node="n1", sequence=2))
    assert waiting.pool == "unschedulable"


def test_a_nomination_that_moves_frees_room_for_lower_priorities(play: Play) -> None:
    low = play.park_view(view("low", priority=1), "OnPods")
    high = play.park_view(view("high", priority=9), "OnPods")
    before = view("pre", labels=("low", "high"), priority=5, nominated="n1")
    play.apply(None, before)
    play.now += 60
    play.queue.take_effects()
    play.apply(before, view("pre", labels=("low", "high"), priority=5, nominated="n2"))
    assert (low.pool, high.pool) == ("activeQ", "unschedulable")
    assert play.queue.nominator.node_of("uid-pre") == "n2"


def test_a_nominated_pod_bound_elsewhere_frees_its_nominated_node(play: Play) -> None:
    low = play.park_view(view("low"), "OnPods")
    before = view("pre", labels=("low",), nominated="n1")
    play.apply(None, before)
    play.now += 60
    play.queue.take_effects()
    play.apply(before, view("pre", labels=("low",), node="n2", nominated="n1"), bound=True)
    effects = play.queue.take_effects()
    assert NominationOver(PodRef(namespace="default", name="pre", uid="uid-pre")) in effects
    labels = [one.incoming.event.label for one in effects if isinstance(one, Judged)]
    assert "AssignedPodAdd" in labels
    assert low.pool == "activeQ"


def test_a_nominated_pod_that_goes_frees_its_node_and_its_fact(play: Play) -> None:
    low = play.park_view(view("low"), "OnPods")
    before = view("pre", labels=("low",), nominated="n1")
    play.apply(None, before)
    play.now += 60
    play.queue.take_effects()
    play.apply(before, None)
    effects = play.queue.take_effects()
    assert NominationOver(PodRef(namespace="default", name="pre", uid="uid-pre")) in effects
    assert low.pool == "activeQ"


def test_node_changes_are_judged_with_the_events_id_and_object(play: Play) -> None:
    waiting = play.park_view(view("b"), "OnNodes")
    play.node("b", old=True)
    assert waiting.woken_by is not None
    woken = waiting.woken_by
    assert (woken.event, woken.event_id, woken.object, woken.plugin) == (
        "NodeUpdateNodeLabel",
        str(play.sequence),
        "n",
        "OnNodes",
    )


def test_several_events_of_one_message_have_ids_of_their_own(play: Play) -> None:
    play.park_view(view("b"), "OnNodes", "OnPods")
    for _ in range(2):
        released = Release(namespace="default", name="x", uid="uid-x", node="n1", reason="orphan")
        play.changes.apply(Change("pods", "uid-x", view("x"), None, Origin(500), release=released), play.now)
    ids = [one.incoming.id for one in play.queue.take_effects() if isinstance(one, Judged)]
    assert ids == ["500", "500-1"]


def test_a_gap_counts_as_every_action_of_the_resource(play: Play) -> None:
    waiting = play.park_view(view("b"), "Gate")
    nodes = [NodeView(objects.typed_node("n"), "n", "u", n) for n in (1, 2)]
    play.changes.apply(Change("nodes", "u", nodes[0], nodes[1], Origin(7), gap=True), play.now)
    assert waiting.pool == "backoffQ"


# -- a new leader


def record(name: str, **more: Any) -> AttemptRecord:
    return AttemptRecord(namespace="default", name=name, uid=f"uid-{name}", attempt="6-1", **more)


def test_a_new_leader_takes_every_pending_pod_and_no_other(play: Play) -> None:
    views = [view("new"), view("bound", node="n1"), view("going", deleting=True), view("other", scheduler="x")]
    count = restart.fill(play.queue, views, {}, PROFILES, play.now)
    assert count == 2
    assert [pod.key[1] for pod in play.queue.active] == ["new", "going"]


def test_a_new_leader_goes_on_with_counts_and_backoff(play: Play) -> None:
    records = {
        "uid-waits": record(
            "waits",
            outcome="unschedulable",
            number=4,
            at=play.now - 1,
            unschedulable_plugins=("OnNodes",),
            obstacles={"OnNodes": ("the tide",)},
        ),
        "uid-over": record(
            "over", outcome="unschedulable", number=4, at=play.now - 60, unschedulable_plugins=("OnNodes",)
        ),
        "uid-failed": record("failed", outcome="error", number=2, at=play.now - 1),
        "uid-gated": record("gated", outcome="gated", number=0, at=play.now - 1),
    }
    views = [view(uid.removeprefix("uid-")) for uid in records]
    restart.fill(play.queue, views, records, PROFILES, play.now)
    pools = {pod.key[1]: (pod.pool, pod.attempts) for pod in play.queue.pods.values()}
    assert pools == {
        "waits": ("backoffQ", 4),
        "over": ("activeQ", 4),
        "failed": ("errorBackoffQ", 2),
        "gated": ("activeQ", 0),
    }
    assert play.queue.pods["uid-waits"].backoff_expiry == 107
    assert play.queue.pods["uid-waits"].rejectors == {"OnNodes"}
    assert play.queue.pods["uid-waits"].obstacles == {"OnNodes": ("the tide",)}


def test_a_record_of_a_clock_that_is_ahead_does_not_hold_its_pod_back(play: Play) -> None:
    records = {"uid-a": record("a", outcome="error", number=2, at=play.now + 3600)}
    restart.fill(play.queue, [view("a")], records, PROFILES, play.now)
    assert play.queue.pods["uid-a"].backoff_expiry - play.now <= 3


def test_a_new_leader_keeps_the_order_of_creation(play: Play) -> None:
    views = [
        view("second", created="1970-01-01T00:00:50Z", sequence=1),
        view("first", created="1970-01-01T00:00:10Z", sequence=9),
        view("unknown", sequence=3),
    ]
    restart.fill(play.queue, views, {}, PROFILES, play.now)
    assert [pod.key[1] for pod in play.queue.active] == ["first", "second", "unknown"]


def test_a_new_leader_remembers_nominations(play: Play) -> None:
    restart.fill(play.queue, [view("a", nominated="n1")], {}, PROFILES, play.now)
    assert play.queue.nominator.by_node() == {"n1": ["uid-a"]}


def test_a_pod_that_looked_gone_in_flight_is_not_lost() -> None:
    """As after a version that could not be read: its open attempt's failure must put it back, or nobody ever
    tries it again.
    """
    play = Play()
    seen = view("a")
    play.apply(None, seen)
    popped = play.take()
    play.apply(seen, None)
    play.apply(None, view("a", labels=("mended",), sequence=2))
    assert play.queue.pods["uid-a"].pool == "inFlight"
    play.done(popped, "unschedulable", unschedulable_plugins=("NodeAffinity",))
    assert play.queue.pods["uid-a"].pool in ("activeQ", "backoffQ"), "what it was judged by is not its last version"
    play.now += 5
    play.leader.tick(play.now)
    assert play.take().number == 2


def test_a_pod_that_looked_gone_in_flight_leaves_with_its_binding() -> None:
    play = Play()
    seen = view("a")
    play.apply(None, seen)
    popped = play.take()
    play.apply(seen, None)
    play.apply(None, seen)
    play.done(popped, "scheduled", node="n1")
    play.apply(seen, view("a", node="n1"), bound=True)
    assert (play.queue.pods, play.leader.attempts, play.leader.binding) == ({}, {}, {})
    assert play.queue.in_flight.uids() == ()


def test_a_pending_pod_is_found_among_those_in_flight_without_a_walk_over_all_attempts(play: Play) -> None:
    class Unwalked(dict[str, Attempt]):
        def values(self) -> NoReturn:
            raise AssertionError("all attempts are walked")

    seen = view("a")
    play.apply(None, seen)
    popped = play.take()
    play.leader.attempts = Unwalked(play.leader.attempts)
    play.apply(seen, None)
    play.apply(None, view("new"))
    play.apply(None, seen)
    assert play.leader.attempts[popped.attempt].pod is play.queue.pods["uid-a"]
