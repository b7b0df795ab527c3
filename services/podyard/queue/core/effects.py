"""What the queue was told, and what it wants done: values between the core and its shell."""

from typing import TypeAlias

import msgspec

from podyard.framework.events import ClusterEvent
from podyard.proto.decisions import Outcome
from podyard.proto.requeues import HintCall, PoolName
from podyard.queue.core.attempts import Attempt
from podyard.queue.core.queued_pod import QueuedPod


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster event with the changed object before and after, and what people want to know about it."""

    event: ClusterEvent
    old: object | None = None
    new: object | None = None
    id: str = ""
    """Key of the event's RequeueRecord."""
    object_name: str = ""
    """namespace/name of the object, or its name."""
    position: int = 0
    """CLUSTER sequence; 0 if it has none."""
    who: str = ""
    why: str = ""
    trace: str = ""
    missed: bool = False
    """A version of the object was missed: counts as all actions of the resource, and every hint as Queue."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that an event moved. `plugin` decided ("" if no hint was needed), `own` by a hint that the
    reference does not have."""

    pod: QueuedPod
    from_: PoolName
    to: PoolName
    plugin: str = ""
    own: bool = False
    calls: tuple[HintCall, ...] = ()


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that stayed, and what their hints answered: the same for all of them."""

    pods: tuple[QueuedPod, ...]
    """Not more than a record names; `count` has all."""
    count: int = 1
    calls: tuple[HintCall, ...]


class NotAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that stayed because a plugin's index says that its hints would say Skip for all of them."""

    plugin: str
    count: int


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """An event reached parked pods (or, `attempt` set, one pod that came back from that attempt)."""

    incoming: Incoming
    moved: tuple[Move, ...] = ()
    skipped: tuple[Skip, ...] = ()
    not_asked: tuple[NotAsked, ...] = ()
    """A pod with several rejectors is counted for each."""
    attempt: str = ""
    at: float

    @property
    def skipped_pods(self) -> int:
        """How many pods stayed, by their hints' answers or unasked."""
        return sum(skip.count for skip in self.skipped) + sum(one.count for one in self.not_asked)


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """A PreEnqueue plugin keeps a pod out; said once per plugin and message in a row."""

    pod: QueuedPod
    plugin: str
    message: str
    at: float


class Nominated(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's nomination changed: write the fact. `node` "" ends it."""

    pod: QueuedPod
    node: str


class NominationOver(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with a nomination fact was bound or is gone: the fact is to go too."""

    namespace: str
    name: str
    uid: str


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt is over: its root span and its counts are due."""

    attempt: Attempt
    outcome: Outcome
    at: float
    node: str = ""
    """Where it was bound, or was to be."""
    message: str = ""
    by_queue: bool = False
    """The queue ended it: no scheduler will write its record."""


Effect: TypeAlias = Judged | Gated | Nominated | NominationOver | AttemptEnded
