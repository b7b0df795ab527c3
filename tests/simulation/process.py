"""A simulated process: one service on an event loop of its own, and its way to the server."""

import importlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import anyio
import msgspec
import prometheus_client
import structlog

from podyard.bus import BusSettings
from podyard.configuration import files
from podyard.runtime.clock import Clock as SteadyClock
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.pages import Pages
from podyard.runtime.service import Service, ServiceDefinition
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import Spans
from tests.memory_nats import MemoryBus, MemoryServer, connect
from tests.simulation.clock import Clock
from tests.simulation.loop import VirtualLoop

QUICKEST_S = 0.0001
USUAL_S = 0.0004
"""Delays of a message on its way, uniform between these two unless the network is slow."""

ENDS_WITHIN_S = ServiceSettings().shutdown_timeout_s

CONFIGURATION = Path(__file__).with_name("scheduler.yaml")
files.read = cache(files.read)  # every process reads it at its start

Tell = Callable[[str], None]


class Network:
    """What is wrong with one process' network at the moment."""

    def __init__(self) -> None:
        self.up_held = False
        """What it sends does not arrive before that ends (the sender's kernel keeps it)."""
        self.down_held = False
        self.loss = 0.0
        """Share of messages that are lost, each direction."""
        self.repeat = 0.0
        """Share of requests to services that arrive a second time, later."""
        self.slow_s = 0.0
        """Longest further delay of a message."""


class Way:
    """The `Wire` of one process, from its start to its end. Every `up` is an effect, before which the process
    may crash.
    """

    def __init__(self, process: "Process", loop: VirtualLoop) -> None:
        self._process = process
        self._loop = loop
        self._clock = process.clock
        self._network = process.network
        self._chance = process.clock.random.random
        self._last_up = 0.0
        self._last_down: dict[str, float] = {}
        """When the last message of each lane arrives."""
        self._up_waiting: list[tuple[str, Callable[[], None]]] = []
        self._down_waiting: list[tuple[str, Callable[[], None]]] = []
        """By lane."""

    def up(self, subject: str, call: Callable[[], None]) -> None:
        """A message leaves the process."""
        if self._loop.dead or self._process.crashes_now(subject):
            return
        if self._network.up_held:
            self._up_waiting.append((subject, call))
        elif not self._lost(subject):
            self._send(subject, call)

    def down(self, subject: str, call: Callable[[], None], lane: str = "") -> None:
        """A message leaves the server."""
        if self._loop.dead:
            return
        if self._network.down_held:
            self._down_waiting.append((lane, call))
        elif not self._lost(subject):
            self._hand(lane, call)

    def release(self) -> None:
        """The partition is over: what was held goes on, in its order."""
        if not self._process.network.up_held:
            waiting, self._up_waiting = self._up_waiting, []
            for subject, call in waiting:
                self._send(subject, call)
        if not self._process.network.down_held:
            waiting, self._down_waiting = self._down_waiting, []
            for lane, call in waiting:
                self._hand(lane, call)

    def forget(self) -> None:
        """The connection is gone, and what was held with it."""
        self._up_waiting.clear()
        self._down_waiting.clear()

    def _lost(self, subject: str) -> bool:
        loss = self._network.loss
        return bool(loss and subject and self._chance() < loss)

    def _delay_s(self) -> float:
        slow_s = self._network.slow_s
        return QUICKEST_S + (USUAL_S - QUICKEST_S) * self._chance() + (slow_s * self._chance() if slow_s else 0.0)

    def _send(self, subject: str, call: Callable[[], None]) -> None:
        clock = self._clock
        self._last_up = max(self._last_up, clock.now + self._delay_s())
        self._process.note("->", subject)
        clock.at(self._last_up, call)
        repeat = self._network.repeat
        if repeat and subject.startswith("svc.") and self._chance() < repeat:
            clock.at(self._last_up + clock.random.uniform(0, 3), call)

    def _hand(self, lane: str, call: Callable[[], None]) -> None:
        arrives, before = self._clock.now + self._delay_s(), self._last_down.get(lane, 0.0)
        if arrives < before:
            arrives = before
        self._last_down[lane] = arrives
        self._clock.at(arrives, partial(self._loop.receive, call))


class Process:
    """One place for a process: started, killed, started again under the same instance name."""

    configuration: ClassVar[str] = str(CONFIGURATION)
    """KubeSchedulerConfiguration; "": the default one."""
    settings: ClassVar[dict[str, Any]] = {}
    """By service; the defaults of one that is not named."""

    def __init__(
        self,
        clock: Clock,
        server: MemoryServer,
        service: str,
        instance: str,
        tell: Tell,
        wrong: Tell,
        settings: msgspec.Struct | None = None,
    ) -> None:
        """
        :param settings: of this place alone; those of its service if None
        :param tell: notes a line in the history
        :param wrong: notes what must not happen
        """
        self.clock = clock
        self._settings = settings
        self.service = service
        self.instance = instance
        self.network = Network()
        self.reads_together = False
        """It reads all that has come at one go, as real ones do."""
        self.loop: VirtualLoop | None = None
        self.way: Way | None = None
        self.ahead_s = 0.0
        """How far its wall clock is ahead of all others; it stays so when the process is started again."""
        self.effects = 0
        """Messages it has sent since its start."""
        self.crash_at: int | None = None
        """It crashes instead of its effect of this number."""
        self._server = server
        self._tell = tell
        self._wrong = wrong
        self._starts = 0
        self._work: anyio.CancelScope | None = None
        self._bus: MemoryBus | None = None
        self._graves: list[Any] = []
        """What was killed stays: nothing of it may run again, not even its cleaning up."""

    @property
    def alive(self) -> bool:
        """Whether it runs, paused or not."""
        return self.loop is not None and not self.loop.dead

    @property
    def hears(self) -> bool:
        """Whether it hears the bus, and is heard."""
        held = self.network.up_held or self.network.down_held
        return self.alive and not self.paused and not held and self._bus is not None and self._bus.state.connected

    def plays(self, session: str) -> bool:
        """Whether what this session began goes on: it is of the process that runs now."""
        return self.alive and session == f"{self.instance}.{self._starts}"

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self.loop is not None and self.loop.paused

    def start(self) -> None:
        """A new process."""
        self._starts += 1
        self.effects, self.crash_at = 0, None
        loop = self.loop = VirtualLoop(self.clock, lambda text: self._wrong(f"{self.instance}: {text}"))
        self.way = self._way(loop)
        self._tell(f"{self.instance} starts ({self._starts})")
        main = self._main(f"{self.instance}.{self._starts}")
        loop.receive(lambda: self._graves.append(loop.create_task(main)))

    def _way(self, loop: VirtualLoop) -> Way:
        """To the server and back; a process that is counted has another."""
        return Way(self, loop)

    def kill(self) -> None:
        """SIGKILL. What it has sent arrives."""
        if self.loop is None or self.loop.dead:
            return
        self._tell(f"{self.instance} is killed after {self.effects} effects")
        self._bury()
        if self._bus is not None:
            connection = self._bus.link.connection
            self.clock.later(2 * USUAL_S, lambda: self._server.disconnect(connection))

    def _bury(self) -> None:
        """Nothing of it runs any more."""
        assert self.loop is not None
        self._graves.append(self.loop)
        self.loop.dead = True
        self.crash_at = None

    def end(self) -> None:
        """SIGTERM: it ends in order, or is killed when that takes too long."""
        loop = self.loop
        if loop is None or loop.dead:
            return
        self._tell(f"{self.instance} is to end after {self.effects} effects")
        loop.receive(lambda: None if self._work is None else self._work.cancel())
        self.clock.later(ENDS_WITHIN_S, lambda: self.kill() if self.loop is loop else None)

    def crashes_now(self, subject: str) -> bool:
        """Count an effect; whether the process crashes instead of it."""
        self.effects += 1
        if self.crash_at != self.effects:
            return False
        self._tell(f"{self.instance} crashes before it sends {subject}")
        self.kill()
        return True

    def cut(self) -> None:
        """The connection is lost."""
        if self._bus is not None and self.loop is not None and self.alive and self._bus.state.connected:
            bus, way = self._bus, self.way
            assert way is not None
            way.forget()
            self.loop.receive(lambda: bus.link.cut("cut"))

    def restore(self) -> None:
        """The connection can be made again. A paused process learns of both later."""
        if self._bus is not None and self.loop is not None and self.alive:
            bus = self._bus
            self.loop.receive(lambda: None if bus.state.connected else bus.link.restore())

    def note(self, direction: str, subject: str) -> None:
        """A message, for the history."""
        self._tell(f"{self.instance} {direction} {subject}")

    def _wall_time(self) -> float:
        return self.clock.now + self.ahead_s

    async def _main(self, session: str) -> None:
        definition: ServiceDefinition[Any] = importlib.import_module(f"podyard.{self.service}.service").SERVICE
        registry = prometheus_client.CollectorRegistry()
        settings = ServiceSettings(instance=self.instance, scheduler_config=self.configuration)
        assert self.way is not None
        bus_settings = BusSettings(name=self.instance, service=self.service)
        steady = SteadyClock(wall=self._wall_time, steady=lambda: self.clock.now)
        work = self._work = anyio.CancelScope()
        try:
            async with connect(self._server, bus_settings, wire=self.way, now=steady.now) as bus:
                self._bus = bus
                bus.link.reads_together = self.reads_together
                service = Service(
                    definition,
                    process=settings,
                    settings=self._settings or self.settings.get(self.service) or definition.settings_type(),
                    bus=bus,
                    clock=steady,
                    health=Health(stall_limit_s=settings.stall_limit_s, registry=registry, now=steady.now),
                    pages=Pages(),
                    spans=Spans(),
                    metrics=registry,
                    log=structlog.get_logger().bind(instance=self.instance),
                    endpoints=Endpoints(bus, name=self.service, identity=session, version="0", description=""),
                    session=session,
                )
                with work:
                    await definition.main(service)
        except Exception as error:  # boundary: what ends a service ends its process
            self._wrong(f"{self.instance} failed: {error!r}")
            raise
        if work.cancelled_caught:
            self._tell(f"{self.instance} has ended in order")
            self._bury()
        else:
            self._wrong(f"{self.instance} ended")
