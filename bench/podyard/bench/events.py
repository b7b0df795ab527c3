"""`bench events`, first part: what a cluster event costs the core of a queue with ten thousand parked pods.

Receipt (decoding and folding into the view), classifying, the queue's own work and the making of the record
are told apart. Default plugins, the registries and indexes that the service has; CPU times of this thread, so
that other work on the machine counts little.
"""

import gc
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Final

import msgspec

from podyard.bench import event_kinds, parked
from podyard.bench.event_kinds import Kind
from podyard.bench.leading import Leading
from podyard.bench.parked import Cast
from podyard.framework.profile import Profile
from podyard.proto import codec, subjects
from podyard.queue import records
from podyard.queue.core import messages
from podyard.queue.core.effects import Effect, Judged

Progress = Callable[[str], None]
ALL_ROUNDS: Final = 5
"""Events that move all parked pods."""
NOT_COUNTED: Final = 5
"""First events of a kind, which fill caches."""


class EventCost(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of event. Microseconds, medians."""

    event: str
    wakes: int
    """Pods that it moves."""
    receive_us: float
    """Decoding the message and folding it into the view."""
    classify_us: float
    core_us: float
    """Finding, asking and moving parked pods."""
    record_us: float
    """Making the message that tells of it; none is made of an event that no rejecting plugin listens to."""


class CoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """Costs in the core, by what the events concern."""

    parked: int
    parked_per_s: int
    """How fast rejected pods are parked: signatures, classes and indexes included."""
    none_us: float
    """The dearest kind of event that concerns no parked pod."""
    one_us: float
    """The dearest kind that concerns one."""
    all_ms: float
    """One event that fits all parked pods: judging, moving and telling."""
    costs: tuple[EventCost, ...]


class UnexpectedMovesError(Exception):
    """An event of the benchmark moved other pods than it is meant to: the figures would be of something
    else.
    """

    def __init__(self, kind: str, wanted: int, moved: int) -> None:
        super().__init__(f"an event of kind {kind!r} moved {moved} parked pods, not {wanted}")


class _Times:
    """Readings of one kind of event."""

    def __init__(self) -> None:
        self.receive: list[float] = []
        self.classify: list[float] = []
        self.core: list[float] = []
        self.record: list[float] = []


def measure(profile: Profile, pods: int, progress: Progress = lambda text: None) -> CoreResult:
    """Costs of all kinds of events, with `pods` parked.

    :raises UnexpectedMovesError: if an event moves other pods than it should
    """
    found: dict[str, EventCost] = {}
    rates: list[float] = []
    for cast in dict.fromkeys(kind.cast for kind in event_kinds.KINDS):
        progress(f"parking {pods:,} pods")
        leading, seconds = _parked(profile, cast, pods)
        rates.append(pods / seconds)
        for kind in event_kinds.KINDS:
            if kind.cast is cast:
                progress(kind.name)
                found[kind.name] = _measure(leading, kind)
        gc.unfreeze()
    progress("an event that fits all")
    all_ms = _measure_all(_parked(profile, parked.short_of_room, pods)[0], pods)
    gc.unfreeze()
    costs = tuple(found[kind.name] for kind in event_kinds.KINDS)
    return CoreResult(
        parked=pods,
        parked_per_s=round(min(rates)),
        none_us=max(cost.core_us for cost in costs if not cost.wakes),
        one_us=max(cost.core_us for cost in costs if cost.wakes),
        all_ms=all_ms,
        costs=costs,
    )


def _parked(profile: Profile, cast: Cast, pods: int) -> tuple[Leading, float]:
    """A queue with `pods` of a cast parked, and how many seconds the parking took."""
    leading = Leading(profile)
    _reset_nodes(leading)
    seconds = leading.park(cast, pods)
    gc.collect()
    gc.freeze()
    return leading, seconds


def _reset_nodes(leading: Leading) -> None:
    for number in range(event_kinds.NODES):
        leading.happen(leading.put(subjects.NODES, event_kinds.node(number)))


def _measure(leading: Leading, kind: Kind) -> EventCost:
    times = _Times()
    _reset_nodes(leading)
    leading.park_again()
    for delivery in kind.events(leading):
        clock = time.thread_time
        begun = clock()
        changes = leading.view.apply(delivery)
        received = clock()
        for change in changes:
            _ = change.events
        classified = clock()
        effects = leading.core.step(messages.Changed(changes), leading.now)
        judged = clock()
        _encode(effects)
        recorded = clock()
        times.receive.append(received - begun)
        times.classify.append(classified - received)
        times.core.append(judged - classified)
        times.record.append(recorded - judged)
        _check(kind.name, kind.wakes, effects)
    return EventCost(
        event=kind.name,
        wakes=kind.wakes,
        receive_us=_us(times.receive),
        classify_us=_us(times.classify),
        core_us=_us(times.core),
        record_us=_us(times.record),
    )


def _measure_all(leading: Leading, pods: int) -> float:
    """A node grows so large that each of the parked pods fits on it. Milliseconds, median."""
    found: list[float] = []
    for _ in range(ALL_ROUNDS):
        _reset_nodes(leading)
        leading.park_again()
        changes = leading.view.apply(leading.put(subjects.NODES, event_kinds.node(0, cpu=1000)))
        begun = time.thread_time()
        effects = leading.core.step(messages.Changed(changes), leading.now)
        _encode(effects)
        found.append(time.thread_time() - begun)
        _check("fits all", pods, effects)
    return round(median(found) * 1e3, 1)


def _encode(effects: Iterable[Effect]) -> None:
    for effect in effects:
        if isinstance(effect, Judged):
            codec.encode(records.requeue_record(effect))


def _check(kind: str, wanted: int, effects: Iterable[Effect]) -> None:
    moved = sum(len(effect.moved) for effect in effects if isinstance(effect, Judged))
    if moved != wanted:
        raise UnexpectedMovesError(kind, wanted, moved)


def _us(seconds: list[float]) -> float:
    return round(median(seconds[NOT_COUNTED:]) * 1e6, 1)
