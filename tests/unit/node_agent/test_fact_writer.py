"""Facts on their way: what is put while an earlier one is being stored."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
import structlog

from podyard.bus import Ack, Conflict, Delivery, Outgoing
from podyard.node_agent.fact_writer import FactWriter
from podyard.proto import codec, subjects
from podyard.proto.facts import NodeStatusFact, PodStatusFact

SUBJECT = subjects.pod_status("n1", "default", "web", "u1")
RUNNING = PodStatusFact(namespace="default", name="web", uid="u1", node="n1", phase="Running")


def writer_to(
    bus: object,
    *,
    on_stored: Callable[[int], None] = lambda count: None,
    on_trouble: Callable[[str], None] = lambda reason: None,
) -> FactWriter:
    """:param bus: as much of one as the test needs"""
    return FactWriter(
        bus,  # type: ignore[arg-type]
        lambda subject: 0,
        structlog.get_logger(),
        linger_s=0,
        on_stored=on_stored,
        on_trouble=on_trouble,
    )


@asynccontextmanager
async def running(writer: FactWriter) -> AsyncGenerator[None]:
    task = asyncio.create_task(writer.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


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

    writer = writer_to(bus, on_stored=on_stored)
    async with running(writer):
        writer.put(SUBJECT, RUNNING)
        await asyncio.wait_for(bus.asked.wait(), 5)
        writer.put(SUBJECT, None)
        bus.go_on.set()
        await asyncio.wait_for(done.wait(), 5)
    assert [(message.deleted, message.expect) for message in bus.stored] == [(False, 0), (True, 1)]


async def test_what_is_said_of_a_pod_is_settled_when_it_is_stored():
    bus = SlowBus()
    writer = writer_to(bus)
    async with running(writer):
        await asyncio.wait_for(writer.settled("u1"), 5)
        writer.put(SUBJECT, RUNNING)
        settled = asyncio.create_task(writer.settled("u1"))
        await asyncio.wait_for(bus.asked.wait(), 5)
        await asyncio.wait_for(writer.settled("another"), 5)
        assert not settled.done()
        bus.go_on.set()
        await asyncio.wait_for(settled, 5)
        assert len(bus.stored) == 1


async def test_a_pod_of_which_nothing_was_said_needs_no_marker():
    bus = SlowBus()
    writer = writer_to(bus)
    writer.put(SUBJECT, RUNNING)
    writer.put(SUBJECT, None)
    assert writer.waiting == 0


class TakenBus:
    """The node's status is another agent's word by now."""

    def __init__(self, there: NodeStatusFact) -> None:
        self._there = Delivery(subjects.node_status("n1"), codec.encode(there), 7, 0.0)
        self.asked: list[int | None] = []

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[Conflict | Ack]:
        self.asked += [message.expect for message in messages]
        return [
            Ack(sequence=8, duplicate=False) if message.expect == 7 else Conflict(message.subject, last_sequence=7)
            for message in messages
        ]

    async def get(self, stream: str, subject: str) -> Delivery:
        return self._there


CLAIM = NodeStatusFact(node="n1", node_uid="u1", session="us")


@pytest.mark.parametrize(
    ("there", "over", "asked"),
    [
        pytest.param("another", 5, [5], id="another was quicker with its claim"),
        pytest.param("another", None, [0], id="another has claimed what was ours"),
        pytest.param("another", 7, [7], id="it is the version that is claimed"),
        pytest.param("us", None, [0, 7], id="our own word, of which no answer came"),
        pytest.param("", 5, [5, 7], id="somebody who plays nothing"),
    ],
)
async def test_nothing_is_written_over_the_word_of_another_agent_but_a_claim_of_that_very_version(
    there: str, over: int | None, asked: list[int]
):
    bus = TakenBus(NodeStatusFact(node="n1", node_uid="u1", session=there, at="2026-11-24T00:00:00Z"))
    settled = asyncio.Event()
    writer = writer_to(bus, on_trouble=lambda reason: settled.set())
    async with running(writer):
        writer.put(subjects.node_status("n1"), CLAIM, claims_over=over)
        await asyncio.wait_for(settled.wait(), 5)
    assert bus.asked == asked
