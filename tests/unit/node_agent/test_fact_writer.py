"""Facts on their way: what is put while an earlier one is being stored."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import structlog

from podyard.bus import Ack, Outgoing
from podyard.node_agent.fact_writer import FactWriter
from podyard.proto import subjects
from podyard.proto.facts import PodStatusFact

SUBJECT = subjects.pod_status("n1", "default", "web", "u1")
RUNNING = PodStatusFact(namespace="default", name="web", uid="u1", node="n1", phase="Running")


class SlowBus:
    """Stores when it is let."""

    def __init__(self) -> None:
        self.stored: list[Outgoing] = []
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[Ack]:
        self.asked.set()
        await self.go_on.wait()
        self.stored += messages
        return [Ack(sequence=len(self.stored), duplicate=False) for _ in messages]


async def test_a_pod_that_goes_while_its_first_fact_is_being_stored_leaves_none_behind():
    bus = SlowBus()
    done = asyncio.Event()

    def on_stored(count: int) -> None:
        del count
        if len(bus.stored) == 2:
            done.set()

    writer = FactWriter(
        bus,  # type: ignore[arg-type]  # as much of a bus as the writer needs
        lambda subject: 0,
        structlog.get_logger(),
        linger_s=0,
        on_stored=on_stored,
        on_trouble=lambda reason: None,
    )
    task = asyncio.create_task(writer.run())
    try:
        writer.put(SUBJECT, RUNNING)
        await asyncio.wait_for(bus.asked.wait(), 5)
        writer.put(SUBJECT, None)
        bus.go_on.set()
        await asyncio.wait_for(done.wait(), 5)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert [(message.deleted, message.expect) for message in bus.stored] == [(False, 0), (True, 1)]


async def test_a_pod_of_which_nothing_was_said_needs_no_marker():
    bus = SlowBus()
    writer = FactWriter(
        bus,  # type: ignore[arg-type]
        lambda subject: 0,
        structlog.get_logger(),
        linger_s=0,
        on_stored=lambda count: None,
        on_trouble=lambda reason: None,
    )
    writer.put(SUBJECT, RUNNING)
    writer.put(SUBJECT, None)
    assert writer.waiting == 0
