"""A stage for the core of workloads: the CLUSTER stream, the real views, and writes that are carried out when
the test says."""

import itertools
import random
from collections import deque
from typing import Any

from podyard.bus import Outgoing
from podyard.cluster import intents
from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import ClusterError
from podyard.cluster.intents import Intent, Keep, Put, Stored
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.objects import admission, times
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import Condition, PodStatusFact
from podyard.proto.placement import BoundPod, Release
from podyard.workloads.core import actions
from podyard.workloads.core.actions import Alter, Count, Create, Delete, Done, Remove, Work
from podyard.workloads.core.controller import Workloads
from podyard.workloads.core.ended_pods import THRESHOLD
from podyard.workloads.core.templates import Maker
from podyard.workloads.reading import ViewLookup, folds
from tests.support import stored
from tests.support.stream import ClusterStream


class Stage:
    """One term. `settle` lets everything happen until nothing more does."""

    def __init__(self, ended_kept: int = THRESHOLD, now: float = 1_800_000_000.0) -> None:
        self.ended_kept = ended_kept
        self.now = now
        self.agents_ahead_s = 0.0
        """How far the agents' clocks are ahead."""
        self.stream = ClusterStream(lambda: self.now)
        self.works: list[Work] = []
        self.counts: list[Count] = []
        self.failed: list[actions.Failed] = []
        self.told: list[actions.Told] = []
        self.held: deque[actions.Ask] = deque()
        self.hold = False
        """Whether writes wait until `release`."""
        self._uids, self._made = itertools.count(1), itertools.count(1)
        self.begin()

    def begin(self) -> None:
        """A new term, which lists everything."""
        self.cluster, self.documents = ClusterView(), DocumentView()
        self.view = folds(self.cluster, self.documents)
        maker = Maker(ViewLookup(self.documents), lambda: f"made-{next(self._made)}", random.Random(7))
        self.core = Workloads(self.cluster, self.documents, maker, ended_kept=self.ended_kept)
        self.read = 0
        self.held.clear()
        self.view.begin_listing()
        for delivery in self.stream.held():
            self.view.apply(delivery)
        changes = self.view.end_listing(self.stream.last)
        self.read = self.stream.last
        self.step(actions.Changed(changes))
        self.step(actions.Listed())

    # ---- the core

    def step(self, message: actions.Message) -> None:
        for effect in self.core.step(message, self.now):
            if isinstance(effect, Work):
                self.works.append(effect)
                self.held.append(effect)
            elif isinstance(effect, Count):
                self.counts.append(effect)
                self.held.append(effect)
            elif isinstance(effect, actions.Told):
                self.told.append(effect)
            else:
                self.failed.append(effect)

    def settle(self) -> None:
        """Follow, write and look until nothing is left to do now."""
        for _ in range(200):
            self.follow()
            self.now += 0.02
            self.step(actions.Tick())
            if self.hold or not self.held:
                if self.read == self.stream.last and self.core.wake_at > self.now + 0.05:
                    return
                if self.hold:
                    return
            self.release()
        raise AssertionError(f"it never comes to rest; the last work was {self.works[-1]}")

    def release(self) -> None:
        """Carry out what is held, and say so."""
        while self.held:
            ask = self.held.popleft()
            self.step(self.carry_out(ask) if isinstance(ask, Work) else self.count(ask))

    def follow(self) -> None:
        """Show the view what it has not seen."""
        while self.read < self.stream.last:
            delivery = self.stream.log[self.read]
            self.read += 1
            changes = self.view.apply(delivery)
            if changes:
                self.step(actions.Changed(changes))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def count(self, count: Count) -> Done:
        """Store usages; a conflict leaves the quota to its next look."""
        key = count.owner
        for uid, fact, expect in count.usages:
            subject = subjects.quota_usage(key.namespace, key.name, uid)
            payload = b"" if fact is None else codec.encode(fact)
            ttl_s = streams.MARKER_TTL_S if fact is None else None
            self.stream.publish(Outgoing(subject, payload, expect=expect, deleted=fact is None, ttl_s=ttl_s))
        return Done(key, self.stream.last)

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
        there = self.there(subject)
        match write:
            case Create():
                intent = Intent(write.key, intents.creation(write.key, write.document), there, write.causes)
            case Alter():
                intent = Intent(write.key, intents.alteration(write.key, write.alter, write.uid), there)
            case Delete():
                plan = intents.deletion(
                    write.key, now=self.now, occupies=self.occupies, uid=write.uid, propagation=write.propagation
                )
                intent = Intent(write.key, plan, there)
            case Remove():
                plan = intents.deletion(write.key, now=self.now, occupies=self.occupies, grace_s=0, uid=write.uid)
                intent = Intent(write.key, plan, there)
            case _:
                raise AssertionError(write)
        step = intent.plan(there)
        if isinstance(step, Keep):
            return 0
        return self.put(write.key, step, intents.Author("workloads", causes=intent.causes))

    def occupies(self, uid: str) -> bool:
        pod = self.cluster.pods_by_uid.get(uid)
        return pod is not None and pod.bound is not None

    def put(self, key: ObjectKey, step: Put | intents.Remove, author: intents.Author) -> int:
        """Write a version, or a marker; returns its sequence."""
        subject, deleted = subjects.object_(*key), isinstance(step, intents.Remove)
        event = intents.event_of(key, step, self.there(subject), author)
        ttl_s = streams.MARKER_TTL_S if deleted else None
        message = Outgoing(subject, codec.encode(event), ttl_s=ttl_s, trace=author.trace, deleted=deleted)
        return self.stream.put(message).sequence

    def there(self, subject: str) -> Stored | None:
        """The last version on a subject."""
        return intents.stored_of(self.stream.find(subject))

    def stored(self, resource: str, name: str, namespace: str = "default") -> Stored:
        """The last version of an object that is there."""
        found = self.there(subjects.object_(resource, namespace, name))
        assert found is not None
        return found

    # ---- what people and agents do

    def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        """Create or replace an object, as the api would."""
        kind = admission.kind_of(document)
        name, namespace = document["metadata"]["name"], document["metadata"].get("namespace", "default")
        key = ObjectKey(kind.resource, namespace if kind.namespaced else "", name)
        there = intents.living(self.there(subjects.object_(*key)))
        admitted = admission.admit(
            document,
            ViewLookup(self.documents),
            old=None if there is None else there.document(),
            now=self.now,
            new_uid=lambda: f"uid-{next(self._uids)}",
            random=random.Random(1),
        )
        self.stream.put(stored.version(key.resource, admitted))
        return admitted

    def put_cluster_scoped(self, resource: str, document: dict[str, Any]) -> None:
        """An object without a namespace, as the api stores custom ones that name none."""
        self.stream.put(stored.version(resource, document))

    def change(self, resource: str, name: str, edit: Any, *, trace: str = "", namespace: str = "default") -> None:
        """Write an object anew after `edit(document)`."""
        document = self.stored(resource, name, namespace).document()
        edit(document)
        self.put(ObjectKey(resource, namespace, name), Put(document), intents.Author("test", trace=trace))

    def remove(self, resource: str, name: str, *, trace: str = "", namespace: str = "default") -> None:
        """Write the deletion marker."""
        self.put(ObjectKey(resource, namespace, name), intents.Remove(), intents.Author("test", trace=trace))

    def evict(self, name: str, trace: str = "") -> None:
        """Set the deletion timestamp, as an eviction of a bound pod does."""
        self.change("pods", name, lambda pod: intents.begin_deletion(pod, self.now, 30), trace=trace)

    def bind(self, *names: str, node: str = "n1") -> None:
        bound = [BoundPod(namespace="default", name=name, uid=self.uid("pods", name), node=node) for name in names]
        self.stream.put(stored.record(len(self.stream.commits) + 1, bindings=bound))

    def release_pod(self, name: str, reason: Any = "terminated", node: str = "n1") -> None:
        release = Release(namespace="default", name=name, uid=self.uid("pods", name), node=node, reason=reason)
        self.stream.put(stored.record(len(self.stream.commits) + 1, releases=[release]))

    def report(
        self,
        *names: str,
        phase: Any = "Running",
        ready: bool = True,
        ended: bool = False,
        node: str = "n1",
        trace: str = "",
        reason: str = "",
        message: str = "",
    ) -> None:
        said = times.rfc3339(self.now + self.agents_ahead_s)
        for name in names:
            uid = self.uid("pods", name)
            condition = Condition(type="Ready", status="True" if ready else "False", last_transition_time=said)
            fact = PodStatusFact(
                namespace="default",
                name=name,
                uid=uid,
                node=node,
                phase=phase,
                reason=reason,
                message=message,
                ended=ended,
                conditions=(condition,),
                at=said,
            )
            self.stream.put(stored.pod_status(fact, trace=trace))

    def refuse(self, *names: str) -> None:
        """Bind pods to a node that does not take them."""
        self.bind(*names)
        lacks = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1, used: 9, capacity: 9"
        self.report(*names, phase="Failed", ready=False, ended=True, reason="OutOfcpu", message=lacks)
        for name in names:
            self.release_pod(name, "completed")
        self.settle()

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
        return self.stored(resource, name).uid

    def pods(self) -> list[Any]:
        self.follow()
        return sorted(self.cluster.pods.values(), key=lambda pod: pod.name)

    def active(self) -> list[Any]:
        return [pod for pod in self.pods() if not pod.deleting and not pod.released and not pod.ended]

    def document(self, resource: str, name: str) -> dict[str, Any]:
        return self.stored(resource, name).document()

    def exists(self, resource: str, name: str) -> bool:
        return intents.living(self.there(subjects.object_(resource, "default", name))) is not None

    def all(self, resource: str) -> list[dict[str, Any]]:
        prefix = subjects.objects(resource).removesuffix(">")
        there = [one for one in self.stream.held() if one.subject.startswith(prefix) and not one.deleted]
        return [stored.document(one) for one in there]


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


def replication_controller(replicas: int, name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": template(), **spec},
    }


def daemon_set(
    image: str = "web:1", name: str = "web", rolling: dict[str, Any] | None = None, **pod: Any
) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template(image, **pod)}
    if rolling is not None:
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec}


def stateful_set(replicas: int, image: str = "web:1", name: str = "db", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
            **spec,
        },
    }


def claim_template(name: str = "data") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"of": "tests"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def cron_job(schedule: str = "*/5 * * * *", name: str = "nightly", **spec: Any) -> dict[str, Any]:
    job_spec = {"template": template(restartPolicy="Never")}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": job_spec}, **spec},
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
