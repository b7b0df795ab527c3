"""Which node an agent may play: nobody else's, and when it takes one from another."""

import pytest

from podyard.node_agent.core.claims import LOOKS, STALLED_S, Claims, Patience, Player, Standing
from podyard.proto.facts import NodeStatusFact

US, OTHER = Player("agent-b", "lease-b"), Player("agent-a", "lease-a")
SILENCE_S = 50.0
LOOK_S = SILENCE_S / LOOKS


def said(by: Player) -> NodeStatusFact:
    return NodeStatusFact(node="n1", node_uid="uid-n1", session=by.session, lease=by.lease)


def claims(*, take_over: bool = False) -> Claims:
    found = Claims(US, Patience(SILENCE_S, take_over))
    found.hears(True, 0.0)
    return found


def judge(found: Claims, by: Player | None, *, version: int = 1, playing: bool = False, now: float = 0.0) -> Standing:
    return found.judge("n1", None if by is None else said(by), version, playing=playing, now=now)


def awaits() -> Claims:
    """Another plays n1, and we listen since 0."""
    found = claims()
    assert judge(found, OTHER) is Standing.WAIT
    found.listens("n1", 0.0)
    return found


def looked_until(found: Claims, end: float, begin: float = 0.0) -> list[str]:
    """What may be claimed by then, looked at as often as it asks to be."""
    now, due = begin, list[str]()
    while now < end and not due:
        now = min(end, found.next_due or end)
        found.run_on(now)
        due = found.due(now)
    return due


@pytest.mark.parametrize(
    ("by", "standing"),
    [
        pytest.param(None, Standing.CLAIM, id="nobody has spoken"),
        pytest.param(Player(""), Standing.CLAIM, id="one that does not say who it is"),
        pytest.param(Player("agent-x", US.lease), Standing.CLAIM, id="who had our lease before us"),
        pytest.param(US, Standing.PLAY, id="we"),
        pytest.param(OTHER, Standing.WAIT, id="another"),
    ],
)
def test_who_may_play(by: Player | None, standing: Standing) -> None:
    assert judge(claims(), by) is standing


def test_what_is_claimed_is_played_once_the_claim_is_stored() -> None:
    found = claims()
    assert judge(found, None, version=0) is Standing.CLAIM
    found.claim("n1", None, 0)
    assert judge(found, None, version=0) is Standing.WAIT, "it is on its way"
    assert judge(found, US, version=1) is Standing.PLAY


def test_a_claim_that_another_was_quicker_with_is_lost() -> None:
    found = claims()
    judge(found, None, version=0)
    found.claim("n1", None, 0)
    assert judge(found, OTHER, version=1) is Standing.WAIT
    assert list(found.awaited) == ["n1"]


def test_what_another_plays_is_claimed_when_it_was_silent_for_long_enough() -> None:
    found = awaits()
    assert looked_until(found, SILENCE_S - 1) == []
    assert looked_until(found, SILENCE_S + LOOK_S, SILENCE_S - 1) == ["n1"]


def test_each_sign_of_life_begins_the_time_anew() -> None:
    found = awaits()
    found.beat("n1", 30.0)
    assert looked_until(found, 30.0 + SILENCE_S - 1) == []
    judge(found, OTHER, version=2, now=79.0)
    assert looked_until(found, 79.0 + SILENCE_S - 1, 79.0) == []
    assert looked_until(found, 79.0 + SILENCE_S + LOOK_S, 79.0 + SILENCE_S - 1) == ["n1"]


def test_what_others_say_of_the_node_is_no_sign_of_life() -> None:
    found = awaits()
    judge(found, OTHER, now=SILENCE_S - 1)
    assert looked_until(found, SILENCE_S + LOOK_S) == ["n1"]


@pytest.mark.parametrize("held", ["played", "claimed", "waits for a listing"])
def test_what_was_let_go_is_listed_before_it_is_played_again(held: str) -> None:
    found = claims(take_over=True)
    if held != "played":
        found.claim("n1", said(OTHER), 1)
    if held == "waits for a listing":
        assert judge(found, US, version=2) is Standing.LIST
    found.let_go("n1", playing=held == "played")
    found.let_go("n1", playing=False)
    assert judge(found, US, version=2) is Standing.LIST
    assert found.listed() == ["n1"]
    assert judge(found, US, version=2) is Standing.PLAY


def test_nobody_is_silent_while_we_do_not_listen() -> None:
    found = claims()
    judge(found, OTHER)
    assert looked_until(found, 1000.0) == []
    found.listens("n1", 1000.0)
    assert looked_until(found, 1000.0 + SILENCE_S - 1, 1000.0) == []


def test_nobody_is_silent_while_we_do_not_hear_the_bus() -> None:
    found = awaits()
    found.hears(False, 10.0)
    assert looked_until(found, 100.0) == []
    found.hears(True, 100.0)
    assert looked_until(found, 100.0 + SILENCE_S - 1, 100.0) == []


def test_nobody_was_silent_while_we_stood_still() -> None:
    found = awaits()
    late = LOOK_S + STALLED_S + 100.0
    found.run_on(late)
    assert found.due(late) == []
    assert looked_until(found, late + SILENCE_S - 1, late) == []


def test_before_what_another_played_is_played_everything_is_listed() -> None:
    found = awaits()
    found.claim("n1", said(OTHER), 1)
    assert judge(found, US, version=2) is Standing.LIST
    assert judge(found, US, version=2) is Standing.WAIT, "once"
    assert found.listed() == ["n1"]
    assert judge(found, US, version=2) is Standing.PLAY


def test_who_is_told_to_take_over_does_so_at_once_and_lists_too() -> None:
    found = claims(take_over=True)
    assert judge(found, OTHER) is Standing.CLAIM
    found.claim("n1", said(OTHER), 1)
    assert judge(found, US, version=2) is Standing.LIST


@pytest.mark.parametrize("by", [OTHER, Player("agent-x", US.lease)], ids=["another's lease", "our lease"])
def test_what_was_taken_from_us_is_not_taken_back_before_the_other_is_silent(by: Player) -> None:
    found = claims(take_over=True)
    assert judge(found, by, playing=True) is Standing.WAIT
    assert judge(found, by, version=2) is Standing.WAIT
    found.listens("n1", 0.0)
    assert looked_until(found, SILENCE_S + LOOK_S) == ["n1"]


def test_a_node_that_is_gone_is_waited_for_no_more() -> None:
    found = awaits()
    assert not found.forget("n1"), "nothing was said of it"
    assert not found.awaited
    found.claim("n1", None, 0)
    assert found.forget("n1"), "its claim may be stored"
