"""Batches are refused, single writes are not, as when somebody has begun as many batches as the server allows
and does not end them."""

from podyard.binder.core import effects
from tests.unit.binder.stage import Stage, Term


class Choosy:
    """A server that takes no batches; the time of each that was sent."""

    def __init__(self, term: Term) -> None:
        self.batches: list[float] = []
        self.moves = 0
        self._reign = term
        self._write = term.write
        term.write = self.write

    def write(self, send: effects.Send) -> effects.Message:
        if len(send.writes) == 1:
            self.moves += 1
            return self._write(send)
        self.batches.append(self._reign.stage.now)
        return effects.Unclear(send.batch_id, "too many batches")

    def relent(self) -> None:
        self._reign.write = self._write


def test_batches_are_tried_again_at_a_growing_distance_and_the_first_that_is_taken_binds() -> None:
    stage = Stage()
    stage.node()
    stage.pod("a")
    term = stage.serving()
    server = Choosy(term)
    ticket = term.ask(stage.decide("a"), wait=False)
    for _ in range(1000):
        stage.pass_time(0.01)
    assert 10 < len(server.batches) < 20
    assert server.moves == len(server.batches)
    distances = [after - before for before, after in zip(server.batches, server.batches[1:], strict=False)]
    assert distances[0] < 0.05, "one lost answer costs nobody time"
    assert distances[1:] == sorted(distances[1:])
    assert 0.9 < distances[-1] < 1.1
    assert ticket not in term.replies
    server.relent()
    for _ in range(110):
        stage.pass_time(0.01)
    assert [one.result for one in term.answers(ticket)] == ["bound"]


def test_it_is_told_while_it_lasts() -> None:
    stage = Stage()
    stage.node()
    stage.pod("a")
    term = stage.serving()
    server = Choosy(term)
    term.ask(stage.decide("a"), wait=False)
    for _ in range(20):
        stage.pass_time(0.01)
    told = term.of(effects.CommitsFail)
    assert told[0].reason == "2 commits in a row were not taken: too many batches"
    server.relent()
    for _ in range(110):
        stage.pass_time(0.01)
    assert term.of(effects.CommitsFail)[-1].reason == ""


def test_the_next_batch_waits_no_longer_than_the_core_says() -> None:
    stage = Stage()
    stage.node()
    stage.pod("a")
    term = stage.serving()
    server = Choosy(term)
    term.ask(stage.decide("a"), wait=False)
    for _ in range(200):
        wake_at = term.core.wake_at
        assert wake_at is not None
        before = len(server.batches)
        stage.pass_time(max(0.0, wake_at - stage.now) + 1e-6)
        if len(server.batches) > 20:
            return
        assert len(server.batches) >= before
    raise AssertionError("the core never wakes for the next batch")
