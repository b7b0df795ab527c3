"""A request that comes twice takes pods at most once, whatever its first answer was."""

from podyard.proto.queue_api import PopRequest
from tests.unit.queue.test_leader import DIGESTS, Stage


def test_a_pop_that_was_told_there_is_nothing_takes_no_pods_when_it_comes_again() -> None:
    stage = Stage()
    request = PopRequest(session="s", pop_id="x", digests=DIGESTS)
    assert stage.leader.pop(request, stage.now, 42) is None
    nothing = stage.leader.pop_nothing(request, 42)
    assert nothing.pods == ()
    stage.add("a")
    assert stage.leader.pop(request, stage.now, 43) is nothing, "its scheduler waits for another answer by now"
    assert [pod.name for pod in stage.pop(pop_id="y").pods] == ["a"]  # pyright: ignore[reportOptionalMemberAccess]
