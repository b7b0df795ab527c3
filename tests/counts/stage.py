"""The services in virtual time on the server in memory, a benchmark's client before them, and what passes
between them counted.

As in `podyard bench basic`: one api, queue, scheduler and binder, plain nodes and plain pods, no agents.
There are no faults, and what a service does takes no time: so a commit gives the same counts on every
machine, however busy it is. Batches are smaller than they are where work takes time, so that records and
fences weigh more.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from random import Random
from typing import Any

import structlog

from podyard.bench import basic, load
from podyard.binder.core.binder import Binder
from podyard.bus.bootstrap import config_of
from podyard.plugins.defaults import default_profile
from podyard.proto import codec, streams, subjects
from podyard.proto.placement import CommitRecord
from podyard.queue.core.queue import Queue
from podyard.scheduler.core.scheduler import Scheduler
from tests.counts import rows
from tests.counts.processes import Client, Counted
from tests.counts.tally import Tally
from tests.memory_nats import MemoryServer
from tests.memory_nats.stream import Stored, Stream
from tests.simulation import frozen
from tests.simulation.clock import Clock, ServerTimers

NODES = 200
PODS = 2000
SERVICES = ("api", "queue", "scheduler", "binder")
SEED = 1
BEGIN_S = 5.0
"""Virtual seconds for everybody to list and to lead."""
WITHIN_S = 60.0
"""Virtual seconds in which the pods must be bound."""
REST_S = 0.5
"""Virtual seconds after a load in which what is under way arrives."""
COMMITS = subjects.ALL_COMMITS.removesuffix(">")


def count(tally: Tally) -> dict[str, float]:
    """Counts of the services over `PODS` pods, each divided by their number.

    :raises RuntimeError: if pods were not bound, or a service logged an error
    """
    stage = Stage(tally)
    with _effects(tally), rows.counted(default_profile(), lambda number: tally.add_here("rows", number)):
        stage.begin()
        stage.bind(basic.WARM_UP_PODS, basic.WARM_UP_NAMESPACE)
        before = tally.counts.copy()
        stage.bind(PODS, basic.NAMESPACE)
    return {name: found / PODS for name, found in tally.since(before).items()}


class Stage:
    """Made once a process, whose time and chance it takes for itself."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._clock = Clock(SEED)
        frozen.freeze(self._clock, SEED, read_once=False)
        chance = Random(SEED)
        uuid.uuid4 = lambda: uuid.UUID(int=chance.getrandbits(128), version=4)
        self._wrong: list[str] = []
        """What must not happen in a run without faults."""
        _listen_to_logs(self._wrong)
        self._server = MemoryServer(ServerTimers(self._clock))
        for spec in streams.ALL_STREAMS:
            self._server.streams[spec.name] = Stream(config_of(spec), self._clock.now)
        self._server.on_stored = self._stored
        self._bound: Counter[str] = Counter()
        """By namespace."""
        given = (tally, self._wrong.append)
        self._client = Client(self._clock, self._server, "client", *given)
        self._processes = [*(Counted(self._clock, self._server, name, *given) for name in SERVICES), self._client]

    def begin(self) -> None:
        """Everybody starts, and the nodes are made."""
        for process in self._processes:
            process.start()
        self._clock.run(BEGIN_S)
        self._client.create(load.requests(load.node(number) for number in range(NODES)))
        self._clock.run(self._clock.elapsed + REST_S)

    def bind(self, pods: int, namespace: str) -> None:
        """Pods are created; ends when they are bound, and that has been told."""
        self._client.create(load.requests(load.pod(number, namespace) for number in range(pods)))
        end = self._clock.elapsed + WITHIN_S
        while self._bound[namespace] < pods and not self._wrong and self._clock.elapsed < end:
            self._clock.run(self._clock.elapsed + 0.01)
        self._clock.run(self._clock.elapsed + REST_S)
        if self._bound[namespace] < pods or self._wrong:
            bound = f"{self._bound[namespace]} of {pods} pods were bound within {WITHIN_S:.0f} virtual s"
            raise RuntimeError("; ".join(("counts of a run that failed mean nothing", bound, *self._wrong)))

    def _stored(self, stream: Stream, stored: list[Stored]) -> None:
        if stream.name != streams.CLUSTER.name:
            self._tally.add("stored_elsewhere", len(stored))
            return
        self._tally.add("stored", len(stored))
        for message in stored:
            if message.subject.startswith(COMMITS):
                record = codec.decode(CommitRecord, message.payload)
                self._bound.update(binding.namespace for binding in record.bindings)


@contextmanager
def _effects(tally: Tally) -> Iterator[None]:
    """The cores' effects are counted, at the doors through which their shells take them."""
    doors: tuple[tuple[type[Any], str, str], ...] = (
        (Queue, "step", "queue"),
        (Scheduler, "step", "scheduler"),
        (Binder, "step", "binder"),
    )
    before = [(core, name, getattr(core, name)) for core, name, _ in doors]
    for core, name, service in doors:
        setattr(core, name, _counting(getattr(core, name), f"effects.{service}", tally))
    try:
        yield
    finally:
        for core, name, method in before:
            setattr(core, name, method)


def _counting(method: Callable[..., Sequence[object]], counted: str, tally: Tally) -> Callable[..., Sequence[object]]:
    @wraps(method)
    def call(*given: Any) -> Sequence[object]:
        effects = method(*given)
        tally.add(counted, len(effects))
        return effects

    return call


def _listen_to_logs(errors: list[str]) -> None:
    """Errors that services log: what is counted would be of something else than plain work."""

    def processor(logger: Any, method: str, event: dict[str, Any]) -> Any:
        errors.append(f"a service logged {event}")
        raise structlog.DropEvent

    structlog.configure(processors=[processor], wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(f"a library logged {record.getMessage()}")  # type: ignore[method-assign]
    logging.getLogger().handlers[:] = [handler]
    logging.disable(logging.WARNING)
