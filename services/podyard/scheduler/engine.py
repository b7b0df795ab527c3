"""Runs the core: tells it what comes, has it work slice by slice, and carries its effects out."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from podyard.cluster.changes import Change
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.decisions import AttemptRecord
from podyard.proto.queue_api import AttemptResult
from podyard.scheduler import cycle_spans, victim_traces
from podyard.scheduler.core.effects import (
    AskExtenders,
    AwaitPosition,
    Bind,
    Conflicted,
    CycleSpan,
    Declined,
    Done,
    Effect,
    PluginFailed,
    Preempt,
    Record,
    Reply,
)
from podyard.scheduler.core.messages import BindAnswered, Changed, ExtendersAnswered, Listed, Message, Work
from podyard.scheduler.core.scheduler import Scheduler
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.outbox import Outbox
from podyard.scheduler.pace import FEWEST, Pace
from podyard.scheduler.window import Window
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.counting import Counting
from podyard.shell.driver import Driver
from podyard.shell.event_correlator import Event
from podyard.shell.informer import Informer
from podyard.telemetry.tracing import Spans


class Engine:
    """The core with its outboxes. All of it runs on one event loop; between two awaits nothing else sees its
    state."""

    def __init__(
        self,
        core: Scheduler,
        *,
        now: Callable[[], float],
        boundary: Boundary,
        cause: Callable[[Message], Cause | None],
        ask: Callable[[AskExtenders], Awaitable[ExtendersAnswered]],
        keep: Callable[[AttemptRecord], None],
        tell: Callable[[Event], None],
        reply: Callable[[Reply | Declined], None],
        spans: Spans,
        instruments: Instruments,
        slice_s: float,
        most_under_way: int,
    ) -> None:
        """
        :param now: seconds since 1970, UTC
        :param boundary: told of the message that the core raised on
        :param cause: what that message was
        :param ask: asks the extenders
        :param keep: stores the record of an attempt that did not bind, soon
        :param tell: tells people of a victim that was only assumed
        :param reply: answers who asks where a pod would go
        """
        self.core = core
        self._now = now
        self._ask = ask
        self.driver: Driver[Message, Effect, AskExtenders] = Driver(
            core,
            now=now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=cause,
            answer=self._answer,
            close=core.close,
        )
        self.counting = Counting(lambda: core.measured, self._count)
        self.pace = Pace(slice_s)
        self.window = Window(most_under_way)
        self.binds: Outbox[BindRequest] = Outbox()
        self.results: Outbox[AttemptResult] = Outbox()
        self._keep = keep
        self._tell = tell
        self._reply = reply
        self.preemptions: Outbox[Preempt] = Outbox()
        self.untold: dict[str, Preempt] = {}
        """By attempt: preemptions of which the queue does not know yet, so that their attempts' results
        wait."""
        self._spans = spans
        self._instruments = instruments
        self._wake = anyio.Event()
        self._progress = anyio.Event()
        self._awaited: set[int] = set()
        self._positions: list[int] = []
        instruments.unanswered.set_function(lambda: core.unanswered)
        instruments.waiting.set_function(lambda: core.waiting)
        instruments.backlog.set_function(lambda: core.backlog)
        instruments.reference.show_cache(core.cache_sizes)
        instruments.window.set_function(lambda: self.window.size)

    @property
    def wanted(self) -> int:
        """Popped pods to have in hand: no more than will be decided soon, others may have the rest."""
        return min(self.pace.wanted, max(FEWEST, 2 * self.window.size))

    @property
    def may_work(self) -> bool:
        """Whether there are pods to decide, and the binder can be asked."""
        return self.core.ready and self.window.room > 0

    # ---- from the informer ---------------------------------------------------------------------------------

    def on_changes(self, changes: Sequence[Change]) -> None:
        """The view changed."""
        self.step(Changed(changes))
        self.window.spread_over(len(self.core.nodes))

    def on_listed(self, reason: str) -> None:
        """The view was listed (again)."""
        del reason
        self.step(Listed())

    # ---- the core ------------------------------------------------------------------------------------------

    def step(self, message: Message) -> None:
        """Tell the core, and do what it wants done."""
        self.driver.step(message)
        self.counting.look()
        self._progress.set()  # also without effects: a binding that was seen makes room for the next pop
        if self.may_work or isinstance(message, BindAnswered):
            self._wake.set()  # after an answer there may be another deadline to sleep to

    def _count(self) -> None:
        measured = self.core.take_measured()
        if measured is not None:
            self._instruments.reference.measured(measured)

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        outcomes: Counter[str] = Counter()
        for effect in effects:
            match effect:
                case Done():
                    self.results.put(effect.result)
                    if not effect.goes_on:
                        outcomes[effect.result.outcome] += 1
                case Bind():
                    self._instruments.decisions.inc(len(effect.request.decisions))
                    self.window.asked(len(effect.request.decisions))
                    self.binds.put(effect.request)
                case Preempt():
                    outcomes[effect.result.outcome] += 1
                    self._preempt(effect)
                case CycleSpan():
                    cycle_spans.emit(self._spans, effect)
                case Record():
                    self._keep(effect.record)
                case AskExtenders():
                    self.driver.ask(effect)
                case AwaitPosition():
                    self._positions.append(effect.position)
                    self._wake.set()
                case PluginFailed():
                    self._instruments.plugin_faults.told(effect.plugin, effect.point, effect.detail)
                case Conflicted():
                    self._instruments.conflicts.labels(effect.cause).inc()
                    self._instruments.retries.inc(effect.retried)
                case Reply() | Declined():
                    self._reply(effect)
        self._instruments.count_results(outcomes)

    async def _answer(self, ask: AskExtenders) -> Message:
        message = await self._ask(ask)
        self._wake.set()  # the core is told before anybody runs who wakes by it
        self._progress.set()
        return message

    def answered(self, request: BindRequest, reply: BindReply) -> None:
        """The binder has answered some of a request's decisions."""
        self.window.answered(reply.answers)
        self.step(BindAnswered(request, reply))

    def _preempt(self, effect: Preempt) -> None:
        now = self._now()
        victims = len(effect.victims) + len(effect.sent_back)
        self._instruments.victims.observe(victims)
        self._instruments.reference.victims.observe(victims)
        for victim in effect.sent_back:
            trace = self._spans.kept(self._spans.child(effect.trace))
            victim_traces.emit(self._spans, effect, victim, trace, now, now, "sent back")
            self._tell(victim_traces.event_of(effect, victim, trace, now, assumed=True))
        if effect.victims:
            self.untold[effect.result.attempt] = effect
            self.preemptions.put(effect)
        else:
            self.results.put(effect.result)

    def told(self, preempt: Preempt) -> None:
        """The queue knows that the preemption runs: its attempt's result may follow.

        Two leaders of the queue may have given one id to two attempts, for a moment after the stream of
        leases was made again.
        """
        self.untold.pop(preempt.result.attempt, None)
        self.results.put(preempt.result)

    # ---- work ----------------------------------------------------------------------------------------------

    async def work(self, informer: Informer) -> None:
        """Run cycles, slice by slice, for ever."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._await_positions(tasks, informer)
                if self.may_work or self._due():
                    self._slice()
                    await anyio.lowlevel.checkpoint()
                else:
                    await self._sleep()

    def _slice(self) -> None:
        limit, backlog = min(self.pace.pods, self.window.room), self.core.backlog
        start = time.perf_counter()
        self.step(Work(limit))
        done = backlog - self.core.backlog
        if done > 0:
            taken = time.perf_counter() - start
            self.pace.measured(done, taken)
            self._instruments.cycles.observe(taken / done)
        self._progress.set()

    def _due(self) -> bool:
        deadline = self.core.wake_at
        return deadline is not None and deadline <= self._now()

    async def _sleep(self) -> None:
        """Until there may be work: a message came, a position is reached, a wait at Permit runs out."""
        deadline = self.core.wake_at
        self._wake = anyio.Event()
        with anyio.move_on_after(None if deadline is None else max(0.0, deadline - self._now())):
            await self._wake.wait()

    def _await_positions(self, tasks: TaskGroup, informer: Informer) -> None:
        positions, self._positions = self._positions, []
        for position in positions:
            if position > informer.position and position not in self._awaited:
                self._awaited.add(position)
                tasks.start_soon(self._reach, informer, position)

    async def _reach(self, informer: Informer, position: int) -> None:
        """Wake the work when the view has got there: it may move on without a change."""
        await informer.reached(position)
        self._awaited.discard(position)
        self._wake.set()

    async def progress(self) -> None:
        """Wait until the core has done anything since this was called."""
        if self._progress.is_set():
            self._progress = anyio.Event()  # all who wait share one
        await self._progress.wait()
