"""A small cluster with everything that schedules it, what may go wrong, and what must hold all the same."""

from collections import Counter
from typing import Any

from podyard.proto import subjects
from podyard.proto.binder_api import BindRequest
from podyard.proto.decisions import AttemptRecord
from podyard.proto.placement import Binding, Tombstone
from podyard.proto.queue_api import PopReply
from podyard.queue.core.effects import AttemptEnded
from tests.support import objects
from tests.unit.queue.small_world import oracle
from tests.unit.queue.small_world.binder_part import BinderPart
from tests.unit.queue.small_world.clock import Clock, Network
from tests.unit.queue.small_world.log import NAMESPACE, Document, Log
from tests.unit.queue.small_world.queue_part import QueuePart
from tests.unit.queue.small_world.scheduler_part import SchedulerPart
from tests.unit.queue.small_world.surroundings import Respond

REST_S = 150
"""Virtual seconds within which everything must come to rest: half of what the safety flush waits, which never
runs here anyway.
"""

LONGEST_LAG_S = 0.5


class World:
    """All parts, and what they did. A seed decides all that is left to chance."""

    def __init__(self, seed: int, schedulers: int) -> None:
        self.clock = Clock(seed)
        self.network = Network(self.clock)
        self.log = Log(self.clock)
        self.last_records: dict[str, AttemptRecord] = {}
        self.handed: set[str] = set()
        self.ended: Counter[str] = Counter()
        self.bindings: Counter[str] = Counter()
        self.live: dict[str, tuple[str, int]] = {}
        """Node and milli-CPU of the pods that the commit records leave bound, by uid."""
        self.largest: Counter[str] = Counter()
        """Milli-CPU that a node of this name had at most."""
        self.replayed = 0
        """Commit records that were looked at."""
        self.pods = 0
        self.epoch = 0
        self._starts = 0
        self.binder = BinderPart(self, "binder-1", 1)
        self.queue = QueuePart(self)
        self.standby = QueuePart(self)
        self._take_over()
        self.schedulers = [self._scheduler(slot) for slot in range(schedulers)]

    # ---- what the parts ask of their surroundings

    @property
    def stream(self) -> Log:
        return self.log

    @property
    def now(self) -> float:
        return self.clock.now

    def lag(self) -> float:
        return self.clock.random.uniform(0.0, LONGEST_LAG_S)

    def handed_out(self, reply: PopReply) -> None:
        self.handed.update(pod.attempt for pod in reply.pods)

    def attempt_ended(self, ended: AttemptEnded) -> None:
        self.ended[ended.attempt] += 1
        assert self.ended[ended.attempt] == 1, f"attempt {ended.attempt} ended twice"
        assert ended.attempt in self.handed

    def to_queue(self, verb: str, request: Any, respond: Respond) -> None:
        self.queue.serve(verb, request, respond)

    def to_binder(self, request: BindRequest, respond: Respond) -> None:
        self.binder.serve(request, respond)

    # ---- the cluster

    def create(self, spec: Document, labels: dict[str, str]) -> str:
        """A pod of a new name; returns its name."""
        self.pods += 1
        name = f"p{self.pods}"
        self.log.put_object("pods", objects.pod(name, labels=labels, **spec))
        return name

    def create_again(self, name: str) -> None:
        """The same pod under the same name, with another uid."""
        document = self.log.documents["pods", name]
        self.log.remove("pods", name)
        self.pods += 1
        labels = document["metadata"]["labels"]
        self.log.put_object("pods", objects.pod(name, uid=f"{name}-uid{self.pods}", labels=labels, **document["spec"]))

    def relabel(self, name: str, app: str) -> None:
        """A pod's label `app` is another."""
        pod = self.log.documents["pods", name]
        self.log.put_object("pods", {**pod, "metadata": {**pod["metadata"], "labels": {"app": app}}})

    def put_node(self, name: str, labels: dict[str, str], cpu: int, **spec: Any) -> None:
        self.largest[name] = max(self.largest[name], 1000 * cpu)
        self.log.put_object("nodes", objects.node(name, cpu=str(cpu), pods="10", labels=labels, **spec))

    def node_of(self, name: str) -> str:
        """Where a living pod is bound, by what is stored; empty: nowhere, or not any more."""
        placement = self.log.placement(name, self.log.documents["pods", name]["metadata"]["uid"])
        return placement.node if isinstance(placement, Binding) else ""

    def finish(self, name: str) -> None:
        """A bound pod ends by itself; its object stays."""
        node = self.node_of(name)
        if node:
            self.log.end_pod(name, self.log.documents["pods", name]["metadata"]["uid"], node)

    def delete(self, name: str, uid: str) -> None:
        """Delete a pod as `podyard delete` does: marked, ended by its agent, released, and then removed."""
        document = self._living(name, uid)
        if document is None or "deletionTimestamp" in document["metadata"]:
            return
        if not self.node_of(name):
            self.log.remove("pods", name)
            return
        metadata = {**document["metadata"], "deletionTimestamp": objects.DELETED_AT}
        self.log.put_object("pods", {**document, "metadata": metadata})
        self.clock.after(self.clock.random.uniform(0.01, 2.0), lambda: self._end(name, uid))

    def _living(self, name: str, uid: str) -> Document | None:
        document = self.log.documents.get(("pods", name))
        return document if document is not None and document["metadata"]["uid"] == uid else None

    def _end(self, name: str, uid: str) -> None:
        if self._living(name, uid) is not None:
            self.finish(name)
            self._remove_released(name, uid)

    def _remove_released(self, name: str, uid: str) -> None:
        if self._living(name, uid) is None:
            return
        if isinstance(self.log.placement(name, uid), Tombstone):
            self.log.remove("pods", name)
        else:
            self.clock.after(0.05, lambda: self._remove_released(name, uid))

    # ---- what goes wrong

    def lose_binding(self, name: str) -> None:
        """The stream is without a pod's binding, as after a restore from before it was written; whoever reads
        lists it again.
        """
        uid = self.log.documents["pods", name]["metadata"]["uid"]
        self.log.expire(subjects.binding(NAMESPACE, name, uid))
        self.check()
        del self.bindings[uid], self.live[uid]
        for part in (self.queue, self.standby):
            part.relist()
        self.binder_fails_over()
        for slot in range(len(self.schedulers)):
            self.scheduler_dies(slot, 0.1)

    def _take_over(self) -> None:
        self.epoch += 1
        self.queue.lead(self.epoch)

    def queue_dies(self, election_s: float) -> None:
        """The leader dies; the standby leads when the lease has ended."""
        self.queue.stop()
        self.handed -= {attempt for attempt in self.handed if attempt not in self.ended}

        def elect() -> None:
            self.queue, self.standby = self.standby, QueuePart(self)
            self._take_over()

        if self.queue is not self.standby:
            self.clock.after(election_s, elect)

    def scheduler_dies(self, slot: int, down_s: float) -> None:
        """A scheduler dies, and starts again after a while."""
        dead = self.schedulers[slot]
        if dead.over:
            return
        dead.stop()

        def start() -> None:
            self.schedulers[slot] = self._scheduler(slot)

        self.clock.after(down_s, start)

    def _scheduler(self, slot: int) -> SchedulerPart:
        self._starts += 1
        return SchedulerPart(self, f"scheduler-{slot}", self._starts)

    def binder_fails_over(self) -> None:
        """Another binder leads; the old one finds out by the fence."""
        self.binder = BinderPart(self, f"binder-{self.log.last}", self.log.fence().epoch + 1)

    # ---- rest

    @property
    def at_rest(self) -> bool:
        queue = self.queue
        if queue.over or queue.leader is None or self.queue.reader.behind or self.binder.reader.behind:
            return False
        pools = queue.leader.queue
        if pools.active or pools.backing_off or pools.errors or len(pools.in_flight) or queue.leader.binding:
            return False
        return self.binder.core.idle and all(
            one.idle and not one.over and not one.reader.behind for one in self.schedulers
        )

    def rest(self) -> None:
        """Nothing more happens and nothing is lost any more: everything must come to rest, and then be
        right.
        """
        self.network.loss = 0.0
        still = 0
        for _ in range(REST_S):
            self.clock.run(1.0)
            still = still + 1 if self.at_rest else 0
            if still == 4:
                break
        assert still, oracle.unrest(self)
        oracle.check_rest(self)

    def check(self) -> None:
        """What holds at all times."""
        oracle.check_always(self)
