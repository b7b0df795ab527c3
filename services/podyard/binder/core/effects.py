"""What the binder's core is told, and what it wants done: values between the core and its shell."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from podyard.cluster.changes import Change, Unreadable
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, Decision
from podyard.proto.message import PodRef
from podyard.proto.placement import BoundPod, Fence, Placement, Release

# ---- what the core is told ---------------------------------------------------------------------------------


class Elected(NamedTuple):
    """The lease is ours."""

    lease_epoch: int


class FenceFound(NamedTuple):
    """The fence as somebody read it, maybe stale; `sequence` 0: there is none."""

    fence: Fence | None
    sequence: int
    fault: str = ""
    """Why what is stored cannot be read; `fence` is then None."""


class Applied(NamedTuple):
    """A send was acknowledged; `sequence` is its last message's, the fence's."""

    batch_id: str
    sequence: int


class Conflicted(NamedTuple):
    """A send was refused by a compare-and-set (NATS error 10071). `number` is the last sequence of the
    subject that failed."""

    batch_id: str
    number: int | None


class Unclear(NamedTuple):
    """A send was not answered, or refused without saying why (NATS error 10164): it may have been applied, or
    may yet be."""

    batch_id: str
    why: str


class Stored(NamedTuple):
    """What a subject that was asked for holds, as read, maybe stale."""

    sequence: int
    placement: Placement | None
    """`None`: it is no placement (an object, a commit record), or cannot be read."""
    expiring: bool = False
    """It has a TTL already."""
    fault: str = ""
    """Why it cannot be read."""


class Inspected(NamedTuple):
    """Answer to `Inspect`: the fence, and what there is on the subjects (missing ones hold nothing)."""

    batch_id: str
    fence: FenceFound
    stored: Mapping[str, Stored]


class BindingsRead(NamedTuple):
    """Answer to `ReadBindings`, by uid; `None`: nothing there."""

    found: Mapping[str, Stored | None]


class ExtenderAnswered(NamedTuple):
    """Answer to `AskToBind`: what went wrong, "" if nothing."""

    key: tuple[str, int]
    error: str


class Requested(NamedTuple):
    """A scheduler asks; `ticket` names the request until its `Reply`."""

    ticket: int
    request: BindRequest


class Changed(NamedTuple):
    """The view changed. The table has not followed yet."""

    changes: Sequence[Change]


class Listed(NamedTuple):
    """The view has listed everything (again)."""

    tombstones: Sequence[PodRef] = ()
    """Tombstones in the listing that have no TTL."""


class Tick(NamedTuple):
    """Time passed: `wake_at` is reached."""


Message: TypeAlias = (
    Elected
    | FenceFound
    | Applied
    | Conflicted
    | Unclear
    | Inspected
    | BindingsRead
    | ExtenderAnswered
    | Requested
    | Changed
    | Listed
    | Tick
)

# ---- what it wants done ------------------------------------------------------------------------------------


class Write(msgspec.Struct, frozen=True, gc=False):
    """A message for the CLUSTER stream. `expect` is the subject's last sequence, 0: there must be none.
    `expires`: it is kept only as long as a deletion marker.
    """

    subject: str
    payload: bytes
    expect: int
    expires: bool = False


class ReadFence(NamedTuple):
    """Read the fence after `delay_s` seconds and answer with `FenceFound`."""

    delay_s: float = 0.0


class Send(NamedTuple):
    """Publish all or nothing, after `delay_s` seconds; answer with Applied, Conflicted or Unclear."""

    batch_id: str
    writes: Sequence[Write]
    delay_s: float = 0.0


class Inspect(NamedTuple):
    """Read the fence and these subjects: bindings, objects that PreBind writes, the next commit record.
    Answered by `Inspected`."""

    batch_id: str
    subjects: Sequence[str]


class ReadBindings(NamedTuple):
    """Read the bindings of these pods, after `delay_s` seconds."""

    pods: Sequence[PodRef]
    delay_s: float = 0.0


class StartListing(NamedTuple):
    """The fence is ours: list everything now. Only what is listed after this is the truth."""


class Relist(NamedTuple):
    """What the view holds cannot be the truth: list again."""

    reason: str


class Serve(NamedTuple):
    """Take requests from now on."""


class Reply(NamedTuple):
    """Answer the request `ticket`."""

    ticket: int
    reply: BindReply


class StepDown(NamedTuple):
    """Deposed: write nothing, say nothing more, let go of the lease."""

    reason: str


class Blocked(NamedTuple):
    """Nothing may be written: placements are stored that cannot be read. Looked at again, and said again,
    until they are mended."""

    unreadable: Sequence[Unreadable]


class PassedOver(NamedTuple):
    """Something that no binder wrote lies where the next commit's record belongs; the next but one is used
    instead."""

    subject: str
    sequence: int


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of one decision."""

    decision: Decision
    answer: BindAnswer
    bound: BoundPod | None
    received_at: float
    session: str
    """Whose decision it is."""


class Settled(NamedTuple):
    """Decisions have their answers: for spans and counters."""

    outcomes: Sequence[Outcome]
    sent_at: float = 0.0
    """When the batch was sent that binds or refuses them; 0: they were answered without one."""


class BeganToWait(NamedTuple):
    """A PreBind plugin waits: the decision has no answer yet, and people want to see it meanwhile."""

    decision: Decision
    answer: BindAnswer
    received_at: float


class Committed(NamedTuple):
    """A batch is durable."""

    n: int
    bound: Sequence[BoundPod]
    releases: Sequence[Release]
    sent_at: float
    settled_at: float
    wire_bytes: int
    skipped: int
    """How many of `bound` were accepted without asking the filters again."""


class FenceMoving(NamedTuple):
    """The fence is moved without a commit, because of `reason`."""

    reason: str


class CommitsFail(NamedTuple):
    """One commit after the other is not taken, though other writes are; with an empty reason: one was taken
    again."""

    reason: str


class PluginFailed(NamedTuple):
    """A plugin raised, or answered nonsense. Up to Bind that is the decision's answer; after PostBind the pod
    is bound all the same."""

    plugin: str
    point: str
    """The extension point, as the reference spells it in messages."""
    detail: str


class AskToBind(NamedTuple):
    """Let the extender bind. The node takes the pod, and keeps its room for it meanwhile; the commit follows
    the answer."""

    key: tuple[str, int]
    """Session and number of the decision."""
    extender: str
    pod: PodRef
    node: str


Ask: TypeAlias = ReadFence | Send | Inspect | ReadBindings | AskToBind
"""What the core is told the answer of."""


class UsageDrift(NamedTuple):
    """The table was not the sum of the live bindings: a bug, put right by building the table anew."""

    details: Sequence[str]


Effect: TypeAlias = (
    Ask
    | StartListing
    | Relist
    | Serve
    | Reply
    | StepDown
    | Blocked
    | PassedOver
    | Settled
    | BeganToWait
    | Committed
    | FenceMoving
    | CommitsFail
    | PluginFailed
    | UsageDrift
)
