"""Placements that cannot be read: who has taken over does not lead, says what is in the way, and goes on when
it was mended."""

from typing import Any

import pytest

from podyard.binder.core import effects
from podyard.binder.core.binder import Phase
from podyard.binder.core.blocking import LOOK_AGAIN_S
from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.placement import BoundPod, Fence, Release
from tests.support import stored
from tests.unit.binder.stage import Stage, Term, binding_subject, foreign_binding, uid_of

JUNK = b"7"
ENDED = Release(namespace="default", name="c", uid=uid_of("c"), node="n1", reason="completed")


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="2")
    for name in "abc":
        stage.pod(name)
    return stage


def blocked(term: Term) -> list[tuple[str, int]]:
    """What the term has said last to be in the way."""
    said: list[Any] = term.of(effects.Blocked)
    return [(one.subject, one.sequence) for one in said[-1].unreadable] if said else []


def mend(stage: Stage, name: str) -> None:
    """As somebody does who knows the node."""
    fence = stage.stream.fence()
    bound = BoundPod(namespace="default", name=name, uid=uid_of(name), node="n1", forced=True)
    stage.stream.put_all(stored.commit(fence.n + 1, bindings=[bound], epoch=fence.epoch + 1, batch="mended"))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(JUNK, id="no placement"),
        pytest.param(stored.tombstone(ENDED).payload, id="another pod's tombstone"),
        pytest.param(foreign_binding("c").payload, id="another pod's binding"),
    ],
)
def test_who_finds_a_binding_that_cannot_be_read_does_not_lead(stage: Stage, payload: bytes):
    bad = stage.stream.put(Outgoing(binding_subject("a"), payload))
    binder = stage.term().elect()
    assert binder.core.phase is Phase.LISTING
    assert blocked(binder) == [(binding_subject("a"), bad.sequence)]
    assert not binder.of(effects.Serve)
    assert binder.answers(binder.ask(stage.decide("b"))) == ()
    assert binder.replies[1].refused == "this binder does not lead"


def test_it_looks_again_without_haste_and_without_listing(stage: Stage):
    stage.stream.put(Outgoing(binding_subject("a"), JUNK))
    binder = stage.term().elect()
    written, listed = stage.stream.last, len(binder.of(effects.StartListing))
    assert binder.core.wake_at == stage.now + LOOK_AGAIN_S
    for _ in range(100):
        stage.pass_time(LOOK_AGAIN_S / 10)
    assert len(binder.of(effects.Inspect)) == 10
    assert (stage.stream.last, len(binder.of(effects.StartListing) + binder.of(effects.Relist))) == (written, listed)
    assert binder.core.phase is Phase.LISTING


def test_its_reign_ends_when_it_is_mended_and_the_next_one_knows_the_room(stage: Stage):
    stage.stream.put(Outgoing(binding_subject("a"), JUNK))
    binder = stage.term().elect()
    mend(stage, "a")
    stage.pass_time(LOOK_AGAIN_S)
    assert binder.core.phase is Phase.DEPOSED
    successor = stage.serving("binder-b")
    assert list(successor.view.pods_on("n1")) == [uid_of("a")]
    assert successor.bind(stage.decide("b"), stage.decide("a")) == ["bound", "alreadyBound"]


def test_a_leader_that_lists_again_and_finds_one_stops_leading(stage: Stage):
    binder = stage.serving()
    bad = stage.stream.put(Outgoing(binding_subject("a"), JUNK))
    binder.list_all()
    binder.step(effects.Listed())
    assert binder.core.phase is Phase.DEPOSED
    assert f"{binding_subject('a')} (sequence {bad.sequence}) cannot be read" in binder.of(effects.StepDown)[0].reason


def test_a_leader_that_is_to_release_what_it_cannot_read_stops_leading_instead_of_reading_for_ever(stage: Stage):
    binder = stage.serving()
    assert binder.bind(stage.decide("a")) == ["bound"]
    stage.stream.put(Outgoing(binding_subject("a"), JUNK))
    stage.status("a")
    stage.pass_time(1.0)
    assert binder.core.phase is Phase.DEPOSED
    assert len(binder.of(effects.ReadBindings)) == 1
    assert "cannot be read" in binder.of(effects.StepDown)[0].reason


def test_a_leader_in_whose_way_it_is_stops_leading_and_tells_nobody_that_the_pod_is_bound(stage: Stage):
    binder = stage.serving()
    stage.stream.put(Outgoing(binding_subject("a"), JUNK))
    ticket = binder.ask(stage.decide("a"))
    assert ticket not in binder.replies
    assert binder.core.phase is Phase.DEPOSED


def test_a_fence_that_cannot_be_read_is_not_moved(stage: Stage):
    bad = stage.stream.put(Outgoing(subjects.FENCE, JUNK))
    binder = stage.term().elect()
    assert binder.core.phase is Phase.ELECTED
    assert blocked(binder) == [(subjects.FENCE, bad.sequence)]
    assert binder.of(effects.ReadFence)[-1].delay_s == LOOK_AGAIN_S
    assert not binder.sends
    stage.stream.put(stored.fence(Fence(epoch=9, n=4, batch="mended")))
    binder.step(binder.read_fence())
    assert binder.core.phase is Phase.SERVING
    assert (binder.core.keeper.epoch, binder.core.keeper.n) == (10, 4)


def test_a_leader_whose_fence_cannot_be_read_any_more_stops_leading(stage: Stage):
    binder = stage.serving()
    binder.may_relist = True
    stage.stream.put(Outgoing(subjects.FENCE, JUNK))
    ticket = binder.ask(stage.decide("a"))
    assert binder.core.phase is Phase.DEPOSED
    assert ticket not in binder.replies
    assert stage.stream.find(binding_subject("a")) is None


def test_what_lies_where_the_next_record_belongs_is_passed_over(stage: Stage):
    """It tells nothing that the bindings do not: nobody needs to mend it, and readers list anew at the
    gap."""
    stage.stream.put(Outgoing(subjects.commit(1), JUNK))
    binder = stage.serving()
    binder.may_relist = True
    assert binder.bind(stage.decide("a"), stage.decide("b")) == ["bound", "bound"]
    (over,) = binder.of(effects.PassedOver)
    assert over.subject == subjects.commit(1)
    assert stage.stream.find(subjects.commit(2)) is not None
    assert stage.stream.fence().n == 2


def test_a_foreign_binding_that_can_be_read_is_still_a_conflict_of_that_pod_alone(stage: Stage):
    binder = stage.serving()
    stage.stream.put(foreign_binding("a"))
    assert binder.bind(stage.decide("a"), stage.decide("b")) == ["alreadyBound", "bound"]
    assert codec.decode(Fence, stage.stream.find(subjects.FENCE).payload).n == 1  # pyright: ignore[reportOptionalMemberAccess]
