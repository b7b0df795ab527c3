"""One term: from getting the lease to losing it. Feeds the core and carries out what it wants."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from podyard.bus import BusError, Outgoing, Subscription
from podyard.cluster.usages import Usages
from podyard.cluster.view import ClusterView
from podyard.descheduler import spans_and_events
from podyard.descheduler.core import effects, messages, queries
from podyard.descheduler.core.advice import Profiles
from podyard.descheduler.core.descheduler import Descheduler
from podyard.descheduler.core.doubtful import Doubtful
from podyard.descheduler.core.effects import Ask, Effect
from podyard.descheduler.core.evictions import EvictionFailed, EvictionResult
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.messages import Answer, Message
from podyard.descheduler.core.metrics_providers import wants_kubernetes
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.policy import Prometheus as Provider
from podyard.descheduler.core.triggers import Triggers
from podyard.descheduler.eviction_link import EvictionLink
from podyard.descheduler.instruments import Instruments
from podyard.descheduler.settings import DeschedulerSettings
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.moves import MoveRecord
from podyard.runtime.service import Service
from podyard.shell import causes, stream_reading
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.driver import Driver
from podyard.shell.event_recorder import Recorder
from podyard.shell.informer import EVERYTHING
from podyard.shell.reading import Reading
from podyard.shell.records import Records
from podyard.shell.snapshot import snapshot

if TYPE_CHECKING:
    from podyard.descheduler.prometheus import Prometheus

CYCLE: Final = "cycle"
"""Not ready after a cycle that failed, until one ends."""
UNDONE: Final = "two plugins undo each other's moves"
"""In the log, with both."""
OLDER_S: Final = 30.0
"""How long after an eviction a listing may be older than it. What is older for longer is another stream: this
one was made again."""
END_WITHIN_S: Final = 2.0
"""How long the eviction under way may still take when the term ends."""


class Term:
    """Owned by the task that runs `run`."""

    def __init__(
        self,
        service: Service[DeschedulerSettings],
        policy: Policy,
        plugins: Mapping[str, type[Plugin]],
        profiles: Profiles,
        instruments: Instruments,
        boundary: Boundary,
        events: Recorder,
        finish: Callable[[], None],
        told: Callable[[effects.CycleEnded | effects.CycleFailed], None] = lambda _: None,
    ) -> None:
        """
        :param plugins: by name
        :param profiles: make the scheduling profiles of a plan
        :param finish: ends the service, after its only cycle
        :param told: what each cycle came to
        """
        self._service = service
        self._settings = service.settings
        self._now = service.clock.now
        self._policy = policy
        self._instruments = instruments
        self._events = events
        self._finish = finish
        self._told = told
        self._evictions: EvictionLink | None = None
        """Of the cycle that is on."""
        provider = queries.provider(policy)
        self._prometheus = None if provider is None else _prometheus(provider, self._settings)
        self._usages = Usages() if wants_kubernetes(policy) else None
        """What agents say; None: nobody asks."""
        self._doubtful: frozenset[Doubtful] = frozenset()
        """What the last cycle found."""
        self._evicted_at = (0, 0.0)
        """CLUSTER sequence of the last eviction, and until when a listing has to hold it."""
        self._evicting = anyio.CancelScope()
        """The eviction under way."""
        self._records = Records(service.bus, log=service.log, lost=instruments.lost_records.inc)
        self._core = _core(policy, plugins, profiles, self._settings)
        self._view = ClusterView()
        """What is followed between cycles, where events start them."""
        self._reading = Reading(
            service.bus,
            self._view,
            EVERYTHING,
            service.health,
            service=service.name,
            on_changes=lambda changes: self._driver.step(messages.Changed(changes)),
            on_listed=lambda _: self._driver.step(messages.Relisted()),
            aside=boundary.aside,
        )
        self._driver: Driver[Message, Effect, Ask] = Driver(
            self._core,
            now=self._now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=self._cause,
            answer=self._answer,
            close=self._core.close,
            tick=messages.Tick(),
            wake_at=lambda: self._core.wake_at,
            apart=_computes,
        )

    async def run(self) -> None:
        """Run cycles until cancelled, or until the core has raised."""
        heard: Subscription | None = None
        try:
            async with self._driver as tasks:
                if self._usages is not None:
                    heard = await self._service.bus.subscribe(subjects.ALL_USAGE, self._on_usage)
                tasks.start_soon(self._bound_the_end)
                if self._settings.run_on != "interval":
                    tasks.start_soon(self._reading.run)
                tasks.start_soon(self._records.run)
                tasks.start_soon(self._events.run)
        finally:
            with anyio.move_on_after(END_WITHIN_S, shield=True):
                await self._records.flush()
            await self._events.flush()
            self._service.health.remove(CYCLE)
            if heard is not None:
                with anyio.move_on_after(END_WITHIN_S, shield=True):
                    await heard.close()

    def _on_usage(self, subject: str, payload: bytes, trace: str) -> None:
        """
        :raises codec.MessageError: if it cannot be used
        """
        del trace
        assert self._usages is not None, "who listens keeps what is heard"
        self._usages.take(subject, payload, self._now())

    def _cause(self, message: Message) -> Cause | None:
        return causes.of(message.changes, self._view.version_of) if isinstance(message, messages.Changed) else None

    # ---- what the core asks --------------------------------------------------------------------------------

    async def _answer(self, ask: Ask) -> Answer:
        match ask:
            case effects.List():
                return await self._list(ask)
            case effects.Query():
                assert self._prometheus is not None, "queries are asked where there is a provider"
                return messages.Queried(ask.ticket, await self._prometheus.ask(ask.queries, self._now()))
            case effects.Evict():
                return await self._evict(ask)

    async def _list(self, ask: effects.List) -> Answer:
        try:
            with anyio.fail_after(self._settings.listing_timeout_s):
                view = await snapshot(self._service.bus, service=self._service.name)
            earlier = await self._earlier()
        except (TimeoutError, BusError) as error:
            return messages.NotListed(ask.ticket, str(error) or "no answer in time")
        position, until = self._evicted_at
        if view.position < position and self._now() < until:
            return messages.NotListed(ask.ticket, f"it is older than the last eviction ({view.position} < {position})")
        trace = self._service.spans.new_trace(spans_and_events.CYCLE_SPAN)
        tells_failures = bool(self._policy.eviction_failure_event_notification)
        self._evictions = EvictionLink(self._service, self._events, trace, tells_failures=tells_failures)
        return messages.Listed(ask.ticket, view, earlier, {} if self._usages is None else self._usages.heard())

    async def _earlier(self) -> tuple[MoveRecord, ...]:
        """What is stored of moves, by earlier terms or by cycles on demand; what cannot be read is left out,
        and told.

        :raises TimeoutError: it was not listed in time
        :raises BusError: NATS has no such stream, or is not there
        """
        found: list[MoveRecord] = []
        with anyio.fail_after(self._settings.listing_timeout_s):
            stored = await stream_reading.listing(self._service.bus, streams.MOVES.name, (subjects.ALL_MOVES,))
        for delivery in stored:
            try:
                found.append(codec.decode(MoveRecord, delivery.payload))
            except MessageError as error:
                self._service.log.warning("a move cannot be read", subject=delivery.subject, reason=error.reason)
        return tuple(found)

    async def _evict(self, ask: effects.Evict) -> Answer:
        """A term that ends meanwhile ends its cycle after this eviction: one that is cut off may have been
        written, and nobody would be told who did it, and why."""
        assert self._evictions is not None, "a cycle evicts after its listing"
        await anyio.lowlevel.checkpoint_if_cancelled()  # none begins after the term
        result: EvictionResult = EvictionFailed("not answered before the term ended")
        with anyio.CancelScope(shield=True) as self._evicting:
            result = await self._evictions.evict(ask.eviction)
        self._instruments.answered(ask.eviction, result)
        if self._evictions.position > self._evicted_at[0]:
            self._evicted_at = self._evictions.position, self._now() + OLDER_S
        return messages.EvictionAnswered(ask.ticket, result)

    async def _bound_the_end(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self._evicting.deadline = anyio.current_time() + END_WITHIN_S

    # ---- what it wants done --------------------------------------------------------------------------------

    def _carry_out(self, wanted: Sequence[Effect]) -> None:
        for effect in wanted:
            match effect:
                case effects.List() | effects.Query() | effects.Evict():
                    self._driver.ask(effect)
                case effects.Remember():
                    self._remember(effect.moves)
                case effects.CycleEnded():
                    self._ended(effect)
                    self._told(effect)
                case effects.CycleFailed():
                    self._failed(effect)
                    self._told(effect)
                case effects.Finished():
                    self._finish()

    def _remember(self, moves: Sequence[MoveRecord]) -> None:
        for one in moves:
            subject = subjects.moves(one.namespace, one.kind, one.name)
            message_id = f"{one.id}-{one.known_at:.3f}"
            self._records.put(Outgoing(subject, codec.encode(one), trace=one.trace, message_id=message_id))
            if one.undoes:
                self._service.log.warning(
                    UNDONE,
                    pod=f"{one.namespace}/{one.pod}",
                    plugin=f"{one.profile}/{one.plugin}",
                    undoes=one.undoes,
                    nodes=[one.to_node, one.from_node],
                )

    def _ended(self, effect: effects.CycleEnded) -> None:
        assert self._evictions is not None, "a cycle begins with its listing"
        trace, self._evictions = self._evictions.trace, None
        record, end = effect.record, self._now()
        self._instruments.ended(record, end - effect.began)
        spans_and_events.cycle_ended(self._service.spans, trace, record, effect.began, end)
        outcome = spans_and_events.outcome(record, dry_run=self._settings.dry_run)
        self._service.health.set_ready(CYCLE, not record.ended, outcome)
        for step in record.steps:
            if step.attempts or step.error:
                self._service.log.info("plugin ran", **spans_and_events.summary(step))
        for one in record.doubtful:
            if one not in self._doubtful:
                self._service.log.warning(spans_and_events.DOUBTFUL, **one._asdict())
        self._doubtful = frozenset(record.doubtful)
        self._service.log.info(
            "cycle done",
            nodes=record.nodes,
            called_by=[one.told for one in record.causes],
            plugins=len(record.steps),
            evicted=record.evicted,
            skipped=record.skipped,
            dry_run=self._settings.dry_run,
            plan=self._settings.plan,
            **spans_and_events.spread(record),
            duration_s=round(end - effect.began, 3),
        )

    def _failed(self, effect: effects.CycleFailed) -> None:
        self._evictions = None
        if effect.error is not None:
            self._service.log.error("a cycle broke off", exc_info=effect.error)
        self._service.health.set_ready(CYCLE, False, effect.reason)
        self._instruments.failed(self._now() - effect.began)
        self._service.log.error("no cycle", reason=effect.reason)


def _computes(message: Message) -> bool:
    """Whether a cycle begins or goes on: that may take seconds."""
    return isinstance(message, messages.Listed | messages.Queried | messages.EvictionAnswered)


def _core(
    policy: Policy, plugins: Mapping[str, type[Plugin]], profiles: Profiles, settings: DeschedulerSettings
) -> Descheduler:
    by_events = settings.run_on != "interval"
    return Descheduler(
        policy,
        plugins,
        interval_s=None if settings.run_on == "events" else settings.interval_s,
        once=settings.only_one,
        dry_run=settings.dry_run,
        profiles=profiles,
        obey=settings.plan == "obey",
        triggers=Triggers(policy, plugins, gather_s=settings.gather_s, pause_s=settings.pause_s) if by_events else None,
        timer=time.monotonic,
    )


def _prometheus(provider: Provider, settings: DeschedulerSettings) -> "Prometheus":
    """Loaded where it is needed: the HTTP client takes 4 MB, and few policies name Prometheus."""
    from podyard.descheduler.prometheus import Prometheus

    return Prometheus(provider, settings)
