"""What a round of the eviction manager asks, and what it may be told.

A virtual node answers at once out of the agent's own state, a real host when it has done what was asked;
both run the same rounds.
"""

from collections.abc import Generator
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from podyard.node_agent.core.eviction.file_systems import Collector, Layout
from podyard.node_agent.core.eviction.stats import Summary
from podyard.objects.pod import Pod


class Question(Enum):
    """What needs nothing but an answer."""

    LAYOUT = "layout"
    """Where images and writable layers live: answered by a `Layout`."""
    READING = "reading"
    """What is left, and what pods use: answered by a `Reading`."""


class Kill(NamedTuple):
    """Begin to end a pod, and tell it why: answered by `DONE` when that has begun."""

    pod: Pod
    grace_s: int
    """Replaces the pod's own grace period; values below 1 count as 1."""
    message: str
    annotations: dict[str, str] | None
    """Of its Evicted event; None if it has none to carry."""
    signal: str
    """What is to be relieved: an eviction signal, or a limit of local storage."""
    disruption: bool = True
    """Whether the pod's status gets the condition DisruptionTarget."""
    rank: tuple[str, ...] = ()
    """namespace/name of the pods in the order in which they would go, at most the first 10."""
    sooner: bool = False
    """It was being ended already, softly, and now has less time."""


Ask: TypeAlias = Question | Collector | Kill
"""A `Collector` is asked to collect all that it may: answered by `DONE` when it has."""


class Reading(NamedTuple):
    """What was measured, and when."""

    summary: Summary
    pods: tuple[Pod, ...]
    """Those of which something runs or will, as they were before anything was measured."""
    at: float
    """UTC seconds, now; the clock of the observations."""


class Failed(NamedTuple):
    """What was asked could not be done, or not be found out."""

    why: str


class Done(Enum):
    """What was asked is done."""

    DONE = "done"


DONE: Final = Done.DONE

Answer: TypeAlias = Layout | Reading | Done | Failed


class Round(NamedTuple):
    """What a round came to."""

    starved: str = ""
    """The resource that it tries to reclaim, empty if there is none to."""
    error: str = ""
    """Why it found out nothing, in the reference's words."""
    unread: str = ""
    """Why it has no reading. The reference logs it, and counts the round as a good one."""
    failures: tuple[str, ...] = ()
    """What could not be collected, and which pods could not be killed."""
    collected: tuple[Collector, ...] = ()
    """All that was asked to be collected, also where that failed."""
    kills: tuple[Kill, ...] = ()
    """All that was asked to end, also where that failed."""
    goes_by: tuple[tuple[str, float], ...] = ()
    """By what a pod was to be chosen: the signal of each threshold that acts, and when it was measured, UTC
    seconds; without those of which nobody knows when."""


Dialogue: TypeAlias = Generator[Ask, Answer, Round]
