"""The driver: one message after the other, ticks in time on its clock, answers to what the core asks, and
silence after a core that raised."""

import threading
from collections.abc import Generator, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from podyard.shell import causes
from podyard.shell.causes import Cause
from podyard.shell.driver import Driver
from tests.support.waiting import eventually

LIMIT_S = 20


class Echo:
    """A core that wants done what it is told, and ticks at times that tests set. Told `bug`, it raises.

    Told `long`, it computes until it may end. Told `talk`, it begins a dialogue, which asks `what` and `why`,
    and then wants the answers done.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.due: float | None = None
        self.dialogue: Generator[str, str, str] | None = None
        self.closed = False
        self.computing = threading.Event()
        self.may_end = threading.Event()

    def step(self, message: str, now: float) -> Sequence[str]:
        self.told.append(message)
        if message.startswith("long"):
            self.computing.set()
            assert self.may_end.wait(LIMIT_S)
        if message.endswith("bug"):
            raise ValueError("a bug")
        if message == "tick":
            self.due = None
        if message == "talk":
            self.dialogue = self._talk()
            return [f"? {next(self.dialogue)}"]
        if message.startswith("answer to") and self.dialogue is not None:
            try:
                return [f"? {self.dialogue.send(message)}"]
            except StopIteration as end:
                return [end.value]
        return [message]

    def _talk(self) -> Generator[str, str, str]:
        try:
            return " and ".join(((yield "what"), (yield "why")))
        finally:
            self.closed = True

    def close(self) -> None:
        if self.dialogue is not None:
            self.dialogue.close()


class Stage:
    """A driver with its core; effects are noted, `answer` is told the core while `ask` is carried out."""

    def __init__(self, floor_s: float = 0.0, *, apart: Sequence[str] = ()) -> None:
        self.core = Echo()
        self.done: list[str] = []
        self.failures: list[tuple[str, str]] = []
        self.ahead_s = 0.0
        self.may_answer = anyio.Event()
        boundary: Any = self
        self.driver: Driver[str, str, str] = Driver(
            self.core,
            now=lambda: anyio.current_time() + self.ahead_s,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=lambda message: causes.unknown(message) if message != "unknown bug" else None,
            answer=self._answer,
            close=self.core.close,
            tick="tick",
            wake_at=lambda: self.core.due,
            floor_s=floor_s,
            apart=lambda message: message in apart,
        )

    def raised(self, cause: Cause, error: Exception) -> None:
        """As a boundary."""
        self.failures.append((cause.name, str(error)))

    def _carry_out(self, effects: Sequence[str]) -> None:
        for effect in effects:
            if effect == "ask":
                self.driver.step("answer")
            if effect.startswith("? "):
                self.driver.ask(effect.removeprefix("? "))
            self.done.append(effect)

    async def _answer(self, question: str) -> str:
        await self.may_answer.wait()
        return f"answer to {question}"


async def test_what_comes_while_effects_are_carried_out_is_told_afterwards() -> None:
    stage = Stage()
    stage.driver.step("ask")
    assert stage.done == ["ask", "answer"]
    assert stage.core.told == ["ask", "answer"]


async def test_a_core_that_raised_is_told_nothing_any_more_and_its_term_ends() -> None:
    stage = Stage()
    stage.core.due = anyio.current_time() + 0.01
    async with stage.driver:
        stage.driver.step("a")
        stage.driver.step("bug")
        assert stage.failures == [("(bug)", "a bug")]
        stage.driver.step("b")
    assert stage.driver.raised
    await anyio.sleep(0.03)
    assert stage.core.told == ["a", "bug"]
    assert len(stage.failures) == 1


async def test_a_message_of_which_nobody_can_say_what_it_was_is_named_by_its_kind() -> None:
    stage = Stage()
    stage.driver.step("unknown bug")
    assert stage.failures == [("(str)", "a bug")]


async def test_what_waits_behind_a_message_that_the_core_raises_on_is_not_told() -> None:
    stage = Stage()

    def carry_out(effects: list[str]) -> None:
        if effects == ["ask"]:
            stage.driver.step("bug")
            stage.driver.step("later")

    stage.driver._carry_out = carry_out  # type: ignore[assignment, method-assign]
    stage.driver.step("ask")
    assert stage.core.told == ["ask", "bug"]


async def test_what_runs_in_a_term_ends_with_it() -> None:
    stage = Stage()
    ended = False

    async def serve() -> None:
        nonlocal ended
        try:
            await anyio.sleep_forever()
        finally:
            ended = True

    async with stage.driver as tasks:
        tasks.start_soon(serve)
        await anyio.wait_all_tasks_blocked()
        stage.driver.end()
    assert ended
    assert stage.driver.over
    assert not stage.driver.raised


async def test_what_the_core_asks_is_carried_out_beside_the_rest_and_its_dialogue_goes_on_with_the_answers() -> None:
    stage = Stage()
    async with stage.driver:
        stage.driver.step("talk")
        await anyio.wait_all_tasks_blocked()
        stage.driver.step("other")
        assert stage.done == ["? what", "other"]
        stage.may_answer.set()
        await anyio.wait_all_tasks_blocked()
        assert stage.done == ["? what", "other", "? why", "answer to what and answer to why"]
        assert stage.core.closed, "it came to its end"
        stage.driver.end()


@pytest.mark.parametrize("how", ["it steps down", "the core raises", "the lease is lost"])
async def test_the_end_of_the_term_cancels_what_is_asked_and_closes_the_dialogue(how: str) -> None:
    stage = Stage()
    async with anyio.create_task_group() as lease:

        async def term() -> None:
            async with stage.driver:
                stage.driver.step("talk")

        lease.start_soon(term)
        await anyio.wait_all_tasks_blocked()
        assert not stage.core.closed
        match how:
            case "it steps down":
                stage.driver.end()
            case "the core raises":
                stage.driver.step("bug")
            case _:
                lease.cancel_scope.cancel()
        stage.may_answer.set()
    assert stage.core.closed
    assert [one for one in stage.core.told if one.startswith("answer")] == []


@pytest.mark.parametrize("floor_s", [0.0, 0.02])
async def test_it_ticks_when_the_core_wants_it_and_not_before(floor_s: float) -> None:
    stage = Stage(floor_s)
    async with stage.driver:
        began = anyio.current_time()
        stage.core.due = began + 10.0
        stage.driver.step("late")
        stage.core.due = began + 0.01
        stage.driver.step("early")
        await eventually("a tick", lambda: "tick" in stage.done)
        assert anyio.current_time() - began >= max(0.01, floor_s) - 0.001
        stage.driver.end()


async def test_a_tick_that_is_due_by_a_clock_that_runs_slower_comes_when_that_clock_says_so() -> None:
    stage = Stage()
    began = anyio.current_time()
    stage.driver._now = lambda: began + (anyio.current_time() - began) * 0.5  # pyright: ignore[reportPrivateUsage]
    async with stage.driver:
        stage.core.due = began + 0.02
        stage.driver.step("a")
        await eventually("a tick", lambda: "tick" in stage.done)
        assert anyio.current_time() - began >= 0.039
        stage.driver.end()


async def test_a_step_that_is_computed_apart_keeps_nobody_waiting_but_what_is_for_the_core() -> None:
    stage = Stage(apart=["long", "answer"])
    async with stage.driver:
        stage.driver.step("a")
        assert stage.done == ["a"], "it is not computed apart"
        stage.done.clear()
        stage.core.told.clear()
        stage.driver.step("long")
        stage.driver.step("ask")
        await eventually("it computes", stage.core.computing.is_set)
        assert (stage.core.told, stage.done) == (["long"], [])
        stage.core.may_end.set()
        await eventually("all is told", lambda: stage.done == ["long", "ask", "answer"])
        assert stage.core.told == ["long", "ask", "answer"]
        stage.driver.end()


async def test_a_term_that_ends_waits_for_the_step_that_is_computed_apart_and_closes_its_dialogue_then() -> None:
    stage = Stage(apart=["long"])

    async def end() -> None:
        stage.driver.end()
        assert not stage.core.closed, "a dialogue whose core is in a step cannot be closed"
        stage.core.may_end.set()

    async with stage.driver, anyio.create_task_group() as beside:
        stage.driver.step("talk")
        await eventually("it asks", lambda: stage.done == ["? what"])
        stage.driver.step("long")
        stage.driver.step("never told")
        await eventually("it computes", stage.core.computing.is_set)
        beside.start_soon(end)
    assert stage.core.closed
    assert (stage.core.told, stage.done) == (["talk", "long"], ["? what"])


async def test_what_was_answered_when_the_lease_is_lost_is_computed_apart_and_carried_out() -> None:
    """Nothing that it asks then is answered."""
    stage = Stage(apart=["answer to what"])
    answered = list[str]()

    async def answer(question: str) -> str:
        await anyio.lowlevel.checkpoint_if_cancelled()
        with anyio.CancelScope(shield=True):
            await stage.may_answer.wait()
        answered.append(question)
        return f"answer to {question}"

    stage.driver._answer = answer  # pyright: ignore[reportPrivateUsage]
    async with anyio.create_task_group() as lease:

        async def term() -> None:
            async with stage.driver:
                stage.driver.step("talk")

        lease.start_soon(term)
        await anyio.wait_all_tasks_blocked()
        lease.cancel_scope.cancel()
        stage.may_answer.set()
    assert stage.core.told == ["talk", "answer to what"]
    assert stage.done == ["? what", "? why"]
    assert answered == ["what"]
    assert stage.core.closed


async def test_a_core_that_raises_apart_is_told_nothing_any_more_and_its_term_ends() -> None:
    stage = Stage(apart=["bug"])
    async with stage.driver:
        stage.driver.step("bug")
        stage.driver.step("b")
    assert stage.driver.raised
    assert (stage.core.told, stage.failures) == (["bug"], [("(bug)", "a bug")])
