"""One reign: from getting the lease to losing it, or the fence. Feeds the core and carries out what it wants, in its order.

Everything is read anew in each reign, after the fence was moved: what an earlier reign knew is gone with it.
"""

import gc
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import anyio

from podyard.binder.core import effects
from podyard.binder.core.binder import Binder
from podyard.binder.core.effects import Effect, Message
from podyard.binder.instruments import Instruments
from podyard.binder.reader import ListedView
from podyard.binder.settings import BinderSettings
from podyard.binder.writer import Writer
from podyard.bus import Request, Subscription
from podyard.cluster.changes import Change
from podyard.cluster.informer import Followed, Informer
from podyard.extenders import NO_CLIENTS, ExtenderClients
from podyard.framework.extenders import Extender
from podyard.proto import codec, subjects
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.runtime.service import Service
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podyard.framework.profile import Profile

SILENCE_S: Final = 15.0
"""How long a request that must not be answered is held: longer than a scheduler waits."""

LEADS_CHECK: Final = "view"
WRITES_CHECK: Final = "writes"
"""Not ready while the last commit or move of the fence has no clear answer: no room in the stream, or NATS silent."""


COMMITS_CHECK: Final = "commits"
"""Not ready while one commit after the other is not taken, though other writes are."""


class _Waiter:
    """A request in hand. `reply` stays `None` if the reign ends first."""

    __slots__ = ("done", "reply", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.done = anyio.Event()
        self.reply: BindReply | None = None


class Reign:
    """Owned by the task that runs `run`; callbacks of the informer and the bus run on the same event loop."""

    def __init__(
        self,
        service: Service[BinderSettings],
        profiles: "Mapping[str, Profile]",
        followed: Followed,
        instruments: Instruments,
        boundary: Boundary,
        number: int,
        *,
        clients: ExtenderClients = NO_CLIENTS,
        binding_extender: Extender | None = None,
    ) -> None:
        """
        :param number: of the reign in this process: makes its batch ids its own
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
        )
        self._clients = clients
        self._writer = Writer(service.bus, service.settings.commit_timeout_s, self._on_writes)
        self.informer = Informer(
            service.bus,
            self._view,
            followed,
            service=service.name,
            on_changes=self._on_changes,
            on_listed=self._on_listed,
            on_contact=self._on_contact,
            aside=boundary.aside,
        )
        self._tickets = itertools.count(1)
        self._waiters: dict[int, _Waiter] = {}
        self._tasks = anyio.create_task_group()
        self._door: Subscription | None = None
        self._driver: Driver[Message, Effect] = Driver(
            self.core,
            now=self._now,
            carry_out=self._carry_out,
            failed=self._failed,
            tick=effects.Tick(),
            wake_at=lambda: self.core.wake_at,
        )

    async def run(self, lease_epoch: int) -> None:
        """Take over, serve, and return when deposed or when the core has raised; cancelled when the lease is lost."""
        self._set_ready(False, "taking over: moving the fence, then listing")
        self._instruments.held.set_function(lambda: 0 if self._driver.over else self.core.held)
        try:
            async with self._tasks:
                self._tasks.start_soon(self._driver.keep_time)
                self._driver.step(effects.Elected(lease_epoch))
        finally:
            self._driver.end()
            self._service.health.remove(WRITES_CHECK)
            self._service.health.remove(COMMITS_CHECK)
            self._instruments.leading.set(0)
            for waiter in self._waiters.values():
                waiter.done.set()
            if self._door is not None:
                with anyio.move_on_after(1, shield=True):
                    await self._door.close()

    # ---- the core ------------------------------------------------------------------------------------------------------------

    def _carry_out(self, wanted: Sequence[Effect]) -> None:
        for effect in wanted:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case effects.Settled():
                self._instruments.settled(effect, self._now())
            case effects.Reply():
                self._reply(effect)
            case effects.Committed():
                self._instruments.committed(effect)
            case effects.Send():
                self._tasks.start_soon(self._send, effect)
            case effects.ReadBindings():
                self._tasks.start_soon(self._read_bindings, effect)
            case effects.ReadFence():
                self._tasks.start_soon(self._read_fence, effect)
            case effects.Inspect():
                self._tasks.start_soon(self._inspect, effect)
            case effects.StartListing():
                self._tasks.start_soon(self.informer.run)
            case effects.Relist():
                self._log.warning("lists again", reason=effect.reason)
                self.informer.relist(effect.reason)
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
            case effects.AskToBind():
                self._tasks.start_soon(self._ask_to_bind, effect)
            case effects.CommitsFail():
                self._service.health.set_ready(COMMITS_CHECK, not effect.reason, effect.reason)
            case effects.PluginFailed():
                self._instruments.plugin_faults.told(effect.plugin, effect.point, effect.detail)
            case effects.UsageDrift():
                self._log.error("the node table was not the sum of the live bindings", details=list(effect.details))
                self._instruments.drifted(effect)

    def _failed(self, message: Message, error: Exception) -> None:
        """The core raised: the reign ends, without what it was told. Nothing is said, since a write may be under way."""
        self._boundary.raised(self._cause(message), error)
        self._tasks.cancel_scope.cancel()

    def _cause(self, message: Message) -> causes.Cause:
        found = None
        if isinstance(message, effects.Changed):
            found = causes.of(message.changes, self.informer.delivery, self._view.cluster.version_of)
        judged = self.core.judging
        if judged is not None:
            ticket = next((ticket for ticket, _ in judged.waiting), None)
            waiter = None if ticket is None else self._waiters.get(ticket.id)
            asked = Request(subjects.BINDER_BIND, b"") if waiter is None else waiter.request
            return causes.Cause(asked, (judged.decision.uid,))
        if isinstance(message, effects.Requested):
            attempts = tuple(decision.attempt for decision in message.request.decisions)
            return causes.Cause(self._waiters[message.ticket].request, attempts)
        return found or causes.unknown(type(message).__name__)

    async def _ask_to_bind(self, ask: effects.AskToBind) -> None:
        error = await self._clients.bind(ask.extender, ask.pod, ask.node)
        self._driver.step(effects.ExtenderAnswered(ask.key, error))

    async def _send(self, send: effects.Send) -> None:
        self._driver.step(await self._writer.send(send))

    async def _read_bindings(self, read: effects.ReadBindings) -> None:
        self._driver.step(await self._writer.read_bindings(read))

    async def _read_fence(self, read: effects.ReadFence) -> None:
        self._driver.step(await self._writer.read_fence(read))

    async def _inspect(self, inspect: effects.Inspect) -> None:
        self._driver.step(await self._writer.inspect(inspect))

    def _step_down(self, effect: effects.StepDown) -> None:
        self._log.warning("steps down", reason=effect.reason)
        self._driver.end()
        self._tasks.cancel_scope.cancel()

    def _blocked(self, effect: effects.Blocked) -> None:
        first, more = effect.unreadable[0], len(effect.unreadable) - 1
        others = f"; and {more} more" if more else ""
        reason = f"does not lead: {first}{others}; `podyard mend {first.subject}` says what can be done"
        if self._service.health.checks[LEADS_CHECK].reason != reason:
            self._log.error(
                "does not lead", subject=first.subject, sequence=first.sequence, detail=first.reason, more=more
            )
        self._set_ready(False, reason)

    def _child_trace(self, trace: str) -> str:
        """A bind span's id; an unsampled attempt that binds costs no span, so its cycle's id stands for it."""
        spans = self._service.spans
        return spans.child(trace) if spans.wanted(trace) else trace

    # ---- the informer --------------------------------------------------------------------------------------------------------

    def _on_changes(self, changes: list[Change]) -> None:
        self._driver.step(effects.Changed(causes.told(changes, self.informer.delivery)))

    def _on_listed(self, reason: str) -> None:
        del reason
        self._driver.step(effects.Listed(self._view.take_tombstones()))

    def _on_contact(self, fresh: bool) -> None:
        if self._door is not None:
            self._set_ready(fresh, "" if fresh else "nothing heard of the cluster for 2 s")

    # ---- requests ------------------------------------------------------------------------------------------------------------

    async def _open_door(self) -> None:
        gc.collect()
        gc.freeze()  # what was listed lives long: full collections need not walk it again
        self._door = await self._service.endpoints.serve("bind", subjects.BINDER_BIND, self._on_bind)
        self._set_ready(True, "")
        self._instruments.leading.set(1)
        self._log.info("serves", epoch=self.core.keeper.epoch, commits=self.core.keeper.n)

    async def _on_bind(self, request: Request) -> bytes:
        """Answer a request; a reign that ended says nothing, since a write under way may yet be applied."""
        bind = codec.decode(BindRequest, request.payload)
        refused = self._boundary.refusal(decision.attempt for decision in bind.decisions)
        if refused:
            return codec.encode(BindReply(epoch=self.core.keeper.epoch, refused=refused))
        ticket, waiter = next(self._tickets), _Waiter(request)
        self._waiters[ticket] = waiter
        try:
            self._driver.step(effects.Requested(ticket, bind))
            if not self._driver.over:
                await waiter.done.wait()
            if waiter.reply is None:
                await anyio.sleep(SILENCE_S)
                return b""
            return codec.encode(waiter.reply)
        finally:
            del self._waiters[ticket]

    def _reply(self, effect: effects.Reply) -> None:
        waiter = self._waiters.get(effect.ticket)
        if waiter is not None:
            waiter.reply = effect.reply
            waiter.done.set()

    def _on_writes(self, trouble: str) -> None:
        self._service.health.set_ready(WRITES_CHECK, not trouble, trouble)

    def _set_ready(self, ok: bool, reason: str) -> None:
        self._service.health.set_ready(LEADS_CHECK, ok, reason)
