"""One virtual node: its pressure, and where its eviction loop stands."""

from typing import Final, NamedTuple

from podyard.node_agent.core import node_facts, readings
from podyard.node_agent.core.eviction.manager import CLEANUP_TIMEOUT_S, EvictionConfig, EvictionManager, Round
from podyard.node_agent.core.eviction.stats import Summary
from podyard.objects.pod import Pod
from podyard.proto.facts import NodeStatusFact
from podyard.proto.signals import NodeSignals

CLEANUP_POLL_S: Final = 1.0
"""How often the manager looks whether an evicted pod is gone. Source: podCleanupPollFreq."""


class Cleanup(NamedTuple):
    """An evicted pod that the manager waits for."""

    uid: str
    until: float


class VirtualNode:
    """State of one node. Observations and the manager's state live in memory only."""

    __slots__ = ("cleanup", "fact", "manager", "name", "observed_at", "signals", "uid")

    def __init__(self, name: str, uid: str, config: EvictionConfig, stored: NodeStatusFact | None, now: float) -> None:
        """:param stored: what an agent before this one said of the same node; None if nothing"""
        self.name = name
        self.uid = uid
        self.manager = EvictionManager(config)
        self.fact = stored
        self.signals: NodeSignals | None = None
        self.observed_at = 0.0
        self.cleanup: Cleanup | None = None
        if stored is not None:
            self.manager.restore(node_facts.pressure(stored), now)

    def observe(self, signals: NodeSignals, now: float) -> None:
        """Signals came in; they replace earlier ones.

        They count as observed now: the clock of who observed them may be set back, and would hide all that
        comes for so long. The same ones once more are not newer.
        """
        if self.signals is None or not signals.at or signals.at != self.signals.at:
            self.observed_at = now
        self.signals = signals

    @property
    def watched(self) -> bool:
        """Whether synchronise steps make sense: something was observed, or a condition has yet to pass."""
        return self.signals is not None or bool(self.manager.conditions)

    def synchronize(self, active: list[Pod], now: float) -> Round:
        """One step of the eviction manager; after an eviction the loop waits for the pod's cleanup
        (docs/rules.md, one-pod-a-step)."""
        summary = Summary()
        if self.signals is not None:
            summary = readings.summary(self.signals, self.observed_at, active)
        found = self.manager.synchronize(summary, active, now)
        self.cleanup = None
        if found.kill is not None:
            self.cleanup = Cleanup(found.kill.pod.metadata.uid, now + CLEANUP_TIMEOUT_S)
        return found

    def status(self, now: float) -> NodeStatusFact | None:
        """The fact that is due now; None if the stored one still holds."""
        fact = node_facts.fact(self.name, self.uid, self.manager.conditions, self.fact, now)
        if self.fact is not None and node_facts.same(fact, self.fact):
            return None
        self.fact = fact
        return fact
