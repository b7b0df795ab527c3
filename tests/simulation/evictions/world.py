"""The rest of the cluster, without faults of its own: pods of workloads with disruption budgets, which are
made again when they go; agents that make them ready and end them; the controller that counts budgets; and
people who evict, several at once. Nobody but evictions disturbs a pod.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from podyard.bus import Outgoing
from podyard.objects import times
from podyard.proto import codec, headers, streams, subjects
from podyard.proto.facts import Condition, PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import EvictRequest
from podyard.proto.placement import BoundPod, Release
from tests.memory_nats import MemoryServer
from tests.memory_nats.stream import Refusal, Stored
from tests.simulation.clock import Clock
from tests.support import objects, stored
from tests.support.cluster import bound

BUDGETS = "poddisruptionbudgets"
NAMESPACE = "default"
NODES = ("n1", "n2", "n3")
Document = dict[str, Any]


class Group(NamedTuple):
    """A workload."""

    name: str
    replicas: int
    wanted: int
    """Pods of it that are to stay healthy."""
    policy: str = "IfHealthyBudget"
    budgets: int = 1
    from_s: float = 0.0
    """When its budget is made."""
    sick: float = 0.3
    """Share of its pods that need long to become ready."""
    never: float = 0.0
    """Share that never do."""


GROUPS = (
    Group("web", 6, 4),
    Group("db", 3, 2),
    Group("late", 4, 3, from_s=20.0),
    Group("always", 5, 3, policy="AlwaysAllow", sick=0.0, never=0.2),
    Group("twice", 3, 1, budgets=2),
)


class Pod:
    """A pod as its agent knows it."""

    def __init__(self, group: Group, document: Document, node: str) -> None:
        self.group = group
        self.document = document
        self.node = node
        self.ready = False
        self.deleting = False

    @property
    def name(self) -> str:
        return self.document["metadata"]["name"]

    @property
    def uid(self) -> str:
        return self.document["metadata"]["uid"]


class EvictionWorld:
    """Owned by the clock: everything it does is an event."""

    def __init__(self, clock: Clock, server: MemoryServer, groups: tuple[Group, ...] = GROUPS) -> None:
        self._clock = clock
        self._random = clock.random
        self._server = server
        self._stream = server.streams[streams.CLUSTER.name]
        self._groups = groups
        self.pods: dict[str, Pod] = {}
        """By uid."""
        self.budgets: dict[str, Document] = {}
        self._versions: dict[str, int] = {}
        """Of budgets: sequences."""
        self._commits = 0
        self._serial = 0
        self._unwritten: deque[tuple[Outgoing, int]] = deque()
        self.asked = 0
        self.until_s = 0.0

    def begin(self, until_s: float) -> None:
        """:param until_s: when people evict no more"""
        self.until_s = until_s
        for node in NODES:
            self._write(stored.version("nodes", objects.node(node)))
        for group in self._groups:
            for number in range(group.budgets):
                self._clock.later(group.from_s, lambda g=group, n=number: self._make_budget(g, n))
            for _ in range(group.replicas):
                self._make_pod(group)
        self._clock.later(3.0, self._evict)

    # ---- budgets, as their controller counts them

    def _make_budget(self, group: Group, number: int) -> None:
        name = f"{group.name}-{number}"
        self._write(
            stored.version(
                BUDGETS,
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"pdb-{name}", "generation": 1},
                    "spec": {
                        "minAvailable": group.wanted,
                        "selector": {"matchLabels": {"app": group.name}},
                        "unhealthyPodEvictionPolicy": group.policy,
                    },
                },
            )
        )
        self._count(group, name)

    def _count(self, group: Group, name: str) -> None:
        """The controller looks at one moment, and writes later, if nobody else has written meanwhile."""
        budget, version = self.budgets.get(name), self._versions.get(name, 0)
        if budget is not None:
            before = budget.get("status", {})
            pods = [one for one in self.pods.values() if one.group is group]
            alive = {one.name for one in pods if not one.deleting}
            disrupted = {one: at for one, at in before.get("disruptedPods", {}).items() if one in alive}
            healthy = sum(one.ready and not one.deleting and one.name not in disrupted for one in pods)
            status = {
                "currentHealthy": healthy,
                "desiredHealthy": group.wanted,
                "disruptionsAllowed": max(0, healthy - group.wanted),
                "expectedPods": len(pods),
                "observedGeneration": 1,
                "disruptedPods": disrupted,
            }
            counted = {**budget, "status": status}
            if status != before:
                lag_s = self._random.choice((0.001, 0.02, 0.5))
                message = stored.version(BUDGETS, counted, who="counter")
                self._clock.later(lag_s, lambda: self._write(message, version))
        self._clock.later(self._random.uniform(0.1, 0.8), lambda: self._count(group, name))

    # ---- pods

    def _make_pod(self, group: Group) -> None:
        self._serial += 1
        name = f"{group.name}-{self._serial}"
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": group.name, "uid": f"rs-{group.name}"}
        made = {
            "ownerReferences": [{**owner, "controller": True}],
            "creationTimestamp": times.rfc3339(self._clock.now),
        }
        document = objects.pod(
            name, cpu="100m", labels={"app": group.name}, metadata=made, terminationGracePeriodSeconds=1
        )
        pod = self.pods[document["metadata"]["uid"]] = Pod(group, document, self._random.choice(NODES))
        self._write(stored.version("pods", document))
        self._clock.later(self._random.uniform(0.05, 0.5), lambda: self._bind(pod))

    def _bind(self, pod: Pod) -> None:
        if pod.uid not in self.pods:
            return
        one = bound(pod.name, pod.node, uid=pod.uid)
        self._commit(bindings=[one])
        self._clock.later(self._random.uniform(0.05, 0.3), lambda: self._report(pod))
        chance = self._random.random()
        if chance >= pod.group.never:
            sick = chance < pod.group.never + pod.group.sick
            delay_s = self._random.uniform(4.0, 12.0) if sick else self._random.uniform(0.3, 2.0)
            self._clock.later(delay_s, lambda: self._become_ready(pod))

    def _become_ready(self, pod: Pod) -> None:
        if pod.uid in self.pods:
            pod.ready = True
            self._report(pod)

    def _report(self, pod: Pod, phase: str = "Running", *, ended: bool = False) -> None:
        if pod.uid not in self.pods:
            return
        ready = (Condition(type="Ready", status="True" if pod.ready and not ended else "False"),)
        fact = PodStatusFact(
            namespace=NAMESPACE,
            name=pod.name,
            uid=pod.uid,
            node=pod.node,
            phase=phase,  # type: ignore[arg-type]
            ended=ended,
            conditions=ready,
        )
        self._write(stored.pod_status(fact))

    def _end(self, pod: Pod) -> None:
        """Its agent has ended it, the binder releases it, the controller removes it."""
        if self.pods.pop(pod.uid, None) is None:
            return
        release = Release(namespace=NAMESPACE, name=pod.name, uid=pod.uid, node=pod.node, reason="terminated")
        self._commit(releases=[release])
        self._write(stored.marker("pods", pod.document, who="world"))
        self._again(pod)

    def _again(self, pod: Pod) -> None:
        self._clock.later(self._random.uniform(0.1, 1.0), lambda: self._make_pod(pod.group))

    # ---- people

    def _evict(self) -> None:
        """Somebody drains: several requests at once, some sent twice, some for pods that are not there."""
        if self._clock.elapsed > self.until_s:
            return
        there = sorted(self.pods)
        for uid in self._random.sample(there, min(len(there), self._random.choice((1, 2, 4)))):
            pod = self.pods[uid]
            grace_s = self._random.choice((None, None, None, 0))
            request = EvictRequest(
                pods=(ObjectRef(resource="pods", namespace=NAMESPACE, name=pod.name, uid=uid),),
                who="person",
                grace_period_s=grace_s,
            )
            for _ in range(self._random.choice((1, 1, 2))):
                self.asked += 1
                self._server.publish(subjects.OBJECTS_EVICT, codec.encode(request), "_INBOX.person")
        self._clock.later(self._random.uniform(0.05, 1.5), self._evict)

    # ---- what is stored by anybody

    def stored(self, message: Stored, document: Document | None, *, deleted: bool) -> None:
        """A message was stored; agents and controllers act on it."""
        parts = message.subject.split(".")
        if parts[0] != "cluster" or len(parts) != 4:
            return
        name = subjects.decode(parts[3])
        if parts[1] == BUDGETS and document is not None:
            self.budgets[name], self._versions[name] = document, message.sequence
        elif parts[1] == "pods":
            pod = next((one for one in self.pods.values() if one.name == name), None)
            if pod is not None and deleted:
                del self.pods[pod.uid]
                self._again(pod)
            elif pod is not None and document is not None and "deletionTimestamp" in document["metadata"]:
                pod.document = document
                if not pod.deleting:
                    pod.deleting = True
                    self._clock.later(self._random.uniform(0.2, 2.0), lambda: self._end(pod))

    # ---- writing

    def _commit(self, *, bindings: Sequence[BoundPod] = (), releases: Sequence[Release] = ()) -> None:
        self._commits += 1
        for message in stored.commit(self._commits, bindings=bindings, releases=releases):
            self._write(message)

    def _write(self, message: Outgoing, known: int = -1) -> None:
        """Write now, or as soon as there is room, in this order.

        :param known: sequence of the only version that may be written over; -1: any
        """
        self._unwritten.append((message, known))
        if len(self._unwritten) == 1:
            self._write_on()

    def _write_on(self) -> None:
        while self._unwritten:
            message, known = self._unwritten[0]
            there = self._stream.get(message.subject, self._clock.now)
            sequence = there.sequence if there else 0
            if known in (-1, sequence):
                lines = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(sequence)}
                if message.deleted:
                    lines |= {headers.OPERATION: headers.DELETED, headers.TTL: f"{message.ttl_s}s"}
                if isinstance(self._server.write(message.subject, message.payload, lines), Refusal):
                    self._clock.later(0.5, self._write_on)
                    return
            self._unwritten.popleft()
