"""One term: from getting the lease to losing it. Feeds the core and carries out what it wants."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from podyard.bus import BusError
from podyard.descheduler import spans_and_events
from podyard.descheduler.core import effects, messages, queries
from podyard.descheduler.core.cycle import EvictionFailed, EvictionResult
from podyard.descheduler.core.descheduler import Descheduler
from podyard.descheduler.core.doubtful import Doubtful
from podyard.descheduler.core.effects import Ask, Effect
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.messages import Answer, Message
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.policy import Prometheus as Provider
from podyard.descheduler.instruments import Instruments
from podyard.descheduler.settings import DeschedulerSettings
from podyard.descheduler.writer import Writer
from podyard.runtime.service import Service
from podyard.shell.boundary import Boundary
from podyard.shell.driver import Driver
from podyard.shell.snapshot import snapshot

if TYPE_CHECKING:
    from podyard.descheduler.prometheus import Prometheus

CYCLE: Final = "cycle"
"""Not ready after a cycle that failed, until one ends."""
END_WITHIN_S: Final = 2.0
"""How long the eviction under way may still take when the term ends."""


class Term:
    """Owned by the task that runs `run`."""

    def __init__(
        self,
        service: Service[DeschedulerSettings],
        policy: Policy,
        plugins: Mapping[str, type[Plugin]],
        instruments: Instruments,
        boundary: Boundary,
        finish: Callable[[], None],
    ) -> None:
        """
        :param plugins: by name
        :param finish: ends the service, after its only cycle
        """
        self._service = service
        self._settings = service.settings
        self._now = service.clock.now
        self._policy = policy
        self._instruments = instruments
        self._finish = finish
        self._writer: Writer | None = None
        """Of the cycle that is on; it holds the cycle's listing."""
        provider = queries.provider(policy)
        self._prometheus = None if provider is None else _prometheus(provider, self._settings)
        self._doubtful: frozenset[Doubtful] = frozenset()
        """What the last cycle found."""
        self._evicting = anyio.CancelScope()
        """The eviction under way."""
        self._core = Descheduler(policy, plugins, interval_s=self._settings.interval_s, once=self._settings.once)
        self._driver: Driver[Message, Effect, Ask] = Driver(
            self._core,
            now=self._now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=lambda _: None,
            answer=self._answer,
            close=self._core.close,
            tick=messages.Tick(),
            wake_at=lambda: self._core.wake_at,
        )

    async def run(self) -> None:
        """Run cycles until cancelled, or until the core has raised."""
        try:
            async with self._driver as tasks:
                tasks.start_soon(self._bound_the_end)
        finally:
            self._service.health.remove(CYCLE)

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
            view = await snapshot(
                self._service.bus, service=self._service.name, timeout_s=self._settings.listing_timeout_s
            )
        except (TimeoutError, BusError) as error:
            return messages.NotListed(ask.ticket, str(error) or "no answer in time")
        trace = self._service.spans.new_trace(spans_and_events.CYCLE_SPAN)
        tells_failures = bool(self._policy.eviction_failure_event_notification)
        self._writer = Writer(self._service, view, trace, tells_failures=tells_failures)
        return messages.Listed(ask.ticket, view)

    async def _evict(self, ask: effects.Evict) -> Answer:
        """A term that ends meanwhile ends its cycle after this eviction: one that is cut off may have been
        written, and nobody would be told who did it, and why."""
        assert self._writer is not None, "a cycle evicts after its listing"
        await anyio.lowlevel.checkpoint_if_cancelled()  # none begins after the term
        result: EvictionResult = EvictionFailed("not answered before the term ended")
        with anyio.CancelScope(shield=True) as self._evicting:
            result = await self._writer.evict(ask.eviction)
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
                case effects.CycleEnded():
                    self._ended(effect)
                case effects.CycleFailed():
                    self._failed(effect)
                case effects.Finished():
                    self._finish()

    def _ended(self, effect: effects.CycleEnded) -> None:
        assert self._writer is not None, "a cycle begins with its listing"
        trace, self._writer = self._writer.trace, None
        record, end = effect.record, self._now()
        self._instruments.duration.observe(end - effect.began)
        self._instruments.count(record)
        spans_and_events.cycle_ended(self._service.spans, trace, record, effect.began, end)
        outcome = spans_and_events.outcome(record, dry_run=self._settings.dry_run)
        self._service.health.set_ready(CYCLE, True, outcome)
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
            plugins=len(record.steps),
            evicted=record.evicted,
            skipped=record.skipped,
            dry_run=self._settings.dry_run,
            duration_s=round(end - effect.began, 3),
        )

    def _failed(self, effect: effects.CycleFailed) -> None:
        self._writer = None
        if effect.error is not None:
            self._service.log.error("a cycle broke off", exc_info=effect.error)
        self._service.health.set_ready(CYCLE, False, effect.reason)
        self._instruments.cycles.labels("failed").inc()
        self._service.log.error("no cycle", reason=effect.reason)


def _prometheus(provider: Provider, settings: DeschedulerSettings) -> "Prometheus":
    """Loaded where it is needed: the HTTP client takes 4 MB, and few policies name Prometheus."""
    from podyard.descheduler.prometheus import Prometheus

    return Prometheus(provider, settings)
