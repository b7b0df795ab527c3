"""One term as leader: from getting the lease to losing it, or to a scheduler that knows of a higher epoch.

Feeds the core and carries out what it wants, in its order.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import anyio

from podyard.bus import Delivery, Request, Subscription, finish_all
from podyard.cluster.view import ClusterView
from podyard.framework.event_registry import EventRegistry
from podyard.framework.profile import Profile
from podyard.proto import subjects
from podyard.proto.message import PodRef
from podyard.proto.queue_api import PopReply
from podyard.queue import assembly, attempt_spans, bare_events
from podyard.queue.accounts import Accounts
from podyard.queue.core import effects, messages
from podyard.queue.core.changes import is_pending
from podyard.queue.core.effects import Effect
from podyard.queue.core.messages import Message
from podyard.queue.earlier import Earlier
from podyard.queue.endpoints import QueueEndpoints
from podyard.queue.instruments import Instruments
from podyard.queue.nominations import Nominations
from podyard.queue.settings import QueueSettings
from podyard.runtime.service import Service
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.counting import Counting
from podyard.shell.driver import Driver
from podyard.shell.reading import Reading
from podyard.shell.records import Records

END_WITHIN_S: Final = 2.0
"""How long the end of a term may take: what was told last is still stored."""


class Term:
    """Owned by the task that runs `run`; callbacks of what it reads and of the bus run on the same event
    loop.
    """

    def __init__(
        self,
        service: Service[QueueSettings],
        settings: QueueSettings,
        view: ClusterView,
        reading: Reading,
        profiles: Sequence[Profile],
        registered: Mapping[str, EventRegistry],
        instruments: Instruments,
        boundary: Boundary,
        epoch: int,
        found: Earlier,
    ) -> None:
        """
        :param view: complete; kept up to date by `reading`, which tells this term of its changes
        :param registered: as of `assembly.registries`
        :param epoch: above all that earlier leaders had
        :param found: what earlier leaders left
        """
        self._service = service
        self._log = service.log.bind(epoch=epoch)
        self._instruments = instruments
        self._view = view
        self._reading = reading
        self._found = found
        self._profiles = [profile.name for profile in profiles]
        self.core = assembly.build_queue(
            profiles,
            registered,
            settings,
            epoch=epoch,
            view=view,
            instance=service.instance,
            new_trace=lambda keep: service.spans.new_trace(attempt_spans.ROOT, keep=keep),
            timer=time.perf_counter,
        )
        self._counting = Counting(lambda: self.core.counted, self._count)
        self._nominations = Nominations(service.bus, self._log, epoch, view.version_of, self._is_pending)
        self._records = Records(service.bus, log=self._log, lost=instruments.lost_records.inc)
        self._accounts = Accounts(self._records, instruments, service.spans, self._log, epoch)
        self._endpoints = QueueEndpoints(self.tell, boundary.refusal)
        self._bare: Request | None = None
        """The bare event that the core is being told of."""
        self._driver: Driver[Message, Effect, None] = Driver(
            self.core,
            now=service.clock.now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=self._cause,
            tick=messages.Tick(),
            wake_at=lambda: self.core.wake_at,
        )
        self.outranked_by = 0
        """The epoch above its own of which a scheduler told, and which ended the term; 0: none."""

    @property
    def raised(self) -> bool:
        """Whether the term ended because its core raised."""
        return self._driver.raised

    async def run(self) -> None:
        """Lead until cancelled, until a scheduler knows of a higher epoch, or until the core has raised."""
        opened: list[Subscription] = []
        try:
            async with self._driver as tasks:
                tasks.start_soon(self._nominations.run)
                tasks.start_soon(self._records.run)
                tasks.start_soon(self._counting.run)
                nominated = [
                    PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid) for pod in self._found.nominated
                ]
                self.tell(messages.Begin(self._found.records, nominated))
                await self._endpoints.serve(self._service.endpoints, opened)
                opened.append(await self._service.bus.subscribe(subjects.ALL_BARE_EVENTS, self._on_bare_event))
        finally:
            self._instruments.show_pools(None)
            self._endpoints.end()
            await finish_all(opened, END_WITHIN_S)
            with anyio.move_on_after(END_WITHIN_S, shield=True):
                await self._records.flush()

    def tell(self, message: Message) -> None:
        """Tell the core."""
        self._driver.step(message)
        self._counting.look()

    def _count(self) -> None:
        counted = self.core.take_counted()
        if counted is not None:
            self._instruments.counted(counted)

    def _on_bare_event(self, subject: str, payload: bytes, trace: str) -> None:
        happened = bare_events.read(payload, trace)
        self._bare = Request(subject, payload, trace)
        self.tell(happened)
        self._bare = None

    # ---- the core ------------------------------------------------------------------------------------------

    def _carry_out(self, wanted: Sequence[Effect]) -> None:
        judgements: list[effects.Judged] = []
        for kind, alike in groupby(wanted, type):
            together: list[Any] = list(alike)
            if kind is effects.Judged:
                judgements += together
            elif kind is effects.AttemptEnded:
                self._accounts.ended(together)
            else:
                for effect in together:
                    self._do(effect)
        if judgements:
            self._accounts.judged(judgements)

    def _do(self, effect: Effect) -> None:
        match effect:
            case effects.Reply(reply=reply):
                if isinstance(reply, PopReply):
                    self._instruments.pops.inc(len(reply.pods))
                self._endpoints.answer(effect)
            case effects.Declined():
                self._endpoints.answer(effect)
            case effects.Nominated(pod=pod, node=node):
                self._nominations.put(pod.namespace, pod.name, pod.uid, node=node, priority=effect.priority)
            case effects.NominationOver(pod=pod):
                self._nominations.put(pod.namespace, pod.name, pod.uid, over=True)
            case effects.PodGone(pod=pod):
                self._nominations.gone(pod.namespace, pod.name, pod.uid)
            case effects.Gated():
                self._accounts.gated(effect)
            case effects.LeftUnbound():
                attempt_spans.left_unbound(self._service.spans, effect)
            case effects.Purge(pod=pod):
                self._accounts.purge(pod)
            case effects.Began():
                self._began(effect)
            case effects.StepDown():
                self._step_down(effect)
            case effects.Rescued():
                self._accounts.rescued(effect)
            case effects.Differed():
                self._accounts.differed(effect)
            case effects.PluginFailed():
                self._accounts.plugin_failed(effect)
            case effects.Judged() | effects.AttemptEnded():
                raise AssertionError("told together")

    def _began(self, effect: effects.Began) -> None:
        self._instruments.show_pools(self.core)
        self._log.info("leads the queue", pods=effect.pods, position=self._view.position)

    def _step_down(self, effect: effects.StepDown) -> None:
        """Schedulers listen to the highest epoch only: whoever has it leads, or has to be outranked by the
        next term.
        """
        self._log.warning("steps down: a scheduler knows of a higher epoch", known=effect.epoch)
        self.outranked_by = effect.epoch
        self._driver.end()

    def _cause(self, message: Message) -> Cause | None:
        """What the core was told when it raised."""
        match message:
            case messages.Begin():
                return self._filling()
            case messages.Asked():
                return self._endpoints.cause(message.ticket)
            case messages.Changed(changes=changes):
                return causes.of(changes, self._view.version_of)
            case messages.Happened():
                return None if self._bare is None else Cause(self._bare)
            case messages.Tick() if self.core.answering is not None:
                return self._endpoints.cause(self.core.answering)
            case messages.Tick() | messages.Listed():
                return None

    def _filling(self) -> Cause | None:
        """The pod that was being taken in."""
        pod = self.core.filling
        if pod is None:
            return None
        return Cause(Delivery(subjects.object_(subjects.PODS, *pod.key), b"", pod.sequence))

    def _is_pending(self, uid: str) -> bool:
        return is_pending(self._view.pods_by_uid.get(uid), self._profiles)
