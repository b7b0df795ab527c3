"""A leading queue's core without its shell, full of parked pods: deliveries go in as from the bus."""

import itertools
import time
from typing import Any, Final

from podyard.bench import parked
from podyard.bench.parked import Cast
from podyard.bench.versions import version
from podyard.bus import Delivery
from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.framework.profile import Profile
from podyard.proto import codec, headers, subjects
from podyard.proto.placement import BoundPod, CommitRecord
from podyard.proto.queue_api import DoneRequest, PoppedPod, PopReply, PopRequest
from podyard.queue import assembly
from podyard.queue.core import messages
from podyard.queue.core.effects import Reply
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
        self.core = assembly.build_queue(
            (profile,),
            assembly.registries((profile,)),
            QueueSettings(),
            epoch=1,
            view=self.view,
            instance=SESSION,
            new_trace=lambda keep: "",
            timer=time.perf_counter,
        )
        self.now = 1000.0
        self.core.step(messages.Begin({}), self.now)
        self._tickets = itertools.count(1)
        self._digests = {profile.name: profile.digest}
        self._sequence = 1
        self._commits = 0
        self._versions: dict[str, int] = {}

    def put(self, resource: str, document: dict[str, Any]) -> Delivery:
        """The next version of an object, as the bus delivers it."""
        stored = version(resource, document)
        return self._delivery(stored.subject, stored.payload)

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
        self.core.step(messages.Changed(changes), self.now)
        return changes

    def pop(self) -> tuple[PoppedPod, ...]:
        """Pods to try, if there are any."""
        ticket = next(self._tickets)
        request = PopRequest(session=SESSION, pop_id=str(ticket), digests=self._digests)
        effects = self.core.step(messages.Asked(ticket, request), self.now)
        return tuple(
            pod
            for effect in effects
            if isinstance(effect, Reply) and isinstance(effect.reply, PopReply)
            for pod in effect.reply.pods
        )

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
        while self.core.leader.queue.has_ready():
            results = tuple(parked.rejected(pod, rejectors[pod.uid]) for pod in self.pop())
            done = messages.Asked(next(self._tickets), DoneRequest(session=SESSION, results=results))
            begun = time.thread_time()
            self.core.step(done, self.now)
            taken += time.thread_time() - begun
        self.now += LONG_S
        return taken

    def park_again(self) -> None:
        """Pods that events moved are tried and rejected as before."""
        queue = self.core.leader.queue
        if queue.has_ready():
            while (pod := queue.pop()) is not None:
                queue.fail(pod.uid, self.now, unschedulable=pod.unschedulable_plugins)
            self.now += LONG_S
        queue.take_effects()
