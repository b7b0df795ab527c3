"""One term: from getting the lease to losing it, or the fence. Feeds the core and carries out what it wants,
in its order.

Everything is read anew in each term, after the fence was moved: what an earlier term knew is gone with it.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from podyard.binder import bind_spans
from podyard.binder.core import effects
from podyard.binder.core.binder import Binder
from podyard.binder.core.effects import Ask, Effect, Message
from podyard.binder.debug import Shown
from podyard.binder.instruments import Instruments
from podyard.binder.reading import ListedView
from podyard.binder.settings import BinderSettings
from podyard.binder.writer import Writer
from podyard.bus import Request, Subscription, TemporaryError, finish_all
from podyard.extenders import NO_CLIENTS, ExtenderClients
from podyard.framework.extenders import Extender
from podyard.framework.profile import Profile
from podyard.proto import codec, subjects
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.traces import is_sampled
from podyard.runtime.service import Service
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.driver import Driver
from podyard.shell.informer import Followed
from podyard.shell.leading import Leading
from podyard.shell.reading import Reading
from podyard.shell.tickets import Tickets

CHANGES_LEADER: Final = "the binder changes its leader; what it was writing may yet be applied"
END_WITHIN_S: Final = 1.0
"""How long the end of a term may wait for requests that are on their way."""
ASK_AGAIN_S: Final = 0.2
"""When who waited for the end of a term is to ask again: who takes over needs longer."""

WRITES_CHECK: Final = "writes"
"""Not ready while the last commit or move of the fence has no clear answer: no room in the stream, or NATS
silent."""


COMMITS_CHECK: Final = "commits"
"""Not ready while one commit after the other is not taken, though other writes are."""


class Term:
    """Owned by the task that runs `run`; callbacks of what it reads and of the bus run on the same event
    loop."""

    def __init__(
        self,
        service: Service[BinderSettings],
        profiles: Mapping[str, Profile],
        followed: Followed,
        instruments: Instruments,
        boundary: Boundary,
        leading: Leading,
        shown: Shown,
        number: int,
        *,
        clients: ExtenderClients = NO_CLIENTS,
        binding_extender: Extender | None = None,
    ) -> None:
        """
        :param leading: told when it serves, and why it does not yet
        :param shown: told of this term while it is on
        :param number: of the term in this process: makes its batch ids its own
        :param clients: for the extender that binds
        :param binding_extender: binds the pods that it is interested in; `None`: there is none
        """
        self._service = service
        self._log = service.log
        self._now = service.clock.now
        self._instruments = instruments
        self._boundary = boundary
        self._view = ListedView()
        self.core = Binder(
            self._view.cluster,
            profiles,
            holder=service.instance,
            session=f"{service.session}.{number}",
            child_trace=self._child_trace,
            binding_extender=binding_extender,
            set_aside=boundary.refusal,
            stopwatch=time.perf_counter,
        )
        self._clients = clients
        self._leading = leading
        self._shown = shown
        self._writer = Writer(service.bus, service.settings.commit_timeout_s, service.health.trouble(WRITES_CHECK))
        self._reading = Reading(
            service.bus,
            self._view,
            followed,
            service.health,
            service=service.name,
            on_changes=lambda changes: self._driver.step(effects.Changed(changes)),
            on_listed=lambda _: self._driver.step(effects.Listed(self._view.take_tombstones())),
            aside=boundary.aside,
            together=True,
            lasting=True,
        )
        self._tickets = Tickets[BindReply]()
        self._door: Subscription | None = None
        self._why_blocked = ""
        self._driver: Driver[Message, Effect, Ask] = Driver(
            self.core,
            now=self._now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=self._cause,
            answer=self._answer,
            tick=effects.Tick(),
            wake_at=lambda: self.core.wake_at,
        )

    async def run(self, lease_epoch: int) -> None:
        """Take over, serve, and return when deposed or when the core has raised; cancelled when the lease is
        lost."""
        self._leading.says(False, "taking over: moving the fence, then listing")
        self._instruments.waiting.set_function(lambda: 0 if self._driver.over else self.core.waiting)
        self._shown.term = (self.core, self._view.cluster)
        try:
            async with self._driver as self._tasks:
                self._driver.step(effects.Elected(lease_epoch))
        finally:
            self._shown.term = None
            self._service.health.remove(WRITES_CHECK)
            self._service.health.remove(COMMITS_CHECK)
            self._tickets.end()
            if self._door is not None:
                await finish_all([self._door], END_WITHIN_S)

    # ---- the core ------------------------------------------------------------------------------------------

    def _carry_out(self, wanted: Sequence[Effect]) -> None:
        for effect in wanted:
            self._do(effect)
        self._instruments.took(self.core.world.point_times.take())

    def _do(self, effect: Effect) -> None:
        match effect:
            case effects.Settled():
                now = self._now()
                kept = bind_spans.settled(self._service.spans, effect, now)
                self._instruments.settled(effect, now, kept)
            case effects.Reply():
                self._tickets.reply(effect.ticket, effect.reply)
            case effects.BeganToWait():
                bind_spans.began_to_wait(self._service.spans, effect, self._now())
            case effects.Committed():
                self._instruments.committed(effect)
                bind_spans.released(self._service.spans, effect)
            case (
                effects.Send() | effects.ReadBindings() | effects.ReadFence() | effects.Inspect() | effects.AskToBind()
            ):
                self._driver.ask(effect)
            case effects.StartListing():
                self._tasks.start_soon(self._reading.run)
            case effects.Relist():
                self._log.warning("lists again", reason=effect.reason)
                self._reading.informer.relist(effect.reason)
            case effects.Serve():
                self._tasks.start_soon(self._open_door)
            case effects.StepDown():
                self._step_down(effect)
            case effects.Blocked():
                self._blocked(effect)
            case effects.PassedOver():
                self._log.error("passes over what no binder wrote", subject=effect.subject, sequence=effect.sequence)
            case effects.FenceMoving():
                self._instruments.fence_moving(effect)
            case effects.CommitsFail():
                self._service.health.set_ready(COMMITS_CHECK, not effect.reason, effect.reason)
            case effects.PluginFailed():
                self._instruments.plugin_faults.told(effect.plugin, effect.point, effect.detail)
            case effects.UsageDrift():
                self._log.error("the node table was not the sum of the live bindings", details=list(effect.details))
                self._instruments.drifted(effect)

    def _cause(self, message: Message) -> Cause | None:
        judged = self.core.judging
        if judged is not None:
            asked = next((self._tickets.cause(ticket.id) for ticket, _ in judged.tickets), None)
            request = Request(subjects.BINDER_BIND, b"") if asked is None else asked.message
            return Cause(request, (judged.decision.uid,))
        if isinstance(message, effects.Requested):
            return self._tickets.cause(message.ticket)
        if isinstance(message, effects.Changed):
            return causes.of(message.changes, self._view.cluster.version_of)
        return None

    async def _answer(self, ask: Ask) -> Message:
        if isinstance(ask, effects.AskToBind):
            error = await self._clients.bind(ask.extender, ask.pod, ask.node)
            return effects.ExtenderAnswered(ask.key, error)
        return await self._writer.answer(ask)

    def _step_down(self, effect: effects.StepDown) -> None:
        self._log.warning("steps down", reason=effect.reason)
        self._driver.end()

    def _blocked(self, effect: effects.Blocked) -> None:
        first, more = effect.unreadable[0], len(effect.unreadable) - 1
        others = f"; and {more} more" if more else ""
        reason = f"does not lead: {first}{others}; `podyard mend {first.subject}` says what can be done"
        if reason != self._why_blocked:
            self._why_blocked = reason
            self._log.error(
                "does not lead", subject=first.subject, sequence=first.sequence, detail=first.reason, more=more
            )
        self._leading.says(False, reason)

    def _child_trace(self, trace: str) -> str:
        """A bind span's id; an unsampled attempt that binds costs no span, so its cycle's id stands for
        it."""
        if not is_sampled(trace):
            return trace
        spans = self._service.spans
        return spans.child(trace) if spans.enabled else trace

    # ---- requests ------------------------------------------------------------------------------------------

    async def _open_door(self) -> None:
        self._door = await self._service.endpoints.serve("bind", subjects.BINDER_BIND, self._on_bind)
        self._leading.says(True, f"leads, epoch {self.core.keeper.epoch}")
        self._log.info("serves", epoch=self.core.keeper.epoch, commits=self.core.keeper.n)

    async def _on_bind(self, request: Request) -> bytes:
        """Answer a request; who waits for a term that has ended is to ask the next one
        (docs/rules.md, ended-term-says-ask-again)."""
        bind = codec.decode(BindRequest, request.payload)
        attempts = tuple(decision.attempt for decision in bind.decisions)
        refused = self._boundary.refusal(attempts)
        if refused:
            return codec.encode(BindReply(epoch=self.core.keeper.epoch, refused=refused))
        reply = await self._tickets.ask(
            Cause(request, attempts), lambda ticket: self._driver.step(effects.Requested(ticket, bind))
        )
        if reply is None:
            raise TemporaryError(CHANGES_LEADER, delay_s=ASK_AGAIN_S)
        return codec.encode(reply)
