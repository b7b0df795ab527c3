"""Where a pending decision stands: what may happen to it, and that nothing else does."""

import pytest

from podyard.binder.core.pending import Event, Pending, State
from podyard.proto.binder_api import Decision


def decision() -> Pending:
    made = Decision(namespace="default", name="a", uid="uid-a", attempt="1-1", node="n1", number=1, position=1)
    return Pending(made, ("s", 1), 0.0, None)


@pytest.mark.parametrize(
    ("story", "ends"),
    [
        ([Event.ACCEPT, Event.ANSWER], State.ANSWERED),
        ([Event.REFUSE, Event.NOT_WRITTEN, Event.ACCEPT], State.BINDING),
        ([Event.VIEW_IS_BEHIND, Event.VIEW_HAS_REACHED], State.UNJUDGED),
        ([Event.VIEW_IS_BEHIND, Event.REFUSE], State.REFUSED),
        ([Event.WRITE_FIRST, Event.DURABLE, Event.DUE, Event.WAIT, Event.DUE, Event.ACCEPT], State.BINDING),
        ([Event.WRITE_FIRST, Event.NOT_WRITTEN], State.UNJUDGED),
        ([Event.ASK, Event.BOUND_BY_EXTENDER, Event.ACCEPT], State.BINDING),
        ([Event.ASK, Event.REFUSE, Event.ANSWER], State.ANSWERED),
    ],
)
def test_what_happens_to_it_says_where_it_stands(story: list[Event], ends: State) -> None:
    pending = decision()
    for event in story:
        pending.happens(event)
    assert pending.state is ends


def test_what_cannot_happen_raises_and_changes_nothing() -> None:
    pending = decision()
    pending.happens(Event.ACCEPT)
    pending.happens(Event.ANSWER)
    for event in Event:
        with pytest.raises(AssertionError, match="ANSWERED"):
            pending.happens(event)
    assert pending.state is State.ANSWERED


def test_its_answer_is_told_after_a_write_only() -> None:
    pending = decision()
    with pytest.raises(AssertionError, match="ANSWER cannot happen to a decision that is UNJUDGED"):
        pending.happens(Event.ANSWER)
