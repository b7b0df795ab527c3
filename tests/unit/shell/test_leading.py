"""Who leads runs terms; who does not stands by, and says so."""

from collections.abc import Awaitable, Callable

import anyio
import prometheus_client
import pytest

from podyard.bus.lease import Lease
from podyard.runtime.health import Health
from podyard.runtime.probes import Found
from podyard.shell import leading
from podyard.shell.leading import CHECK, STANDS_BY, Leading


class OneLease:
    """A lease that is had with the epochs given, one after the other, and lost when a test says so."""

    service = "sample"

    def __init__(self, *epochs: int) -> None:
        self.overdue = -6.0
        self._epochs = list(epochs)
        self.lost = anyio.Event()

    def overdue_s(self) -> float:
        return self.overdue

    async def lead(self, main: Callable[[int], Awaitable[None]]) -> None:
        if not self._epochs:
            await anyio.sleep_forever()
        epoch = self._epochs.pop(0)
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await main(epoch)
                tasks.cancel_scope.cancel()

            tasks.start_soon(run)
            await self.lost.wait()
            self.lost = anyio.Event()
            tasks.cancel_scope.cancel()


class Stage:
    def __init__(self, *epochs: int, pause_s: float = 0.0, service: str = "") -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.health = Health(stall_limit_s=60.0, registry=self.registry)
        self.lease = OneLease(*epochs)
        self.story: list[str] = []
        lease: Lease = self.lease  # type: ignore[assignment]
        self.leading = Leading(lease, self.health, self.registry, pause=self._pause, pause_s=pause_s, service=service)

    async def _pause(self) -> None:
        self.story.append("pause")

    @property
    def said(self) -> tuple[bool, str]:
        return self.health.checks[CHECK][:2]

    @property
    def gauge(self) -> float | None:
        return self.registry.get_sample_value("podyard_sample_leading")

    @property
    def master(self) -> float | None:
        return self.registry.get_sample_value("leader_election_master_status", {"name": "sample"})


async def test_terms_follow_one_another_with_a_pause_in_between() -> None:
    stage = Stage(3, 8)

    async def term(epoch: int) -> None:
        stage.story.append(f"term {epoch}")
        assert stage.said == (True, f"leads, epoch {epoch}")
        assert stage.gauge == 1
        await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.leading.run, term)
        await anyio.wait_all_tasks_blocked()
        assert stage.story == ["term 3", "pause", "term 8", "pause"]
        assert stage.said == (True, STANDS_BY)
        assert stage.gauge == 0
        tasks.cancel_scope.cancel()


async def test_after_a_term_others_get_their_chance_at_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(3, 8, pause_s=5.0)

    async def sleep(seconds: float) -> None:
        stage.story.append(f"{seconds:g} s")

    async def term(epoch: int) -> None:
        stage.story.append(f"term {epoch}")

    monkeypatch.setattr(leading.anyio, "sleep", sleep)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.leading.run, term)
        await anyio.wait_all_tasks_blocked()
        assert stage.story == ["term 3", "5 s", "pause", "term 8", "5 s", "pause"]
        tasks.cancel_scope.cancel()


async def test_a_lease_that_is_lost_ends_the_term_and_what_it_said_of_itself() -> None:
    stage = Stage(1)

    async def term(epoch: int) -> None:
        stage.leading.says(False, "takes over")
        stage.story.append("takes over")
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.leading.run, term)
        await anyio.wait_all_tasks_blocked()
        assert (stage.said, stage.gauge) == ((False, "takes over"), 0)
        stage.leading.says(True, "serves")
        assert (stage.said, stage.gauge) == ((True, "serves"), 1)
        stage.lease.lost.set()
        await anyio.wait_all_tasks_blocked()
        assert (stage.said, stage.gauge) == ((True, STANDS_BY), 0)
        tasks.cancel_scope.cancel()


async def test_who_has_never_led_stands_by() -> None:
    stage = Stage()

    async def term(epoch: int) -> None:
        raise AssertionError(f"it does not lead: {epoch}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.leading.run, term)
        await anyio.wait_all_tasks_blocked()
        assert (stage.said, stage.gauge) == ((True, STANDS_BY), 0)
        assert stage.health.ready
        tasks.cancel_scope.cancel()


async def test_a_lease_with_a_name_of_its_own_does_not_name_the_metric() -> None:
    stage = Stage(service="other")
    assert stage.registry.get_sample_value("podyard_other_leading") == 0
    assert stage.gauge is None


async def test_what_a_term_raises_comes_out() -> None:
    stage = Stage(1)

    async def term(epoch: int) -> None:
        raise LookupError(epoch)

    with pytest.RaisesGroup(LookupError):
        await stage.leading.run(term)
    assert stage.said == (True, STANDS_BY)


async def test_a_term_that_outlives_its_lease_by_20_s_has_the_process_started_again() -> None:
    """Standing by is healthy, however long ago the last lease was."""
    stage = Stage(3)
    going_on = anyio.Event()

    def watched() -> Found:
        return stage.health.life()[-1]

    async def term(epoch: int) -> None:
        with anyio.CancelScope(shield=True):  # it hangs, whatever becomes of the lease
            await going_on.wait()

    fine = Found("leaderElection", True)
    assert watched() == fine
    stage.lease.overdue = 1000.0
    assert watched() == fine
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.leading.run, term)
        await anyio.wait_all_tasks_blocked()
        stage.lease.overdue = 20.0
        assert watched() == fine
        stage.lease.overdue = 20.6
        assert watched() == Found("leaderElection", False, "still leads 21 s after its lease ended")
        going_on.set()
        await anyio.wait_all_tasks_blocked()
        assert watched() == fine
        tasks.cancel_scope.cancel()


async def test_who_has_the_lease_is_the_master_also_before_it_leads() -> None:
    """As component-base v0.36.2 counts it: by the lease, not by what its owner can do."""
    stage = Stage(3, service="other")
    had: list[float | None] = [stage.master]
    began, end = anyio.Event(), anyio.Event()

    async def term(epoch: int) -> None:
        del epoch
        stage.leading.says(False, "takes over")
        had.append(stage.master)
        began.set()
        await end.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.leading.run, term)
        await began.wait()
        stage.lease.lost.set()
        await anyio.wait_all_tasks_blocked()
        had.append(stage.master)
        tasks.cancel_scope.cancel()
    assert had == [0, 1, 0]
