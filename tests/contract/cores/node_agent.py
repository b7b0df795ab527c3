"""The node agent: pods that run, end and are deleted, nodes that go and come back, pressure, evictions and
refusals, and a listing that finds what nobody saw go."""

from podyard.bus import Outgoing
from podyard.node_agent.agent_view import AgentView, followed
from podyard.node_agent.core import effects
from podyard.node_agent.core.agent import Agent
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.claims import Patience, Player
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from podyard.node_agent.core.host_node import Host
from podyard.node_agent.core.messages import Asked, Changed, Listed, Message, Observed, Tick
from podyard.node_agent.core.node_config import NodeConfig, NodeConfigs
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.selection import Selection
from podyard.objects import times
from podyard.proto import subjects
from podyard.proto.agents_api import PreviewRequest
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.signals import NodeSignals, PodUsage, SignalValue
from tests.contract.cores.recording import Case
from tests.support import objects, stored
from tests.support.cluster import bound, released
from tests.support.stream import ClusterStream

MEBIBYTE = 1024 * 1024
LISTED, FOLLOWED = (tuple(one.removesuffix(">") for one in read) for read in followed(()))
LOOK_S = 0.05


def begin(host: Host | None = None) -> tuple[Agent, AgentView]:
    view = AgentView()
    thresholds = parse_thresholds(hard={"memory.available": "100Mi"})
    core = Agent(
        view,
        selection=Selection(host="" if host is None else host.node),
        usual=Pace(0.2, 5.0, 0.2),
        configs=NodeConfigs(NodeConfig(eviction=EvictionConfig(thresholds=thresholds, transition_s=30.0))),
        rhythm=NodeRhythm(),
        player=Player("agent-1", "node_agent"),
        patience=Patience(),
        host=host,
    )
    return core, view


class Play:
    """An agent on a stream where its facts are stored at once, and ticked when it wants it."""

    def __init__(self, host: Host | None = None) -> None:
        self.now = 1_800_000_000.0
        self.stream = ClusterStream(lambda: self.now)
        self.core, self.view = begin(host)
        self.position = self.commits = 0
        self.facts: dict[str, NodeStatusFact | PodStatusFact] = {}
        """About nodes by name, about pods by uid."""
        self.evicted: list[str] = []

    # the agent's side

    def list(self) -> None:
        self.view.begin_listing()
        for delivery in self.stream.listed():
            if delivery.subject.startswith(LISTED):
                self.view.apply(delivery)
        self.position = self.stream.last
        self.tell(Changed(self.view.end_listing(self.position)))
        self.tell(Listed(self.view.take_node_orphans(), self.view.take_orphans()))

    def follow(self) -> None:
        while self.position < self.stream.last:
            delivery = self.stream.log[self.position]
            self.position += 1
            changes = self.view.apply(delivery) if delivery.subject.startswith(FOLLOWED) else []
            self.view.advance(self.position)
            if changes:
                self.tell(Changed(changes))

    def tell(self, message: Message) -> None:
        for effect in self.core.step(message, self.now):
            match effect:
                case effects.PutNodeStatus(fact):
                    self.facts[fact.node] = fact
                    self.stream.put(stored.node_status(fact))
                case effects.PutPodStatus(fact):
                    self.facts[fact.uid] = fact
                    self.stream.put(stored.pod_status(fact))
                case effects.RemoveNodeStatus(node):
                    self._mark(subjects.node_status(node))
                case effects.RemovePodStatus(node, namespace, name, uid):
                    self._mark(subjects.pod_status(node, namespace, name, uid))
                case effects.PodEvicted():
                    self.evicted.append(effect.name)
                case _:
                    self.other(effect)

    def other(self, effect: effects.Effect) -> None:
        """What nobody has to do here."""

    def _mark(self, subject: str) -> None:
        self.stream.put(Outgoing(subject, b"", deleted=True, expires=True))

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.follow()
            self.now += LOOK_S
            due = self.core.wake_at
            if due is not None and due <= self.now:
                self.tell(Tick())
        self.follow()

    # the others' side

    def node(self, name: str, **more: object) -> dict:
        document = objects.node(name, **more)
        self.stream.put(stored.version("nodes", document))
        return document

    def pod(self, name: str, node: str, **more: object) -> dict:
        """A pod that is written and bound."""
        document = objects.pod(name, **more)
        self.stream.put(stored.version("pods", document))
        self.bind(name, node)
        return document

    def bind(self, name: str, node: str) -> None:
        self.commits += 1
        self.stream.put_all(stored.commit(self.commits, bindings=[bound(name, node)]))

    def release(self, name: str, node: str) -> None:
        self.commits += 1
        self.stream.put_all(stored.commit(self.commits, releases=[released(name, node)]))

    def delete(self, pod: dict, grace_s: int = 30) -> None:
        pod["metadata"]["deletionTimestamp"] = times.rfc3339(self.now + grace_s)
        pod["metadata"]["deletionGracePeriodSeconds"] = grace_s
        self.stream.put(stored.version("pods", pod))

    def remove(self, resource: str, document: dict) -> None:
        self.stream.put(stored.marker(resource, document))

    def observe(self, node: str, available: int, *using: str) -> None:
        value = SignalValue(available=available * MEBIBYTE, capacity=8192 * MEBIBYTE)
        used = tuple(
            PodUsage(namespace="default", name=name, memory_bytes=(number + 1) * 1024 * MEBIBYTE)
            for number, name in enumerate(using)
        )
        self.tell(Observed(NodeSignals(node=node, signals={"memory.available": value}, pods=used, at=self.now)))


def play() -> None:
    one = Play()
    first, second = one.node("n1"), one.node("n2")
    one.node("other", metadata={"annotations": {"podyard.io/agent": "external"}})
    for name in ("a", "b", "c"):
        one.pod(name, "n1", memory="1Gi")
    one.list()
    goes = one.pod("goes", "n1", memory="1Gi")
    one.pod("once", "n2", metadata={"annotations": {"podyard.io/run-duration": "1s"}})
    one.pod("wrong", "n2", metadata={"annotations": {"podyard.io/start-delay": "soon"}})
    one.pod("foreign", "other")
    one.pass_time(2.0)
    one.delete(goes)
    one.pass_time(1.0)
    one.release("goes", "n1")
    one.remove("pods", goes)
    _pressure(one)
    _comes_back(one, second)
    one.remove("nodes", first)
    one.list()
    one.pass_time(12.0)
    assert {one.facts[f"uid-{name}"].phase for name in ("once", "c", "late")} == {"Succeeded", "Failed"}  # type: ignore[union-attr]


def _pressure(one: Play) -> None:
    """Two evictions, the second when the first one's pod is gone, a refusal, and calm again."""
    one.observe("elsewhere", 50)
    one.observe("n1", 50, "a", "b", "c")
    one.pass_time(0.1)
    one.observe("n1", 60, "a", "b")
    one.pod("late", "n1")
    one.pass_time(3.0)
    assert one.evicted == ["c", "b"]
    for name, given in (("n1", "50Mi"), ("n1", "nothing"), ("elsewhere", "50Mi")):
        one.tell(Asked(1, PreviewRequest(node=name, signals={"memory.available": given})))
    one.observe("n1", 4096, "a")
    one.pass_time(45.0)


def _comes_back(one: Play, node: dict) -> None:
    """With a pod that is still bound to it."""
    one.remove("nodes", node)
    one.pass_time(1.0)
    one.node("n2", uid="uid-again")
    one.pass_time(1.0)


CASE = Case("node_agent", Agent, AgentView, play, begin, Tick(), ())
