"""What a cycle asks for, and what it is answered."""

from typing import Final, NamedTuple, TypeAlias

from podyard.objects.pod import Pod


class Planned(NamedTuple):
    """What the plan says of one pod."""

    node: str = ""
    """Where what comes in its place would go; empty: nowhere, nothing comes, or nobody asked."""
    problem: str = ""
    """Why it should stay; empty: it should go."""


NOT_PLANNED: Final = Planned()


class Eviction(NamedTuple):
    """Carry this out."""

    pod: Pod
    profile: str
    plugin: str
    reason: str
    """In words; the plugin's name if it gave none."""
    grace_period_s: int | None
    """None means the pod's own."""
    planned: Planned = NOT_PLANNED


class EvictionDone(NamedTuple):
    """The pod is on its way out; `gone` if it takes no room any more, as in a dry run."""

    gone: bool = False
    trace: str = ""
    """Traceparent of the eviction."""


class EvictionFailed(NamedTuple):
    """It stays."""

    reason: str
    ends_cycle: bool = False
    """Nobody evicts: the next one would wait as long, in vain."""
    trace: str = ""


EvictionResult: TypeAlias = EvictionDone | EvictionFailed
