"""The rounds of one node's eviction manager.

Source: pkg/kubelet/eviction/eviction_manager.go, synchronize (v1.36.2); data in
tests/conformance/data/synchronize.
"""

import copy
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from podyard.node_agent.core.eviction import critical, file_systems, local_storage, messages, signals
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.dialogue import (
    DONE,
    Answer,
    Ask,
    Dialogue,
    Failed,
    Kill,
    Question,
    Reading,
    Round,
)
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.ranking import rank
from podyard.node_agent.core.eviction.stats import Observation
from podyard.node_agent.core.eviction.thresholds import Threshold, parse_thresholds
from podyard.objects.pod import Pod

IMMEDIATE_GRACE_S: Final = 1
"""Grace period of a hard eviction (docs/rules.md, hard-eviction-grants-a-second). Source:
immediateEvictionGracePeriodSeconds."""

CLEANUP_TIMEOUT_S: Final = 30.0
"""How long the manager waits for an evicted pod to be gone before it looks again. Source:
podCleanupTimeout."""

MONITORING_INTERVAL_S: Final = 10.0
"""Seconds between two rounds. Source: pkg/kubelet/kubelet.go, evictionMonitoringPeriod."""

SHORTEST_KILL_S: Final = 10.0
"""How long a kill may take at least. Source: pkg/kubelet/pod_workers.go, killPodNow (minTimeout)."""


class EvictionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How one node's manager is set up."""

    thresholds: tuple[Threshold, ...] = parse_thresholds()
    """Those of containerfs as the user gave them."""
    transition_s: float = 300.0
    """Seconds a condition stays after it was last observed. Source: evictionPressureTransitionPeriod."""
    max_pod_grace_s: int = 0
    """Longest grace period of a softly evicted pod. Source: evictionMaxPodGracePeriod."""
    local_storage_isolation: bool = True
    """Whether limits of local storage are enforced. Source: localStorageCapacityIsolation."""

    @classmethod
    def of(cls, found: KubeletConfiguration) -> "EvictionConfig":
        """As a KubeletConfiguration says.

        :raises ThresholdError: with all faults of its thresholds
        """
        return cls(
            thresholds=found.thresholds(),
            transition_s=found.eviction_pressure_transition_period,
            max_pod_grace_s=found.eviction_max_pod_grace_period,
            local_storage_isolation=found.local_storage_capacity_isolation,
        )


class _Going(NamedTuple):
    """A pod that this manager has begun to end."""

    resource: str
    """What it was chosen for; empty if it exceeded a limit."""
    soft: bool
    until: float
    """When it should have ended, UTC seconds."""


class EvictionManager:
    """State of one node's manager: when thresholds and conditions were observed, and which pods it has begun
    to end. It lives in the process only."""

    def __init__(self, config: EvictionConfig) -> None:
        self.config = config
        self._layout: Layout | None = None
        self._thresholds = config.thresholds
        """Once the layout is known, with those of containerfs that follow from it."""
        self._first_observed: dict[Threshold, float] = {}
        self._condition_observed: dict[str, float] = {}
        self._conditions: frozenset[str] = frozenset()
        self._met: tuple[Threshold, ...] = ()
        self._last: dict[str, Observation] = {}
        self._going: dict[str, _Going] = {}
        """By uid."""

    @property
    def conditions(self) -> frozenset[str]:
        """The pressure conditions that hold, as of the last reading."""
        return self._conditions

    @property
    def thresholds_met(self) -> tuple[Threshold, ...]:
        """Thresholds that act: below their value, or held by their minimum reclaim, and their grace period is
        over."""
        return self._met

    @property
    def first_observed(self) -> dict[Threshold, float]:
        """Since when (UTC seconds) each threshold is below its value, or held, without a break."""
        return dict(self._first_observed)

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """All thresholds; once the layout is known, with those of containerfs that follow from it."""
        return self._thresholds

    @property
    def layout(self) -> Layout | None:
        """Where images and writable layers live; None: no round has found out yet."""
        return self._layout

    @property
    def ending(self) -> frozenset[str]:
        """Uids of the pods that it has begun to end."""
        return frozenset(self._going)

    def moments(self) -> Iterator[float]:
        """When it may do more than at the last round though nothing is measured differently, UTC seconds:
        grace periods end, and it no longer waits for a pod."""
        yield from (since + threshold.grace_s for threshold, since in self._first_observed.items())
        yield from (going.until for going in self._going.values())

    def copied(self) -> "EvictionManager":
        """Another one that stands where this one does, and takes whatever it reads next for fresh."""
        made = copy.copy(self)
        made._condition_observed = dict(self._condition_observed)
        made._going = dict(self._going)
        made._last = {}
        return made

    def restarted(self, config: EvictionConfig, now: float) -> "EvictionManager":
        """One that goes by another configuration, and knows what a restarted kubelet knows: the conditions
        that were reported, and which pods are being ended."""
        made = EvictionManager(config)
        made.restore(self._conditions, now)
        made._going = dict(self._going)
        return made

    def restore(self, conditions: frozenset[str], now: float) -> None:
        """Take over the conditions that an agent before this one had reported.

        They count as observed now, so that a restart under pressure neither wipes them nor keeps them for
        ever (docs/rules.md, restart-keeps-the-pressure).
        """
        self._condition_observed = dict.fromkeys(conditions, now)
        self._conditions = conditions

    def round(self) -> Dialogue:
        """Look once: note what is met, collect what can be collected, and have at most one pod ended, or all
        that exceed a limit. One round at a time."""
        if not self.config.thresholds and not self.config.local_storage_isolation and not self._conditions:
            return Round()
        thresholds = self._thresholds
        layout = self._layout
        if layout is None:
            found = yield Question.LAYOUT
            if not isinstance(found, Layout):
                return Round(error=f"eviction manager: failed to get HasDedicatedImageFs: {_why(found)}")
            layout = self._layout = found
            self._thresholds = file_systems.derived(thresholds, layout)
            # What follows from the layout counts from the next round on, but what a user gave for containerfs
            # is overridden at once (docs/rules.md, containerfs-follows-from-the-second-round).
            thresholds = file_systems.overridden(thresholds, layout)
        reading = yield Question.READING
        if not isinstance(reading, Reading):
            # Nothing is known, so nothing changes: no condition passes meanwhile
            # (docs/rules.md, a-failed-reading-changes-nothing).
            return Round(unread=f"eviction manager: failed to get summary stats: {_why(reading)}")
        fresh = self._note(reading, thresholds)
        if self.config.local_storage_isolation:
            exceeding = self._exceeding(reading, layout)
            if exceeding:
                return Round(kills=tuple(exceeding), failures=(yield from self._kill(exceeding, reading.at)))
        acting = [one for one in fresh if one.hard or not self._waits(reading.at)]
        if not acting:
            return Round()
        return (yield from self._reclaim(acting, reading, layout))

    def _reclaim(self, acting: Sequence[Threshold], reading: Reading, layout: Layout) -> Dialogue:
        """Relieve the most urgent of the thresholds that act."""
        urgent = min(acting, key=_urgency)
        resource = signals.ALL[urgent.signal].resource
        failures: list[str] = []
        collectors = file_systems.collected(layout, urgent.signal)
        for collector in collectors:
            answer = yield collector
            if answer is not DONE:
                failures.append(f"{collector.value} could not be collected: {_why(answer)}")
        if collectors and (yield from self._relieved()):
            return Round(starved=resource, failures=tuple(failures), collected=collectors)
        kill = self._choose(urgent, acting, reading, layout)
        kills = () if kill is None else (kill,)
        failures += yield from self._kill(kills, reading.at)
        return Round(
            starved=resource,
            failures=tuple(failures),
            collected=collectors,
            kills=kills,
            goes_by=tuple(_measured(acting, reading)) if reading.pods else (),
        )

    def _relieved(self) -> Generator[Ask, Answer, bool]:
        """Whether after a collection no threshold is left, of whatever signal, soft ones that wait included
        (docs/rules.md, collection-spares-if-nothing-is-left)."""
        again = yield Question.READING
        if not isinstance(again, Reading):
            return False
        observed = again.summary.known_signals()
        return not any(_is_met(one, observed, with_reclaim=True) for one in self._thresholds)

    def _kill(self, kills: Sequence[Kill], now: float) -> Generator[Ask, Answer, tuple[str, ...]]:
        """Have pods ended; returns what failed. A pod that could not be killed may be chosen again."""
        failures: list[str] = []
        for kill in kills:
            answer = yield kill
            if answer is DONE:
                self._going[kill.pod.metadata.uid] = _going(kill, now)
            else:
                failures.append(f"{'/'.join(kill.pod.key)} could not be killed: {_why(answer)}")
        return tuple(failures)

    def _waits(self, now: float) -> bool:
        """Whether soft thresholds wait for a pod that still ends within its time. The reference does nothing
        at all until then; here hard ones act (docs/rules.md, hard-hurries-soft)."""
        return any(now < going.until for going in self._going.values())

    def _exceeding(self, reading: Reading, layout: Layout) -> list[Kill]:
        """All pods that exceed a limit of local storage, but for critical ones and those that end already."""
        found: list[Kill] = []
        for pod in reading.pods:
            stats = reading.summary.pods.get(pod.metadata.uid)
            if stats is None or pod.metadata.uid in self._going or critical.is_critical(pod):
                continue
            excess = local_storage.excess(pod, stats, layout)
            if excess is not None:
                found.append(Kill(pod, IMMEDIATE_GRACE_S, excess.message, None, excess.limit, disruption=False))
        return found

    def _note(self, reading: Reading, thresholds: Sequence[Threshold]) -> list[Threshold]:
        """Bring what is known up to date with a reading; returns the thresholds that act and whose signal was
        measured since the last one (docs/rules.md, an-observation-is-acted-on-once)."""
        observed, now = reading.summary.known_signals(), reading.at
        alive = {pod.metadata.uid for pod in reading.pods}
        self._going = {uid: going for uid, going in self._going.items() if uid in alive}
        met = [one for one in thresholds if _is_met(one, observed)]
        for held in self._met:
            # Minimum reclaim keeps a threshold that has acted until that much more is available
            # (docs/rules.md, minimum-reclaim-holds).
            if _is_met(held, observed, with_reclaim=True) and not any(held.same(one) for one in met):
                met.append(held)
        self._first_observed = {one: self._first_observed.get(one, now) for one in met}
        self._condition_observed |= dict.fromkeys((signals.ALL[one.signal].condition for one in met), now)
        # The condition rises with the first observation, and stays for the transition period
        # (docs/rules.md, condition-rises-at-once).
        self._conditions = frozenset(
            name for name, at in self._condition_observed.items() if _elapsed(at, now) < self.config.transition_s
        )
        self._met = tuple(one for one, since in self._first_observed.items() if _elapsed(since, now) >= one.grace_s)
        fresh = [
            one for one in self._met if one.signal in observed and self._is_newer(one.signal, observed[one.signal])
        ]
        self._last = observed
        return fresh

    def _is_newer(self, signal: str, observation: Observation) -> bool:
        last = self._last.get(signal)
        if last is None or observation.observed_at is None:
            return True
        return last.observed_at is None or observation.observed_at > last.observed_at

    def _choose(self, urgent: Threshold, acting: Sequence[Threshold], reading: Reading, layout: Layout) -> Kill | None:
        """The pod that goes; None if none may.

        A hard threshold takes the pod that a soft one has chosen for the same resource, so that it goes
        within a second; else the first in rank that does not end already.
        """
        resource = signals.ALL[urgent.signal].resource
        ranked = rank(urgent.signal, reading.pods, reading.summary.pods, layout)
        slow = [pod for pod in ranked if self._is_slow(pod, resource)] if urgent.hard else []
        others = [pod for pod in ranked if pod.metadata.uid not in self._going and not critical.is_critical(pod)]
        victim = next(iter(slow or others), None)
        if victim is None:
            return None
        told = messages.explain(resource, victim, reading.summary, sorted(acting, key=_urgency))
        return Kill(
            victim,
            self._grace(urgent, victim),
            told.message,
            told.annotations,
            urgent.signal,
            rank=tuple("/".join(pod.key) for pod in ranked[:10]),
            sooner=bool(slow),
        )

    def _is_slow(self, pod: Pod, resource: str) -> bool:
        going = self._going.get(pod.metadata.uid)
        return going is not None and going.soft and going.resource == resource

    def _grace(self, threshold: Threshold, pod: Pod) -> int:
        if threshold.hard:
            return IMMEDIATE_GRACE_S
        own = pod.spec.termination_grace_period_seconds
        return self.config.max_pod_grace_s if own is None else min(self.config.max_pod_grace_s, own)


def _is_met(threshold: Threshold, observed: dict[str, Observation], *, with_reclaim: bool = False) -> bool:
    observation = observed.get(threshold.signal)
    return observation is not None and threshold.met(
        observation.available, observation.capacity, with_reclaim=with_reclaim
    )


def _measured(acting: Iterable[Threshold], reading: Reading) -> Iterator[tuple[str, float]]:
    for one in acting:
        observed_at = reading.summary.signals[one.signal].observed_at
        if observed_at is not None:
            yield one.signal, observed_at


def _going(kill: Kill, now: float) -> _Going:
    grace_s = max(kill.grace_s, 1)
    signal = signals.ALL.get(kill.signal)
    return _Going(
        resource="" if signal is None else signal.resource,
        soft=grace_s > IMMEDIATE_GRACE_S,
        until=now + max(1.5 * grace_s, SHORTEST_KILL_S),
    )


def _elapsed(since: float, now: float) -> float:
    """Seconds between two times, to the microsecond: what a time of today can hold."""
    return round(now - since, 6)


def _why(answer: Answer) -> str:
    return answer.why if isinstance(answer, Failed) else f"answered by {answer}"


def _urgency(threshold: Threshold) -> tuple[int, float]:
    """Memory before everything else, hard before soft: a total order, as the reference's is not
    (docs/rules.md, memory-comes-first)."""
    return signals.urgency(threshold.signal), threshold.grace_s
