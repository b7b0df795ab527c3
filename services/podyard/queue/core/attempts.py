"""Open attempts, and the sessions of schedulers that hold them."""

from typing import Literal

import msgspec

from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.proto.decisions import WakeUp
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.queue.core import thinning
from podyard.queue.core.queued_pod import QueuedPod, Waited

KEPT_POPS_BYTES = 2 * 1024 * 1024
"""What answers take that are kept per session for a pop that is asked again: at least four of 256 pods; a
scheduler has one or two pops under way."""

KEPT_NUMBERS_BYTES = 16 * 1024
"""What their numbers take."""

POPPED_BYTES = 1536
"""What a pod of an answer takes at most: names of 253 letters, two traces."""

KEPT_DEAD_BYTES = 256 * 1024
"""What dead sessions take that are remembered, some 1,000, so that their late results and pops are
refused."""


class Attempt(msgspec.Struct, eq=False):
    """One pod handed out to one session. Times are seconds since 1970, UTC."""

    id: str
    """`<queue epoch>-<n>`."""
    pod: QueuedPod
    session: str
    pop: int
    """Number of the pop answer, in its session, that handed it out."""
    number: int
    """The pod's attempts up to this one."""
    previous: str
    """Id of the pod's attempt before this one, as far as this leader knows."""
    put_back_at: float
    """When the pod was added, or put back after its last attempt."""
    waited: Waited
    popped_at: float
    trace: str
    """Traceparent of the attempt's root span."""
    previous_trace: str
    thinned: str
    """A failure that would have no trace, as `queue_api.failure_of` names it; empty: every one has."""
    woken_by: WakeUp | None
    state: Literal["open", "binding"] = "open"
    """binding: scheduled on a node, the binding fact is awaited."""
    decided_at: float = 0.0
    """When its scheduler said that it had found a node; 0: it has not."""
    node: str = ""
    """Where its scheduler has assumed the pod, as far as is known here."""
    missing: int = 0
    """Heartbeats in a row that should have listed it and did not."""


def begun(attempt_id: str, pod: QueuedPod, session: str, pop: int, now: float, trace: str) -> Attempt:
    """The pod's next attempt, as it is handed out."""
    return Attempt(
        attempt_id,
        pod,
        session,
        pop,
        pod.attempts,
        pod.attempt,
        pod.timestamp,
        pod.waited(now),
        now,
        trace,
        pod.previous_trace,
        thinning.not_kept(pod),
        pod.woken_by,
    )


def popped(attempt: Attempt) -> PoppedPod:
    """An attempt as its scheduler is told of it."""
    pod = attempt.pod
    namespace, name = pod.key
    ready_at, parked_s, backed_off_s = attempt.waited
    return PoppedPod(
        namespace,
        name,
        pod.uid,
        attempt.id,
        attempt.number,
        pod.profile,
        ready_at,
        attempt.popped_at,
        attempt.woken_by,
        attempt.trace,
        attempt.previous_trace,
        parked_s,
        backed_off_s,
        attempt.thinned,
    )


class Session:
    """One process start of a scheduler."""

    __slots__ = ("attempts", "heard_at", "id", "last_pop", "pop_numbers", "replies")

    def __init__(self, session_id: str, now: float) -> None:
        self.id = session_id
        self.heard_at = now
        self.attempts: dict[str, Attempt] = {}
        """Those that are open or binding, by id, in the order in which they were handed out."""
        self.replies = Kept[str, PopReply](KEPT_POPS_BYTES, fewest=1)
        """The last answers by pop id: asked again, the same is said again."""
        self.pop_numbers = Kept[str, int](KEPT_NUMBERS_BYTES, fewest=1)
        """Their numbers."""
        self.last_pop = 0

    def answered(self, pop_id: str, reply: PopReply) -> None:
        """Remember an answer, forget the oldest."""
        taken = bytes_of(pop_id) + POPPED_BYTES * len(reply.pods)
        self.replies.keep(pop_id, reply, taken)
        self.pop_numbers.keep(pop_id, self.last_pop, bytes_of(pop_id))


class Sessions:
    """All sessions that live, and the ids of those that died."""

    def __init__(self, timeout_s: float) -> None:
        """:param timeout_s: silence after which a session counts as dead"""
        self._timeout_s = timeout_s
        self._living: dict[str, Session] = {}
        self._dead = Kept[str, bool](KEPT_DEAD_BYTES)

    def heard(self, session_id: str, now: float) -> Session | None:
        """The session, which has just shown a sign of life; None if it is dead already and must not come
        back."""
        if session_id in self._dead:
            return None
        session = self._living.get(session_id)
        if session is None:
            session = self._living[session_id] = Session(session_id, now)
        session.heard_at = now
        return session

    def get(self, session_id: str) -> Session | None:
        """A living session."""
        return self._living.get(session_id)

    def expire(self, now: float) -> list[Session]:
        """Those that have been silent too long; they are dead from here on."""
        late = [session for session in self._living.values() if now - session.heard_at > self._timeout_s]
        for session in late:
            self.end(session.id)
        return late

    def end(self, session_id: str) -> Session | None:
        """It is dead from here on, also if it is not known: a pop of it may still be under way. The session,
        if it lived.
        """
        self._dead.keep(session_id, True, bytes_of(session_id))
        return self._living.pop(session_id, None)

    def excuse(self, late_s: float) -> None:
        """This process did not look for so long (it stood still, or the clock jumped): heartbeats may lie
        unread."""
        for session in self._living.values():
            session.heard_at += late_s

    def open_attempts(self) -> dict[str, int]:
        """Session -> attempts that are with it, for people."""
        return {session.id: len(session.attempts) for session in self._living.values()}
