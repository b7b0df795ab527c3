"""The node that is the host itself: what a round of its eviction manager asks is answered by the shell.

So a round stays open until the answer comes; the next one waits
(docs/rules.md, a-host-is-ready-once-it-was-read). Everything else is as on a virtual node.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from podyard.node_agent.core import node_facts, readings
from podyard.node_agent.core.eviction.dialogue import (
    DONE,
    Answer,
    Ask,
    Dialogue,
    Done,
    Failed,
    Kill,
    Reading,
    Round,
)
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.stats import ContainerStats, PodStats
from podyard.node_agent.core.messages import Measured
from podyard.node_agent.core.node_config import NodeConfig
from podyard.node_agent.core.virtual_node import VirtualNode
from podyard.objects.pod import Pod
from podyard.proto.facts import NodeStatusFact
from podyard.proto.signals import ContainerUsage, NodeSignals, NodeUsage, PodUsage, SignalValue

NOTICED_S: Final = 0.5
"""Between the beginnings of two rounds, at least: memory that swings around a threshold is noticed
many times a second."""

HostAnswer: TypeAlias = Layout | Measured | Done | Failed


class Host(NamedTuple):
    """What the agent is to do with the machine that it runs on."""

    node: str
    """Name of the node that it is."""
    runs: bool = False
    """Whether its pods run as processes; else they are as those of a virtual node."""


class HostNode(VirtualNode):
    """State of the node that is the host."""

    __slots__ = (
        "_active", "_asked", "_dialogue", "_runs", "_unkilled", "_why", "_window_s", "begun_at", "noticed", "ticket",
    )  # fmt: skip

    def __init__(
        self, name: str, uid: str, config: NodeConfig, stored: NodeStatusFact | None, now: float, *, runs: bool
    ) -> None:
        """:param runs: whether pods run there as processes"""
        super().__init__(name, uid, config, stored, now)
        self.ticket: int | None = None
        """Of what the round under way asks; None: none is under way."""
        self.begun_at = 0.0
        """When the last round began, UTC seconds."""
        self.noticed = False
        """Something was noticed that the round under way may have come too early for."""
        self._runs = runs
        self._dialogue: Dialogue | None = None
        self._active: tuple[Pod, ...] = ()
        self._asked: Ask | None = None
        """What the round under way asked last."""
        self._unkilled: dict[str, str] = {}
        """Pods that this round could not have ended, and why, by uid."""
        self._window_s = 0.0
        """For how long cpu was measured by then."""
        self._why = node_facts.NOTHING_READ
        """Why nothing was read of it so far."""

    @property
    def watched(self) -> bool:
        """It always is."""
        return True

    @property
    def unready(self) -> str:
        """Until something was read of it, it takes no pods."""
        return self._why if self.reading is None else ""

    def begin(self, active: Sequence[Pod], now: float) -> Ask | Round:
        """Begin a round; what it asks of the shell, or what it came to."""
        self._active, self._dialogue, self.begun_at = tuple(active), self.manager.round(), now
        self._unkilled = {}
        return self._go_on(None, now)

    def answered(self, answer: HostAnswer, now: float) -> Ask | Round:
        """Go on with the answer; what is asked next, or what the round came to."""
        if isinstance(self._asked, Kill) and isinstance(answer, Failed):
            self._unkilled[self._asked.pod.metadata.uid] = answer.why
        if not isinstance(answer, Measured):
            return self._go_on(answer, now)
        found = _as_signals(self.name, answer, self._active)
        impossible = readings.impossible(found, self.capacity)
        if impossible:
            return self._go_on(Failed(impossible), now)
        self.reading, self.read_at, self._window_s = found, now, answer.window_s
        return self._go_on(Reading(answer.summary, self._active, now), now)

    def close(self) -> None:
        """The round under way goes on no more."""
        if self._dialogue is not None:
            self._dialogue.close()
        self._dialogue, self.ticket = None, None

    def usage(self, now: float) -> NodeUsage | None:
        """As of a virtual node; None before the first reading, too."""
        usage = None if self.reading is None else super().usage(now)
        return None if usage is None else replace(usage, window_s=self._window_s)

    def imagined(self, given: Mapping[str, SignalValue], active: Sequence[Pod], now: float) -> VirtualNode:
        """As of a virtual node, from the last reading."""
        source = readings.Synthetic(self.name)
        source.said, source.observed_at = self.reading or NodeSignals(node=self.name), now
        return self._copy(source, given, active, now, blind=self.unready or self.unread)

    def failing(self, ask: Ask) -> str:
        """Why the host could not do what it was asked in this round; empty if it could."""
        return self._unkilled.get(ask.pod.metadata.uid, "") if isinstance(ask, Kill) else ""

    def _go_on(self, answer: Answer | None, now: float) -> Ask | Round:
        """What needs no host is answered at once: without processes a kill ends a pod that is none."""
        assert self._dialogue is not None, "an answer belongs to a round"
        try:
            ask = next(self._dialogue) if answer is None else self._dialogue.send(answer)
            while isinstance(ask, Kill) and not self._runs:
                ask = self._dialogue.send(DONE)
        except StopIteration as done:
            found = cast("Round", done.value)
            self._dialogue = None
            self._over(found, now)
            self._why = found.error or found.unread or self._why
            return found
        self._asked = ask
        return ask


def _as_signals(node: str, measured: Measured, active: Sequence[Pod]) -> NodeSignals:
    """As it is published, and previewed from."""
    summary = measured.summary
    return NodeSignals(
        node=node,
        signals={
            name: SignalValue(available=one.available, capacity=one.capacity) for name, one in summary.signals.items()
        },
        cpu_nanocores=measured.cpu_nanocores,
        pods=tuple(
            _usage(pod, summary.pods[pod.metadata.uid], measured) for pod in active if pod.metadata.uid in summary.pods
        ),
    )


def _usage(pod: Pod, stats: PodStats, measured: Measured) -> PodUsage:
    uid = pod.metadata.uid
    return PodUsage(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        cpu_nanocores=measured.pods_cpu.get(uid, 0),
        memory_bytes=stats.memory_bytes or 0,
        disk_bytes=stats.ephemeral_bytes or 0,
        inodes=sum(_inodes(one) for one in stats.containers),
        processes=stats.processes,
        containers=tuple(
            ContainerUsage(
                name=one.name,
                cpu_nanocores=measured.containers_cpu.get((uid, one.name), 0),
                memory_bytes=one.memory_bytes or 0,
                disk_bytes=sum(part.used_bytes or 0 for part in (one.rootfs, one.logs) if part is not None),
                inodes=_inodes(one),
            )
            for one in stats.containers
        ),
    )


def _inodes(container: ContainerStats) -> int:
    return sum(part.inodes or 0 for part in (container.rootfs, container.logs) if part is not None)
