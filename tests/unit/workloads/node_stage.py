"""A stage for the core that says which nodes are lost: the CLUSTER stream, the real view, agents that beat,
and effects that are carried out at once."""

from collections.abc import Iterable
from typing import Any

from podyard.bus import Outgoing
from podyard.cluster import disruption
from podyard.cluster.errors import ObjectMissing
from podyard.cluster.intents import Author, Put, Remove, Stored, event_of, stored_of
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.view import ClusterView
from podyard.objects import times
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import Condition, NodeLifeFact, NodeStatusFact
from podyard.workloads.core import node_life
from podyard.workloads.core.actions import Changed, Delete, Done, Listed, Work
from podyard.workloads.core.node_life import Announce, Beat, Effect, Hearing, Message, NodeLife, Periods, Said, Say
from podyard.workloads.core.zones import Rates
from tests.support import objects, stored
from tests.support.cluster import bound, released
from tests.support.stream import ClusterStream

BEAT_S = 10.0


class Stage:
    """One term after the other. `pass_time` lets agents beat, and the core do what is due."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.stream = ClusterStream(lambda: self.now)
        self.alive: set[str] = set()
        """Nodes whose agents beat."""
        self.reaches = True
        """Whether beats reach the core."""
        self.hold = False
        """Whether facts and deletions wait until `release`."""
        self.held: list[Say | Work] = []
        self.announced: list[Announce] = []
        self.deletions: list[tuple[float, str]] = []
        """When a pod's deletion was asked for, and its name."""
        self.next_beat = self.now + BEAT_S
        self.begin()

    @classmethod
    def of_two(cls) -> "Stage":
        """With nodes n1 and n2, whose agents beat: not all of a zone is silent when one of them is."""
        stage = cls()
        stage.node("n1")
        stage.node("n2")
        stage.pass_time(20.0)
        return stage

    def begin(self) -> None:
        """A new term, which lists everything and hears the bus."""
        self.view = ClusterView()
        self.core = NodeLife(self.view, Periods(), Rates())
        self.held.clear()
        self.relist()
        self.step(Hearing(True))

    def relist(self) -> None:
        """List everything."""
        self.view.begin_listing()
        for delivery in self.stream.held():
            self.view.apply(delivery)
        changes = self.view.end_listing(self.stream.last)
        self.read = self.stream.last
        if changes:
            self.step(Changed(changes))
        self.step(Listed())

    # ---- the core

    def step(self, message: Message) -> list[Effect]:
        effects = self.core.step(message, self.now)
        for effect in effects:
            if isinstance(effect, Announce):
                self.announced.append(effect)
            else:
                self.held.append(effect)
        if not self.hold:
            self.release()
        return effects

    def release(self) -> None:
        """Carry out what is held, and say so."""
        while self.held:
            effect = self.held.pop(0)
            answer = self._said(effect) if isinstance(effect, Say) else self._deleted(effect)
            self.step(answer)
            self.follow()

    def fail(self) -> None:
        """None of what is held succeeds."""
        held, self.held = self.held, []
        for effect in held:
            self.step(Said(effect.number, 0, True) if isinstance(effect, Say) else Done(effect.owner, 0, ("no",)))

    def _said(self, say: Say) -> Said:
        position = 0
        for one in say.facts:
            there = self.stream.find(subjects.node_life(one.node))
            assert there is None or one.expect == there.sequence  # a marker may have expired
            position = self.stream.put(life_message(one.node, one.fact)).sequence
        return Said(say.number, position, False)

    def _deleted(self, work: Work) -> Done:
        position = 0
        for write in work.writes:
            assert isinstance(write, Delete)
            self.deletions.append((self.now, write.key.name))
            plan = disruption.deletion(
                write.key, uid=write.uid, now=self.now, occupies=lambda uid: True, reason=write.reason,
                message=write.message,
            )  # fmt: skip
            try:
                step = plan(self.there(write.key))
            except ObjectMissing:
                continue  # gone already is as good as done
            assert not isinstance(step, Remove)
            if isinstance(step, Put):
                position = self.put(write.key, step)
        return Done(work.owner, position)

    def follow(self) -> None:
        """Show the view what it has not seen."""
        while self.read < self.stream.last:
            delivery = self.stream.log[self.read]
            self.read += 1
            changes = self.view.apply(delivery)
            if changes:
                self.step(Changed(changes))

    def pass_time(self, seconds: float) -> None:
        """Tick whenever the core wants it, and let agents beat."""
        until = self.now + seconds
        self.follow()
        while True:
            due = min(self.core.wake_at, self.next_beat)
            if due > until:
                break
            self.now = max(self.now, due)
            if self.now >= self.next_beat:
                self.beat(sorted(self.alive))
                self.next_beat += BEAT_S
            self.step(node_life.Tick())
            self.follow()
        self.now = until

    def beat(self, names: Iterable[str]) -> None:
        for name in names:
            if self.reaches:
                self.step(Beat(name))

    # ---- what people and agents do

    def node(self, name: str = "n1", *, beats: bool = True, agent: bool = True, **more: Any) -> None:
        """A node, whose agent has said that it is ready."""
        document = objects.node(name, uid=f"uid-{name}", **more)
        self.stream.put(stored.version("nodes", document))
        if agent:
            self.report(name)
        if beats:
            self.alive.add(name)
        self.follow()

    def report(self, name: str, **statuses: str) -> None:
        """What the agent says; conditions by type."""
        conditions = tuple(
            Condition(type=one, status=status, reason="Agent", last_transition_time=times.rfc3339(self.now))
            for one, status in {"Ready": "True", **statuses}.items()
        )
        fact = NodeStatusFact(node=name, node_uid=f"uid-{name}", conditions=conditions, at=times.rfc3339(self.now))
        self.stream.put(stored.node_status(fact))
        self.follow()

    def taint(self, name: str, *taints: dict[str, str]) -> None:
        """Somebody writes the node anew, with these taints."""
        document = self.document("nodes", name, "")
        document.setdefault("spec", {})["taints"] = list(taints)
        self.stream.put(stored.version("nodes", document))
        self.follow()

    def remove_node(self, name: str) -> None:
        self.stream.put(stored.marker("nodes", self.document("nodes", name, "")))
        self.alive.discard(name)
        self.follow()

    def pod(self, name: str = "p1", node: str = "n1", *tolerations: dict[str, Any], uid: str = "") -> None:
        """A pod that runs on a node."""
        document = objects.pod(name, uid=uid)
        document["spec"]["tolerations"] = list(tolerations)
        self.stream.put(stored.version("pods", document))
        self.stream.put(stored.record(len(self.stream.commits) + 1, bindings=[bound(name, node, uid=uid)]))
        self.follow()

    def end_pod(self, name: str, node: str = "n1") -> None:
        self.stream.put(stored.record(len(self.stream.commits) + 1, releases=[released(name, node)]))
        self.follow()

    # ---- what there is

    def seen(self, name: str = "n1") -> NodeView:
        self.follow()
        return self.view.nodes[name]

    def life(self, name: str = "n1") -> NodeLifeFact | None:
        self.follow()
        return self.view.node_lives.get(name)

    def taints(self, name: str = "n1") -> set[str]:
        return {
            f"{one.key.removeprefix('node.kubernetes.io/')}:{one.effect}" for one in self.seen(name).node.spec.taints
        }

    def conditions(self, name: str = "n1") -> dict[str, str]:
        return {one.type: one.status for one in self.seen(name).node.status.conditions}

    def given_up(self) -> set[str]:
        """Nodes with a taint NoExecute of ours."""
        return {
            name
            for name, life in self.view.node_lives.items()
            if any(taint.effect == "NoExecute" for taint in life.taints)
        }

    def deleted(self) -> list[str]:
        return [name for _, name in self.deletions]

    def there(self, key: ObjectKey) -> Stored | None:
        return stored_of(self.stream.find(subjects.object_(*key)))

    def document(self, resource: str, name: str, namespace: str = "default") -> dict[str, Any]:
        found = self.there(ObjectKey(resource, namespace, name))
        assert found is not None
        return found.document()

    def put(self, key: ObjectKey, step: Put) -> int:
        event = event_of(key, step, self.there(key), Author("workloads"))
        return self.stream.put(Outgoing(subjects.object_(*key), codec.encode(event))).sequence


def life_message(node: str, fact: NodeLifeFact | None) -> Outgoing:
    """What `workloads` says of a node, or a marker."""
    subject = subjects.node_life(node)
    if fact is None:
        return Outgoing(subject, b"", ttl_s=streams.MARKER_TTL_S, deleted=True)
    return Outgoing(subject, codec.encode(fact))


def tolerating(seconds: int | None = 300, key: str = "node.kubernetes.io/unreachable") -> dict[str, Any]:
    """A toleration of the taint NoExecute of a key; None: for ever."""
    found: dict[str, Any] = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}
