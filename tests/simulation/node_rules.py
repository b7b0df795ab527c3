"""Judges the lives of nodes: what is stored, and what agents do meanwhile. It shares no code with agents and
workloads.

When something is stored, or, where a partition kept it from the server, as of when it was decided:

- a node is declared lost only if nothing was heard of it for the grace period
- nodes of a zone are given up no faster than the zone's rate
- a pod is ended by its node's taint only after it was there for as long as the pod tolerates it

Every second, of agents that have heard the bus for a while:

- no two play one node
- no pod runs in two of them
- whatever runs is bound to that node, and is not to end
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from podyard.objects.times import seconds_of
from podyard.proto import codec, subjects
from podyard.proto.facts import NodeLifeFact
from podyard.proto.placement import Binding, Tombstone
from tests.simulation.clock import START

GRACE_S = 50.0
RATE = 0.1
"""Nodes a second of one zone."""
SLACK_S = 5.0
"""A heartbeat that the server has got may be on its way for so long."""
NOTICED_S = 15.0
"""In so long an agent that hears the bus knows what it has to do: its lease lives for ten seconds."""
STORED_S = 1.0
"""What is decided is stored within so long."""
TOLERATED_S = 5.0
"""How long the pods tolerate taints of lost nodes."""
Document = dict[str, Any]


class Playing(NamedTuple):
    """What one agent's process does that hears the bus."""

    instance: str
    hears_since: float
    nodes: tuple[str, ...]
    pods: tuple[tuple[str, str], ...]
    """Uid and node of those that run."""


class NodeChecker:
    """`wrong` is told in sentences. Times are seconds since the simulation's beginning."""

    def __init__(self, zones: Mapping[str, str]) -> None:
        """:param zones: by node"""
        self.violations: list[str] = []
        self.pods: dict[str, Document] = {}
        """Living objects, by uid."""
        self.placed: dict[str, Binding | Tombstone] = {}
        self.lost: set[str] = set()
        self.given_up: dict[str, float] = {}
        """Nodes with a taint NoExecute, and since when."""
        self.losses = self.evictions = self.takings = 0
        self._zones = zones
        self._beats: dict[str, list[float]] = {}
        """When the server got one, by node."""
        self._parted: list[tuple[float, float]] = []
        """From when to when what workloads sends is held."""
        self._times: dict[str, list[float]] = {}
        """When nodes were given up, by zone."""
        self._terms: list[float] = []
        self._wrong_since: dict[tuple[str, str], float] = {}
        self._players: dict[str, str] = {}

    def beat(self, node: str, now: float) -> None:
        """The server has got a heartbeat."""
        self._beats.setdefault(node, []).append(now)

    def term_began(self, now: float) -> None:
        """Of workloads: its buckets are full."""
        self._terms.append(now)

    def parted(self, since: float, until: float) -> None:
        """What workloads sends meanwhile arrives at the end."""
        self._parted.append((since, until))

    # ---- what is stored

    def life(self, node: str, payload: bytes, now: float) -> None:
        """What workloads says of a node; empty: nothing."""
        fact = codec.decode(NodeLifeFact, payload) if payload else None
        decided = now if fact is None else self._decided(fact, now)
        self._lose(node, fact is not None and fact.lost is not None, decided)
        if fact is None or all(taint.effect != "NoExecute" for taint in fact.taints):
            self.given_up.pop(node, None)
        elif node not in self.given_up:
            self.given_up[node] = now
            self._rate(self._zones[node], decided)

    def _decided(self, fact: NodeLifeFact, now: float) -> float:
        """When what is stored now was decided: a partition may have kept it."""
        at = seconds_of(fact.at) - START
        held = any(since <= at <= until and now <= until + STORED_S for since, until in self._parted)
        return at if held else now

    def _lose(self, node: str, lost: bool, decided: float) -> None:
        if lost and node not in self.lost:
            self.losses += 1
            beats = self._beats.get(node, [])
            before = bisect_right(beats, decided)
            if before and decided - beats[before - 1] < GRACE_S - SLACK_S:
                ago = decided - beats[before - 1]
                self._wrong(f"{node} is declared lost, though it beat {ago:.1f} s before")
        (self.lost.add if lost else self.lost.discard)(node)

    def _rate(self, zone: str, decided: float) -> None:
        times = self._times.setdefault(zone, [])
        insort(times, decided)
        for until in range(bisect_right(times, decided), len(times) + 1):
            self._count(zone, times[:until])

    def _count(self, zone: str, times: list[float]) -> None:
        """Of all that end with the last one."""
        last = times[-1]
        for number, first in enumerate(reversed(times), 1):
            full = sum(first < began <= last for began in self._terms)
            if number > 1 + RATE * (last - first + STORED_S) + full:
                self._wrong(f"{number} nodes of {zone} are given up within {last - first:.1f} s")
                return

    def pod(self, document: Document | None, name: str, now: float) -> None:
        """A version of a pod; None: it is gone."""
        if document is None:
            for uid in [uid for uid, one in self.pods.items() if one["metadata"]["name"] == name]:
                del self.pods[uid]
            return
        uid = document["metadata"]["uid"]
        before = self.pods.get(uid)
        self.pods[uid] = document
        if "deletionTimestamp" in document["metadata"] and not (before and "deletionTimestamp" in before["metadata"]):
            reasons = {one.get("reason") for one in document.get("status", {}).get("conditions", ())}
            if "DeletionByTaintManager" in reasons:
                self._evicted(document, now)

    def _evicted(self, document: Document, now: float) -> None:
        self.evictions += 1
        placed = self.placed[document["metadata"]["uid"]]
        since = self.given_up.get(placed.node)
        if since is None or now - since < TOLERATED_S - 0.5:
            held = "without a taint" if since is None else f"{now - since:.1f} s after its taint"
            self._wrong(f"{document['metadata']['name']} is evicted from {placed.node} {held}")

    def status(self, node: str, session: str) -> None:
        """Who says that it plays a node."""
        before = self._players.get(node, "")
        self.takings += bool(before and session and before != session)
        self._players[node] = session

    # ---- what agents do

    def look(self, agents: Iterable[Playing], now: float) -> None:
        """A second has passed."""
        player: dict[str, str] = {}
        runs: dict[str, str] = {}
        seen: set[tuple[str, str]] = set()
        for agent in agents:
            if now - agent.hears_since < NOTICED_S:
                continue
            for node in agent.nodes:
                if node in player:
                    self._wrong(f"{node} is played by {player[node]} and {agent.instance}, and both hear the bus")
                player[node] = agent.instance
            for uid, node in agent.pods:
                if uid in runs:
                    self._wrong(f"{uid} runs in {runs[uid]} and {agent.instance}, and both hear the bus")
                runs[uid] = agent.instance
                why = self._why_not(uid, node)
                if why:
                    seen.add((agent.instance, uid))
                    since = self._wrong_since.setdefault((agent.instance, uid), now)
                    if now - since > NOTICED_S:
                        self._wrong(f"{uid} runs on {node} in {agent.instance}, which hears the bus, though {why}")
        for key in [key for key in self._wrong_since if key not in seen]:
            del self._wrong_since[key]

    def _why_not(self, uid: str, node: str) -> str:
        """Why a pod may not run on a node for long; empty if it may."""
        placed, document = self.placed.get(uid), self.pods.get(uid)
        if not isinstance(placed, Binding) or placed.node != node:
            return "it is not bound there"
        if document is None:
            return "its object is gone"
        return "it is being deleted" if "deletionTimestamp" in document["metadata"] else ""

    # ---- the end

    def unsettled(self, agents: Iterable[Playing], nodes: Iterable[str], sets: Mapping[str, int]) -> list[str]:
        """What is not as it should be when nothing fails any more.

        :param sets: ReplicaSets, and how many pods they want
        """
        agents = list(agents)
        played = [node for agent in agents for node in agent.nodes]
        found = [f"{node} is played by {played.count(node)} agents" for node in nodes if played.count(node) != 1]
        found += [f"{node} is still lost" for node in sorted(self.lost)]
        running = {uid for agent in agents for uid, _ in agent.pods}
        living = {uid: one for uid, one in self.pods.items() if "deletionTimestamp" not in one["metadata"]}
        for name, wanted in sets.items():
            own = [uid for uid, one in living.items() if _owner(one) == name]
            if len(own) != wanted:
                found.append(f"{name} has {len(own)} pods, and wants {wanted}")
            found += [f"pod {uid} of {name} is lost: it runs nowhere" for uid in own if uid not in running]
        leaving = self.pods.keys() - living.keys()
        return found + [f"{uid} is still being deleted" for uid in sorted(leaving)]

    def _wrong(self, text: str) -> None:
        self.violations.append(text)


def _owner(document: Document) -> str:
    return next((one["name"] for one in document["metadata"].get("ownerReferences", ())), "")


def node_of(subject: str) -> str:
    """The last token of a subject."""
    return subjects.decode(subject.rpartition(".")[2])
