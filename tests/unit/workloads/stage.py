"""A stage for the core of workloads: a model of the CLUSTER stream, the real views, and writes that are carried out when the test says."""

import itertools
import json
import random
from collections import deque
from typing import Any

import msgspec

from podyard.bus.delivery import Delivery
from podyard.cluster import intents
from podyard.cluster.errors import ClusterError
from podyard.cluster.intents import Intent, Keep, Put, Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects import admission, times
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import Condition, PodStatusFact
from podyard.proto.placement import BoundPod, CommitRecord, Release
from podyard.workloads.core import actions
from podyard.workloads.core.actions import Alter, Create, Delete, Done, Remove, Work
from podyard.workloads.core.controller import Workloads
from podyard.workloads.core.templates import Maker
from podyard.workloads.reader import ViewLookup, WorkloadsView


class Stage:
    """One reign over a model of the stream. `settle` lets everything happen until nothing more does."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.messages: dict[str, Stored] = {}
        self.events: dict[str, ClusterEvent] = {}
        self.last = 0
        self.commits = 0
        self.log: list[tuple[str, int, bytes, dict[str, str]]] = []
        self.works: list[Work] = []
        self.failed: list[actions.Failed] = []
        self.held: deque[Work] = deque()
        self.hold = False
        """Whether writes wait until `release`."""
        self._uids = itertools.count(1)
        self.begin()

    def begin(self) -> None:
        """A new reign, which lists everything."""
        self.view = WorkloadsView()
        maker = Maker(ViewLookup(self.view.documents), lambda: f"uid-{next(self._uids)}", random.Random(7))
        self.core = Workloads(self.view.cluster, self.view.documents, maker)
        self.read = 0
        self.held.clear()
        self.view.begin_listing()
        latest: dict[str, int] = {}
        for index, (subject, *_) in enumerate(self.log):
            latest[subject] = index
        for index in sorted(latest.values()):
            self.view.apply(_delivery(*self.log[index]))
        changes = self.view.end_listing(self.last)
        self.read = len(self.log)
        self.step(actions.Changed(changes))
        self.step(actions.Listed())

    # ---- the core

    def step(self, message: actions.Message) -> None:
        for effect in self.core.step(message, self.now):
            if isinstance(effect, Work):
                self.works.append(effect)
                self.held.append(effect)
            else:
                self.failed.append(effect)

    def settle(self) -> None:
        """Follow, write and look until nothing is left to do now."""
        for _ in range(200):
            self.follow()
            self.now += 0.02
            self.step(actions.Tick())
            if self.hold or not self.held:
                if self.read == len(self.log) and self.core.wake_at > self.now + 0.05:
                    return
                if self.hold:
                    return
            self.release()
        raise AssertionError(f"it never comes to rest; the last work was {self.works[-1]}")

    def release(self) -> None:
        """Carry out what is held, and say so."""
        while self.held:
            work = self.held.popleft()
            self.step(self.carry_out(work))

    def follow(self) -> None:
        """Show the view what it has not seen."""
        while self.read < len(self.log):
            delivery = _delivery(*self.log[self.read])
            self.read += 1
            changes = self.view.apply(delivery)
            if changes:
                self.step(actions.Changed(changes))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def carry_out(self, work: Work) -> Done:
        position, failures = 0, []
        for write in work.writes:
            try:
                position = max(position, self.write(write))
            except ClusterError as error:
                failures.append(str(error))
                if work.atomic:
                    break
        return Done(work.owner, position, failures)

    def write(self, write: Any) -> int:
        subject = subjects.object_(*write.key)
        stored = self.messages.get(subject)
        match write:
            case Create():
                intent = Intent(write.key, intents.creation(write.key, write.document), stored, write.causes)
            case Alter():
                intent = Intent(write.key, intents.alteration(write.key, write.alter, write.uid), stored)
            case Delete():
                plan = intents.deletion(write.key, now=self.now, occupies=self.occupies, uid=write.uid)
                intent = Intent(write.key, plan, stored)
            case Remove():
                intent = Intent(write.key, intents.removal(write.key, write.uid), stored)
            case _:
                raise AssertionError(write)
        step = intent.plan(stored)
        if isinstance(step, Keep):
            return 0
        event = intents.event_of(write.key, step, stored, intents.Author("workloads", causes=intent.causes))
        return self.put(subject, event, deleted=not isinstance(step, Put))

    def occupies(self, uid: str) -> bool:
        pod = self.view.cluster.pods_by_uid.get(uid)
        return pod is not None and pod.bound is not None

    def put(self, subject: str, event: ClusterEvent, *, deleted: bool = False, trace: str = "") -> int:
        before = self.messages.get(subject)
        sequence = self.append(
            subject, codec.encode(event), before.sequence if before else 0, deleted=deleted, trace=trace
        )
        self.messages[subject] = Stored(sequence, codec.encode(event), deleted)
        self.events[subject] = event
        return sequence

    def append(self, subject: str, payload: bytes, predecessor: int, *, deleted: bool = False, trace: str = "") -> int:
        self.last += 1
        lines = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(predecessor)}
        if deleted:
            lines[headers.OPERATION] = headers.DELETED
        if trace:
            lines[headers.TRACEPARENT] = trace
        self.log.append((subject, self.last, payload, lines))
        return self.last

    # ---- what people and agents do

    def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        """Create or replace an object, as the api would."""
        kind = admission.kind_of(document)
        name, namespace = document["metadata"]["name"], document["metadata"].get("namespace", "default")
        key = ObjectKey(kind.resource, namespace if kind.namespaced else "", name)
        there = intents.living(self.messages.get(subjects.object_(*key)))
        admitted = admission.admit(
            document,
            ViewLookup(self.view.documents),
            old=None if there is None else there.document(),
            now=self.now,
            new_uid=lambda: f"uid-{next(self._uids)}",
            random=random.Random(1),
        )
        event = ClusterEvent(
            resource=key.resource,
            namespace=key.namespace,
            name=name,
            uid=admitted["metadata"]["uid"],
            who="test",
            object=msgspec.Raw(json.dumps(admitted).encode()),
        )
        self.put(subjects.object_(*key), event)
        return admitted

    def put_cluster_scoped(self, resource: str, document: dict[str, Any]) -> None:
        """An object without a namespace, as the api stores custom ones that name none."""
        metadata = document["metadata"]
        event = ClusterEvent(
            resource=resource,
            name=metadata["name"],
            uid=metadata["uid"],
            who="test",
            object=msgspec.Raw(json.dumps(document).encode()),
        )
        self.put(subjects.object_(resource, "", metadata["name"]), event)

    def change(self, resource: str, name: str, edit: Any, *, trace: str = "", namespace: str = "default") -> None:
        """Write an object anew after `edit(document)`."""
        key = ObjectKey(resource, namespace, name)
        subject = subjects.object_(*key)
        document = self.messages[subject].document()
        edit(document)
        event = intents.event_of(key, Put(document), self.messages[subject], intents.Author("test"))
        self.put(subject, event, trace=trace)

    def remove(self, resource: str, name: str, *, trace: str = "", namespace: str = "default") -> None:
        """Write the deletion marker."""
        key = ObjectKey(resource, namespace, name)
        subject = subjects.object_(*key)
        event = intents.event_of(key, intents.Remove(), self.messages[subject], intents.Author("test"))
        self.put(subject, event, deleted=True, trace=trace)

    def evict(self, name: str, trace: str = "") -> None:
        """Set the deletion timestamp, as an eviction of a bound pod does."""
        self.change("pods", name, lambda pod: intents.begin_deletion(pod, self.now, 30), trace=trace)

    def bind(self, *names: str, node: str = "n1") -> None:
        self.commits += 1
        bound = tuple(BoundPod(namespace="default", name=name, uid=self.uid("pods", name), node=node) for name in names)
        self.append(
            subjects.commit(self.commits),
            codec.encode(CommitRecord(n=self.commits, epoch=1, batch="b", bindings=bound)),
            0,
        )

    def release_pod(self, name: str, reason: Any = "terminated", node: str = "n1") -> None:
        self.commits += 1
        release = Release(namespace="default", name=name, uid=self.uid("pods", name), node=node, reason=reason)
        self.append(
            subjects.commit(self.commits),
            codec.encode(CommitRecord(n=self.commits, epoch=1, batch="b", releases=(release,))),
            0,
        )

    def report(
        self,
        *names: str,
        phase: Any = "Running",
        ready: bool = True,
        ended: bool = False,
        node: str = "n1",
        trace: str = "",
    ) -> None:
        for name in names:
            uid = self.uid("pods", name)
            condition = Condition(
                type="Ready", status="True" if ready else "False", last_transition_time=times.rfc3339(self.now)
            )
            fact = PodStatusFact(
                namespace="default",
                name=name,
                uid=uid,
                node=node,
                phase=phase,
                ended=ended,
                conditions=(condition,),
                at=times.rfc3339(self.now),
            )
            subject = subjects.pod_status(node, "default", name, uid)
            before = max((sequence for found, sequence, *_ in self.log if found == subject), default=0)
            self.append(subject, codec.encode(fact), before, trace=trace)

    def run_all(self, node: str = "n1") -> list[str]:
        """Bind all unbound pods and let them become ready; returns their names."""
        names = [pod.name for pod in self.pods() if pod.bound is None and not pod.released]
        if names:
            self.bind(*names, node=node)
            self.report(*names, node=node)
        self.settle()
        return names

    # ---- what there is

    def uid(self, resource: str, name: str) -> str:
        return self.messages[subjects.object_(resource, "default", name)].uid

    def pods(self) -> list[Any]:
        self.follow()
        return sorted(self.view.cluster.pods.values(), key=lambda pod: pod.name)

    def active(self) -> list[Any]:
        return [pod for pod in self.pods() if not pod.deleting and not pod.released and not pod.ended]

    def document(self, resource: str, name: str) -> dict[str, Any]:
        return self.messages[subjects.object_(resource, "default", name)].document()

    def exists(self, resource: str, name: str) -> bool:
        return intents.living(self.messages.get(subjects.object_(resource, "default", name))) is not None

    def all(self, resource: str) -> list[dict[str, Any]]:
        prefix = subjects.objects(resource).removesuffix(">")
        return [
            found.document()
            for subject, found in self.messages.items()
            if subject.startswith(prefix) and not found.deleted
        ]


def template(image: str = "web:1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}]
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers, **spec}}


def replica_set(replicas: int, name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec},
    }


def deployment(replicas: int, image: str = "web:1", name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
            **spec,
        },
    }


def job(name: str = "sum", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template(restartPolicy="Never"), **spec},
    }


def budget(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def _delivery(subject: str, sequence: int, payload: bytes, lines: dict[str, str]) -> Delivery:
    return Delivery(subject, payload, sequence, 0.0, lines)
