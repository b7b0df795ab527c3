"""What a core counts is taken by many, every second, and at the end."""

import anyio
import pytest

from podyard.shell import counting
from podyard.shell.counting import TOGETHER, Counting
from tests.support.waiting import eventually

pytestmark = pytest.mark.anyio


class Counted:
    def __init__(self) -> None:
        self.held = 0
        self.taken: list[int] = []
        self.counting = Counting(lambda: self.held, self.take)

    def take(self) -> None:
        self.taken.append(self.held)
        self.held = 0


def test_a_few_wait_and_many_are_taken():
    counted = Counted()
    counted.held = TOGETHER - 1
    counted.counting.look()
    assert counted.taken == []
    counted.held += 1
    counted.counting.look()
    assert counted.taken == [TOGETHER]


async def test_a_few_are_taken_after_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counting, "EVERY_S", 0.001)
    counted = Counted()
    counted.held = 3
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(counted.counting.run)
        await eventually("they are taken", lambda: bool(counted.taken))
        tasks.cancel_scope.cancel()
    assert counted.taken[0] == 3


async def test_what_is_left_is_taken_at_the_end():
    counted = Counted()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(counted.counting.run)
        await anyio.wait_all_tasks_blocked()
        counted.held = 5
        tasks.cancel_scope.cancel()
    assert counted.taken == [5]
