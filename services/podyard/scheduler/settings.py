"""What can be set of the scheduler."""

from typing import Annotated

import msgspec
from msgspec import Meta


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `scheduler` of the options file."""

    slice_s: Annotated[float, Meta(gt=0, le=0.1)] = 0.005
    """Seconds of cycles between two looks at the bus; a pop asks for as many pods as take so long. Longer:
    larger batches; shorter: a pod of high priority waits less behind pods that were popped before it."""
    pop_wait_s: Annotated[float, Meta(gt=0, le=10)] = 1.0
    """How long the queue may hold a pop when nothing is ready."""
    heartbeat_s: Annotated[float, Meta(gt=0, le=5)] = 2.0
    """Between two signs of life; the queue takes a session for dead after 10 s."""
    bind_requests: Annotated[int, Meta(ge=1, le=64)] = 8
    """Requests to the binder at once. The binder merges what comes within 10 ms into one commit."""
    most_under_way: Annotated[int, Meta(ge=16)] = 512
    """Decisions with the binder at once; fewer while it refuses many, and on fewer than 2,000 nodes. With 256
    a lone scheduler's commits hold half as many pods and each pod costs 3 % more CPU, with 128 10 %; more
    than 512 gain nothing."""
    spans_by_plugin: bool = False
    """Whether the span of a cycle that is kept has one below it for each call of a plugin. Every cycle is
    timed plugin by plugin then, not one in ten: for looking into a lab, not for load. What a plugin said of a
    pod's like before takes no call."""
    most_unanswered: Annotated[int, Meta(ge=1)] = 4096
    """Decided pods without the binder's answer above which nothing is popped: a missing binder must not let
    them grow without bound."""
