"""One cycle: all Deschedule plugins of all profiles, then all Balance plugins, within the limits.

`run` is a generator. It yields each eviction that is to be carried out and is sent what became of it; it returns the record of the cycle.
Source: pkg/descheduler/descheduler.go, runProfiles; pkg/descheduler/evictions/evictions.go (v0.36.0).
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from podyard.descheduler.core import building
from podyard.descheduler.core.building import BuiltProfile
from podyard.descheduler.core.framework import Answer, Evict, Plugin, Run
from podyard.descheduler.core.limits import SENTENCES, Limits
from podyard.descheduler.core.policy import ExtensionPoint, Policy
from podyard.descheduler.core.state import CycleState
from podyard.objects.node import Node
from podyard.objects.pod import Pod

LEAST_NODES: Final = 2
"""With fewer ready nodes a pod has nowhere to go: the cycle is skipped."""


class Eviction(NamedTuple):
    """Carry this out."""

    pod: Pod
    profile: str
    plugin: str
    reason: str
    """In words; the plugin's name if it gave none."""
    grace_period_s: int | None
    """None means the pod's own."""


class EvictionDone(NamedTuple):
    """The pod is on its way out; `gone` if it takes no room any more, as in a dry run."""

    gone: bool = False


class EvictionFailed(NamedTuple):
    """It stays."""

    reason: str


EvictionResult: TypeAlias = EvictionDone | EvictionFailed


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One pod that a plugin wanted to go, and what became of it."""

    namespace: str
    name: str
    uid: str
    node: str
    answer: Answer
    reason: str = ""
    """Why it was chosen."""
    problem: str = ""
    """Why it stays; empty if it goes."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one plugin."""

    profile: str
    extension_point: ExtensionPoint
    plugin: str
    attempts: tuple[Attempt, ...] = ()
    error: str = ""
    """Why the plugin could not do its work; what it did before stands."""

    @property
    def evicted(self) -> tuple[Attempt, ...]:
        """Those that go, in order."""
        return tuple(one for one in self.attempts if one.answer is Answer.EVICTED)


class CycleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one cycle did."""

    nodes: int
    """Ready nodes that the policy selects."""
    skipped: str = ""
    """Why no plugin ran; empty if they did."""
    steps: tuple[Step, ...] = ()

    @property
    def evicted(self) -> int:
        """How many pods go."""
        return sum(len(step.evicted) for step in self.steps)


class PluginError(Exception):
    """A plugin cannot do its work in this cycle."""


Cycle: TypeAlias = Generator[Eviction, EvictionResult, CycleRecord]


def run(policy: Policy, plugins: Mapping[str, type[Plugin]], state: CycleState, now: float) -> Cycle:
    """One cycle.

    :param plugins: by name
    :param state: the cluster; kept up with what the cycle does
    :param now: UTC seconds, for all ages
    :raises PolicyError: if the profiles cannot be built
    """
    profiles = building.build(policy, plugins, state, now)
    selector = building.node_selector(policy)
    nodes = [node for node in state.ready_nodes() if selector.matches(node.metadata.labels)]
    if len(nodes) < LEAST_NODES:
        return CycleRecord(
            nodes=len(nodes), skipped=f"{len(nodes)} ready nodes are selected, at least {LEAST_NODES} are needed"
        )
    cycle = _Cycle(policy, state, now)
    steps: list[Step] = []
    for profile, point, plugin, plugin_run in _runs(profiles, nodes):
        steps.append((yield from cycle.step(profile, point, plugin, plugin_run)))
    return CycleRecord(nodes=len(nodes), steps=tuple(steps))


def _runs(profiles: list[BuiltProfile], nodes: list[Node]) -> Iterator[tuple[str, ExtensionPoint, str, Run]]:
    """The plugins in the order in which they run; each begins when its turn comes."""
    for profile in profiles:
        for plugin in profile.deschedule:
            yield profile.name, "Deschedule", plugin.NAME, plugin.deschedule(list(nodes))
    for profile in profiles:
        for plugin in profile.balance:
            yield profile.name, "Balance", plugin.NAME, plugin.balance(list(nodes))


class _Cycle:
    """What the steps of a cycle share."""

    def __init__(self, policy: Policy, state: CycleState, now: float) -> None:
        self._grace_s = policy.grace_period_seconds
        self._limits = Limits(policy)
        self._state = state
        self._now = now

    def step(
        self, profile: str, point: ExtensionPoint, plugin: str, wanted: Run
    ) -> Generator[Eviction, EvictionResult, Step]:
        attempts: list[Attempt] = []
        error = ""
        try:
            ask = next(wanted, None)
            while ask is not None:
                attempt = yield from self._try(ask, profile, plugin)
                attempts.append(attempt)
                ask = _answer(wanted, attempt.answer)
        except PluginError as problem:
            error = str(problem)
        return Step(profile=profile, extension_point=point, plugin=plugin, attempts=tuple(attempts), error=error)

    def _try(self, ask: Evict, profile: str, plugin: str) -> Generator[Eviction, EvictionResult, Attempt]:
        answer, problem = self._limits.reached(ask.pod), ""
        if answer is not None:
            problem = SENTENCES[answer]
        else:
            result = yield Eviction(ask.pod, profile, plugin, ask.reason or plugin, self._grace_s)
            if isinstance(result, EvictionDone):
                answer = Answer.EVICTED
                self._limits.count(ask.pod)
                self._state.evicted(ask.pod, self._now, gone=result.gone)
            else:
                answer, problem = Answer.FAILED, result.reason
        metadata = ask.pod.metadata
        return Attempt(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            node=ask.pod.spec.node_name,
            answer=answer,
            reason=ask.reason,
            problem=problem,
        )


def _answer(wanted: Run, answer: Answer) -> Evict | None:
    """The plugin's next wish; None when it is done."""
    try:
        return wanted.send(answer)
    except StopIteration:
        return None
