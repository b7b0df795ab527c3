"""What the queue's core wants done, in its order: frozen values between the core and its shell.

A pod is named by a PodRef, an attempt by its id. What the core is told is in `messages`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from podyard.objects.meta import ObjectMeta
from podyard.proto.decisions import Outcome, WakeUp
from podyard.proto.message import PodRef
from podyard.proto.queue_api import PopReply, QueueListReply, QueueReply, WouldReply
from podyard.proto.requeues import HintCall, PodMove
from podyard.queue.core.messages import Incoming

NO_METADATA: Final = ObjectMeta()

# ---- answers ----------------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """Answer the request `ticket`."""

    ticket: int
    reply: PopReply | QueueReply | QueueListReply | WouldReply


class Declined(NamedTuple):
    """The request `ticket` gets no answer but this error."""

    ticket: int
    reason: str


class StepDown(NamedTuple):
    """A scheduler knows of a leader with this higher epoch: say nothing more, and lead above it or not at
    all.
    """

    epoch: int


# ---- what events did --------------------------------------------------------------------------------------


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that stayed, and what their hints answered: the same for all of them."""

    pods: tuple[PodRef, ...]
    """Empty if they are more than a record names; `count` has all."""
    count: int = 1
    calls: tuple[HintCall, ...]


class NotAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that stayed because a plugin's index says that its hints would say Skip for all of them."""

    plugin: str
    count: int


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """An event reached parked pods (or, `attempt` set, one pod that came back from that attempt)."""

    incoming: Incoming
    moved: tuple[PodMove, ...] = ()
    skipped: tuple[Skip, ...] = ()
    not_asked: tuple[NotAsked, ...] = ()
    """A pod with several rejectors is counted for each."""
    attempt: str = ""
    at: float
    """Seconds since 1970, UTC."""

    @property
    def skipped_pods(self) -> int:
        """How many pods stayed, by their hints' answers or unasked."""
        return sum(skip.count for skip in self.skipped) + sum(one.count for one in self.not_asked)


# ---- what is to be written --------------------------------------------------------------------------------


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """A PreEnqueue plugin keeps a pod out: a record is due. Said when its message is another than the last
    one of the pod.

    Times are seconds since 1970, UTC.
    """

    pod: PodRef
    plugin: str
    message: str
    at: float
    profile: str = ""
    attempts: int = 0
    """The pod's attempts so far."""
    queued_at: float = 0.0
    woken_by: WakeUp | None = None
    """What ended its last parking."""
    previous_trace: str = ""
    """Traceparent of its last attempt."""
    causes: tuple[str, ...] = ()
    """Traceparents of what made the pod."""


class Nominated(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's nomination changed: write the fact. `node` "" ends it."""

    pod: PodRef
    node: str
    priority: int = 0
    """The pod's."""


class NominationOver(NamedTuple):
    """A pod with a nomination fact was bound or is gone: the fact is to go too."""

    pod: PodRef


class PodGone(NamedTuple):
    """A pod's object was deleted: a nomination that is still being written is to go, too."""

    pod: PodRef


class LeftUnbound(NamedTuple):
    """A pod that waited is gone, or is not to be scheduled any more, and was never bound: the end of its
    story."""

    pod: PodRef
    at: float
    attempts: int
    previous_trace: str
    """Traceparent of its last attempt that has a trace."""
    trace: str
    """Of what ended it."""


class Purge(NamedTuple):
    """A pod is gone: its attempts' records are to go, too."""

    pod: PodRef


# ---- what is to be told -----------------------------------------------------------------------------------


class AttemptEnded(msgspec.Struct, frozen=True):
    """An attempt is over: its root span and its counts are due. Times are seconds since 1970, UTC.

    The leader makes it by position: by names it takes 2 µs more.
    """

    pod: PodRef
    attempt: str
    """Its id."""
    number: int
    """The pod's attempts up to this one."""
    profile: str
    session: str
    """The scheduler that had it."""
    queued_at: float
    """When the pod became ready for it."""
    popped_at: float
    at: float
    outcome: Outcome
    decided_at: float = 0.0
    """When its scheduler said that it had found a node; 0: it did not."""
    parked_s: float = 0.0
    """How long it was parked or gated before that, ..."""
    backed_off_s: float = 0.0
    """... and backed off then."""
    node: str = ""
    """Where it was bound, or was to be."""
    message: str = ""
    """Why it failed."""
    by_queue: bool = False
    """The queue ended it: a record is due, since no scheduler writes one."""
    rejectors: frozenset[str] = frozenset()
    """Plugins that rejected the pod in this attempt; those of the one before if this one bound it."""
    woken_by: WakeUp | None = None
    """What led to the attempt."""
    trace: str = ""
    """Traceparent of its root span; its flag says whether the trace is kept whatever the outcome."""
    previous_trace: str = ""
    """Traceparent of the last attempt before whose trace is kept."""
    unkept: int = 0
    """How many attempts since then have no trace."""
    thinned: bool = False
    """One of many equal failures: it has no trace either."""
    causes: tuple[str, ...] = ()
    """Traceparents of what made the pod."""
    replaces: tuple[str, ...] = ()
    """Those of what ended the pod that it replaces, ..."""
    replaced: str = ""
    """... and that pod's name."""
    metadata: ObjectMeta = NO_METADATA
    """The pod's."""
    initial_attempt_at: float | None = None
    """When the pod first entered activeQ; None: never, it was popped from backoffQ."""
    was_flushed: bool = False
    """Only the safety flush had brought it back."""


class Rescued(NamedTuple):
    """A pod was bound right after the safety flush: a hint is wrong, or a registration is missing."""

    story: Mapping[str, Any]
    """Builtins; all that is needed to see which."""


class Began(NamedTuple):
    """The queue is filled: serve from now on."""

    pods: int


class Differed(NamedTuple):
    """After a listing the queue had so many pods too many or too few: changes were missed. It has the right
    ones now.
    """

    pods: int


class PluginFailed(NamedTuple):
    """A plugin raised, or answered nonsense; what the queue did instead stands where it asks: `gates`,
    `hints`, `parked`, `scheduling_queue` (sort keys)."""

    plugin: str
    point: str
    """The extension point, as the reference spells it in messages."""
    detail: str


Effect: TypeAlias = (
    Reply
    | Declined
    | StepDown
    | Judged
    | Gated
    | Nominated
    | NominationOver
    | PodGone
    | LeftUnbound
    | Purge
    | AttemptEnded
    | Rescued
    | Began
    | Differed
    | PluginFailed
)
