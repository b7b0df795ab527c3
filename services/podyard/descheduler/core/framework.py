"""What a plugin is, what it is given, and how it asks for evictions.

A plugin's run is a generator: `answer = yield Evict(...)`. Asking is all it does; the cycle checks limits,
the shell evicts. How to write one: docs/descheduler-policy.md, plugins of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

from podyard.descheduler.core.arguments import Args
from podyard.descheduler.core.state import CycleState
from podyard.framework.events import ClusterEvent
from podyard.framework.status import described
from podyard.objects.node import Node
from podyard.objects.pod import Pod


class Evict(NamedTuple):
    """A plugin wants this pod to go. `reason` in words; may be empty."""

    pod: Pod
    reason: str = ""


class Answer(Enum):
    """What became of it."""

    EVICTED = "evicted"
    FAILED = "failed"
    """The eviction was refused, e.g. by a disruption budget: final for this cycle, no retry
    (docs/rules.md, a-refusal-is-final-for-the-cycle)."""
    NODE_LIMIT = "nodeLimit"
    """No more pods of this node may go: leave the node."""
    NAMESPACE_LIMIT = "namespaceLimit"
    """No more pods of this namespace may go: skip the pod."""
    TOTAL_LIMIT = "totalLimit"
    """No more pods may go in this cycle: stop."""
    STAYS = "stays"
    """The plan has it stay (`plan: obey`): for the plugin the same as `FAILED`."""


class PluginError(Exception):
    """A plugin cannot do its work in this cycle. Whatever else it raises counts as one."""

    @classmethod
    def wrapping(cls, fault: Exception) -> PluginError:
        """What a plugin raised, in words; `fault` itself if it is a PluginError already."""
        return fault if type(fault) is PluginError else cls(described(fault))


class PluginFault(NamedTuple):
    """A plugin did amiss."""

    plugin: str
    point: str
    """The extension point as policies call it."""
    detail: str


Run: TypeAlias = Generator[Evict, Answer, None]
"""One run of a plugin."""


def evict_each(wanted: Iterable[Evict]) -> Generator[Evict, Answer, Answer | None]:
    """Ask for one after the other, until no more of this node or of all may go: the answer that said so,
    None if none did."""
    for one in wanted:
        answer = yield one
        if answer in (Answer.TOTAL_LIMIT, Answer.NODE_LIMIT):
            return answer
    return None


class Verdict(NamedTuple):
    """Whether a pod may go; `reasons` are all checks that say no. A refusal without reasons: its annotation
    forbids it."""

    allowed: bool
    reasons: tuple[str, ...] = ()


class Evictor(Protocol):
    """Which pods may go, as the profile's filters say."""

    def filter(self, pod: Pod) -> Verdict:
        """Whether the pod may be considered at all."""
        ...

    def pre_eviction_filter(self, pod: Pod) -> Verdict:
        """Whether it may go now, e.g. because another node would take it."""
        ...


class Handle(NamedTuple):
    """What a plugin may look at."""

    state: CycleState
    evictor: Evictor
    now: float
    """UTC seconds, the same for the whole cycle."""


class Plugin(Protocol):
    """Base of all plugins. Made anew for every cycle."""

    NAME: ClassVar[str]
    ARGS: ClassVar[type[Args]]

    def __init__(self, args: Any, handle: Handle) -> None:
        """
        :raises ValueError: if it cannot be built from these arguments
        """
        ...

    @classmethod
    def faults(cls, args: Any) -> list[str]:
        """What is wrong with the arguments: all of it."""
        ...


class DeschedulePlugin(Protocol):
    """Evicts pods that should not be where they are. Runs before all Balance plugins."""

    NAME: ClassVar[str]

    def deschedule(self, nodes: list[Node]) -> Generator[Evict, Answer, None]:
        """:param nodes: ready nodes that the policy selects, sorted by name"""
        ...


class BalancePlugin(Protocol):
    """Evicts pods so that others are spread better."""

    NAME: ClassVar[str]

    def balance(self, nodes: list[Node]) -> Generator[Evict, Answer, None]:
        """:param nodes: ready nodes that the policy selects, sorted by name"""
        ...


RunPlugin: TypeAlias = DeschedulePlugin | BalancePlugin
"""Wants pods to go."""


class Target(NamedTuple):
    """Where a pod would go."""

    node: Node
    coming: Mapping[str, Sequence[Pod]]
    """Pods that go elsewhere in this cycle, as they were, by the node where they were planned to go."""


class TargetPlugin(Protocol):
    """Says whether a pod that it wants to go would be better off elsewhere. To one without it every other
    node is better."""

    NAME: ClassVar[str]

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Asked between the wish and its answer, of every node on which the scheduler may put what comes in
        the pod's place."""
        ...


EventHint: TypeAlias = Callable[[object | None, object | None], str]
"""Of the changed object before and after (None: it was not, or is no more): what there is to look at, in
words; empty: nothing."""


class Registration(NamedTuple):
    """One entry of a plugin's `events_to_register`: an event that may have made work for it."""

    event: ClusterEvent
    hint: EventHint | None = None
    """Without one every such event counts; so does one that raises."""


@runtime_checkable
class EventPlugin(Protocol):
    """Wants to run when something happens, and not only when an interval is over."""

    NAME: ClassVar[str]

    @classmethod
    def events_to_register(cls, args: Any) -> Iterable[Registration]:
        """Asked once, when the service starts."""
        ...


class FilterPlugin(Protocol):
    """Says which pods may go."""

    NAME: ClassVar[str]

    def filter(self, pod: Pod) -> Verdict: ...


class PreEvictionFilterPlugin(Protocol):
    """Says which pods may go now."""

    NAME: ClassVar[str]

    def pre_eviction_filter(self, pod: Pod) -> Verdict: ...
