"""A host as the test plays it: it answers what rounds of its eviction manager ask."""

from collections.abc import Mapping, Sequence
from typing import Any

from podyard.node_agent.core.agent import Agent
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.claims import Patience
from podyard.node_agent.core.effects import AskHost, Effect, KillPod
from podyard.node_agent.core.eviction.dialogue import DONE, Failed, Question
from podyard.node_agent.core.eviction.file_systems import Collector, Layout
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.eviction.stats import ContainerStats, FsUsage, Observation, PodStats, Summary
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from podyard.node_agent.core.host_node import Host, HostAnswer
from podyard.node_agent.core.messages import Answered, Measured, Message
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.selection import Selection
from podyard.proto.facts import NodeStatusFact
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, PLAYER, Known, Playing, general, node

MEMORY = "memory.available"
PLENTY = 4 * GIBIBYTE


def measured(
    available: int = PLENTY,
    pods: Mapping[str, int] | None = None,
    *,
    at: float = 0.0,
    capacity: int = 8 * GIBIBYTE,
    disk: int | None = None,
) -> Measured:
    """Memory that is left of 8 GiB, and what pods (by name) use of it.

    :param disk: bytes that are left of 100 GiB of disk; None: not measured
    """
    found = {MEMORY: Observation(available=available, capacity=capacity, observed_at=at)}
    if disk is not None:
        found["nodefs.available"] = Observation(available=disk, capacity=100 * GIBIBYTE, observed_at=at)
    return Measured(Summary(signals=found, pods={f"uid-{name}": stats(used) for name, used in (pods or {}).items()}))


def stats(used: int) -> PodStats:
    logs = FsUsage(used_bytes=10 * MEBIBYTE, inodes=3)
    main = ContainerStats(name="main", memory_bytes=used, rootfs=FsUsage(used_bytes=0, inodes=1), logs=logs)
    return PodStats(memory_bytes=used, processes=2, containers=(main,), ephemeral_bytes=10 * MEBIBYTE)


class HostStage(Playing):
    """An agent whose node n1 is its host; other nodes are virtual."""

    def __init__(self, *, runs: bool = False, hard: dict[str, str] | None = None, **more: Any) -> None:
        self.known = Known()
        thresholds = parse_thresholds(hard=hard or {MEMORY: "100Mi"})
        self._core = Agent(
            self.known,
            selection=Selection(names=frozenset({"n1", "n2"}), host="n1"),
            usual=Pace(1.0, 5.0, 2.0),
            configs=general(EvictionConfig(thresholds=thresholds, transition_s=300.0)),
            rhythm=NodeRhythm(**more),
            player=PLAYER,
            patience=Patience(),
            host=Host("n1", runs=runs),
        )

    @property
    def core(self) -> Agent:
        return self._core

    def begun(self, now: float = 0.0) -> "HostStage":
        """The node is there; nothing was read of it yet."""
        self.node_seen(node(annotations={"podyard.io/agent": "external"}), (), now)
        return self

    def answer(self, asked: AskHost, answer: HostAnswer, now: float) -> list[Effect]:
        return self.step(Answered(asked.ticket, answer), now)

    def round(self, now: float, read: Measured | Failed, *, message: Message | None = None) -> list[Effect]:
        """A round from its begin to its end; what was asked is answered, each reading by this one."""
        found = self.tick(now) if message is None else self.step(message, now)
        while asked := asks(found):
            (ask,) = asked
            answers: dict[object, HostAnswer] = {Question.LAYOUT: Layout.SINGLE, Question.READING: read}
            found = [one for one in found if one is not ask] + self.answer(ask, answers.get(ask.ask, DONE), now)
        return found


def asks(found: Sequence[Effect]) -> list[AskHost]:
    return [one for one in found if isinstance(one, AskHost)]


def asked(found: Sequence[Effect]) -> list[Question | Collector | KillPod]:
    return [one.ask for one in asks(found)]


def ready(fact: NodeStatusFact) -> tuple[str, str]:
    """Status and message of the condition Ready."""
    return next((one.status, one.message) for one in fact.conditions if one.type == "Ready")
