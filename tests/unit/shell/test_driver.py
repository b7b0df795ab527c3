"""The driver: one message after the other, ticks in time on its clock, and silence after a core that raised."""

import anyio
import pytest

from podyard.shell.driver import Driver
from tests.support.waiting import eventually


class Echo:
    """A core that wants done what it is told, and ticks at times that tests set. Told `bug`, it raises."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.due: float | None = None

    def step(self, message: str, now: float) -> list[str]:
        self.told.append(message)
        if message == "bug":
            raise ValueError("a bug")
        if message == "tick":
            self.due = None
        return [message]


class Stage:
    """A driver with its core; effects are noted, `answer` is told the core while `ask` is carried out."""

    def __init__(self, floor_s: float = 0.0) -> None:
        self.core = Echo()
        self.done: list[str] = []
        self.failures: list[tuple[str, str]] = []
        self.ahead_s = 0.0
        self.driver = Driver(
            self.core,
            now=lambda: anyio.current_time() + self.ahead_s,
            carry_out=self._carry_out,
            failed=lambda message, error: self.failures.append((message, str(error))),
            tick="tick",
            wake_at=lambda: self.core.due,
            floor_s=floor_s,
        )

    def _carry_out(self, effects: list[str]) -> None:
        for effect in effects:
            if effect == "ask":
                self.driver.step("answer")
            self.done.append(effect)


async def test_what_comes_while_effects_are_carried_out_is_told_afterwards() -> None:
    stage = Stage()
    stage.driver.step("ask")
    assert stage.done == ["ask", "answer"]
    assert stage.core.told == ["ask", "answer"]


async def test_a_core_that_raised_is_told_nothing_any_more() -> None:
    stage = Stage()
    stage.core.due = anyio.current_time() + 0.01
    stage.driver.step("a")
    stage.driver.step("bug")
    assert stage.failures == [("bug", "a bug")]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.driver.keep_time)
        stage.driver.step("b")
        await anyio.sleep(0.03)
        tasks.cancel_scope.cancel()
    assert stage.core.told == ["a", "bug"]
    assert len(stage.failures) == 1


async def test_what_waits_behind_a_message_that_the_core_raises_on_is_not_told() -> None:
    stage = Stage()

    def carry_out(effects: list[str]) -> None:
        if effects == ["ask"]:
            stage.driver.step("bug")
            stage.driver.step("later")

    stage.driver._carry_out = carry_out  # pyright: ignore[reportPrivateUsage]
    stage.driver.step("ask")
    assert stage.core.told == ["ask", "bug"]


@pytest.mark.parametrize("floor_s", [0.0, 0.02])
async def test_it_ticks_when_the_core_wants_it_and_not_before(floor_s: float) -> None:
    stage = Stage(floor_s)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.driver.keep_time)
        began = anyio.current_time()
        stage.core.due = began + 10.0
        stage.driver.step("late")
        stage.core.due = began + 0.01
        stage.driver.step("early")
        await eventually("a tick", lambda: "tick" in stage.done)
        assert anyio.current_time() - began >= max(0.01, floor_s) - 0.001
        tasks.cancel_scope.cancel()


async def test_a_tick_that_is_due_by_a_clock_that_runs_slower_comes_when_that_clock_says_so() -> None:
    stage = Stage()
    began = anyio.current_time()
    stage.driver._now = lambda: began + (anyio.current_time() - began) * 0.5  # pyright: ignore[reportPrivateUsage]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.driver.keep_time)
        stage.core.due = began + 0.02
        stage.driver.step("a")
        await eventually("a tick", lambda: "tick" in stage.done)
        assert anyio.current_time() - began >= 0.039
        tasks.cancel_scope.cancel()
