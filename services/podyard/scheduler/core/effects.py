"""What the scheduler's core wants done. The shell does it in the order of the list."""

from typing import TypeAlias

import msgspec

from podyard.framework.cycle import PointTime
from podyard.framework.extenders import Calls
from podyard.proto.binder_api import BindRequest
from podyard.proto.decisions import AttemptRecord, Victim
from podyard.proto.queue_api import AttemptResult


class Bind(msgspec.Struct, frozen=True):
    """Send to the binder, the same again until it answers."""

    request: BindRequest


class Done(msgspec.Struct, frozen=True):
    """Tell the queue, the same again until it answers; results of one attempt in this order."""

    result: AttemptResult
    goes_on: bool = False
    """It only tells of assumed room that came free: no attempt has ended."""


class Record(msgspec.Struct, frozen=True):
    """Keep the record of an attempt that did not bind."""

    record: AttemptRecord


class CycleSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The span of a scheduling cycle with one child an extension point. Times are seconds since 1970, UTC."""

    trace: str
    """The cycle span's own traceparent."""
    parent: str
    """The attempt's root."""
    start: float
    end: float
    points: tuple[PointTime, ...]
    record: AttemptRecord
    error: str = ""
    keep: bool = False
    """The outcome is bad: send it whatever the sampler said."""


class Preempt(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of lower priority are to make room. Without `victims` only the result is to be told.

    Tell the queue that the preemption runs, then the result; end the victims; then tell the queue that it is over, whatever came of it.
    """

    result: AttemptResult
    """Of the preemptor's attempt."""
    session: str
    profile: str
    node: str
    victims: tuple[Victim, ...] = ()
    """To be deleted; most important first."""
    sent_back: tuple[Victim, ...] = ()
    """Victims that were only assumed on the node, and are no more."""
    trace: str
    """Of the preemptor's cycle."""


class AskExtenders(msgspec.Struct, frozen=True):
    """Make these calls at the same time, and tell the core what was answered. No other pod is scheduled meanwhile."""

    number: int
    calls: Calls


class AwaitPosition(msgspec.Struct, frozen=True):
    """Call `Work` again when the view has reached this position."""

    position: int


class Conflicted(msgspec.Struct, frozen=True):
    """The binder refused a decision: to be counted by cause."""

    cause: str
    retried: bool
    """The decision will be made again within the same attempt."""


class PluginFailed(msgspec.Struct, frozen=True):
    """A plugin raised, or answered nonsense; what becomes of the pod is told for itself."""

    plugin: str
    point: str
    """The extension point, as the reference spells it in messages."""
    detail: str


Effect: TypeAlias = (
    Bind | Done | Preempt | Record | CycleSpan | AskExtenders | AwaitPosition | Conflicted | PluginFailed
)
