"""When a census is due, what it says, and what of what came back is deleted again."""

import tracemalloc
from typing import Final

from podyard.workloads.core import census
from podyard.workloads.core.census import (
    Back,
    CensusTaker,
    Clear,
    Cleared,
    Effect,
    Ended,
    Found,
    Listed,
    Listing,
    Relist,
    Roll,
    Seen,
    Take,
    Taken,
    Tick,
)

LIFE_S: Final = 600.0
DUE_S: Final = LIFE_S / 4


class Stage:
    """A stream, its reader, and the clock."""

    def __init__(self) -> None:
        self.roll = Roll()
        self.core = CensusTaker(self.roll, LIFE_S)
        self.now = 1000.0
        self.last = 0
        self.wanted: list[Effect] = []
        self.counted: tuple[int, int] = (0, 0)

    def tell(self, message: census.Message) -> list[Effect]:
        wanted = self.core.step(message, self.now)
        self.wanted += wanted
        return wanted

    def listed(
        self, *there: str, back: tuple[str, ...] = (), held: int | None = None, replicas: int = 1
    ) -> list[Effect]:
        """A listing finds these subjects, and the last census if there is one."""
        self.roll.begin(self.last + len(there))
        self.tell(Listing())
        for number, subject in enumerate(back, 1):
            self.roll.note_other(number)
            self.tell(Found(Back(subject, number)))
        for subject in there:
            self.put(subject)
        if self.counted[0]:
            self.roll.note_other(self.counted[0])
            self.tell(Seen(*self.counted))
        return self.tell(Listed(len(there) + len(back) if held is None else held, self.last, replicas))

    def put(self, subject: str, *, expires: bool = False) -> list[Effect]:
        self.last += 1
        if self.roll.note(subject, self.last, expires=expires):
            return self.tell(Ended())
        return []

    def delete(self, subject: str) -> list[Effect]:
        return self.put(subject, expires=True)

    def store(self, take: Take) -> list[Effect]:
        """The census is stored, and read."""
        self.last += 1
        self.roll.note_other(self.last)
        self.counted = (self.last, take.position)
        return [*self.tell(Taken(True)), *self.tell(Seen(*self.counted))]

    def pass_time(self, seconds: float) -> list[Effect]:
        self.now += seconds
        return self.tell(Tick())

    def taken(self) -> Take:
        """The census that is due now is stored, the empty one before it too."""
        (take,) = self.tell(Tick())
        assert isinstance(take, Take)
        if take.expect == 0:
            (take,) = self.store(take)
            assert isinstance(take, Take)
        assert self.store(take) == []
        return take


def begun(*there: str) -> Stage:
    """A stage that has listed, and has taken its first census."""
    stage = Stage()
    assert stage.listed(*there) == []
    stage.now += DUE_S
    stage.taken()
    return stage


def test_a_listing_is_followed_by_a_census_for_nobody_knows_what_ended_before():
    stage = Stage()
    stage.listed("cluster.pods.d.a", "cluster.pods.d.b")
    assert stage.core.wake_at == stage.now + DUE_S
    assert stage.pass_time(DUE_S - 1) == []
    (first,) = stage.pass_time(1)
    assert isinstance(first, Take)
    assert (first.expect, first.position, list(first.living)) == (0, 0, []), "the first one says nothing"
    (second,) = stage.store(first)
    assert isinstance(second, Take)
    assert (second.expect, second.position, list(second.living)) == (3, 3, [1, 2])
    assert stage.store(second) == []
    assert stage.core.wake_at is None


def test_nothing_is_said_of_an_empty_stream():
    stage = Stage()
    stage.listed()
    assert stage.core.wake_at is None


def test_a_listing_that_ends_with_the_census_needs_no_other():
    stage = Stage()
    stage.last = 7
    stage.counted = (7, 6)
    stage.listed(held=0)
    assert stage.core.wake_at is None
    stage.counted = (7, 5)
    stage.listed(held=0)
    assert stage.core.wake_at is not None, "something was written while that census was packed"


def test_without_an_end_there_is_no_other_census():
    stage = begun("cluster.pods.d.a")
    stage.put("cluster.pods.d.b")
    stage.put("cluster.pods.d.a")
    stage.put("placement.commits.1", expires=True)
    stage.delete("cluster.pods.d.never")
    assert stage.pass_time(100 * DUE_S) == []
    assert stage.core.wake_at is None


def test_an_end_is_followed_by_a_census_a_quarter_of_a_markers_life_later():
    stage = begun("cluster.pods.d.a", "cluster.pods.d.b")
    stage.delete("cluster.pods.d.a")
    assert stage.core.wake_at == stage.now + DUE_S
    stage.now += DUE_S - 1
    stage.delete("cluster.pods.d.b")
    stage.put("cluster.pods.d.c")
    assert stage.pass_time(0) == []
    stage.now += 1
    take = stage.taken()
    assert take.position == stage.last - 1
    assert list(take.living) == [stage.last - 1]
    assert stage.core.wake_at is None


def test_what_ends_while_a_census_is_stored_is_in_the_next():
    stage = begun("cluster.pods.d.a", "cluster.pods.d.b")
    stage.delete("cluster.pods.d.a")
    (take,) = stage.pass_time(DUE_S)
    stage.delete("cluster.pods.d.b")
    assert isinstance(take, Take)
    assert stage.store(take) == []
    assert stage.core.wake_at == stage.now + DUE_S
    stage.now += DUE_S
    assert list(stage.taken().living) == []


def test_a_census_that_was_not_stored_is_taken_again_behind_the_one_that_was_read():
    stage = begun("cluster.pods.d.a", "cluster.pods.d.b")
    stage.delete("cluster.pods.d.a")
    (take,) = stage.pass_time(DUE_S)
    assert isinstance(take, Take)
    stage.last += 1
    stage.roll.note_other(stage.last)
    stage.tell(Seen(stage.last, stage.last - 1))  # another leader's
    stage.tell(Taken(False))
    (again,) = stage.pass_time(DUE_S)
    assert isinstance(again, Take)
    assert (again.expect, again.position) == (stage.last, stage.last)


def test_the_first_census_may_be_read_before_its_answer_comes():
    stage = Stage()
    stage.listed("cluster.pods.d.a")
    (first,) = stage.pass_time(DUE_S)
    assert isinstance(first, Take)
    stage.last += 1
    stage.roll.note_other(stage.last)
    assert stage.tell(Seen(stage.last, 0)) == []
    (second,) = stage.tell(Taken(True))
    assert isinstance(second, Take)
    assert (second.expect, list(second.living)) == (2, [1])


def test_an_answer_that_nobody_waits_for_changes_nothing():
    stage = begun("cluster.pods.d.a")
    assert stage.tell(Taken(False)) == []
    assert stage.core.wake_at is None


def test_what_is_asked_and_not_answered_is_not_asked_twice():
    stage = begun("cluster.pods.d.a", "cluster.pods.d.b")
    stage.delete("cluster.pods.d.a")
    assert len(stage.pass_time(DUE_S)) == 1
    stage.delete("cluster.pods.d.b")
    assert stage.pass_time(DUE_S) == []
    assert stage.core.wake_at == stage.now + DUE_S


def test_in_a_stream_that_was_made_again_the_first_census_says_nothing():
    """What was asked before the listing is answered after it: its numbers are another stream's."""
    stage = begun("cluster.pods.d.a")
    stage.delete("cluster.pods.d.a")
    (old,) = stage.pass_time(DUE_S)
    assert isinstance(old, Take)
    stage.last, stage.counted = 0, (0, 0)
    stage.listed("cluster.pods.d.new")
    stage.tell(Taken(False))
    (take,) = stage.pass_time(DUE_S)
    assert isinstance(take, Take)
    assert (take.expect, take.position, list(take.living)) == (0, 0, [])


def test_a_listing_that_lacks_messages_makes_no_census_and_is_done_again():
    """A replica that lost a part of its files would have all others forget that part."""
    stage = Stage()
    stage.listed("cluster.pods.d.a", held=2, replicas=3)
    (relist,) = stage.pass_time(DUE_S)
    assert relist == Relist("1 messages were listed, the stream held 2")
    stage.last = 0
    stage.listed("cluster.pods.d.a", "cluster.pods.d.b", held=2, replicas=3)
    stage.now += DUE_S
    assert list(stage.taken().living) == [1, 2]


def test_what_is_written_while_a_listing_runs_does_not_make_up_for_what_it_lacks():
    stage = Stage()
    stage.roll.begin(2)
    stage.tell(Listing())
    for sequence in (2, 3, 4):
        stage.roll.note(f"cluster.pods.d.{sequence}", sequence, expires=False)
    stage.tell(Listed(2, 4, 3))
    assert stage.pass_time(DUE_S) == [Relist("1 messages were listed, the stream held 2")]


def test_where_several_servers_have_the_stream_nothing_is_deleted_again():
    """One that lacks what lives may be read from for long: what a census hides by mistake is not lost."""
    stage = begun("cluster.pods.d.a")
    assert stage.listed("cluster.pods.d.a", back=("cluster.pods.d.b",), replicas=3) == []
    assert [type(one) for one in stage.listed("cluster.pods.d.a", back=("cluster.pods.d.b",))] == [Clear]


def test_a_listing_that_lacks_messages_again_is_done_again_soon():
    stage = Stage()
    stage.listed("cluster.pods.d.a", held=2, replicas=3)
    assert stage.pass_time(DUE_S) == [Relist("1 messages were listed, the stream held 2")]
    assert stage.listed("cluster.pods.d.a", held=2, replicas=3) == [], "not at once"
    assert stage.pass_time(census.AGAIN * LIFE_S - 1) == []
    assert stage.pass_time(1) == [Relist("1 messages were listed, the stream held 2")]


def test_a_listing_does_not_put_the_census_off():
    """A reader that lists every two minutes would take none before the markers expire."""
    stage = begun("cluster.pods.d.a")
    due = stage.now + DUE_S
    stage.delete("cluster.pods.d.a")
    stage.now += DUE_S - 1
    assert stage.listed("cluster.pods.d.b") == []
    assert stage.core.wake_at == due
    stage.now += DUE_S - 1
    (take,) = stage.listed("cluster.pods.d.b")
    assert isinstance(take, Take)
    assert list(take.living) == [stage.last]


def test_a_reader_that_is_behind_the_listing_takes_no_census_before_it_has_got_there():
    """What it has not read yet would count as deleted; what has expired behind it would be in no census."""
    stage = Stage()
    stage.put("cluster.pods.d.a")
    stage.last = 9
    stage.listed()
    stage.roll.note("cluster.pods.d.a", 1, expires=False)
    assert stage.pass_time(DUE_S) == []
    stage.roll.passed(8)
    assert stage.pass_time(census.BEHIND_S) == []
    stage.roll.passed(9)
    stage.now += census.BEHIND_S
    take = stage.taken()
    assert (take.position, list(take.living)) == (10, [1]), "the empty census is the tenth message"


def test_nothing_is_counted_while_a_listing_is_not_complete():
    stage = begun("cluster.pods.d.a")
    stage.delete("cluster.pods.d.a")
    stage.roll.begin(0)
    stage.tell(Listing())
    stage.put("cluster.pods.d.b")
    stage.delete("cluster.pods.d.b")
    assert stage.core.wake_at is None
    assert stage.pass_time(DUE_S) == []


def test_what_came_back_is_deleted_some_at_a_time_and_placements_are_left_to_the_binder():
    stage = Stage()
    names = [f"cluster.pods.d.p{index}" for index in range(census.AT_ONCE + 2)]
    (first,) = stage.listed(back=("placement.bindings.d.a.u", *names))
    assert isinstance(first, Clear)
    assert [one.subject for one in first.messages] == names[: census.AT_ONCE]
    assert first.messages[0].sequence == 2
    (second,) = stage.tell(Cleared(first.listing, ()))
    assert isinstance(second, Clear)
    assert [one.subject for one in second.messages] == names[census.AT_ONCE :]
    assert stage.tell(Cleared(second.listing, second.messages[:1])) == []
    assert stage.pass_time(census.RETRY_S - 0.1) == []
    (third,) = stage.pass_time(0.1)
    assert isinstance(third, Clear)
    assert third.messages == second.messages[:1]
    assert stage.tell(Cleared(third.listing, ())) == []


def test_what_is_left_of_an_earlier_listing_is_left_to_the_next_one():
    stage = Stage()
    (first,) = stage.listed(back=("cluster.pods.d.a",))
    assert isinstance(first, Clear)
    assert stage.listed(back=("cluster.pods.d.b",)) == []
    (second,) = stage.tell(Cleared(first.listing, first.messages))
    assert isinstance(second, Clear)
    assert [one.subject for one in second.messages] == ["cluster.pods.d.b"]


def test_what_came_back_and_waits_is_bounded():
    stage = Stage()
    stage.listed(back=tuple(f"cluster.pods.d.p{index}" for index in range(census.MOST_BACK + 100)))
    for _ in range(census.MOST_BACK // census.AT_ONCE):
        effect = stage.wanted[-1]
        assert isinstance(effect, Clear)
        stage.tell(Cleared(effect.listing, ()))
    assert sum(len(effect.messages) for effect in stage.wanted if isinstance(effect, Clear)) == census.MOST_BACK


def test_the_roll_takes_no_more_than_is_said():
    """All subjects written twice: so a dictionary is at its largest."""
    count = 50_000
    subject = "cluster.podstatus.node-{0}.default.web-5d8f6c7b9-{0:05}.00000000-0000-4000-8000-000000000000"
    tracemalloc.start()
    try:
        roll = Roll()
        for sequence in range(2 * count):
            roll.note(subject.format(sequence % count), 10_000_000 + sequence, expires=False)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    said = count * (census.ENTRY_BYTES + len(subject))
    assert len(roll) == count
    assert said * 0.5 < taken < said


def test_a_roll_forgets_what_has_ended():
    roll = Roll()
    for number in range(1, 2001, 2):
        roll.note(f"cluster.pods.d.p{number}", number, expires=False)
        assert roll.note(f"cluster.pods.d.p{number}", number + 1, expires=True)
    assert len(roll) == 0
    assert not roll.sequences()
    assert roll.position == 2000
