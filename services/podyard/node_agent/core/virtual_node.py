"""One virtual node: its pressure, and where its eviction loop stands."""

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

import msgspec

from podyard.node_agent.core import node_facts, readings
from podyard.node_agent.core.eviction.dialogue import DONE, Answer, Ask, Failed, Kill, Question, Reading, Round
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.manager import CLEANUP_TIMEOUT_S, EvictionConfig, EvictionManager
from podyard.node_agent.core.eviction.stats import Summary
from podyard.objects.pod import Pod
from podyard.proto.facts import NodeStatusFact
from podyard.proto.signals import NodeSignals, SignalValue

CLEANUP_POLL_S: Final = 1.0
"""How often the manager looks whether an evicted pod is gone. Source: podCleanupPollFreq."""


class Cleanup(NamedTuple):
    """Evicted pods that the manager waits for."""

    uids: tuple[str, ...]
    until: float


class _Told(NamedTuple):
    """What is wrong as people were told it last."""

    blind: str = ""
    """Why rounds find out nothing."""
    failures: tuple[str, ...] = ()
    """Of the last round that had something collected or ended."""


class VirtualNode:
    """State of one node. Observations and the manager's state live in memory only."""

    __slots__ = ("_told", "cleanup", "fact", "manager", "name", "observed_at", "signals", "uid")

    def __init__(self, name: str, uid: str, config: EvictionConfig, stored: NodeStatusFact | None, now: float) -> None:
        """:param stored: what an agent before this one said of the same node; None if nothing"""
        self.name = name
        self.uid = uid
        self.manager = EvictionManager(config)
        self.fact = stored
        self.signals: NodeSignals | None = None
        self.observed_at = 0.0
        self.cleanup: Cleanup | None = None
        self._told = _Told()
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
        """One round of the eviction manager; after an eviction the loop waits for the pods' cleanup
        (docs/rules.md, one-pod-a-step)."""
        found = self._play(tuple(active), now)
        self.cleanup = None
        if found.kills:
            self.cleanup = Cleanup(tuple(kill.pod.metadata.uid for kill in found.kills), now + CLEANUP_TIMEOUT_S)
        return found

    def _play(self, active: tuple[Pod, ...], now: float) -> Round:
        """A round with this node's answers, which are at hand."""
        dialogue = self.manager.round()
        try:
            ask = next(dialogue)
            while True:
                ask = dialogue.send(self._answer(ask, active, now))
        except StopIteration as done:
            return cast("Round", done.value)

    def _answer(self, ask: Ask, active: tuple[Pod, ...], now: float) -> Answer:
        """It has one file system and nothing that could be collected; who plays the round ends its pods."""
        why = self.failing(ask)
        if why:
            return Failed(why)
        if ask is Question.LAYOUT:
            return Layout.SINGLE
        if ask is Question.READING:
            summary = Summary()
            if self.signals is not None:
                summary = readings.summary(self.signals, self.observed_at, active)
            return Reading(summary, active, now)
        return DONE

    def imagined(self, given: Mapping[str, SignalValue]) -> "VirtualNode":
        """Another one that stands where this one does, with some signals as given."""
        made = VirtualNode(self.name, self.uid, self.manager.config, None, 0.0)
        made.manager = self.manager.copied()
        said = self.signals or NodeSignals(node=self.name)
        made.signals = msgspec.structs.replace(said, signals={**said.signals, **given})
        return made

    def failing(self, ask: Ask) -> str:
        """Why the node cannot do what its manager asks, as its signals say; empty if it can."""
        what = "kill" if isinstance(ask, Kill) else ask.value
        said = () if self.signals is None else self.signals.failing
        return next((one.why for one in said if one.what == what), "")

    def news(self, found: Round) -> tuple[str, ...]:
        """What a round found wrong and nobody was told yet. Each cause is told once, until a round in which
        the same is asked goes well."""
        blind, failures = found.error or found.unread, self._told.failures
        new = [blind] if blind != self._told.blind and blind else []
        if found.starved or found.kills:
            new += [one for one in found.failures if one not in failures]
            failures = found.failures
        self._told = _Told(blind, failures)
        return tuple(new)

    def status(self, now: float) -> NodeStatusFact | None:
        """The fact that is due now; None if the stored one still holds."""
        fact = node_facts.fact(self.name, self.uid, self.manager.conditions, self.fact, now)
        if self.fact is not None and node_facts.same(fact, self.fact):
            return None
        self.fact = fact
        return fact
