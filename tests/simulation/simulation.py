"""One run: the services, the world, the faults, the checker; from a seed to a verdict."""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from podyard.bench.checking.checker import Checker
from podyard.bus.bootstrap import config_of
from podyard.proto import codec, streams, subjects
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from tests.memory_nats import MemoryServer
from tests.memory_nats.stream import Stored, Stream
from tests.simulation import ending, frozen
from tests.simulation.clock import Clock, ServerTimers
from tests.simulation.faults import FAULTS, Faults
from tests.simulation.process import Process
from tests.simulation.world import ARRIVING_S, NODES, PODS, World
from tests.support import verified_skips
from tests.support.read import read

PLACES = (
    ("queue", "queue-a"),
    ("queue", "queue-b"),
    ("binder", "binder-a"),
    ("binder", "binder-b"),
    ("scheduler", "scheduler-a"),
    ("scheduler", "scheduler-b"),
    ("scheduler", "scheduler-c"),
)
QUIET_FROM_S = 85.0
"""Every fault is over by then."""
LOOK_EVERY_S = 5.0
END_S = 230.0
"""Everything must be settled by then: without the queue's flush after 5 minutes."""
TRACE_LINES = 60


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is made of."""

    seed: int
    pods: int = PODS
    nodes: int = NODES
    faults: int = FAULTS
    arriving_s: float = ARRIVING_S
    """How long pods keep coming."""
    quiet_from_s: float = QUIET_FROM_S
    """No fault begins or ends later."""
    crashing: str = ""
    """An instance that crashes in its first life ..."""
    crash_at: int = 0
    """... before its effect of this number."""
    keep_history: bool = False
    """Whether the verdict brings the whole history."""

    def run(self, sabotage: Callable[["Simulation"], None] | None = None) -> "Verdict":
        """Play it."""
        return Simulation(self, sabotage).run()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a run showed."""

    seed: int
    violations: tuple[str, ...]
    digest: str
    """Of the whole history: equal for equal seeds."""
    counts: dict[str, int]
    ended_s: float
    """Virtual seconds until everything was settled."""
    trace: tuple[str, ...] = ()
    """The last lines before the first violation, faults and starts; or the whole history."""
    blind: tuple[str, ...] = ()
    """What a sabotage aimed at in vain (`aims`)."""


class Simulation:
    """Made once a process: it takes the process' time and chance for itself (`frozen`)."""

    def __init__(self, plan: Plan, sabotage: Callable[["Simulation"], None] | None = None) -> None:
        """:param sabotage: switches off what should prevent violations, to show that the checker sees them"""
        self.plan = plan
        self.clock = Clock(plan.seed)
        frozen.freeze(self.clock, plan.seed)
        self._listen_to_logs()
        self.server = MemoryServer(ServerTimers(self.clock))
        for spec in streams.ALL_STREAMS:
            self.server.streams[spec.name] = Stream(config_of(spec), self.clock.now)
        self.checker = Checker()
        self.world = self._make_world()
        self.server.on_stored = self._stored
        self.processes = self._make_processes()
        self.faults = Faults(self.clock, self.server, self.processes, self.tell, self._lose_cluster)
        self._history: list[str] = []
        self._hash = hashlib.sha256()
        self._first_wrong: int | None = None
        self._listed: QueueListReply | None = None
        self._sabotaged = sabotage is not None
        self._reads = 0
        verified_skips.verify(plan.seed % 2 == 0)
        if sabotage is not None:
            sabotage(self)

    def _make_world(self) -> Any:
        plan = self.plan
        return World(self.clock, self.server, plan.pods, plan.nodes, plan.arriving_s)

    def _make_processes(self) -> list[Process]:
        return [self.process(service, instance) for service, instance in PLACES]

    def process(self, service: str, instance: str, settings: msgspec.Struct | None = None) -> Process:
        """A place for a process of this simulation."""
        place = Process(self.clock, self.server, service, instance, self.tell, self.wrong, settings)
        place.reads_together = self.plan.seed % 4 == 3
        return place

    def _lose_cluster(self) -> None:
        """CLUSTER is made again, and what was in it is published again, in one of two ways."""
        same = self.clock.random.random() < 0.5
        self.tell(f"CLUSTER is made again, {'the same' if same else 'new'} uids come")
        self.checker.begin_anew()
        self.world.lose_all(same_uids=same)

    # ---- the history

    def tell(self, text: str) -> None:
        """A line of the history."""
        self._history.append(f"{self.clock.elapsed:10.4f} {text}")

    def wrong(self, text: str) -> None:
        """What must not happen."""
        self.checker.violations.append(f"at {self.clock.elapsed:.4f}: {text}")

    def _stored(self, stream: Stream, stored: list[Stored]) -> None:
        if stream.name != streams.CLUSTER.name:
            return
        reads = [read(message) for message in stored]
        for message in stored:
            self._history.append(f"{self.clock.elapsed:10.4f} @{message.sequence} {message.subject}")
            self._hash.update(message.payload)
        self.checker.stored(reads)
        if self.checker.violations and self._first_wrong is None:
            self._first_wrong = len(self._history)
        for message, one in zip(stored, reads, strict=True):
            self.world.stored(message, one.document, one.placement)

    def _listen_to_logs(self) -> None:
        """Errors of services are violations: a core's table that is not the sum of its bindings says so in
        the log.
        """

        def processor(logger: Any, method: str, event: dict[str, Any]) -> Any:
            self.wrong(f"logged: {event}")
            raise structlog.DropEvent

        structlog.configure(processors=[processor], wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
        logging.getLogger().handlers[:] = [_Errors(self.wrong)]
        logging.getLogger().setLevel(logging.ERROR)
        for name in ("podyard", "podyard.bus", "podyard.shell", "podyard.binder"):
            logging.getLogger(name).setLevel(logging.ERROR)

    # ---- the run

    def run(self) -> Verdict:
        """From the first pod to a settled cluster, or to the first second with a violation."""
        for process in self.processes:
            process.start()
            process.crash_at = self.plan.crash_at if process.instance == self.plan.crashing else None
            self.faults.watch_over(process)
        self.clock.later(1.0, self.world.begin)
        self.faults.plan(self.plan.faults)
        if not self._sabotaged:  # a sabotage says itself what is needed besides the faults
            self.faults.plan_ends(self.plan.faults)
        while self.clock.elapsed < self.plan.quiet_from_s and not self.checker.violations:
            self.clock.run(self.clock.elapsed + 1.0)
        if self.checker.violations:
            return self._verdict()
        unsettled = self._unsettled()
        while unsettled and self.clock.elapsed < END_S and not self.checker.violations:
            self.clock.run(self.clock.elapsed + LOOK_EVERY_S)
            unsettled = self._unsettled()
        for text in unsettled:
            self.wrong(text)
        return self._verdict()

    def _unsettled(self) -> list[str]:
        """Why the cluster is not settled: pods that are neither bound, nor parked with a reason and fitting
        nowhere.
        """
        self._ask_queue()
        self.clock.run(self.clock.elapsed + 1.0)
        pods = {name: pod for (resource, name), pod in self.world.objects.items() if resource == subjects.PODS}
        return ending.unsettled(self.checker, pods, self.world.placed, self._listed)

    def _ask_queue(self) -> None:
        """What the leader says is where; an outsider's request."""
        self._listed = None
        reply, connection = "_INBOX.simulation", self.server.connect()

        def answered(subject: str, to: str, payload: bytes, head: bytes) -> None:
            if payload:
                self._listed = codec.decode(QueueListReply, payload)

        self.server.subscribe(connection, reply, "", answered)
        self.server.publish(subjects.queue_verb("list"), codec.encode(QueueListRequest(limit=10_000)), reply)
        self.clock.later(0.9, lambda: self.server.disconnect(connection))

    def _verdict(self) -> Verdict:
        for line in self._history:
            self._hash.update(line.encode())
        live = Counter(bound.node for bound in self.checker.live.values())
        counts = {
            "pods": len(self.world.accepted),
            "bound": self.checker.bound,
            "released": self.checker.released,
            "commits": self.checker.commits,
            "live": sum(live.values()),
            "faults": self.faults.count,
            "waiting": 0 if self._listed is None else self._listed.counts.get("unschedulable", 0),
            "messages": len(self._history),
            **{f"effects of {process.instance}": process.effects for process in self.processes},
        }
        return Verdict(
            seed=self.plan.seed,
            violations=tuple(self.checker.violations),
            digest=self._hash.hexdigest(),
            counts=counts,
            ended_s=round(self.clock.elapsed, 3),
            trace=self._trace(),
        )

    def _trace(self) -> tuple[str, ...]:
        if self.plan.keep_history:
            return tuple(self._history)
        if not self.checker.violations:
            return ()
        end = self._first_wrong or len(self._history)
        notable = [line for line in self._history[:end] if "FAULT" in line or "start" in line or "end of" in line]
        notable += [line for line in self._history[:end] if "is killed" in line or "crashes" in line]
        notable += [line for line in self._history[:end] if "is to end" in line or "has ended" in line]
        return (
            *sorted(notable, key=lambda line: float(line.split()[0])),
            "...",
            *self._history[end - TRACE_LINES : end],
        )


class _Errors(logging.Handler):
    def __init__(self, wrong: Callable[[str], None]) -> None:
        super().__init__()
        self._wrong = wrong

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self._wrong(f"logged: {text}")
