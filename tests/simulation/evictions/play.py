"""One run of evictions: two apis, two deschedulers, people, a world of workloads with budgets, faults, and
the checker; from a seed to a verdict."""

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import structlog

from podyard.bus.bootstrap import config_of
from podyard.descheduler.settings import DeschedulerSettings
from podyard.proto import streams
from tests.memory_nats import MemoryServer
from tests.memory_nats.stream import Stored, Stream
from tests.simulation import frozen
from tests.simulation.clock import Clock, ServerTimers
from tests.simulation.evictions.checker import EvictionChecker, Read
from tests.simulation.evictions.world import EvictionWorld
from tests.simulation.faults import Faults
from tests.simulation.process import Process

PLACES = (
    ("api", "api-a"),
    ("api", "api-b"),
    ("descheduler", "descheduler-a"),
    ("descheduler", "descheduler-b"),
)
LIMIT = 3
POLICY = f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: {LIMIT}
profiles:
- name: old
  pluginConfig:
  - {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: 5}}}}
  plugins: {{deschedule: {{enabled: [PodLifeTime]}}}}
"""
INTERVAL_S = 4.0
FAULTS = 16
END_S = 90.0


class EvictionRun:
    """Made once a process: it takes the process' time and chance for itself (`frozen`)."""

    def __init__(
        self, seed: int, sabotage: Callable[["EvictionRun"], None] | None = None, faults: int = FAULTS
    ) -> None:
        """:param sabotage: switches off what should prevent violations, to show that the checker sees them"""
        self.seed = seed
        self.clock = Clock(seed)
        frozen.freeze(self.clock, seed)
        anyio.to_thread.run_sync = _at_once  # type: ignore[assignment]
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        logging.getLogger().setLevel(logging.CRITICAL)
        logging.getLogger("podyard").setLevel(logging.CRITICAL)
        self.server = MemoryServer(ServerTimers(self.clock))
        for spec in streams.ALL_STREAMS:
            self.server.streams[spec.name] = Stream(config_of(spec), self.clock.now)
        self.checker = EvictionChecker(LIMIT)
        self.world = EvictionWorld(self.clock, self.server)
        self.server.on_stored = self._stored
        self.history: list[str] = []
        policy = Path(tempfile.mkdtemp()) / "policy.yaml"
        policy.write_text(POLICY, encoding="utf-8")
        Process.settings = {"descheduler": DeschedulerSettings(policy=str(policy), interval_s=INTERVAL_S)}
        self.processes = [
            Process(self.clock, self.server, service, instance, self.tell, self.wrong) for service, instance in PLACES
        ]
        self.faults = Faults(self.clock, self.server, self.processes, self.tell, lambda: None)
        del self.faults.kinds["stream made again"]
        del self.faults.kinds["repeats"]  # people repeat by themselves; a refusal that is undone by one is no fault
        self._faults = faults
        if sabotage is not None:
            sabotage(self)

    def tell(self, text: str) -> None:
        """A line of the history."""
        self.history.append(f"{self.clock.elapsed:10.4f} {text}")

    def wrong(self, text: str) -> None:
        """What must not happen."""
        self.checker.violations.append(f"at {self.clock.elapsed:.4f}: {text}")

    def _stored(self, stream: Stream, stored: list[Stored]) -> None:
        if stream.name != streams.CLUSTER.name:
            return
        reads = [Read(message) for message in stored]
        for read in reads:
            self.history.append(
                f"{self.clock.elapsed:10.4f} @{read.message.sequence} {read.message.subject} {read.who} {read.why}"
            )
        self.checker.stored(reads)
        for read in reads:
            self.world.stored(read.message, read.document, deleted=read.deleted)

    def run(self) -> dict[str, int]:
        """From the first pod to the end, or to the first second with a violation; counts of what was done."""
        for process in self.processes:
            process.start()
            self.faults.watch_over(process)
        self.clock.later(1.0, lambda: self.world.begin(END_S - 15.0))
        self.faults.plan(self._faults, clocks=False)
        while self.clock.elapsed < END_S and not self.checker.violations:
            self.clock.run(self.clock.elapsed + 1.0)
        return {
            "charged": self.checker.charged,
            "asked": self.world.asked,
            "faults": self.faults.count,
            **{f"evicted by {who}": count for who, count in self.checker.by_who.items()},
        }


async def _at_once(work: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
    """In place of a thread: a simulation has one."""
    return work(*arguments)
