"""One virtual node: what it reads, its pressure, and where its eviction loop stands."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from podyard.node_agent.core import node_facts, readings
from podyard.node_agent.core.claims import Player
from podyard.node_agent.core.eviction.dialogue import DONE, Answer, Ask, Failed, Kill, Question, Reading, Round
from podyard.node_agent.core.eviction.file_systems import Collector, Layout
from podyard.node_agent.core.eviction.manager import (
    CLEANUP_TIMEOUT_S,
    MONITORING_INTERVAL_S,
    EvictionManager,
)
from podyard.node_agent.core.eviction.stats import Summary
from podyard.node_agent.core.images import Collection
from podyard.node_agent.core.node_config import NodeConfig
from podyard.objects.pod import Pod
from podyard.proto.facts import NodeStatusFact
from podyard.proto.signals import Failing, NodeSignals, NodeUsage, SignalValue, Unused

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
    """State of one node. Readings and the manager's state live in memory only."""

    __slots__ = (
        "_lasts_s", "_told", "_uncollected", "_unkept", "began", "capacity", "cleanup", "config", "fact", "manager",
        "name", "published", "read_at", "reading", "synthetic", "uid", "unread",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        uid: str,
        config: NodeConfig,
        stored: NodeStatusFact | None,
        now: float,
        *,
        lasts_s: float = readings.LASTS * MONITORING_INTERVAL_S,
    ) -> None:
        """
        :param stored: what an agent before this one said of the same node; None if nothing
        :param lasts_s: seconds for which a measurement is good
        """
        self.name = name
        self.uid = uid
        self.capacity: Mapping[str, str] = {}
        """Quantities by resource, as the node's object says."""
        self.config = config
        self.manager = EvictionManager(config.eviction)
        self.fact = stored
        self.synthetic: readings.Synthetic | None = None
        """None: nobody has said anything of what it uses, and it is idle."""
        self.reading: NodeSignals | None = None
        """The last one that could be had."""
        self.read_at = now
        """When it was measured, UTC seconds."""
        self.unread = ""
        """Why the last reading was of no use; empty if it was."""
        self.published: NodeUsage | None = None
        """The usage that was published last."""
        self.cleanup: Cleanup | None = None
        self.began = now
        """Since when its agent looks on, UTC seconds."""
        self._uncollected = ""
        """Why the node's last own collection of images came to nothing."""
        self._lasts_s = lasts_s
        self._told = _Told()
        self._unkept: frozenset[str] = frozenset()
        if stored is not None:
            self.manager.restore(node_facts.pressure(stored), now)

    def configure(self, config: NodeConfig, now: float) -> None:
        """Go by another configuration from now on (docs/rules.md, another-configuration-is-a-restart)."""
        self.config = config
        self.manager = self.manager.restarted(config.eviction, now)
        self.began = now

    def observe(self, signals: NodeSignals, active: Sequence[Pod], now: float) -> tuple[str, ...]:
        """Signals came in; they replace earlier ones.

        :return: what of them was not kept, if the signals before did not have it already
        """
        if self.synthetic is None:
            self.synthetic = readings.Synthetic(self.name)
        faults = self.synthetic.take(signals, active, self.capacity, now)
        before, self._unkept = self._unkept, frozenset(faults)
        return tuple(fault for fault in dict.fromkeys(faults) if fault not in before)

    @property
    def watched(self) -> bool:
        """Whether synchronise steps make sense: something is measured, or a condition has yet to pass."""
        return self.synthetic is not None or bool(self.manager.conditions)

    def synchronize(self, active: list[Pod], now: float) -> Round:
        """One round of the eviction manager; after an eviction the loop waits for the pods' cleanup
        (docs/rules.md, one-pod-a-step)."""
        found = self._play(tuple(active), now)
        self._over(found, now)
        return found

    @property
    def unready(self) -> str:
        """Why it is not ready; empty: it is."""
        return ""

    def _over(self, found: Round, now: float) -> None:
        """A round came to this."""
        if not found.error:
            self.unread = found.unread
        self.cleanup = None
        if found.kills:
            self.cleanup = Cleanup(tuple(kill.pod.metadata.uid for kill in found.kills), now + CLEANUP_TIMEOUT_S)

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
        """It has one file system; who plays the round ends its pods."""
        why = self.failing(ask)
        if why:
            return Failed(why)
        if ask is Question.LAYOUT:
            return Layout.SINGLE
        if ask is Question.READING:
            return self._read(active, now)
        if isinstance(ask, Collector) and self.synthetic is not None:
            self.synthetic.collect(ask, self.config.images, now)
        return DONE

    @property
    def has_images(self) -> bool:
        """Whether it says that it has images, and collects them by itself."""
        said = None if self.synthetic is None else self.synthetic.said
        return said is not None and self.config.images.runs and bool(said.single_images or said.images != Unused())

    def collect_images(self, active: Sequence[Pod], now: float) -> tuple[Collection, bool]:
        """Its own collection of images; and whether what went wrong did so the last time, too."""
        source, why = self.synthetic, self.failing(Collector.IMAGES)
        assert source is not None, "only signals bring images"
        found = Collection(fault=why)
        if not why:
            policy = self.config.images
            found = source.collect_images(policy, active, self.capacity, now, self._lasts_s, self.began)
        again, self._uncollected = bool(found.fault and self._uncollected), found.fault
        return found, again

    def _read(self, active: tuple[Pod, ...], now: float) -> Answer:
        if self.synthetic is None:
            return Reading(Summary(), active, now)
        found = self.synthetic.at(active, self.capacity, now, self._lasts_s)
        if isinstance(found, Failed):
            return found
        self.reading, self.read_at = found
        return Reading(readings.summary(self.reading, self.read_at, active), active, now)

    def usage(self, now: float) -> NodeUsage | None:
        """What it uses, as of the last reading; None: that was of no use."""
        if self.unread:
            return None
        return readings.report(self.reading or NodeSignals(node=self.name), now)

    def imagined(self, given: Mapping[str, SignalValue], active: Sequence[Pod], now: float) -> "VirtualNode":
        """Another one that stands where this one does, with some signals as given. Without those it can read
        no more than this one now."""
        source = self.synthetic or readings.Synthetic(self.name)
        found = source.at(active, self.capacity, now, self._lasts_s)
        return self._copy(source, given, active, now, blind=found.why if isinstance(found, Failed) else "")

    def _copy(
        self,
        source: readings.Synthetic,
        given: Mapping[str, SignalValue],
        active: Sequence[Pod],
        now: float,
        *,
        blind: str,
    ) -> "VirtualNode":
        """:param blind: why nothing can be read now; empty: it can"""
        made = VirtualNode(self.name, self.uid, self.config, None, 0.0, lasts_s=math.inf)
        made.capacity = self.capacity
        made.manager = self.manager.copied()
        made.synthetic = source.standing(active, self.capacity, given, now)
        if blind and not given:
            failing = (Failing(what="reading", why=blind),)
            made.synthetic.said = msgspec.structs.replace(made.synthetic.said, failing=failing)
        return made

    def failing(self, ask: Ask) -> str:
        """Why the node cannot do what its manager asks, as its signals say; empty if it can."""
        what = "kill" if isinstance(ask, Kill) else ask.value
        said = () if self.synthetic is None else self.synthetic.said.failing
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

    def status(self, player: Player, now: float) -> NodeStatusFact | None:
        """The fact that is due now; None if the stored one still holds."""
        fact = node_facts.fact(
            self.name,
            self.uid,
            self.manager.conditions,
            self.fact,
            now,
            player,
            unread=self.unread,
            unready=self.unready,
        )
        if self.fact is not None and node_facts.same(fact, self.fact):
            return None
        self.fact = fact
        return fact
