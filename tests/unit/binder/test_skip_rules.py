"""Each condition of `binder.core.skipping`: what the log must know, and when the filters are asked after
all."""

from typing import Any

import pytest
from msgspec import structs

from podyard.binder.core import effects, node_takes_pod, skipping
from podyard.binder.core.claims import Claims, claims_of
from podyard.binder.core.pending import Pending
from podyard.binder.core.skipping import Skipping
from podyard.binder.core.world import World
from podyard.cluster.changes import Change, Origin
from podyard.cluster.pods import PodView, from_binding
from podyard.objects.core import Pod
from podyard.objects.meta import ObjectMeta
from podyard.proto.binder_api import BindRequest, Decision, NumberRange
from podyard.proto.facts import Nomination, PodStatusFact
from podyard.proto.placement import BoundPod, Release
from tests.support import verified_skips
from tests.unit.binder.schedulers import PROFILE, Lagging, Puller, apart, near
from tests.unit.binder.stage import GATHER_S, Term, uid_of

NOTHING = Claims((), 0)
P = 100
"""Where a decision was made."""


def claims(*numbers: int) -> Claims:
    return Claims(tuple((number, number) for number in numbers), len(numbers))


def placed(uid: str = "u") -> PodView:
    return from_binding(BoundPod(namespace="d", name=uid, uid=uid, node="n", attempt="a"))


def unplaced(uid: str = "u", sequence: int = 1) -> PodView:
    return PodView(Pod(metadata=ObjectMeta(name=uid, namespace="d", uid=uid)), ("d", uid), uid, sequence)


def change(old: PodView | None, new: PodView | None, at: int, resource: str = "pods", **more: object) -> Change:
    one = new or old
    # type: ignore[arg-type]
    return Change(resource, one.uid if one else "u", old, new, Origin(sequence=at), **more)


# ---- the log: what came after


def test_over_nothing_one_may_skip() -> None:
    assert Skipping().covers("s", P, NOTHING)


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(change(None, None, P + 1, "nodes"), id="a node"),
        pytest.param(change(None, None, P + 1, "services"), id="another object"),
        pytest.param(
            change(
                placed(),
                unplaced(),
                P + 1,
                release=Release(namespace="d", name="u", uid="u", node="n", reason="orphan"),
            ),
            id="a release",
        ),
        pytest.param(change(placed(), placed(), P + 1), id="the object of a placed pod"),
        pytest.param(change(placed(), None, P + 1), id="the end of a placed pod's object"),
        pytest.param(change(unplaced(), placed(), P + 1, bound=True), id="a binding that nobody here wrote"),
        pytest.param(change(unplaced(), unplaced(), P + 1, gap=True), id="a gap"),
        pytest.param(change(None, unplaced(), 1, relisted=True), id="anything that a listing brings"),
    ],
)
def test_what_a_filter_may_read_is_not_skipped_over(foreign: Change) -> None:
    log = Skipping()
    log.changed(foreign, P + 1)
    assert not log.covers("s", P, NOTHING)
    assert log.covers("s", P + 1, NOTHING), "whoever has read it has decided by it"


@pytest.mark.parametrize(
    "harmless",
    [
        pytest.param(change(None, unplaced(), P + 1), id="a pod comes"),
        pytest.param(change(unplaced(), unplaced(sequence=9), P + 1), id="a pod that nobody placed changes"),
        pytest.param(change(unplaced(), None, P + 1), id="a pod that nobody placed goes"),
    ],
)
def test_what_no_filter_reads_is_skipped_over(harmless: Change) -> None:
    log = Skipping()
    log.changed(harmless, P + 1)
    assert log.covers("s", P, NOTHING)


def test_what_agents_say_of_a_placed_pod_is_skipped_over() -> None:
    before = placed()
    after = before.with_placement(before.bound, None)
    after.status = PodStatusFact(namespace="d", name="u", uid="u", node="n", phase="Running")
    log = Skipping()
    log.changed(change(before, after, P + 1), P + 1)
    assert log.covers("s", P, NOTHING)
    nominated = before.with_placement(before.bound, None)
    nominated.nomination = Nomination(namespace="d", name="u", uid="u", node="n")
    log.changed(change(after, nominated, P + 2), P + 2)
    assert not log.covers("s", P, NOTHING)


def test_a_listing_is_not_skipped_over() -> None:
    """Also the one of a take-over: a new binder knows nothing of what came before it."""
    log = Skipping()
    log.listed(P + 1)
    assert not log.covers("s", P, NOTHING)
    assert log.covers("s", P + 1, NOTHING)


# ---- the log: bindings and claims


def test_exactly_the_claimed_bindings_must_be_there() -> None:
    log = Skipping()
    log.held("u1", ("s", 1))
    log.held("u2", ("s", 2))
    assert log.covers("s", P, claims(1, 2))
    assert not log.covers("s", P, claims(1)), "one more than claimed"
    assert not log.covers("s", P, claims(1, 2, 3)), "one less than claimed"
    assert not log.covers("s", P, claims(1, 3)), "as many, but not these"
    assert not log.covers("t", P, claims(1, 2)), "another session's"


def test_a_binding_that_is_durable_counts_for_who_has_not_read_it() -> None:
    log = Skipping()
    log.held("u1", ("s", 1))
    log.durable(["u1"], P + 1)
    assert log.covers("s", P, claims(1))
    assert not log.covers("s", P, NOTHING)
    assert not log.covers("s", P + 1, claims(1)), "who has read it claims it no more; if it does, something is amiss"
    assert log.covers("s", P + 1, NOTHING)


def test_who_comes_late_finds_no_claim_that_a_later_decision_had_seen() -> None:
    log = Skipping()
    log.held("u1", ("s", 1))
    log.durable(["u1"], P + 1)
    log.held("u2", ("t", 1))
    log.durable(["u2"], P + 2)
    assert not log.covers("s", P + 1, claims(1)), "as many, but the other's, and its own is seen"
    assert not log.covers("s", P + 1, NOTHING)
    assert not log.covers("s", P, claims(1)), "the other session's binding is there too"
    assert not log.covers("s", P, claims(1, 2))


@pytest.mark.parametrize("when", ["pending", "durable"])
def test_a_claimed_pod_whose_object_changes_before_the_scheduler_can_have_seen_the_binding_is_another(
    when: str,
) -> None:
    """Its scheduler placed it as it was: with its old labels."""
    log = Skipping()
    log.held("u", ("s", 1))
    if when == "durable":
        log.durable(["u"], P + 5)
    log.changed(change(unplaced(), unplaced(sequence=P + 1), P + 1), P + 1)
    assert not log.covers("s", P + 2, claims(1))
    assert not log.covers("s", P + 2, NOTHING)


def test_what_was_dropped_is_not_there() -> None:
    log = Skipping()
    log.held("u1", ("s", 1))
    log.dropped("u1")
    assert not log.covers("s", P, claims(1))
    assert log.covers("s", P, NOTHING)
    log.dropped("u1")
    assert log.covers("s", P, NOTHING)


def test_a_pod_that_was_dropped_here_and_is_bound_all_the_same_was_bound_by_somebody_else() -> None:
    log = Skipping()
    log.held("u", ("s", 1))
    log.changed(change(unplaced(), placed(), P + 1, bound=True), P + 1)
    log.dropped("u")
    assert not log.covers("s", P, NOTHING)


def test_a_pod_bound_by_force_is_one_too_many() -> None:
    log = Skipping()
    log.held("u", None)
    assert not log.covers("s", P, NOTHING)
    assert not log.covers("s", P, claims(1))


def test_the_log_forgets_the_oldest_and_never_skips_over_what_it_forgot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipping, "KEPT", 8)
    log = Skipping()
    for number in range(1, 101):
        log.held(f"u{number}", (f"s{number % 3}", number))
        log.durable([f"u{number}"], 10 * number)
        log.changed(change(unplaced(f"u{number}"), placed(f"u{number}"), 10 * number, bound=True), 10 * number)
    assert len(log._positions) <= 10
    assert not log._unseen
    assert sum(len(numbers) for numbers in log._sessions.values()) <= 10
    assert not log.covers("s1", 10, Claims(((2, 100),), 99))
    log.held("v1", ("s1", 101))
    assert log.covers("s1", 1000, claims(101))


# ---- what a decision claims


def decision(number: int, **more: object) -> Decision:
    # type: ignore[arg-type]
    return Decision(namespace="d", name="p", uid="u", attempt=f"{number}", node="n", number=number, position=P, **more)


def claimed(
    outstanding: list[tuple[int, int]], *decisions: Decision, digest: dict[str, str] | None = None
) -> list[Claims | None]:
    ranges = tuple(NumberRange(first=first, last=last) for first, last in outstanding)
    known = {"default-scheduler": "x"} if digest is None else digest
    return claims_of(BindRequest(session="s", outstanding=ranges, decisions=decisions, digest=known))


def test_a_decision_claims_the_outstanding_ones_and_the_earlier_of_its_request() -> None:
    assert claimed([(3, 5), (7, 7)], decision(8), decision(9), decision(12), decision(13)) == [
        Claims(((3, 5), (7, 7)), 4),
        Claims(((3, 5), (7, 8)), 5),
        Claims(((3, 5), (7, 9)), 6),
        Claims(((3, 5), (7, 9), (12, 12)), 7),
    ]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(claimed([(9, 9)], decision(8)), id="a later number"),
        pytest.param(claimed([(8, 8)], decision(8)), id="its own number"),
        pytest.param(claimed([(1, 4), (3, 5)], decision(8)), id="ranges that overlap"),
        pytest.param(claimed([(4, 1)], decision(8)), id="a range that ends before it begins"),
        pytest.param(claimed([], decision(8, not_assumed=(7,))), id="exceptions"),
        pytest.param(claimed([], decision(8), digest={}), id="no digest of the profile"),
        pytest.param(claimed([(2 * n, 2 * n) for n in range(1, 99)], decision(300)), id="very many ranges"),
    ],
)
def test_what_cannot_be_told_is_never_skipped_over(found: list[Claims | None]) -> None:
    assert found == [None]
    assert not Skipping().covers("s", P, None)


def test_what_an_earlier_session_assumed_is_never_there() -> None:
    (found,) = claimed([(0, 0)], decision(1))
    assert not Skipping().covers("s", P, found)


# ---- the whole


@pytest.fixture
def stage() -> Lagging:
    stage = Lagging()
    for number in range(4):
        stage.zoned_node(f"n{number}", f"z{number % 2}")
    return stage


def skips(binder: Term) -> int:
    return sum(done.skipped for done in binder.of(effects.Committed))


def commit(stage: Lagging) -> None:
    stage.pass_time(GATHER_S)
    stage.pass_time(0.003)


def test_one_scheduler_alone_is_believed_request_after_request(stage: Lagging, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several requests under way at once, the view of the scheduler behind: all of its decisions claim what
    it cannot have seen."""
    monkeypatch.setattr(node_takes_pod, "judge", verified_skips.judge)
    for number in range(12):
        stage.labelled_pod(f"p{number}", "a", **(apart("b") if number % 2 else {}))
    binder = stage.serving()
    puller = Puller(stage, "s")
    for first in (0, 4, 8):
        puller.decide(*(f"p{number}" for number in range(first, first + 4)))
        puller.send(binder)
        commit(stage)
    assert len(stage.stream.live()) == 12
    assert skips(binder) == 12


def test_of_two_schedulers_the_one_that_has_not_seen_the_others_pods_is_filtered(stage: Lagging) -> None:
    stage.labelled_pod("p", "a", **apart("a", "topology.kubernetes.io/zone"))
    stage.labelled_pod("q", "a", **apart("a", "topology.kubernetes.io/zone"))
    binder = stage.serving()
    first, second = Puller(stage, "s"), Puller(stage, "t")
    first.decide("p")
    second.decide("q")
    same = second.outbox[0].decisions[0].node == first.outbox[0].decisions[0].node
    first.send(binder)
    ticket = second.send(binder)
    commit(stage)
    assert skips(binder) == 1
    assert binder.answers(ticket)[0].result == ("conflict" if same else "bound")


def test_a_decision_behind_one_that_was_refused_is_filtered(stage: Lagging) -> None:
    """It needs the pod that never came: with it missing the required affinity holds nowhere."""
    stage.labelled_pod("anchor", "a")
    stage.labelled_pod("close", "b", **near("a"))
    binder = stage.serving()
    puller = Puller(stage, "s")
    puller.decide("anchor", "close")
    stage.remove("pods", "anchor")
    ticket = puller.send(binder)
    commit(stage)
    assert [(one.result, one.cause) for one in binder.answers(ticket)] == [
        ("gone", "podGone"),
        ("conflict", "InterPodAffinity"),
    ]
    assert skips(binder) == 0


def test_a_decision_over_a_pod_that_waits_at_permit_or_was_never_sent_is_filtered(stage: Lagging) -> None:
    stage.labelled_pod("anchor", "a")
    stage.labelled_pod("close", "b", **near("a"))
    binder = stage.serving()
    puller = Puller(stage, "s")
    puller.decide("anchor")
    puller.decide("close")
    ticket = puller.send(binder, at=1)
    commit(stage)
    assert [one.cause for one in binder.answers(ticket)] == ["InterPodAffinity"]


def test_a_pod_whose_own_object_changed_after_the_decision_is_filtered(stage: Lagging) -> None:
    stage.labelled_pod("p", "a")
    binder = stage.serving()
    puller = Puller(stage, "s")
    puller.decide("p")
    stage.labelled_pod("p", "a", **near("nobody"))
    ticket = puller.send(binder)
    commit(stage)
    assert [one.cause for one in binder.answers(ticket)] == ["InterPodAffinity"]


def test_a_claimed_pod_that_changed_before_it_was_bound_is_not_what_was_claimed(stage: Lagging) -> None:
    stage.labelled_pod("anchor", "a")
    stage.labelled_pod("close", "b", **near("a"))
    binder = stage.serving()
    puller = Puller(stage, "s")
    puller.decide("anchor", "close")
    stage.labelled_pod("anchor", "c")  # not what the other looked for any more
    ticket = puller.send(binder)
    commit(stage)
    assert [(one.result, one.cause) for one in binder.answers(ticket)] == [
        ("bound", ""),
        ("conflict", "InterPodAffinity"),
    ]


@pytest.mark.parametrize("room", ["nominated", "kept"])
def test_a_node_where_somebody_else_is_to_have_room_is_filtered(stage: Lagging, room: str) -> None:
    stage.labelled_pod("p", "a")
    stage.labelled_pod("other", "a")
    binder = stage.serving()
    puller = Puller(stage, "s")
    puller.decide("p")
    node = puller.outbox[0].decisions[0].node
    other = binder.view.pods["default", "other"]
    if room == "kept":
        bound = BoundPod(namespace="default", name="other", uid=uid_of("other"), node=node)
        binder.core.world.table.keep(other.with_placement(bound, None))
    else:
        fact = Nomination(namespace="default", name="other", uid=uid_of("other"), node=node)
        nominated = PodView(other.stored, other.key, other.uid, other.sequence, nomination=fact)
        binder.core.world.nominated.follow(other.uid, nominated)
    puller.send(binder)
    commit(stage)
    assert (len(stage.stream.live()), skips(binder)) == (1, 0)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, id="a claim"),
        pytest.param(
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}, id="a claim of its own"
        ),
        pytest.param({"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}, id="a resource claim"),
        pytest.param({"volumes": [{"name": "v", "emptyDir": {}}]}, id="no claim"),
    ],
)
def test_a_pod_with_claims_is_filtered(stage: Lagging, spec: dict[str, Any]) -> None:
    """What was promised of volumes, and to whom, the filters of each process remember for themselves."""
    stage.labelled_pod("p", "a", **spec)
    world = stage.serving().core.world
    last = stage.stream.log[-1]
    decided = structs.replace(stage.decide("p"), read=last.sequence, read_at=last.stored_at)
    pending = Pending(decided, ("s", 1), 0.0, NOTHING)
    assert world.may_skip(pending) == ("emptyDir" in str(spec))


@pytest.mark.parametrize(("later_s", "skipped"), [(0.0, 1), (0.001, 0)], ids=["the same", "another"])
def test_who_read_another_message_under_that_number_is_not_believed(
    stage: Lagging, later_s: float, skipped: int
) -> None:
    """The stream was made again: its 284th message is not the one that was the 284th before."""
    stage.labelled_pod("p", "a")
    binder = stage.serving()
    puller = Puller(stage, "s")
    puller.decide("p")
    (request,) = puller.outbox
    (decided,) = request.decisions
    there = structs.replace(decided, read_at=decided.read_at + later_s)
    puller.outbox = [structs.replace(request, decisions=(there,))]
    puller.send(binder)
    commit(stage)
    assert skips(binder) == skipped


def test_objects_written_with_a_binding_are_not_skipped_over(stage: Lagging) -> None:
    world = World(stage.serving().view)
    world.committed((), P, only_bound=True)
    assert world.skipping.covers("s", P - 1, NOTHING)
    world.committed((), P, only_bound=False)
    assert not world.skipping.covers("s", P - 1, NOTHING)


def test_after_a_take_over_only_what_came_after_its_listing_is_skipped_over(stage: Lagging) -> None:
    stage.labelled_pod("p", "a")
    stage.labelled_pod("q", "a")
    stage.serving("binder-a")
    puller = Puller(stage, "s")
    puller.decide("p")
    second = stage.serving("binder-b")
    puller.send(second)
    commit(stage)
    assert skips(second) == 0
    puller.take_answers(second)
    puller.follow()
    puller.decide("q")
    puller.send(second)
    commit(stage)
    assert skips(second) == 1


def test_a_wrong_skip_does_not_pass_where_it_is_looked_for(stage: Lagging, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check that simulations run with."""
    monkeypatch.setattr(World, "may_skip", lambda world, pending: True)
    monkeypatch.setattr(node_takes_pod, "judge", verified_skips.judge)
    stage.labelled_pod("p", "a")
    binder = stage.serving()
    puller = Puller(stage, "s")
    puller.decide("p")
    node = puller.outbox[0].decisions[0].node
    stage.zoned_node(node, "z9", unschedulable=True)
    puller.send(binder)
    with pytest.raises(verified_skips.WrongSkip, match=node):
        commit(stage)


def test_the_profile_of_these_tests_has_filters() -> None:
    assert {"InterPodAffinity", "PodTopologySpread", "NodeResourcesFit"} <= {plugin.name for plugin in PROFILE.filter}
