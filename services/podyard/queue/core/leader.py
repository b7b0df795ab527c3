"""The protocol of the queue's leader: pop, heartbeat, done, activate, preempting, and what time does to it.

Every attempt that was handed out ends exactly once: by `done`, by its binding fact, by its pod's end, or with
its session; or by the leader itself, if its scheduler never got it or its binding does not come
(docs/rules.md, every-pop-ends-once).
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from podyard.framework import events
from podyard.objects.core import Pod
from podyard.proto.decisions import Outcome
from podyard.proto.queue_api import (
    ActivateRequest,
    AttemptResult,
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    PreemptingRequest,
    QueueReply,
    SessionHeartbeat,
    failure_of,
)
from podyard.proto.traces import flagged, is_sampled
from podyard.queue.core import given_up, rescues, thinning
from podyard.queue.core.attempts import Attempt, Session, Sessions, begun, popped
from podyard.queue.core.effects import AttemptEnded, Rescued
from podyard.queue.core.gates import PreemptionGate
from podyard.queue.core.mates import are_mates
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.recent import Recent
from podyard.queue.core.scheduling_queue import SchedulingQueue
from podyard.queue.core.waking import Meant

SESSION_TIMEOUT_S = 10.0
"""A session that was silent for so long is dead; heartbeats come every 2 s."""

BINDING_TIMEOUT_S = 30.0
"""How long a scheduled pod waits for its binding fact."""

MOST_PODS = 256
"""In one answer to a pop, mates included: as many as one request to the binder holds."""

TICK_S = 1.0
"""How often `tick` runs."""

PREEMPTION_OVER = "the preemption for it is over"

MISSING_LIMIT = 2
"""Heartbeats in a row without an attempt before it goes back: one may overtake the `done` that ended it."""

LAST_DECISIONS_S = 2.0
"""How long the bindings of a session are awaited that has ended in order. Within that a binder has judged
what it got of it; what it did not get nobody sends any more."""

NO_SESSION = "session {session} is dead (it has ended, or was silent for more than {limit:g} s): start a new one"


class Leader:
    """Hands pods out and takes results in.

    :param queue: holds the pods
    :param epoch: of the lease; part of every attempt's id
    :param digests: profile -> digest of plugins and arguments
    :param bound_node: the node a pod (uid) is bound to, "" if none
    :param new_trace: makes a traceparent for an attempt's root span; told whether its trace is to be kept
        whole, as that of a pod that was tried before, or replaces one whose end is kept
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        *,
        epoch: int,
        digests: Mapping[str, str],
        preemptions: PreemptionGate,
        bound_node: Callable[[str], str] = lambda uid: "",
        new_trace: Callable[[bool], str] = lambda keep: "",
        session_timeout_s: float = SESSION_TIMEOUT_S,
        binding_timeout_s: float = BINDING_TIMEOUT_S,
    ) -> None:
        self.queue = queue
        self.epoch = epoch
        self.sessions = Sessions(session_timeout_s)
        self.recent = Recent()
        self.attempts: dict[str, Attempt] = {}
        """Open and binding ones, by id."""
        self._attempt_of: dict[str, Attempt] = {}
        """The same by the pod's uid: a pod has one at a time."""
        self.binding: dict[str, QueuedPod] = {}
        """Pods that wait for their binding fact, by uid, in the order of their deadlines."""
        self._digests = dict(digests)
        self._preemptions = preemptions
        self._bound_node = bound_node
        self._new_trace = new_trace
        self._session_timeout_s = session_timeout_s
        self._binding_timeout_s = binding_timeout_s
        self._attempt_count = 0
        self._ticked_at = 0.0

    @property
    def profiles(self) -> Collection[str]:
        """Names of the profiles that are scheduled here."""
        return self._digests.keys()

    # -- pop -------------------------------------------------------------------------------------------------

    def pop(self, request: PopRequest, now: float, position: int) -> PopReply | None:
        """Pods to schedule; None if there are none now. The same `pop_id` gets the same answer again.

        How many: the scheduler asks for about 5 ms of its own cycles by `max_pods`, so that a pod of high
        priority that comes in the meantime does not wait long.
        """
        session = self.sessions.heard(request.session, now)
        if session is None:
            return self._refused_pop(self._dead(request.session))
        known = session.replies.get(request.pop_id)
        if known is not None:
            return known
        difference = self._difference(request.digests)
        if difference:
            return self._refused_pop(difference)
        pods = self._take(session, request.max_pods, now)
        if not pods:
            return None
        reply = PopReply(epoch=self.epoch, position=position, pods=pods)
        session.answered(request.pop_id, reply)
        return reply

    def pop_nothing(self, request: PopRequest, position: int) -> PopReply:
        """The answer if there were no pods for as long as the request waits.

        Kept as any other: a repetition of the request would take pods for which its scheduler no longer
        waits.
        """
        reply = PopReply(epoch=self.epoch, position=position)
        session = self.sessions.get(request.session)
        if session is not None:
            session.answered(request.pop_id, reply)
        return reply

    def _take(self, session: Session, limit: int, now: float) -> tuple[PoppedPod, ...]:
        """Up to `limit` pods, and those right behind them that are of the last one's kind and look at each
        other: two schedulers that had some of them each would put them in each other's way. Who asks for one
        pod gets one.
        """
        most = MOST_PODS if limit > 1 else limit
        session.last_pop += 1
        taken = list[PoppedPod]()
        last: QueuedPod | None = None
        while len(taken) < limit or (len(taken) < most and last is not None and self._mate_of(last)):
            last = self.queue.pop()
            if last is None:
                break
            taken.append(self._hand_out(last, session, now))
        return tuple(taken)

    def _mate_of(self, last: QueuedPod) -> bool:
        head = self.queue.active.head()
        return head is not None and are_mates(last.pod, head.pod)

    def _hand_out(self, pod: QueuedPod, session: Session, now: float) -> PoppedPod:
        self._attempt_count += 1
        attempt_id = f"{self.epoch}-{self._attempt_count}"
        keep = pod.attempts > 1 or (bool(pod.replaces) and any(map(is_sampled, pod.replaces)))
        attempt = begun(attempt_id, pod, session.id, session.last_pop, now, self._new_trace(keep))
        pod.attempt = attempt_id
        if pod.earlier:
            pod.earlier = ()
        pod.previous_trace = attempt.trace
        self.attempts[attempt_id] = session.attempts[attempt_id] = self._attempt_of[pod.uid] = attempt
        return popped(attempt)

    def _difference(self, digests: Mapping[str, str]) -> str:
        """What is different in the scheduler's profiles, in words; "" if nothing is."""
        if digests == self._digests:
            return ""
        found = [
            f"profile {name}: the scheduler has {digests.get(name, 'none')}, the queue has {self._digests.get(name, 'none')}"
            for name in sorted({*digests, *self._digests})
            if digests.get(name) != self._digests.get(name)
        ]
        return (
            f"other plugins or arguments than the queue's ({'; '.join(found)}): start both with the same configuration"
        )

    def _refused_pop(self, reason: str) -> PopReply:
        return PopReply(epoch=self.epoch, refused=reason)

    def _dead(self, session: str) -> str:
        return NO_SESSION.format(session=session, limit=self._session_timeout_s)

    # -- done ------------------------------------------------------------------------------------------------

    def done(self, request: DoneRequest, now: float) -> QueueReply:
        """Take the results of attempts. Idempotent by attempt id; one that is not open here is named in
        `unknown`.

        An id alone does not tell: two leaders may have had the same epoch for a moment, after the stream of
        leases was made again.
        """
        session = self.sessions.heard(request.session, now)
        unknown = list[str]()
        for result in request.results:
            attempt = self.attempts.get(result.attempt)
            if session is None or attempt is None or attempt.session != session.id or attempt.pod.uid != result.uid:
                unknown.append(result.attempt)
                self._dropped(result, self.queue.pods.get(result.uid), now)
            elif result.outcome == "scheduled":
                self._scheduled(attempt, result, now)
            else:
                self._failed(attempt, result, now)
        refused = "" if session is not None else self._dead(request.session)
        return QueueReply(epoch=self.epoch, refused=refused, unknown=tuple(unknown))

    def _scheduled(self, attempt: Attempt, result: AttemptResult, now: float) -> None:
        pod = attempt.pod
        if attempt.state == "binding":
            return
        if not self.queue.await_binding(pod.uid):
            self._end(attempt, "error", now, node=result.node, message="the pod was gone before it could be bound")
            return
        self.assume(attempt, result.node)
        attempt.state, attempt.decided_at = "binding", now
        pod.deadline = now + self._binding_timeout_s
        self.queue.nominator.set(pod.uid, "")
        self.binding[pod.uid] = pod

    def _failed(self, attempt: Attempt, result: AttemptResult, now: float) -> None:
        """Put the pod back. Its own dropped assumption is news for the others only: of a rejection after the
        pod went back, of an error before (docs/rules.md, own-drop-wakes-only-others).
        """
        pod = attempt.pod
        rejected = bool(result.unschedulable_plugins or result.pending_plugins)
        if not rejected:
            self._dropped(result, pod, now)
        self._leave_binding(pod)
        if result.gone and pod.pod.metadata.deletion_timestamp is not None:
            self.queue.delete(pod.uid)  # never tried again. Source: schedule_one.go, skipPodSchedule
        self.queue.fail(
            pod.uid,
            now,
            unschedulable=result.unschedulable_plugins,
            pending=result.pending_plugins,
            obstacles=result.obstacles,
            message=result.message,
        )
        if rejected:
            self._dropped(result, pod, now)
        nominated = "" if result.outcome == "bindError" else result.nominated_node
        if nominated is not None:
            self.queue.nominate(pod.uid, nominated)
        for cleared in result.cleared:
            self.queue.nominate(cleared.uid, "")
        self._end(
            attempt,
            result.outcome,
            now,
            node=result.assumed or result.node,
            message=result.message,
            failure=failure_of(result),
        )

    def _dropped(self, result: AttemptResult, pod: QueuedPod | None, now: float) -> None:
        """What was assumed is free again, unless the pod was bound to that very node. Also of a decision that
        is made again within its attempt, or of an attempt that is not open here any more.
        """
        if not result.assumed or self._bound_node(result.uid) == result.assumed:
            return
        for incoming in given_up.events_of(result, pod):
            if self.queue.wants(incoming.event, incoming.missed):
                self.recent.note(incoming, now)
                self.queue.move_wanted(incoming, now, Meant(except_uid=result.uid))

    def _end(
        self,
        attempt: Attempt,
        outcome: Outcome,
        now: float,
        *,
        node: str = "",
        message: str = "",
        by_queue: bool = False,
        failure: str = "",
    ) -> None:
        """
        :param by_queue: no scheduler writes a record of it
        :param failure: what it is compared by with the pod's other failures; empty: it is like no other
        """
        pod = attempt.pod
        del self.attempts[attempt.id], self._attempt_of[pod.uid]
        session = self.sessions.get(attempt.session)
        if session is not None:
            session.attempts.pop(attempt.id, None)
        ready_at, parked_s, backed_off_s = attempt.waited
        thinned = bool(failure) and failure == attempt.thinned
        self.queue.effects.append(
            AttemptEnded(
                pod.ref,
                attempt.id,
                attempt.number,
                pod.profile,
                attempt.session,
                ready_at,
                attempt.popped_at,
                now,
                outcome,
                attempt.decided_at,
                parked_s,
                backed_off_s,
                node,
                message,
                by_queue,
                pod.rejectors,
                attempt.woken_by,
                attempt.trace,
                attempt.previous_trace,
                pod.unkept,
                thinned,
                pod.causes,
                pod.replaces,
                pod.replaced,
                pod.pod.metadata,
                pod.initial_attempt_at,
                pod.was_flushed,
            )
        )
        if outcome == "scheduled":
            if rescues.is_rescue(attempt):
                story = rescues.story(attempt, node, self.recent, self._digests.get(pod.profile, ""))
                self.queue.effects.append(Rescued(story))
            return
        thinning.failed(pod, failure)
        pod.unkept = pod.unkept + 1 if thinned else 0
        if thinned:
            pod.previous_trace = attempt.previous_trace

    def _leave_binding(self, pod: QueuedPod) -> None:
        if self.binding.pop(pod.uid, None) is not None:
            pod.deadline = None

    def assume(self, attempt: Attempt, node: str) -> None:
        """The attempt's scheduler counts the pod on a node."""
        attempt.node = node

    def assumed_node(self, pod: QueuedPod) -> str:
        """Where a scheduler has assumed the pod; empty if none has, as far as is known here."""
        attempt = self.attempts.get(pod.attempt)
        return "" if attempt is None else attempt.node

    # -- what the cluster says -------------------------------------------------------------------------------

    def bound(self, pod: QueuedPod, node: str, by: str, now: float, trace: str = "") -> None:
        """The pod's binding is durable: it has left the queue, and its attempt has ended.

        :param trace: traceparent of the binding: its flag is set if a decision before it was refused, and the
            trace is kept for that
        :param by: the attempt that bound it; usually the pod's last, else an earlier one that was thought
            lost
        """
        self._leave_binding(pod)
        attempt = self.attempts.get(pod.attempt)
        if attempt is None or (attempt.state == "open" and by != attempt.id):
            return  # its scheduler will say what became of the attempt: each ends once
        self.queue.in_flight.done(pod.uid)
        if is_sampled(trace):
            attempt.trace = flagged(attempt.trace)
        if by in ("", attempt.id):
            self._end(attempt, "scheduled", now, node=node)
        else:
            self._end(attempt, "error", now, node=node, message=f"attempt {by} had bound the pod to {node} already")

    def gone(self, pod: QueuedPod, now: float) -> None:
        """The pod is no longer pending without a binding. In flight, its attempt stays open until the
        scheduler says done.
        """
        self._leave_binding(pod)
        attempt = self.attempts.get(pod.attempt)
        if attempt is not None and attempt.state == "binding":
            self._end(attempt, "error", now, message="the pod was deleted before its binding was seen")

    def resume(self, uid: str, pod: Pod, priority: int, sequence: int) -> bool:
        """A pod is pending that is not in the queue; whether it is in flight: then it is taken up again under
        its open attempt.

        It only looked gone, as one with a version that could not be read does. Whatever its attempt finds, it
        is tried again.

        :param sequence: of the pod's object in CLUSTER
        """
        attempt = self._attempt_of.get(uid)
        if attempt is None or uid not in self.queue.in_flight:
            return False
        attempt.pod.replace(pod, sequence)
        attempt.pod.priority = priority
        self.queue.resume(attempt.pod)
        return True

    # -- sessions --------------------------------------------------------------------------------------------

    def heartbeat(self, request: SessionHeartbeat, now: float) -> QueueReply:
        """A sign of life. Attempts handed out up to the named pop answer that it does not list go back: their
        answer was lost.
        """
        if request.over:
            self.end_session(request.session, now)
            return QueueReply(epoch=self.epoch)
        session = self.sessions.heard(request.session, now)
        if session is None:
            return QueueReply(epoch=self.epoch, refused=self._dead(request.session))
        listed = set(request.attempts)
        last_pop = session.pop_numbers.get(request.last_pop) or 0
        for attempt in tuple(session.attempts.values()):
            if attempt.id in listed or attempt.pop > last_pop or attempt.state == "binding":
                attempt.missing = 0
                continue
            attempt.missing += 1
            if attempt.missing >= MISSING_LIMIT:
                self.queue.give_back(attempt.pod.uid, now)
                self._end(attempt, "error", now, message="the scheduler never got this attempt", by_queue=True)
        self._wait_on(session, request.waiting, now)
        unknown = tuple(attempt for attempt in request.attempts if attempt not in self.attempts)
        return QueueReply(epoch=self.epoch, unknown=unknown)

    def _wait_on(self, session: Session, waiting: Sequence[str], now: float) -> None:
        """Decisions that wait in the binder: their bindings may take as long as their scheduler says so.

        Nothing else keeps the pods: when the session says so no more, or dies, they are tried again in the
        usual time.
        """
        for attempt_id in waiting:
            attempt = session.attempts.get(attempt_id)
            pod = None if attempt is None else self.binding.pop(attempt.pod.uid, None)
            if pod is not None:
                pod.deadline = now + self._binding_timeout_s
                self.binding[pod.uid] = pod  # the last, as its deadline is

    def end_session(self, session_id: str, now: float) -> None:
        """A session has ended in order: what it did not decide is for others at once, what it decided the
        binder may be judging (docs/rules.md, ended-session-gives-back-at-once).
        """
        session = self.sessions.end(session_id)
        if session is None:
            return
        message = f"scheduler session {session.id} has ended"
        for attempt in tuple(session.attempts.values()):
            pod = attempt.pod
            if attempt.state == "binding" and pod.deadline is not None:
                pod.deadline = min(pod.deadline, now + LAST_DECISIONS_S)
            else:
                self.queue.give_back(pod.uid, now)
                self._end(attempt, "error", now, message=message, by_queue=True)
        self.binding = dict(sorted(self.binding.items(), key=lambda item: item[1].deadline or 0.0))
        self._forget_assumed(session, message, now)

    def _bury(self, session: Session, now: float) -> None:
        """A session died: its attempts go to error backoff (one of them may be what killed it).

        Those that wait for their binding go too: the binder has long answered what it got, and the rest was
        never sent.
        """
        message = f"scheduler session {session.id} died"
        for attempt in tuple(session.attempts.values()):
            self._leave_binding(attempt.pod)
            self.queue.fail(attempt.pod.uid, now, message=message)
            self._end(attempt, "error", now, message=message, by_queue=True)
        self._forget_assumed(session, message, now)

    def _forget_assumed(self, session: Session, message: str, now: float) -> None:
        """A session is no more: its preemptions end, and whoever was parked for what it had assumed is tried
        again (docs/rules.md, missed-changes-retry-everybody).
        """
        for uid in self._preemptions.of_session(session.id):
            self._preemptions.end(uid)
            self.queue.activate(uid, now, f"{PREEMPTION_OVER}: {message}")
        retry = Incoming(event=events.RETRY_ALL, id=f"session-{session.id}", why=message)
        self.queue.retry_all(retry, now)

    # -- on demand -------------------------------------------------------------------------------------------

    def activate(self, request: ActivateRequest, now: float) -> QueueReply:
        """Move pods to activeQ without asking hints."""
        if request.session:
            self.sessions.heard(request.session, now)
        for pod in request.pods:
            self.queue.activate(pod.uid, now)
        return QueueReply(epoch=self.epoch)

    def preempting(self, request: PreemptingRequest, now: float) -> QueueReply:
        """A pod's asynchronous preemption starts or ends; at the end the pod is activated whatever came of it
        (docs/rules.md, preemption-ends-with-activation).

        A start that is for an earlier leader is ignored, and asked for again if it is meant
        (docs/rules.md, start-of-preemption-names-its-leader).
        """
        if self.sessions.heard(request.session, now) is None:
            return QueueReply(epoch=self.epoch, refused=self._dead(request.session))
        uid = request.pod.uid
        if request.running and 0 < request.epoch < self.epoch:
            return QueueReply(epoch=self.epoch, outdated=True)
        if request.running:
            victim = request.victim.uid if request.victim is not None else ""
            self._preemptions.start(uid, request.session, victim, request.attempt)
        elif self._preemptions.end(uid, request.attempt):
            self.queue.activate(uid, now, PREEMPTION_OVER)
        return QueueReply(epoch=self.epoch)

    # -- time ------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Runs every second: backoffs that are over, sessions that died, bindings that did not come."""
        self.queue.flush_backoff(now)
        late_s = now - self._ticked_at - TICK_S
        if late_s > TICK_S and self._ticked_at:
            self.sessions.excuse(late_s)
        self._ticked_at = now
        for session in self.sessions.expire(now):
            self._bury(session, now)
        while self.binding:
            pod = next(iter(self.binding.values()))
            if pod.deadline is None or pod.deadline > now:
                break
            self._give_up_binding(pod, now)

    def _give_up_binding(self, pod: QueuedPod, now: float) -> None:
        attempt = self.attempts.get(pod.attempt)
        message = f"no binding was seen within {self._binding_timeout_s:g} s"
        if attempt is not None and self.sessions.get(attempt.session) is None:
            message = f"scheduler session {attempt.session} has ended, and no binding was seen"
        self._leave_binding(pod)
        self.queue.fail(pod.uid, now, message=message)
        if attempt is not None:
            self._end(attempt, "error", now, message=message, by_queue=True)
