"""Whose heartbeats are listened to."""

import asyncio
from contextlib import suppress

from podyard.node_agent.core.claims import Claims, Patience, Player
from podyard.node_agent.core.messages import Beat, Listening
from podyard.node_agent.listening import Heartbeats
from podyard.proto.facts import NodeStatusFact

OTHERS = NodeStatusFact(node="n1", node_uid="uid-n1", session="agent-a", lease="lease-a")


class Opened:
    """A subscription."""

    async def close(self) -> None:
        pass


class QuietBus:
    """Counts who subscribes."""

    def __init__(self) -> None:
        self.subscribed: list[str] = []

    async def subscribe(self, subject: str, handler: object) -> Opened:
        del handler
        self.subscribed.append(subject)
        return Opened()


async def test_a_node_that_is_awaited_anew_within_one_step_is_listened_to():
    claims, bus, told = Claims(Player("agent-b", "lease-b"), Patience()), QuietBus(), asyncio.Event()

    def tell(message: Beat | Listening) -> None:
        claims.listens(message.node, 0.0)
        told.set()

    def awaits() -> None:
        claims.judge("n1", OTHERS, 1, playing=False, now=0.0)
        told.clear()
        heartbeats.follow()

    heartbeats = Heartbeats(bus, claims.awaited, tell)  # type: ignore[arg-type]  # as much of a bus as it needs
    task = asyncio.create_task(heartbeats.run())
    try:
        awaits()
        await asyncio.wait_for(told.wait(), 5)
        claims.forget("n1")
        awaits()
        await asyncio.wait_for(told.wait(), 5)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert claims.awaited["n1"].listening
    assert bus.subscribed == ["heartbeat.n1"]
