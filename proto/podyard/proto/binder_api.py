"""Requests to the binder on `svc.binder.bind`, and its replies."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.bounds import Digests, Name
from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import DEFAULT_SCHEDULER, INT64_MAX, Count, Int64, Message
from podyard.proto.placement import VolumeChoice

POSITION_WAIT_S: Final = 5.0
"""How long a decision waits in the binder for its view to reach the decision's position, and a pod in a
scheduler for that of its pop or its retry: a view that is so far behind is no good for now. A request's own
time-out is no longer."""

NODE_GONE: Final = "nodeGone"
"""Cause of a refusal: the node does not exist, or says no without a plugin's name."""

BindResult: TypeAlias = Literal["bound", "alreadyBound", "conflict", "gone", "error", "waiting"]
"""bound: this attempt's binding is durable. alreadyBound: another attempt's is (`node` says where). conflict:
the node does not take the pod at the binder's position. gone: the pod or its uid is no more. error: see
`reasons`; try again later. waiting: no answer yet; the node takes the pod, and keeps its room while a PreBind
plugin waits: ask again with the same decision."""


class Decision(Message, frozen=True, kw_only=True):
    """One pod for one node, as a scheduler decided. Key: session and `number`; sent again with the same
    key until answered. A retry of a conflict has the same attempt and another number.

    One that was answered `waiting` is sent again every now and then until it has another answer, in requests
    that name its own number as outstanding, so that it is always judged in full. A binder that holds it says
    `waiting` or what has become of it; one that does not know it (it has just taken over) judges it, finds in
    the objects what was written already, and holds it in turn. So no binder has to remember a wait, and no
    scheduler misses its end; a scheduler that dies leaves a decision behind that is bound, or refused, in its
    time.
    """

    namespace: Name
    name: Name
    uid: Name
    attempt: Name
    node: Name
    number: Annotated[int, Meta(ge=1, le=INT64_MAX, description="of this decision in its session, growing")]
    position: Annotated[Count, Meta(description="CLUSTER sequence it was decided at")]
    read: Annotated[
        Count, Meta(description="CLUSTER sequence of the last message that its scheduler had read then; 0: not told")
    ] = 0
    read_at: Annotated[float, Meta(description="when the server stored that message, seconds since 1970, UTC")] = 0.0
    not_assumed: Annotated[
        tuple[Int64, ...], Meta(description="earlier decisions of this request that it had not assumed")
    ] = ()
    profile: Name = DEFAULT_SCHEDULER
    volumes: Annotated[tuple[VolumeChoice, ...], Meta(max_length=1024)] = ()
    record: AttemptRecord | None = None
    trace: Annotated[str, Meta(description="traceparent of the scheduling cycle's span")] = ""
    withdrawn: Annotated[
        bool,
        Meta(description="the scheduler wants it no more (preempted while it waited): refused unless it is durable"),
    ] = False
    foreign: Annotated[
        bool,
        Meta(
            description="somebody else's scheduler decided: judged by the profile of that name, if there is none by "
            "the one named default-scheduler, else the first; no extender is asked to bind"
        ),
    ] = False


class NumberRange(Message, frozen=True, kw_only=True):
    """Decision numbers from first to last, both included."""

    first: Int64
    last: Int64


class BindRequest(Message, frozen=True, kw_only=True):
    """Decisions of one session in the order of their numbers; each had assumed `outstanding` and, but for
    its `not_assumed`, all earlier ones here."""

    session: Name
    digest: Digests = {}
    outstanding: Annotated[
        tuple[NumberRange, ...],
        Meta(
            description="numbers assumed and not seen committed, at the first decision, ascending; 0: pods of an earlier session"
        ),
    ] = ()
    decisions: Annotated[tuple[Decision, ...], Meta(max_length=256)]


class BindAnswer(Message, frozen=True, kw_only=True):
    """What became of one decision."""

    attempt: str
    uid: str
    result: BindResult
    node: Annotated[str, Meta(description="the node the pod is bound to, if it is")] = ""
    cause: Annotated[
        str,
        Meta(
            description="the plugin that refused, or what the binder found itself, e.g. fit, ports, nodeGone; counted by it"
        ),
    ] = ""
    reasons: tuple[str, ...] = ()
    won: Annotated[
        str, Meta(description="of a conflict over room or ports: the pod that was placed on the node last")
    ] = ""
    committed_at: Annotated[
        Count, Meta(description="of `bound`: the binding was durable at this CLUSTER sequence; 0: not known")
    ] = 0


class BindReply(Message, frozen=True, kw_only=True):
    """Answers in the order of the decisions. A scheduler retries a conflict when it has reached
    `position`."""

    epoch: Count
    position: Count = 0
    answers: tuple[BindAnswer, ...] = ()
    refused: Annotated[str, Meta(description="why none was judged, e.g. another digest, or not the leader")] = ""
