"""The synchronise step of one node's eviction manager.

Source: pkg/kubelet/eviction/eviction_manager.go, synchronize (v1.36.2); data in
tests/conformance/data/synchronize.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from podyard.node_agent.core.eviction import critical, messages, signals
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.ranking import rank
from podyard.node_agent.core.eviction.stats import Observation, Summary
from podyard.node_agent.core.eviction.thresholds import Threshold, parse_thresholds
from podyard.objects.pod import Pod

IMMEDIATE_GRACE_S: Final = 1
"""Grace period of a hard eviction (docs/rules.md, hard-eviction-grants-a-second). Source:
immediateEvictionGracePeriodSeconds."""

CLEANUP_TIMEOUT_S: Final = 30.0
"""How long the manager waits for an evicted pod to be gone before it looks again. Source:
podCleanupTimeout."""

MONITORING_INTERVAL_S: Final = 10.0
"""Seconds between two synchronise steps. Source: pkg/kubelet/kubelet.go, evictionMonitoringPeriod."""


class EvictionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How one node's manager is set up."""

    thresholds: tuple[Threshold, ...] = parse_thresholds()
    transition_s: float = 300.0
    """Seconds a condition stays after it was last observed. Source: evictionPressureTransitionPeriod."""
    max_pod_grace_s: int = 0
    """Longest grace period of a softly evicted pod. Source: evictionMaxPodGracePeriod."""
    layout: Layout = Layout.SINGLE


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """The pod that goes, and what it is told."""

    pod: Pod
    grace_s: int
    """Replaces the pod's own grace period; values below 1 count as 1 when the pod is ended."""
    message: str
    annotations: dict[str, str]
    """Of its Evicted event."""
    threshold: Threshold
    """The one that is to be relieved."""
    rank: tuple[str, ...] = ()
    """namespace/name of the pods in the order in which they would go, at most the first 10."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one synchronise step found. `starved` is the resource it tries to reclaim, empty if there is none
    to."""

    starved: str = ""
    kill: Kill | None = None


class EvictionManager:
    """State of one node's manager: when thresholds and conditions were observed. It lives in the process
    only."""

    def __init__(self, config: EvictionConfig) -> None:
        self.config = config
        self._first_observed: dict[Threshold, float] = {}
        self._condition_observed: dict[str, float] = {}
        self._conditions: frozenset[str] = frozenset()
        self._met: tuple[Threshold, ...] = ()
        self._last: dict[str, Observation] = {}

    @property
    def conditions(self) -> frozenset[str]:
        """The pressure conditions that hold, as of the last step."""
        return self._conditions

    @property
    def thresholds_met(self) -> tuple[Threshold, ...]:
        """Thresholds that act: below their value, or held by their minimum reclaim, and their grace period is
        over."""
        return self._met

    def restore(self, conditions: frozenset[str], now: float) -> None:
        """Take over the conditions that an agent before this one had reported.

        They count as observed now, so that a restart under pressure neither wipes them nor keeps them for
        ever (docs/rules.md, restart-keeps-the-pressure).
        """
        self._condition_observed = dict.fromkeys(conditions, now)
        self._conditions = conditions

    def synchronize(self, summary: Summary, active_pods: Sequence[Pod], now: float) -> Round:
        """One step: note what is met, then choose at most one pod to evict.

        :param active_pods: pods of the node of which something runs or will
        :param now: UTC seconds, the clock of the observations
        """
        observed = summary.known_signals()
        self._note(observed, now)
        starved = self._fresh(observed)
        self._last = observed
        if not starved:
            return Round()
        urgent = min(starved, key=_urgency)
        resource = signals.ALL[urgent.signal].resource
        return Round(starved=resource, kill=self._choose(urgent, starved, summary, active_pods))

    def _note(self, observed: dict[str, Observation], now: float) -> None:
        """Bring thresholds and conditions up to date with an observation."""
        met = [one for one in self.config.thresholds if _is_met(one, observed)]
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
            name for name, at in self._condition_observed.items() if now - at < self.config.transition_s
        )
        self._met = tuple(one for one, since in self._first_observed.items() if now - since >= one.grace_s)

    def _fresh(self, observed: dict[str, Observation]) -> list[Threshold]:
        """Acting thresholds whose signal was measured after the last step
        (docs/rules.md, an-observation-is-acted-on-once)."""
        return [one for one in self._met if one.signal in observed and self._is_newer(one.signal, observed[one.signal])]

    def _is_newer(self, signal: str, observation: Observation) -> bool:
        last = self._last.get(signal)
        if last is None or observation.observed_at is None:
            return True
        return last.observed_at is None or observation.observed_at > last.observed_at

    def _choose(
        self, urgent: Threshold, starved: Sequence[Threshold], summary: Summary, active_pods: Sequence[Pod]
    ) -> Kill | None:
        """The first pod in rank that may go; None if none may."""
        ranked = rank(urgent.signal, active_pods, summary.pods, self.config.layout)
        victim = next((pod for pod in ranked if not critical.is_critical(pod)), None)
        if victim is None:
            return None
        resource = signals.ALL[urgent.signal].resource
        told = messages.explain(resource, victim, summary, sorted(starved, key=_urgency))
        return Kill(
            pod=victim,
            grace_s=self._grace(urgent, victim),
            message=told.message,
            annotations=told.annotations,
            threshold=urgent,
            rank=tuple("/".join(pod.key) for pod in ranked[:10]),
        )

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


def _urgency(threshold: Threshold) -> tuple[int, float]:
    """Memory before everything else, hard before soft: a total order, as the reference's is not
    (docs/rules.md, memory-comes-first)."""
    return signals.urgency(threshold.signal), threshold.grace_s
