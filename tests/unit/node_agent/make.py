"""Builders for tests of the agent's core."""

from collections.abc import Iterable, Sequence

import msgspec

from podyard.cluster.changes import Change, Origin
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.node_agent.core.agent import Agent
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.claims import Patience, Player
from podyard.node_agent.core.effects import Effect, PutNodeStatus
from podyard.node_agent.core.eviction.dialogue import DONE, Answer, Kill, Question, Reading, Round
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.manager import EvictionConfig, EvictionManager
from podyard.node_agent.core.eviction.stats import ContainerStats, Observation, PodStats, Summary
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from podyard.node_agent.core.messages import Changed, Message, Observed, Tick
from podyard.node_agent.core.node_config import NodeConfig, NodeConfigs
from podyard.node_agent.core.nodes import NodeRhythm, Nodes
from podyard.node_agent.core.pods import Pods
from podyard.node_agent.core.selection import Selection
from podyard.objects.pod import Pod
from podyard.proto import subjects
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.placement import BoundPod, Release
from podyard.proto.signals import NodeSignals, PodUsage, SignalValue
from tests.support.objects import typed_node, typed_pod

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE


def pod(
    name: str = "web",
    *,
    requests: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    priority: int = 0,
    grace_s: int | None = None,
    tolerations: Sequence[dict] = (),
    spec: dict | None = None,
    **metadata: object,
) -> Pod:
    """A pod in the words of an agent; further keywords are of its metadata, where annotations are."""
    return typed_pod(
        name,
        container={"resources": {"requests": requests or {}, "limits": limits or {}}},
        metadata=metadata,
        priority=priority,
        terminationGracePeriodSeconds=grace_s,
        tolerations=list(tolerations),
        **(spec or {}),
    )


def view(
    stored: Pod,
    node: str = "n1",
    *,
    trace: str = "",
    status: PodStatusFact | None = None,
    released: bool = False,
    gone: bool = False,
) -> PodView:
    """The pod as a reader sees it, bound to `node`, or released from it."""
    where = {
        "namespace": stored.metadata.namespace,
        "name": stored.metadata.name,
        "uid": stored.metadata.uid,
        "node": node,
    }
    return PodView(
        stored,
        stored.key,
        stored.metadata.uid,
        1,
        bound=None if released else BoundPod(**where, trace=trace),
        release=Release(**where, reason="completed") if released else None,
        status=status,
        gone=gone,
    )


def deleted(stored: Pod, at: str, grace_s: int) -> Pod:
    """The pod with a deletion timestamp: the end of its grace period."""
    metadata = msgspec.structs.replace(stored.metadata, deletion_timestamp=at, deletion_grace_period_seconds=grace_s)
    return msgspec.structs.replace(stored, metadata=metadata)


def node(
    name: str = "n1",
    status: NodeStatusFact | None = None,
    uid: str = "",
    *,
    pods: str = "110",
    amounts: dict[str, str] | None = None,
    taints: Sequence[dict[str, str]] = (),
    **metadata: object,
) -> NodeView:
    stored = typed_node(name, uid=uid, pods=pods, amounts=amounts, taints=taints, metadata=metadata)
    return NodeView(stored, name, stored.metadata.uid, 1, status)


class Known:
    """What the agent reads of a view."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.bound: dict[str, dict[str, PodView]] = {}
        """By node, then by uid."""

    def pods_on(self, node: str) -> dict[str, PodView]:
        return self.bound.get(node, {})

    def version_of(self, subject: str) -> int:
        found = [one for one in self.nodes.values() if subjects.node_status(one.name) == subject and one.status]
        return len(found)


PLAYER = Player("agent-1", "node_agent")


class Playing:
    """An agent and what is known; whatever is told here is one step of the core, and another one if the agent
    claims a node: its claim is stored at once."""

    def __init__(self, selection: Selection, configs: NodeConfigs, rhythm: NodeRhythm) -> None:
        self.known = Known()
        self._core = Agent(
            self.known,
            selection=selection,
            usual=Pace(1.0, 5.0, 2.0),
            configs=configs,
            rhythm=rhythm,
            player=PLAYER,
            patience=Patience(),
        )

    @property
    def nodes(self) -> Nodes:
        return self._core.nodes

    @property
    def pods(self) -> Pods:
        return self._core.pods

    def step(self, message: Message, now: float) -> list[Effect]:
        return self._core.step(message, now)

    def node_seen(self, view: NodeView, bound: Iterable[PodView], now: float) -> list[Effect]:
        """A node is there, or has changed, and the view knows of pods that are bound to it."""
        old = self.known.nodes.get(view.name)
        self.known.nodes[view.name] = view
        self.known.bound[view.name] = {pod.uid: pod for pod in bound}
        return self._changed(Change(subjects.NODES, view.uid, old, view, Origin()), now)

    def node_gone(self, name: str, now: float) -> list[Effect]:
        old = self.known.nodes.pop(name)
        return self._changed(Change(subjects.NODES, old.uid, old, None, Origin()), now)

    def pod_seen(self, view: PodView, stored_at: float, now: float) -> list[Effect]:
        """A pod is there, or has changed, by what was stored then."""
        return self._changed(Change(subjects.PODS, view.uid, None, view, Origin(at=stored_at)), now)

    def pod_gone(self, uid: str, now: float = 0.0) -> list[Effect]:
        return self._changed(Change(subjects.PODS, uid, None, None, Origin()), now)

    def observe(self, signals: NodeSignals, now: float) -> list[Effect]:
        return self.step(Observed(signals), now)

    def tick(self, now: float) -> list[Effect]:
        return self.step(Tick(), now)

    def _changed(self, change: Change, now: float) -> list[Effect]:
        found = self.step(Changed([change]), now)
        claimed = [one.fact for one in found if isinstance(one, PutNodeStatus) and one.expect is not None]
        for fact in claimed:
            old = self.known.nodes[fact.node]
            new = self.known.nodes[fact.node] = NodeView(old.stored, old.name, old.uid, old.sequence, fact)
            found += self.step(Changed([Change(subjects.NODES, old.uid, old, new, Origin())]), now)
        return found


def agent(*, hard: dict[str, str] | None = None, selection: Selection | None = None, **rhythm: float) -> Playing:
    """An agent whose pods take 1 s to start, 2 s to end, and 5 s to run if they are a Job's."""
    eviction = EvictionConfig(thresholds=parse_thresholds(hard=hard), transition_s=300.0)
    return Playing(selection or Selection(), general(eviction), NodeRhythm(**rhythm))


def general(eviction: EvictionConfig) -> NodeConfigs:
    """All nodes evict so, and are else as they are without a configuration."""
    return NodeConfigs(NodeConfig(eviction=eviction))


def signals(available: int, *pods: PodUsage, node: str = "n1", at: float = 0.0) -> NodeSignals:
    """`available` bytes of memory of 8 GiB."""
    value = SignalValue(available=available, capacity=8 * GIBIBYTE)
    return NodeSignals(node=node, signals={"memory.available": value}, pods=pods, at=at)


def summary(available: int, usage: dict[str, int] | None = None, *, at: float | None = 0.0) -> Summary:
    """Memory of a node of 8 GiB, and what pods (by name) use of it; a pod that is not named has no stats."""
    observed = Observation(available=available, capacity=8 * GIBIBYTE, observed_at=at)
    pods = {
        f"uid-{name}": PodStats(memory_bytes=used, containers=(ContainerStats(name="main", memory_bytes=used),))
        for name, used in (usage or {}).items()
    }
    return Summary(signals={"memory.available": observed}, pods=pods)


def look(manager: EvictionManager, read: Summary, pods: Sequence[Pod], at: float) -> Round:
    """A round on a node with one file system where collecting frees nothing and every kill succeeds."""
    answers: dict[object, Answer] = {
        Question.LAYOUT: Layout.SINGLE,
        Question.READING: Reading(read, tuple(pods), at),
    }
    dialogue = manager.round()
    try:
        ask = next(dialogue)
        while True:
            ask = dialogue.send(DONE if isinstance(ask, Kill) else answers.get(ask, DONE))
    except StopIteration as done:
        return done.value


def victim(found: Round) -> Kill | None:
    """The only pod that goes, if one does."""
    assert len(found.kills) < 2
    return next(iter(found.kills), None)
