"""Meters around the part that is measured."""

from collections.abc import Mapping, Sequence

import anyio
import msgspec

from podyard.bench import meters
from podyard.bench.scheduler_perf import histograms
from podyard.bench.scheduler_perf.histograms import Look
from podyard.bus import Bus
from podyard.proto import streams


class Reading(msgspec.Struct, frozen=True):
    """All meters at one moment."""

    cpu: dict[str, float]
    server: meters.ServerCounts
    stored: int
    told: Look
    commits: int
    released: int
    created: int
    deleted: int
    rounds: int


class Meters:
    """Where the meters of one stack are.

    :param pids: processes by name, NATS server and client among them
    :param places: where services serve HTTP
    """

    def __init__(self, bus: Bus, pids: Mapping[str, int], monitor_port: int, places: Sequence[str]) -> None:
        self._bus = bus
        self.pids = dict(pids)
        self._monitor_port = monitor_port
        self._places = tuple(places)

    def cpu(self) -> dict[str, float]:
        """Seconds of CPU so far, by process."""
        return meters.cpu_seconds(self.pids)

    async def server(self) -> tuple[meters.ServerCounts, int]:
        """Messages through the NATS server, and how many CLUSTER has stored."""
        counts = await anyio.to_thread.run_sync(meters.server_counts, self._monitor_port)
        return counts, await self._bus.last_sequence(streams.CLUSTER.name)

    async def told(self) -> Look:
        """What the services tell."""
        return await histograms.look(self._places)

    def memory(self) -> dict[str, float]:
        """MiB by process; pages that several share count in parts."""
        return meters.pss_mib(self.pids)
