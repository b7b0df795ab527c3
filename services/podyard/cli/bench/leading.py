"""A leading queue without its shell, full of parked pods: deliveries go in as from the bus, everything else is the service's own code."""

import time
from typing import Any, Final

import msgspec

from podyard.bus import Delivery
from podyard.cli.bench.parked import Cast
from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.framework.profile import Profile
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.placement import BoundPod, CommitRecord
from podyard.proto.queue_api import AttemptResult, DoneRequest, PopRequest
from podyard.queue import assembly
from podyard.queue.core.changes import Changes
from podyard.queue.core.leader import Leader
from podyard.queue.settings import QueueSettings

SESSION: Final = "bench"
LONG_S: Final = 60.0
"""Longer than any backoff."""


class Leading:
    """The view and the core of one term."""

    def __init__(self, profile: Profile) -> None:
        self.view = ClusterView()
        self.view.begin_listing()
        self.view.end_listing(1)
        self.leader: Leader = assembly.build_leader(
            (profile,),
            assembly.registries((profile,)),
            QueueSettings(),
            epoch=1,
            view=self.view,
            new_trace=lambda: "",
            timer=time.perf_counter,
        )
        self.changes = Changes(self.leader, (profile.name,))
        self.now = 1000.0
        self._digests = {profile.name: profile.digest}
        self._sequence = 1
        self._commits = 0
        self._versions: dict[str, int] = {}

    def put(self, resource: str, document: dict[str, Any]) -> Delivery:
        """The next version of an object, as the bus delivers it."""
        metadata = document["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        event = ClusterEvent(
            resource=resource,
            namespace=namespace,
            name=name,
            uid=metadata["uid"],
            who="bench",
            object=msgspec.Raw(msgspec.json.encode(document)),
        )
        return self._delivery(subjects.object_(resource, namespace, name), codec.encode(event))

    def commit(self, bindings: tuple[BoundPod, ...]) -> Delivery:
        """The next commit record."""
        self._commits += 1
        n = self._commits
        record = CommitRecord(n=n, epoch=1, batch=f"b{n}", bindings=bindings, at=self.now)
        return self._delivery(subjects.commit(n), codec.encode(record))

    def _delivery(self, subject: str, payload: bytes) -> Delivery:
        self._sequence += 1
        before = self._versions.get(subject, 0)
        self._versions[subject] = self._sequence
        told = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(before)}
        return Delivery(subject, payload, self._sequence, self.now, told)

    def happen(self, delivery: Delivery) -> list[Change]:
        """Take a delivery in, all the way."""
        changes = self.view.apply(delivery)
        for change in changes:
            self.changes.apply(change, self.now)
        return changes

    def park(self, cast: Cast, count: int) -> float:
        """Have so many pods tried once and rejected; their backoff is over.

        :return: how long the parking itself took, seconds
        """
        rejectors: dict[str, tuple[str, ...]] = {}
        for number in range(count):
            one = cast(number)
            rejectors[one.document["metadata"]["uid"]] = one.rejectors
            self.happen(self.put(subjects.PODS, one.document))
        taken = 0.0
        while self.leader.queue.has_ready():
            request = PopRequest(session=SESSION, pop_id=str(self.leader.queue.cycle), digests=self._digests)
            reply = self.leader.pop(request, self.now, 1)
            results = tuple(
                AttemptResult(
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=pod.uid,
                    attempt=pod.attempt,
                    outcome="unschedulable",
                    unschedulable_plugins=rejectors[pod.uid],
                )
                for pod in (reply.pods if reply is not None else ())
            )
            begun = time.thread_time()
            self.leader.done(DoneRequest(session=SESSION, results=results), self.now)
            taken += time.thread_time() - begun
        self.leader.queue.take_effects()
        self.now += LONG_S
        return taken

    def park_again(self) -> None:
        """Pods that events moved are tried and rejected as before."""
        queue = self.leader.queue
        if queue.has_ready():
            while (pod := queue.pop()) is not None:
                queue.fail(pod.uid, self.now, unschedulable=pod.unschedulable_plugins)
            self.now += LONG_S
        queue.take_effects()
