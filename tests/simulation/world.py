"""The rest of the cluster, without faults of its own: people who make and delete pods and nodes, agents that
end pods, and the controller that removes what has ended. It writes at once, as if its messages had just
arrived, and reads what is stored.
"""

import json
from collections.abc import Callable
from typing import Any

from podyard.bench.checking.history import CLAIMS, VOLUMES
from podyard.proto import codec, headers, streams, subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import Binding, Tombstone
from tests.memory_nats import MemoryServer
from tests.memory_nats.stream import Refusal, Stored
from tests.simulation import pods, restoring
from tests.simulation.clock import Clock
from tests.simulation.storage import Storage
from tests.support import objects, stored

NODES = 20
ZONES = 4
PODS = 210
ARRIVING_S = 45.0
NODE_CPU = 5
BUNCHES = (1, 1, 1, 2, 5, 12)
"""How many pods come at once."""
Document = dict[str, Any]


class World:
    """Owned by the clock: everything it does is an event."""

    def __init__(
        self,
        clock: Clock,
        server: MemoryServer,
        pods_made: int = PODS,
        nodes: int = NODES,
        arriving_s: float = ARRIVING_S,
    ) -> None:
        self._clock = clock
        self._random = clock.random
        self._server = server
        self._stream = server.streams[streams.CLUSTER.name]
        self._pods = pods_made
        self._nodes = nodes
        self.arriving_s = arriving_s
        """How long pods keep coming."""
        self.objects: dict[tuple[str, str], Document] = {}
        """Documents that live, by resource and name."""
        self.placed: dict[str, Binding | Tombstone] = {}
        """By pod uid, what the subject of its binding holds."""
        self.accepted: set[str] = set()
        """Uids of all pods ever made."""
        self.shares = pods.Shares()
        self.storage = Storage(clock, self.objects, self.put, self.remove, lambda: not self._stream.full)
        self.cordoned_s = (5.0, 30.0)
        """How long nodes stay cordoned."""
        self.changes = -(-nodes // 5)
        """How often a node is changed."""
        self.resizes = pods_made // 20
        """How often a pod is resized."""
        self.strangers = pods_made // 20
        """How often somebody else takes a volume."""
        self.collecting_s = (0.1, 2.0)
        """How long after a node its pods are removed."""
        self._ends: set[str] = set()
        self._serial = 0

    # ---- the plan

    def begin(self) -> None:
        """Make the nodes, and plan the rest."""
        self.storage.begin()
        for index in range(self._nodes):
            self.make_node(index)
        end_s = self.arriving_s
        self._plan_pods(self._pods, 0.5, end_s)
        self._plan(self.changes, end_s / 5, end_s, self.change_node)
        self._plan(self._nodes // 10, end_s / 4, end_s, self.lose_node)
        self._plan(-(-self._pods // 12), end_s / 10, end_s, self.delete_pod)
        self._plan(self.resizes, end_s / 10, end_s, self.resize_pod)
        self._plan(self.strangers, end_s / 10, end_s, self.storage.take_one)

    def _plan_pods(self, number: int, first_s: float, last_s: float) -> None:
        """They come alone or in bunches."""
        left = number
        while left:
            bunch = min(left, self._random.choice(BUNCHES))
            self._plan(1, first_s, last_s, lambda bunch=bunch: self._make_pods(bunch))
            left -= bunch

    def _make_pods(self, number: int) -> None:
        for _ in range(number):
            self.make_pod()

    def _plan(self, times: int, first_s: float, last_s: float, call: Callable[[], None]) -> None:
        for _ in range(times):
            self._clock.later(self._random.uniform(first_s, last_s), call)

    def make_node(self, index: int) -> None:
        """A node; some are small."""
        name = f"n{index}"
        self._serial += 1
        labels = {objects.ZONE: f"z{index % ZONES}", "disk": "ssd" if index % 3 == 0 else "hdd"}
        cpu = NODE_CPU if index % 5 else NODE_CPU // 2
        node = objects.node(name, uid=f"node-{self._serial}", cpu=str(cpu), memory="16Gi", pods="18", labels=labels)
        self.put(subjects.NODES, "", node)
        self.storage.node_made(index)

    def make_pod(self) -> None:
        """One pod of the mix."""
        self._serial += 1
        pod = pods.pod(self._random, self._serial, self._nodes, self.storage, self.shares)
        self.accepted.add(pod["metadata"]["uid"])
        self.put(subjects.PODS, "default", pod)

    def change_node(self) -> None:
        """Cordon a node, uncordon it, or make it smaller or larger."""
        names = sorted(name for resource, name in self.objects if resource == subjects.NODES)
        if not names:
            return
        node = json.loads(json.dumps(self.objects[subjects.NODES, self._random.choice(names)]))
        if self._random.random() < 0.5:
            node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)
            if node["spec"]["unschedulable"]:
                self._clock.later(
                    self._random.uniform(*self.cordoned_s), lambda: self._uncordon(node["metadata"]["name"])
                )
        else:
            node["status"]["allocatable"]["cpu"] = self._random.choice(("3", "5", "7"))
        self.put(subjects.NODES, "", node)

    def _uncordon(self, name: str) -> None:
        node = self.objects.get((subjects.NODES, name))
        if node is not None and node["spec"].get("unschedulable"):
            self.put(subjects.NODES, "", {**node, "spec": {}})

    def lose_node(self) -> None:
        """Delete a node; another of the same name comes later. Its pods are removed with it."""
        names = sorted(name for resource, name in self.objects if resource == subjects.NODES)
        if not names:
            return
        name = self._random.choice(names)
        self.remove(subjects.NODES, "", name)
        self.storage.node_gone(name)
        self._clock.later(self._random.uniform(3, 20), lambda: self.make_node(int(name[1:])))
        self._clock.later(self._random.uniform(*self.collecting_s), lambda: self._collect(name))

    def _collect(self, node: str) -> None:
        """Pod garbage collection: pods of a node that is no more."""
        for (resource, name), document in list(self.objects.items()):
            if resource == subjects.PODS:
                placed = self.placed.get(document["metadata"]["uid"])
                if placed is not None and placed.node == node:
                    self.remove(subjects.PODS, "default", name)

    def resize_pod(self) -> None:
        """Somebody wants a pod to have more cpu, or less, bound or not."""
        names = sorted(name for resource, name in self.objects if resource == subjects.PODS)
        if names:
            pod = json.loads(json.dumps(self.objects[subjects.PODS, self._random.choice(names)]))
            (container,) = pod["spec"]["containers"]
            container["resources"]["requests"]["cpu"] = self._random.choice(pods.CPUS)
            self.put(subjects.PODS, "default", pod)

    def delete_pod(self) -> None:
        """Somebody deletes a pod."""
        names = sorted(name for resource, name in self.objects if resource == subjects.PODS)
        if names:
            self.delete(self._random.choice(names))

    def delete(self, name: str) -> None:
        """An unbound pod is gone at once, a bound one when its agent has ended it."""
        pod = json.loads(json.dumps(self.objects[subjects.PODS, name]))
        if not isinstance(self.placed.get(pod["metadata"]["uid"]), Binding):
            self.remove(subjects.PODS, "default", name)
        elif "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = 1
            self.put(subjects.PODS, "default", pod)

    def lose_all(self, *, same_uids: bool) -> None:
        """The cluster's state is lost with its stream; somebody makes it again soon.

        :param same_uids: from what runs; else from manifests
        """
        found = restoring.as_it_ran(self.objects, self.placed) if same_uids else restoring.anew(self.objects)
        self.objects.clear()
        self.placed.clear()
        self._ends.clear()
        self._server.remake(streams.CLUSTER.name)
        self._stream = self._server.streams[streams.CLUSTER.name]
        self._clock.later(self._random.uniform(0.1, 5.0), lambda: self._restore(found))

    def _restore(self, found: list[tuple[str, Document]]) -> None:
        for resource, document in found:
            there = (resource, document["metadata"]["name"]) in self.objects
            if not there and not (resource == CLAIMS and self._volume_is_new(document)):
                if resource == subjects.PODS:
                    self.accepted.add(document["metadata"]["uid"])
                self.put(resource, document["metadata"].get("namespace", ""), document)

    def _volume_is_new(self, claim: Document) -> bool:
        """Whether a claim's volume was made anew while nothing was there: it is not the claim's any more."""
        volume = self.objects.get((VOLUMES, claim["spec"].get("volumeName", "")))
        return volume is not None and volume["spec"].get("claimRef", {}).get("uid") != claim["metadata"]["uid"]

    # ---- writing

    def put(self, resource: str, namespace: str, document: Document) -> None:
        """Store a version."""
        message = stored.version(resource, document, who="world")
        self._write(message.subject, message.payload, shared=resource in (CLAIMS, VOLUMES))

    def remove(self, resource: str, namespace: str, name: str) -> None:
        """Store the marker of a deletion."""
        document = self.objects.get((resource, name))
        if document is None:
            return
        message = stored.marker(resource, document, who="world")
        lines = {headers.OPERATION: headers.DELETED, headers.TTL: f"{message.ttl_s}s"}
        self._write(message.subject, message.payload, lines)

    def _write(
        self,
        subject: str,
        payload: bytes,
        lines: dict[str, str] | None = None,
        *,
        shared: bool = False,
        known: int = -1,
    ) -> None:
        """Write now, or as soon as there is room.

        :param shared: others write it too: it is not written over another version than there is now
        :param known: sequence of the only version that may be written over
        """
        there = self._stream.get(subject, self._clock.now)
        sequence = there.sequence if there else 0
        if known not in (-1, sequence):
            return
        expect = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(sequence)}
        answer = self._server.write(subject, payload, {**expect, **(lines or {})})
        if isinstance(answer, Refusal):  # no room just now
            known = sequence if shared else -1
            self._clock.later(1.0, lambda: self._write(subject, payload, lines, shared=shared, known=known))

    # ---- what is stored by anybody

    def stored(self, message: Stored, document: Document | None, placement: Binding | Tombstone | None) -> None:
        """A message was stored; agents and controllers act on it soon."""
        parts = message.subject.split(".")
        if parts[0] == "cluster" and len(parts) == 4:
            key = (subjects.decode(parts[1]), subjects.decode(parts[3]))
            self.storage.stored(*key, self.objects.get(key), document)
            if document is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = document
                if key[0] == subjects.PODS and "deletionTimestamp" in document["metadata"]:
                    self._clock.later(
                        self._random.uniform(0.2, 2), lambda: self._stop(key[1], document["metadata"]["uid"])
                    )
        elif placement is not None:
            self.placed[placement.uid] = placement
            if isinstance(placement, Binding):
                if self._random.random() < 0.35:
                    self._clock.later(self._random.uniform(2, 50), lambda: self._end(placement, "Succeeded"))
                pod = self.objects.get((subjects.PODS, placement.name))
                if pod is None or placement.node not in {
                    name for resource, name in self.objects if resource == subjects.NODES
                }:
                    self._clock.later(1.0, lambda: self._collect_one(placement))
                elif "deletionTimestamp" in pod["metadata"]:
                    self._clock.later(1.0, lambda: self._stop(placement.name, placement.uid))
            else:
                self._clock.later(self._random.uniform(0.1, 1), lambda: self._removed(placement))

    def _collect_one(self, placement: Binding) -> None:
        pod = self.objects.get((subjects.PODS, placement.name))
        if pod is not None and (subjects.NODES, placement.node) not in self.objects:
            self.remove(subjects.PODS, "default", placement.name)

    def _stop(self, name: str, uid: str) -> None:
        """A pod is to go: its agent ends it; one without an agent is gone."""
        pod = self.objects.get((subjects.PODS, name))
        placed = self.placed.get(uid)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        if isinstance(placed, Binding):
            self._end(placed, "Failed")
        else:
            self.remove(subjects.PODS, "default", name)

    def _end(self, placed: Binding, phase: str) -> None:
        """The agent says that nothing of the pod runs any more."""
        if placed.uid in self._ends or not isinstance(self.placed.get(placed.uid), Binding):
            return
        self._ends.add(placed.uid)
        fact = PodStatusFact(
            namespace=placed.namespace,
            name=placed.name,
            uid=placed.uid,
            node=placed.node,
            phase=phase,  # type: ignore[arg-type]
            ended=True,
        )
        self._write(subjects.pod_status(placed.node, placed.namespace, placed.name, placed.uid), codec.encode(fact))

    def _removed(self, tombstone: Tombstone) -> None:
        """The controller removes a pod that was deleted and is released."""
        pod = self.objects.get((subjects.PODS, tombstone.name))
        if pod is not None and pod["metadata"]["uid"] == tombstone.uid and "deletionTimestamp" in pod["metadata"]:
            self.remove(subjects.PODS, "default", tombstone.name)
