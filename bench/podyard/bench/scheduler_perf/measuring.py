"""Meters around the part that is measured."""

import anyio
import msgspec

from podyard.bench import meters
from podyard.bench.scheduler_perf import histograms
from podyard.bench.scheduler_perf.histograms import Look
from podyard.bench.scheduler_perf.stacks import There
from podyard.bus import Bus
from podyard.proto import streams


class Reading(msgspec.Struct, frozen=True):
    """All meters at one moment."""

    cpu: dict[str, float]
    server: meters.ServerCounts | None
    """None: nobody can ask the NATS server."""
    stored: int
    told: Look
    commits: int
    released: int
    created: int
    deleted: int
    rounds: int


class Meters:
    """Where the meters of one stack are."""

    def __init__(self, bus: Bus, there: There) -> None:
        self._bus = bus
        self.pids = there.processes
        self._monitor_port = there.monitor_port
        self._places = there.places

    def cpu(self) -> dict[str, float]:
        """Seconds of CPU so far, by process."""
        return meters.cpu_seconds(self.pids)

    async def server(self) -> tuple[meters.ServerCounts | None, int]:
        """Messages through the NATS server, and how many CLUSTER has stored."""
        port = self._monitor_port
        counts = None if port is None else await anyio.to_thread.run_sync(meters.server_counts, port)
        return counts, await self._bus.last_sequence(streams.CLUSTER.name)

    async def told(self) -> Look:
        """What the services tell."""
        return await histograms.look(self._places)

    def memory(self) -> dict[str, float]:
        """MiB by process; pages that several share count in parts."""
        return meters.pss_mib(self.pids)
