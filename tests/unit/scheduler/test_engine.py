"""The engine: whoever waits for the core to do something is woken, however many wait."""

import anyio
import prometheus_client

from podyard.scheduler.core.messages import Listed
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments
from podyard.telemetry.tracing import Spans
from tests.unit.framework.builders import make_node
from tests.unit.scheduler.play import Play


async def test_all_who_wait_for_progress_are_woken_by_the_next() -> None:
    instruments = Instruments(prometheus_client.CollectorRegistry())
    engine = Engine(Play(make_node("a")).core, spans=Spans(), instruments=instruments, slice_s=0.005)
    woken: list[str] = []

    async def wait(name: str) -> None:
        await engine.progress()
        woken.append(name)
        await engine.progress()
        woken.append(f"{name} again")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, "pop")
            tasks.start_soon(wait, "preemption")
            await anyio.wait_all_tasks_blocked()
            engine.step(Listed())
            await anyio.wait_all_tasks_blocked()
            assert sorted(woken) == ["pop", "preemption"]
            engine.step(Listed())
    assert len(woken) == 4
