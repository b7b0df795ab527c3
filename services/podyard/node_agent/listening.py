"""Listens to the heartbeats of nodes that other agents play. Shell."""

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

import anyio

from podyard.bus import Bus, BusError, Subscription
from podyard.node_agent.core.claims import Awaited
from podyard.node_agent.core.messages import Beat, Listening
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.signals import NodeHeartbeat

RETRY_S: Final = 1.0
"""Before a subscription that failed is tried again; its node is not taken for silent meanwhile."""
END_WITHIN_S: Final = 1.0


class Heartbeats:
    """Of one term. Owned by the task that runs `run`."""

    def __init__(self, bus: Bus, wanted: Mapping[str, Awaited], tell: Callable[[Beat | Listening], None]) -> None:
        """
        :param wanted: the nodes, by name, as they are at any moment
        :param tell: tells the core
        """
        self._bus = bus
        self._wanted = wanted
        self._tell = tell
        self._open: dict[str, Subscription] = {}
        self._changed = anyio.Event()

    def follow(self) -> None:
        """The nodes may be others now, or be awaited anew."""
        if self._wanted.keys() != self._open.keys() or not all(one.listening for one in self._wanted.values()):
            self._changed.set()

    async def run(self) -> NoReturn:
        """Listen until cancelled."""
        try:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                await self._change()
        finally:
            with anyio.move_on_after(END_WITHIN_S, shield=True):
                for subscription in self._open.values():
                    await subscription.close()

    async def _change(self) -> None:
        for node in [one for one in self._open if one not in self._wanted]:
            await self._open.pop(node).close()
        for node in [name for name, one in self._wanted.items() if name not in self._open or not one.listening]:
            if node not in self._open:
                try:
                    self._open[node] = await self._bus.subscribe(subjects.heartbeat(node), self._on_beat)
                except BusError:
                    self._changed.set()
                    await anyio.sleep(RETRY_S)
                    return
            self._tell(Listening(node))

    def _on_beat(self, subject: str, payload: bytes, trace: str) -> None:
        del trace
        node = subjects.parse_heartbeat(subject)
        if codec.decode(NodeHeartbeat, payload).node != node:
            raise MessageError("NodeHeartbeat", f"names another node than its subject, {node} - at `$.node`")
        self._tell(Beat(node))
