"""One cycle: all Deschedule plugins of all profiles, then all Balance plugins, within the limits.

`run` is a generator. It yields each eviction that is to be carried out and is sent what became of it; it
returns the record of the cycle. Source: pkg/descheduler/descheduler.go, runProfiles;
pkg/descheduler/evictions/evictions.go (v0.36.0).
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias, cast

import msgspec

from podyard.descheduler.core import building, doubtful
from podyard.descheduler.core.advice import Advisor
from podyard.descheduler.core.building import BuiltProfile
from podyard.descheduler.core.doubtful import Doubtful
from podyard.descheduler.core.evictions import NOT_PLANNED, Eviction, EvictionDone, EvictionResult
from podyard.descheduler.core.framework import (
    Answer,
    Evict,
    Plugin,
    PluginError,
    PluginFault,
    Run,
    RunPlugin,
)
from podyard.descheduler.core.limits import SENTENCES, Limits
from podyard.descheduler.core.policy import ExtensionPoint, Policy
from podyard.descheduler.core.spread import Spread
from podyard.descheduler.core.state import CycleState
from podyard.descheduler.core.triggers import TO_ALL, Called, CycleCause
from podyard.framework.status import told
from podyard.objects.node import Node
from podyard.objects.pod import Pod

MOST_ASKS: Final = 4
"""Evictions that one run of a plugin may want for each pod there is: one that never ends is stopped;
semi-arbitrary."""

LEAST_NODES: Final = 2
"""With fewer ready nodes a pod has nowhere to go: the cycle is skipped."""


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
    planned_node: str = ""
    """Where what comes in its place would go."""
    plan_problem: str = ""
    """Why it should have stayed by the plan, and went."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one plugin."""

    profile: str
    extension_point: ExtensionPoint
    plugin: str
    attempts: tuple[Attempt, ...] = ()
    error: str = ""
    """Why the plugin could not do its work; what it did before stands."""
    took_s: float = 0.0
    """Seconds, with the evictions that it waited for."""

    @property
    def evicted(self) -> tuple[Attempt, ...]:
        """Those that go, in order."""
        return tuple(one for one in self.attempts if one.answer is Answer.EVICTED)


class CycleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one cycle did."""

    faults: tuple[PluginFault, ...] = ()
    """What plugins did amiss; the cycle went on without them."""

    nodes: int
    """Ready nodes that the policy selects."""
    skipped: str = ""
    """Why no plugin ran; empty if they did."""
    steps: tuple[Step, ...] = ()
    doubtful: tuple[Doubtful, ...] = ()
    """What of the policy cannot be meant for this cluster."""
    causes: tuple[CycleCause, ...] = ()
    """Events that started it, the first of them; empty: its time had come."""
    ended: str = ""
    """Why it went no further; empty: all plugins ran."""
    before: Spread = {}
    """How much of nodes was requested; empty if no pod was asked about."""
    after: Spread = {}
    """How much will be, if all goes as planned."""

    @property
    def evicted(self) -> int:
        """How many pods go."""
        return sum(len(step.evicted) for step in self.steps)


Cycle: TypeAlias = Generator[Eviction, EvictionResult, CycleRecord]

Timer: TypeAlias = Callable[[], float]
"""Seconds of a monotonic clock."""


def untimed() -> float:
    """The timer of who does not want to know."""
    return 0.0


def run(
    policy: Policy,
    plugins: Mapping[str, type[Plugin]],
    state: CycleState,
    now: float,
    called: Called = TO_ALL,
    advisor: Advisor | None = None,
    timer: Timer = untimed,
) -> Cycle:
    """One cycle.

    :param plugins: by name
    :param state: the cluster; kept up with what the cycle does
    :param now: UTC seconds, for all ages
    :param called: which plugins run, and why
    :param advisor: the plan; None: nobody plans
    :param timer: measures the plugins' runs, and decides nothing
    :raises PolicyError: if the profiles cannot be built
    """
    profiles = building.build(policy, plugins, state, now)
    selector = building.node_selector(policy)
    ready = state.ready_nodes()
    nodes = [node for node in ready if selector.matches(node.metadata.labels)]
    doubts = doubtful.in_cluster(policy, ready)
    if len(nodes) < LEAST_NODES:
        return CycleRecord(
            nodes=len(nodes),
            skipped=f"{len(nodes)} ready nodes are selected, at least {LEAST_NODES} are needed",
            doubtful=doubts,
            causes=called.causes,
            faults=called.faults,
        )
    cycle = _Cycle(policy, state, now, advisor, timer)
    steps: list[Step] = []
    for profile, point, plugin, begin in _runs(profiles, nodes):
        if cycle.ended:
            break
        if called.runs is not None and (profile, plugin.NAME) not in called.runs:
            continue
        steps.append((yield from cycle.step(profile, point, plugin, begin)))
    faults = [fault for profile in profiles for fault in profile.evictor.faults]
    before, after = ({}, {}) if advisor is None else advisor.spread()
    return CycleRecord(
        nodes=len(nodes),
        steps=tuple(steps),
        faults=(*called.faults, *cycle.faults, *faults, *(() if advisor is None else advisor.faults)),
        doubtful=doubts,
        causes=called.causes,
        ended=cycle.ended,
        before=before,
        after=after,
    )


Begin: TypeAlias = Callable[[], Run]


def _runs(profiles: list[BuiltProfile], nodes: list[Node]) -> Iterator[tuple[str, ExtensionPoint, RunPlugin, Begin]]:
    """The plugins in the order in which they run; each begins when its turn comes."""
    for profile in profiles:
        for plugin in profile.deschedule:
            yield profile.name, "Deschedule", plugin, partial(plugin.deschedule, list(nodes))
    for profile in profiles:
        for plugin in profile.balance:
            yield profile.name, "Balance", plugin, partial(plugin.balance, list(nodes))


class _Cycle:
    """What the steps of a cycle share."""

    def __init__(self, policy: Policy, state: CycleState, now: float, advisor: Advisor | None, timer: Timer) -> None:
        self._grace_s = policy.grace_period_seconds
        self._limits = Limits(policy)
        self._state = state
        self._now = now
        self._advisor = advisor
        self._timer = timer
        self.faults: list[PluginFault] = []
        self.ended = ""
        """Why no eviction is tried any more."""

    def step(
        self, profile: str, point: ExtensionPoint, plugin: RunPlugin, begin: Begin
    ) -> Generator[Eviction, EvictionResult, Step]:
        """One plugin's run. Whatever it raises ends that run, and no other."""
        attempts: list[Attempt] = []
        error, began = "", self._timer()
        most = MOST_ASKS * (len(self._state.pods) + 1)
        try:
            wanted = _begun(begin)
            ask = _next(wanted, None)
            while ask is not None:
                attempt = yield from self._try(ask, profile, plugin)
                attempts.append(attempt)
                if len(attempts) > most:
                    raise PluginError(f"wanted {len(attempts)} evictions, there are {len(self._state.pods)} pods")
                if self.ended:
                    break
                ask = _next(wanted, attempt.answer)
        except PluginError as problem:
            error = told(str(problem))
            self.faults.append(PluginFault(plugin.NAME, point, error))
        return Step(
            profile=profile,
            extension_point=point,
            plugin=plugin.NAME,
            attempts=tuple(attempts),
            error=error,
            took_s=self._timer() - began,
        )

    def _try(self, ask: Evict, profile: str, plugin: RunPlugin) -> Generator[Eviction, EvictionResult, Attempt]:
        answer, problem = self._limits.reached(ask.pod), ""
        planned = NOT_PLANNED
        if answer is not None:
            problem = SENTENCES[answer]
        else:
            advisor = self._advisor
            planned = NOT_PLANNED if advisor is None else advisor.advise(ask.pod, plugin)
            wanted = Eviction(ask.pod, profile, plugin.NAME, ask.reason or plugin.NAME, self._grace_s, planned)
            if advisor is not None and advisor.obey and planned.problem:
                advisor.keep(wanted)
                answer, problem = Answer.STAYS, planned.problem
            else:
                answer, problem = self._after(ask.pod, (yield wanted))
            if advisor is not None:
                advisor.settle(gone=answer is Answer.EVICTED)
        metadata = ask.pod.metadata
        return Attempt(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            node=ask.pod.spec.node_name,
            answer=answer,
            reason=ask.reason,
            problem=problem,
            planned_node=planned.node,
            plan_problem=planned.problem if answer is Answer.EVICTED else "",
        )

    def _after(self, pod: Pod, result: EvictionResult) -> tuple[Answer, str]:
        if isinstance(result, EvictionDone):
            self._limits.count(pod)
            self._state.evicted(pod, self._now, gone=result.gone)
            return Answer.EVICTED, ""
        self.ended = result.reason if result.ends_cycle else ""
        return Answer.FAILED, result.reason


def _begun(begin: Begin) -> Run:
    """
    :raises PluginError: if the plugin raises, or answers no generator
    """
    try:
        wanted = begin()
    except Exception as fault:  # the boundary to plugins
        raise PluginError.wrapping(fault) from fault
    if not isinstance(cast("object", wanted), Generator):
        raise PluginError(f"answered {type(wanted).__name__}, not a generator of evictions")
    return wanted


def _next(wanted: Run, answer: Answer | None) -> Evict | None:
    """The plugin's next wish; None when it is done.

    :param answer: what became of the wish before; None: there was none
    :raises PluginError: if the plugin raises, or wants what is no eviction
    """
    try:
        ask = next(wanted) if answer is None else wanted.send(answer)
    except StopIteration:
        return None
    except Exception as fault:  # the boundary to plugins
        raise PluginError.wrapping(fault) from fault
    parts: tuple[object, ...] = (ask, *ask) if isinstance(cast("object", ask), Evict) else (ask,)
    if [type(part) for part in parts] != [Evict, Pod, str]:
        raise PluginError(f"wants the eviction of {type(ask).__name__}, not Evict(pod, reason)")
    return Evict(ask.pod, told(ask.reason))
