"""The simulated processes of a count: services whose messages are counted, and the client that makes the
load.
"""

from collections.abc import Callable, Sequence

import anyio

from podyard.bench import load
from podyard.bus import BusSettings
from tests.counts.tally import Tally
from tests.memory_nats import MemoryServer, connect
from tests.simulation.clock import Clock
from tests.simulation.loop import VirtualLoop
from tests.simulation.process import Process, Tell, Way

FACTS = ("cluster.", "placement.")
"""What subjects of stored messages in CLUSTER begin with."""


class Counted(Process):
    """One service, with the default configuration."""

    configuration = ""

    def __init__(self, clock: Clock, server: MemoryServer, service: str, tally: Tally, wrong: Tell) -> None:
        """:param wrong: told of what must not happen"""
        super().__init__(clock, server, service, f"{service}-0", lambda text: None, wrong)
        self._tally = tally

    def _way(self, loop: VirtualLoop) -> Way:
        self._tally.owns(loop, self.service)
        return CountedWay(self, loop, self._tally)


class CountedWay(Way):
    """Counts what passes between a process and the server: replies, acknowledgements and heartbeats, too."""

    def __init__(self, process: Process, loop: VirtualLoop, tally: Tally) -> None:
        super().__init__(process, loop)
        self._tally = tally
        self._service = process.service

    def up(self, subject: str, call: Callable[[], None]) -> None:
        if subject:
            self._tally.add("to_server")
        super().up(subject, call)

    def down(self, subject: str, call: Callable[[], None], lane: str = "") -> None:
        if subject:
            self._tally.add("from_server")
            if subject.startswith(FACTS):
                self._tally.add(f"receipts.{self._service}")
        super().down(subject, call, lane)


class Client(Counted):
    """Creates objects through the api as `podyard bench basic` does. Its messages count, what it does itself
    does not.
    """

    def _way(self, loop: VirtualLoop) -> Way:
        return CountedWay(self, loop, self._tally)

    def create(self, payloads: Sequence[bytes]) -> None:
        """Begin to send these requests."""
        loop = self.loop
        assert loop is not None, "start() comes first"
        loop.receive(lambda: self._graves.append(loop.create_task(self._send(payloads))))

    async def _send(self, payloads: Sequence[bytes]) -> None:
        assert self._bus is not None, "it connects at its start, which takes some virtual time"
        try:
            await load.create(self._bus, payloads)
        except Exception as error:  # boundary: nobody awaits this task
            self._wrong(f"the client failed: {error!r}")

    async def _main(self, session: str) -> None:
        assert self.way is not None
        settings = BusSettings(name=session, service="cli")
        async with connect(self._server, settings, wire=self.way) as bus:
            self._bus = bus
            await anyio.sleep_forever()
