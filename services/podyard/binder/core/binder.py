"""The binder as a state machine: `step(message, now) -> effects`.

    ELECTED --fence moved--> LISTING --listing holds the fence, and all placements can be read--> SERVING
       any  --the fence is somebody else's--> DEPOSED
   SERVING  --a placement cannot be read--> DEPOSED, and LISTING in the next term until mended

What is done about placements that cannot be read is in `blocking`.

While SERVING at most one send is under way. A send that is not clearly settled is followed by moves of the
fence until one of them, or the send itself, is known to be applied (`fence`). What was not applied is judged
again, whatever it was before.

One binder object is one term: whoever is elected again starts with a new one and reads everything anew.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

import msgspec

from podyard.binder.core import blocking, effects, holding, inspection, points
from podyard.binder.core.batch import MAX_BATCH, Batch
from podyard.binder.core.blocking import LOOK_AGAIN_S, Blocking
from podyard.binder.core.effects import Effect, Message, Outcome
from podyard.binder.core.fence import FenceKeeper, Standing
from podyard.binder.core.forced import Forced
from podyard.binder.core.gathering import Gatherer
from podyard.binder.core.inspection import NO_FINDINGS, Findings
from podyard.binder.core.intake import Intake
from podyard.binder.core.pending import Pending, Ticket
from podyard.binder.core.releases import Releases
from podyard.binder.core.usage_check import UsageCheck
from podyard.binder.core.world import View, World
from podyard.cluster.changes import Unreadable
from podyard.cluster.comparing import Books
from podyard.cluster.dumping import NodesDump, WaitingDump
from podyard.framework.extenders import Extender
from podyard.framework.profile import Profile
from podyard.proto import subjects
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest
from podyard.proto.message import DEFAULT_SCHEDULER
from podyard.proto.placement import BoundPod, Fence

GATHER_S: Final = 0.010
"""How long decisions and releases wait for mates (docs/rules.md, decisions-wait-for-mates)."""

FEW: Final = 3
"""Up to so many decisions in a batch tell that few come: the next do not wait for mates. At 150 pods a second
an attempt lasts 9 ms instead of 21; with a larger number each pod costs more at 500 a second, since its
commits are smaller."""

GATHER_EXPIRIES_S: Final = 1.0
"""TTLs of tombstones are in no hurry."""

POSITION_POLL_S: Final = 0.002
"""How soon to look again if all decisions are of positions that the view has not reached."""

FIRST_RETRY_S: Final = 0.05
LAST_RETRY_S: Final = 1.0
"""Delays between moves of the fence that stay unclear, doubling."""

MAX_UNJUDGED: Final = 32 * MAX_BATCH
"""Decisions that may be to be judged; above, requests are refused: back-pressure instead of memory."""


class Phase(Enum):
    """Where a term is."""

    ELECTED = auto()
    LISTING = auto()
    SERVING = auto()
    DEPOSED = auto()


class Binder:
    """One term. Owned by one task; not to be used after `StepDown`."""

    def __init__(
        self,
        view: View,
        profiles: Mapping[str, Profile],
        *,
        holder: str,
        session: str,
        child_trace: Callable[[str], str],
        binding_extender: Extender | None = None,
        set_aside: Callable[[Iterable[str]], str] = lambda ids: "",
        stopwatch: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """
        :param view: what the informer keeps up to date
        :param profiles: by name; requests with another digest are refused
        :param holder: instance name
        :param session: unique to this process start and term: batch ids are made of it
        :param child_trace: from the traceparent of a cycle to that of its bind span
        :param binding_extender: the one that binds the pods that it is interested in
        :param set_aside: why no decision about one of these pods is judged; empty: it is
        :param stopwatch: seconds of a monotonic clock, for metrics only
        """
        self.phase = Phase.ELECTED
        self.world = World(view, frozenset(profiles), stopwatch)
        self.keeper = FenceKeeper(holder, session)
        self._view = view
        self._profiles = profiles
        self._digests = {name: profile.digest for name, profile in profiles.items()}
        self._intake = Intake()
        self._releases = Releases(self.world)
        self._forced = Forced(self.world)
        self._gatherer = Gatherer(
            self.world, self._intake, self._releases, self._forced, profiles, child_trace, binding_extender, set_aside
        )
        self._check = UsageCheck(self.world)
        self._blocking = Blocking()
        self._lease_epoch = 0
        self._batch: Batch | None = None
        """What is under way, or waits for the fence to tell what became of it."""
        self._sending = ""
        """Id of the send whose answer we wait for; empty: none."""
        self._retry_s = FIRST_RETRY_S
        self._settled: list[tuple[Pending, BindAnswer]] = []
        """Answers that wait for our next commit or fence move."""
        self._gather_from: float | None = None
        self._few = False
        """Whether the last batch tells that few decisions come."""
        self._not_before = 0.0
        """When the next batch may be sent: after several that were not applied, later and later."""
        self._failures = 0
        """Batches in a row that were not applied."""
        self._now = 0.0
        self._out: list[Effect] = []
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            effects.Elected: self._on_elected,
            effects.FenceFound: self._on_fence_found,
            effects.Applied: self._on_applied,
            effects.Conflicted: self._on_conflicted,
            effects.Unclear: self._on_unclear,
            effects.Inspected: self._on_inspected,
            effects.BindingsRead: self._on_bindings_read,
            effects.ExtenderAnswered: self._on_extender_answered,
            effects.Requested: self._on_requested,
            effects.Changed: self._on_changed,
            effects.Listed: self._on_listed,
            effects.Tick: self._on_tick,
        }

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done, in this order.

        :param now: seconds since 1970, UTC
        """
        if self.phase is Phase.DEPOSED:
            return []
        self._out = []
        self._now = now
        self._handlers[type(message)](message)
        if self.phase is Phase.SERVING and self._gather_from is not None:
            self._flush()
        for fault in self.world.snapshot.take_faults():
            self._out.append(effects.PluginFailed(fault.plugin, fault.point, fault.detail))
        return self._out

    @property
    def wake_at(self) -> float | None:
        """When a `Tick` is due; `None`: only a message can change anything."""
        if self.phase is Phase.LISTING:
            return self._blocking.look_at
        if self.phase is not Phase.SERVING:
            return None
        due = self._check.due_at
        deadline = self._gatherer.next_deadline
        if deadline is not None:
            due = min(due, deadline)
        if not self._sending and self._batch is None and self._gather_from is not None:
            return min(due, max(self._gather_from + self._patience(), self._not_before))
        return due

    @property
    def judging(self) -> Pending | None:
        """The decision that is being judged; None outside of that."""
        return self._gatherer.judging

    @property
    def waiting(self) -> int:
        """Decisions of which a PreBind plugin waits."""
        return self._gatherer.waiting

    @property
    def serves(self) -> bool:
        """Whether it has listed, and commits."""
        return self.phase is Phase.SERVING

    def held_decisions(self, most: int) -> WaitingDump:
        """Decisions without an answer; at most so many are shown."""
        return holding.waiting(self._intake.unanswered(), most)

    def held_nodes(self, most: int, most_pods: int) -> NodesDump:
        """The nodes as they are counted; at most so many are shown, with so many pods each."""
        return holding.nodes(self.world, most, most_pods)

    def books(self) -> Books:
        """What is counted on nodes."""
        return holding.counted(self.world)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way and nobody waits."""
        gatherer = self._gatherer
        pending = gatherer.unjudged + len(self._settled) + gatherer.asked + gatherer.waiting
        return not self._sending and self._batch is None and not pending

    # ---- taking over ---------------------------------------------------------------------------------------

    def _on_elected(self, message: effects.Elected) -> None:
        self._lease_epoch = message.lease_epoch
        self._out.append(effects.ReadFence())

    def _on_fence_found(self, found: effects.FenceFound) -> None:
        """Read because a send failed, or to take over."""
        standing = self.keeper.look(found.fence, found.sequence)
        if found.fault and (self.phase is Phase.ELECTED or found.sequence > self.keeper.sequence):
            self._fence_unreadable(found)
        elif standing is Standing.OURS and found.fence is not None:
            self._on_written(found.fence.batch, found.sequence)
        elif self.phase is Phase.ELECTED:
            self.keeper.adopt(found.fence, found.sequence, self._lease_epoch)
            self._move("taking over")
        elif standing is Standing.THEIRS:
            self._deposed(found.fence)
        else:
            self._move("nothing is known of the last send")

    def _fence_unreadable(self, found: effects.FenceFound) -> None:
        """Whoever wrote it was no binder, so nothing can be guessed."""
        unreadable = Unreadable(subjects.FENCE, found.sequence, found.fault)
        if self.phase is not Phase.ELECTED:
            self._step_down(str(unreadable))
            return
        self._out += [effects.Blocked((unreadable,)), effects.ReadFence(LOOK_AGAIN_S)]

    def _on_listed(self, message: effects.Listed) -> None:
        unreadable = self._view.unreadable_placements
        if unreadable and self.phase is Phase.LISTING:
            self._out.append(self._blocking.begin(unreadable, self._now))
            return
        if unreadable:
            self._step_down(str(unreadable[0]))
            return
        if self.phase is Phase.LISTING:
            fence = self._view.fence
            if fence is None or fence.batch != self.keeper.batch:
                self._doubt_listing()
                return
            self.phase = Phase.SERVING
            self._out.append(effects.Serve())
            self._check.start(self._now)
        self.world.skipping.listed(self._view.position)
        self._releases.forget_tombstones(message.tombstones)
        self._read_bindings()
        self._note_work()

    def _doubt_listing(self) -> None:
        """The listing does not hold the fence that was moved before it: it is stale, or of a stream made
        again since, which never will hold it. No read can tell which; moving the fence does: applied, all is
        listed anew, and refused with a lower version, the term ends."""
        if not self._sending:
            self._move("the listing does not hold the fence that was moved before it")

    # ---- sends and what became of them ---------------------------------------------------------------------

    def _send(self, batch_id: str, writes: Sequence[effects.Write], delay_s: float = 0.0) -> None:
        self._sending = batch_id
        self._out.append(effects.Send(batch_id, writes, delay_s))

    def _move(self, reason: str) -> None:
        """Move the fence without decisions, after the second time with a growing delay."""
        batch_id = self.keeper.next_id()
        delay_s = 0.0 if self._retry_s == FIRST_RETRY_S else self._retry_s
        self._retry_s = min(LAST_RETRY_S, self._retry_s * 2)
        self._send(batch_id, [self.keeper.move(batch_id)], delay_s)
        self._out.append(effects.FenceMoving(reason))

    def _on_applied(self, message: effects.Applied) -> None:
        if message.batch_id == self._sending:
            self._on_written(message.batch_id, message.sequence)

    def _on_unclear(self, message: effects.Unclear) -> None:
        if message.batch_id == self._sending:
            if self._batch is not None and self._batch.id == message.batch_id:
                self._note_failure(message.why)
            self._move(message.why)

    def _note_failure(self, why: str) -> None:
        """One lost answer is nothing. Where moves of the fence are taken and batches are not (somebody has
        all batches open that the server allows), the next is sent after a pause, or thousands of moves would
        be all that this comes to."""
        self._failures += 1
        if self._failures > 1:
            self._not_before = self._now + min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** min(self._failures - 2, 10))
            self._out.append(effects.CommitsFail(f"{self._failures} commits in a row were not taken: {why}"))

    def _note_success(self) -> None:
        if self._failures > 1:
            self._out.append(effects.CommitsFail(""))
        self._failures, self._not_before = 0, 0.0

    def _on_conflicted(self, message: effects.Conflicted) -> None:
        if message.batch_id != self._sending:
            return
        batch = self._batch
        if batch is not None and batch.id == message.batch_id and batch.guarded_subjects():
            self._out.append(effects.Inspect(batch.id, (*batch.guarded_subjects(), subjects.commit(self.keeper.n + 1))))
        elif self.phase is not Phase.ELECTED and self.keeper.went_back(message.number):
            self._step_down("the fence went back: the stream was made again, or lost its end")
        else:
            self._out.append(effects.ReadFence(0.0 if self._retry_s == FIRST_RETRY_S else self._retry_s))

    def _on_written(self, batch_id: str, sequence: int) -> None:
        """A send is known to be applied; all others that expected the same fence are not and never will
        be."""
        self.keeper.applied(batch_id, sequence)
        self._sending = ""
        self._retry_s = FIRST_RETRY_S
        if self.phase is Phase.ELECTED:
            self.phase = Phase.LISTING
            self._out.append(effects.StartListing())
            return
        if self.phase is Phase.LISTING:
            self._out.append(effects.Relist("the listing did not hold the fence that was moved before it"))
            return
        batch, self._batch = self._batch, None
        if batch is not None and batch.id == batch_id:
            self._note_success()
            self._committed(batch)
        elif batch is not None:
            self._judge_again(batch)
        self._answer_settled()

    def _deposed(self, fence: Fence | None) -> None:
        """Write nothing, say nothing: the scheduler asks the new one."""
        holder = "somebody" if fence is None else f"{fence.holder or 'somebody'} with epoch {fence.epoch}"
        self._step_down(f"the fence was moved by {holder}")

    def _step_down(self, reason: str) -> None:
        self.phase = Phase.DEPOSED
        self._out.append(effects.StepDown(reason))

    def _on_inspected(self, message: effects.Inspected) -> None:
        """Why a commit's compare-and-set failed: the fence, or a binding that the view does not know. Or what
        has become of what cannot be read."""
        if self.phase is Phase.LISTING:
            if message.fence.sequence != self.keeper.sequence or self._blocking.is_other(message.stored):
                self._step_down("what could not be read has changed: everything is read anew")
            return
        batch = self._batch
        if batch is None or batch.id != message.batch_id or self._sending != batch.id:
            return
        standing = self.keeper.look(message.fence.fence, message.fence.sequence)
        if standing is Standing.THEIRS:
            self._deposed(message.fence.fence)
            return
        if standing is Standing.OURS and message.fence.fence is not None:
            self._on_written(message.fence.fence.batch, message.fence.sequence)
            return
        if (unreadable := blocking.first_unreadable(message.stored)) is not None:
            self._step_down(str(unreadable))
            return
        record = subjects.commit(self.keeper.n + 1)
        in_the_way = message.stored.get(record)
        if in_the_way is not None and in_the_way.sequence < self.keeper.sequence:
            self._out.append(effects.PassedOver(record, in_the_way.sequence))
            self.keeper.pass_over()
            self._sending, self._batch = "", None
            self._judge_again(batch)
            return
        found = inspection.find(batch, message.stored)
        if not found.explains:
            self._move("a commit failed, and what was read does not show why")
            return
        self._settled += found.answers
        for uid in found.bound_elsewhere:
            if uid not in self._view.placements:
                self._out.append(effects.Relist(f"pod uid {uid} is bound, and the view does not know it"))
        self._sending, self._batch = "", None
        self._judge_again(batch, found)

    # ---- building a batch ----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Send what has gathered, if nothing is under way and it is time."""
        if self._sending or self._batch is not None or not self._is_time():
            return
        self._gather_from = None
        batch = self._gatherer.gather(self._now)
        self._out += self._gatherer.asks
        self._gatherer.asks.clear()
        if batch.empty and not self._settled:
            self._note_success()
            self._few = False  # what stays in the queue would be looked at without a pause
            self._gather_from = self._now - GATHER_S + POSITION_POLL_S if self._gatherer.unjudged else None
            self._note_work()
            return
        self._batch = batch
        # what is written beside bindings must be seen before others are judged by it
        self._few = 0 < len(batch.accepted) <= FEW and not (batch.waiting or batch.touched)
        writes = batch.writes(self.keeper, self._view.position, self._now)
        if batch.record is not None:
            self._view.expect(writes[-2].subject, writes[-2].payload, batch.record)
        self._send(batch.id, writes)
        if not batch.commits:
            self._out.append(effects.FenceMoving("only refusals to answer"))
        self._note_work()

    def _is_time(self) -> bool:
        if self._gather_from is None or self._now < self._not_before:
            return False
        queue = self._intake.queue
        if len(queue) >= MAX_BATCH and queue[0].decision.position <= self._view.position:
            return True
        return self._now >= self._gather_from + self._patience()

    def _patience(self) -> float:
        """How long to gather, from the first piece of work on."""
        if self._few and self._intake.queue:
            return 0.0
        return GATHER_S if self._settled or self._gatherer.urgent else GATHER_EXPIRIES_S

    def _note_work(self) -> None:
        """Start to gather if there is something to gather."""
        if self._gather_from is None and (self._settled or self._gatherer.has_work):
            self._gather_from = self._now

    def _judge_again(self, batch: Batch, found: Findings = NO_FINDINGS) -> None:
        self._gatherer.take_apart(batch, found)
        self._read_bindings()
        self._gather_from = self._now - GATHER_S

    # ---- after a commit ------------------------------------------------------------------------------------

    def _committed(self, batch: Batch) -> None:
        self._releases.done(batch.releases)
        if batch.commits:
            record = self.keeper.sequence - 1  # the fence stands right behind it
            self.world.committed(batch.bound, record, only_bound=not (batch.releases or batch.touched))
            released = [ready.release for ready in batch.releases]
            self._out.append(
                effects.Committed(
                    n=self.keeper.n,
                    bound=batch.bound,
                    releases=released,
                    sent_at=batch.sent_at,
                    settled_at=self._now,
                    wire_bytes=batch.wire_bytes,
                    skipped=sum(accepted.skipped for _, accepted in batch.accepted),
                )
            )
        placed = ((one.decision.profile, accepted.pod, accepted.bound.node) for one, accepted in batch.accepted)
        points.finish(self._profiles, placed, self.world.snapshot, self.world.point_times)
        committed_at = self.keeper.sequence
        answers: list[tuple[Pending, BindAnswer, BoundPod | None]] = []
        for pending, accepted in batch.accepted:
            bound = accepted.bound
            answer = BindAnswer(
                attempt=bound.attempt, uid=bound.uid, result="bound", node=bound.node, committed_at=committed_at
            )
            answers.append((pending, answer, bound))
        answers += [(pending, answer, None) for pending, answer in batch.refused]
        complete = self._answer(answers, batch.sent_at)
        for pending, answer in self._gatherer.written(batch):
            if pending.standing is None:
                self._out.append(effects.BeganToWait(pending.decision, answer, pending.received_at))
            complete += self._intake.tell_waiting(pending, answer)
        self._reply(complete)

    def _answer_settled(self) -> None:
        """An own write came after these judgements: they may be told."""
        settled, self._settled = self._settled, []
        self._reply(self._answer([(pending, answer, None) for pending, answer in settled]))

    def _answer(
        self, answers: Iterable[tuple[Pending, BindAnswer, BoundPod | None]], sent_at: float = 0.0
    ) -> list[Ticket]:
        """Said after an own write only, so a binding that it tells of was durable at the fence's sequence.

        :param answers: with what was bound by them
        :return: requests that are complete now
        """
        outcomes: list[Outcome] = []
        complete: list[Ticket] = []
        for pending, said, bound in answers:
            answer = said
            if said.result == "bound" and not said.committed_at:
                answer = msgspec.structs.replace(said, committed_at=self.keeper.sequence)
            outcomes.append(Outcome(pending.decision, answer, bound, pending.received_at, pending.key[0]))
            complete += self._intake.answer(pending, answer)
        if outcomes:
            self._out.append(effects.Settled(outcomes, sent_at))
        return complete

    def _reply(self, complete: Sequence[Ticket]) -> None:
        """What was accepted counted against later decisions: whoever was refused for it must see it before
        trying again, and the own view shows the last commit only a moment after it was acknowledged."""
        position = max(self._view.position, self.keeper.sequence)
        for ticket in complete:
            reply = BindReply(epoch=self.keeper.epoch, position=position, answers=ticket.complete())
            self._out.append(effects.Reply(ticket.id, reply))

    # ---- what comes in -------------------------------------------------------------------------------------

    def _on_requested(self, message: effects.Requested) -> None:
        request = message.request
        refused = self._why_refused(request.digest)
        if refused:
            self._out.append(effects.Reply(message.ticket, BindReply(epoch=self.keeper.epoch, refused=refused)))
            return
        request = self._with_profiles(request)
        complete = self._intake.take(message.ticket, request, self._now)
        self._gatherer.withdraw(request)
        if complete is not None:
            self._reply([complete])
        self._note_work()

    def _with_profiles(self, request: BindRequest) -> BindRequest:
        """Decisions of somebody else's scheduler are judged like any other: by a profile that there is."""
        if not any(decision.foreign and decision.profile not in self._profiles for decision in request.decisions):
            return request
        stand_in = DEFAULT_SCHEDULER if DEFAULT_SCHEDULER in self._profiles else next(iter(self._profiles))
        decisions = tuple(
            msgspec.structs.replace(decision, profile=stand_in)
            if decision.foreign and decision.profile not in self._profiles
            else decision
            for decision in request.decisions
        )
        return msgspec.structs.replace(request, decisions=decisions)

    def _on_extender_answered(self, message: effects.ExtenderAnswered) -> None:
        failed = self._gatherer.answered(message.key, message.error)
        if failed is not None:
            self._settled.append(failed)
        self._note_work()

    def _why_refused(self, digests: Mapping[str, str]) -> str:
        if self.phase is not Phase.SERVING:
            return "this binder does not lead"
        if self._gatherer.unjudged >= MAX_UNJUDGED:
            return f"{self._gatherer.unjudged} decisions are to be judged already; ask again"
        for name, digest in digests.items():
            own = self._digests.get(name)
            if own != digest:
                return f"profile {name!r} has digest {digest}, the binder's has {own or 'no such profile'}: run equal configurations"
        return ""

    def _on_changed(self, message: effects.Changed) -> None:
        changes = message.changes
        self.world.follow(changes)
        self._releases.consider(changes)
        self._forced.consider(changes)
        self._gatherer.follow(changes)
        self._read_bindings()
        self._note_work()

    def _on_bindings_read(self, message: effects.BindingsRead) -> None:
        bindings = {uid: found for uid, found in message.found.items() if found is not None and found.placement is None}
        if bindings and self.phase is Phase.SERVING:
            uid, found = next(iter(bindings.items()))
            self._step_down(f"the binding of pod uid {uid} (sequence {found.sequence}) cannot be read: {found.fault}")
            return
        missing = self._releases.take_answer(message.found)
        self._read_bindings(FIRST_RETRY_S if missing else 0.0)
        self._note_work()

    def _read_bindings(self, delay_s: float = 0.0) -> None:
        if self.phase is Phase.SERVING and (pods := self._releases.reads()):
            self._out.append(effects.ReadBindings(pods, delay_s))

    def _on_tick(self, message: effects.Tick) -> None:
        del message
        if self.phase is not Phase.SERVING:
            if self._blocking.look_at is not None and self._now >= self._blocking.look_at:
                self._out.append(self._blocking.look(self._now))
            return
        self._settled += self._gatherer.expired(self._now)
        self._note_work()
        if self._now < self._check.due_at:
            return
        details = self._check.run(self._now)
        if details:
            self.world.rebuild()
            self._out.append(effects.UsageDrift(details))
            self._out.append(effects.Relist("the node table was not the sum of the live bindings"))
