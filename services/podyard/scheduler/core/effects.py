"""What the scheduler's core wants done. The shell does it in the order in which the core says it."""

from typing import TypeAlias

import msgspec

from podyard.framework.cycle import PointTime
from podyard.framework.extenders import Calls
from podyard.framework.plugin_times import PluginTime
from podyard.proto.binder_api import BindRequest
from podyard.proto.decisions import AttemptRecord, Victim
from podyard.proto.queue_api import AttemptResult
from podyard.proto.scheduler_api import WouldGoReply


class Bind(msgspec.Struct, frozen=True):
    """Ask the binder. The same request is sent again until every decision in it is answered."""

    request: BindRequest


class Done(msgspec.Struct, frozen=True):
    """Tell the queue how an attempt ended. The same result is sent again until the queue answers."""

    result: AttemptResult
    goes_on: bool = False
    """No attempt has ended: the result only tells that assumed room came free."""


class Record(msgspec.Struct, frozen=True):
    """Store the record of an attempt that did not bind."""

    record: AttemptRecord


class CycleSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The span of a scheduling cycle with one child an extension point. Times are seconds since 1970, UTC."""

    trace: str
    """The cycle span's own traceparent."""
    parent: str
    """Traceparent of the attempt's root span."""
    start: float
    end: float
    points: tuple[PointTime, ...]
    """On the stopwatch."""
    points_since: float
    """What to add to their times: few spans are sent, so that it is not done for all."""
    record: AttemptRecord
    plugins: tuple[PluginTime, ...] = ()
    """Calls of plugins on the stopwatch, if cycles are to be told of in detail."""
    error: str = ""
    keep: bool = False
    """The attempt did not bind, or a decision was refused: emit the span whatever the sampler said."""
    slow: bool = False
    """The attempt took long: emit the span if there is room for one more."""


class Preempt(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of lower priority make room for another.

    Tell the queue that the preemption runs. Then tell it the result. Delete the victims. At last tell the
    queue that the preemption is over, whatever came of it. Without victims only the result is told.
    """

    result: AttemptResult
    """Of the attempt of the pod that room is made for."""
    session: str
    profile: str
    node: str
    victims: tuple[Victim, ...] = ()
    """Pods to be deleted, the most important first."""
    sent_back: tuple[Victim, ...] = ()
    """Pods that were only assumed on the node. They are not any more, and nothing is to be deleted."""
    trace: str
    """Traceparent of the cycle that chose the victims."""


class AskExtenders(msgspec.Struct, frozen=True):
    """Make these calls at the same time, and tell the core the answers with the ticket. No other pod is
    scheduled meanwhile, and the node table does not change."""

    ticket: int
    calls: Calls


class AwaitPosition(msgspec.Struct, frozen=True):
    """Call `Work` again when the view has reached this position."""

    position: int


class Conflicted(msgspec.Struct, frozen=True):
    """Count a decision that the binder refused, by cause."""

    cause: str
    retried: bool
    """The same attempt decides once more."""


class PluginFailed(msgspec.Struct, frozen=True):
    """Count and log a plugin that raised, or answered what its extension point does not know. What becomes of
    the pod is said by another effect."""

    plugin: str
    point: str
    """The extension point, as the reference spells it in messages."""
    detail: str


class Reply(msgspec.Struct, frozen=True):
    """Answer the request with this ticket."""

    ticket: int
    reply: WouldGoReply


class Declined(msgspec.Struct, frozen=True):
    """Refuse the request with this ticket."""

    ticket: int
    reason: str


Effect: TypeAlias = (
    Bind
    | Done
    | Preempt
    | Record
    | CycleSpan
    | AskExtenders
    | AwaitPosition
    | Conflicted
    | PluginFailed
    | Reply
    | Declined
)
