"""The queue against a dumb oracle: nothing is lost, nothing is in two places, whoever can be woken is."""

from math import floor

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from podyard.framework import events
from podyard.framework.events import HintAnswer
from podyard.proto.actions import ActionType
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.unit.queue.play import REGISTRY, new_queue, node_event, pod_event, pod_object, queued

NAMES = [f"p{n}" for n in range(4)]
PLUGINS = ["OnNodes", "Also", "OnPods", "Nobody"]
rejectors = st.frozensets(st.sampled_from(PLUGINS), max_size=3)
helped = st.frozensets(st.sampled_from([*NAMES, *(f"also-{name}" for name in NAMES)]), max_size=4)
actions = st.sampled_from(
    [ActionType.ADD, ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_CONDITION, ActionType.DELETE]
)


def would_wake(pod: QueuedPod, incoming: Incoming) -> bool:
    """The oracle: asks every registration of every rejector, without any index."""
    return any(
        events.match(registration.event, incoming.event)
        and registration.hint is not None
        and registration.hint(pod.pod, incoming.old, incoming.new).answer is HintAnswer.QUEUE
        for plugin in pod.rejectors
        for registration in REGISTRY.plugins.get(plugin, ())
    )


class QueueMachine(RuleBasedStateMachine):
    """Drives one queue; remembers what is open and what happened since."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: SchedulingQueue = new_queue()
        self.now = 0.0
        self.uids = 0
        self.open: dict[str, list[Incoming]] = {}
        """Uid of a popped pod -> events since its pop."""
        self.flying: dict[str, QueuedPod] = {}
        self.gone: set[str] = set()

    @initialize()
    def start(self) -> None:
        self.now = 1000.25

    def known(self, name: str) -> QueuedPod | None:
        return next((pod for pod in self.queue.pods.values() if pod.key[1] == name), None)

    @rule(seconds=st.sampled_from([0.001, 0.4, 1.0, 3.0, 12.0, 301.0]))
    def advance(self, seconds: float) -> None:
        self.now += seconds

    @rule(name=st.sampled_from(NAMES), priority=st.integers(0, 2), gated=st.booleans())
    def create(self, name: str, priority: int, gated: bool) -> None:
        if self.known(name) is None:
            self.uids += 1
            labels = ["gate"] if gated else []
            pod = queued(name, self.now, *labels, priority=priority, uid=f"{name}-{self.uids}")
            self.queue.add(pod, self.now)
            assert pod.pool == ("gated" if gated else "activeQ")

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        pod = self.known(name)
        if pod is not None:
            self.queue.delete(pod.uid)
            self.gone.add(pod.uid)

    @rule(name=st.sampled_from(NAMES), gated=st.booleans(), helps=st.booleans())
    def update(self, name: str, gated: bool, helps: bool) -> None:
        pod = self.known(name)
        if pod is None:
            return
        labels = ["gate"] * gated + [name] * helps
        new = pod_object(name, *labels, priority=pod.priority, uid=pod.uid)
        incoming = Incoming(event=events.UNSCHEDULED_POD_UPDATE, old=pod.pod, new=new)
        before, was_in = pod.pool, pod.pod
        self.queue.update(pod.uid, was_in, new, [incoming], self.now, priority=pod.priority)
        if pod.uid in self.open:
            for since in self.open.values():
                since.append(incoming)
        elif before == "unschedulable":
            assert (pod.pool == "unschedulable") == (not would_wake(pod, incoming))

    @rule()
    def pop(self) -> None:
        ready = [*self.queue.active] or [*self.queue.backing_off]
        pod = self.queue.pop()
        assert pod is (ready[0] if ready else None)
        if pod is not None:
            assert pod.uid not in self.open
            self.open[pod.uid] = []
            self.flying[pod.uid] = pod

    @precondition(lambda self: self.open)
    @rule(data=st.data(), rejected=rejectors, pending=st.booleans())
    def fail(self, data: st.DataObject, rejected: frozenset[str], pending: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.open)))
        pod, since = self.flying.pop(uid), self.open.pop(uid)
        kind = "pending" if pending else "unschedulable"
        self.queue.fail(uid, self.now, **{kind: rejected})
        if uid in self.gone:
            assert pod.pool == ""
            return
        woken = not rejected or any(would_wake(pod, incoming) for incoming in since)
        assert (pod.pool == "unschedulable") == (not woken)
        if not rejected and "gate" not in pod.pod.metadata.labels:
            assert pod.pool == "errorBackoffQ"

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[uid], self.flying[uid]
        self.queue.done(uid)
        self.queue.delete(uid)
        self.gone.add(uid)

    @rule(names=helped, action=actions, on_pod=st.booleans(), limit=st.one_of(st.none(), st.integers(0, 2)))
    def happen(self, names: frozenset[str], action: ActionType, on_pod: bool, limit: int | None) -> None:
        incoming = pod_event(*names, action=action) if on_pod else node_event(*names, action=action)
        before = {pod.uid: pod for pod in self.queue.parked}
        expected = {
            uid
            for uid, pod in before.items()
            if not pod.gating_plugin and would_wake(pod, incoming) and (limit is None or pod.priority <= limit)
        }
        gated = {uid for uid, pod in before.items() if pod.gating_plugin}
        self.queue.move_all(incoming, self.now, max_priority=limit)
        if self.queue.hints.is_interested(incoming.event):
            for since in self.open.values():
                since.append(incoming)
        for uid, pod in before.items():
            if uid in expected:
                assert pod.pool in ("activeQ", "backoffQ", "gated")
            elif uid not in gated:
                assert pod.pool == "unschedulable"

    @rule()
    def flush_backoff(self) -> None:
        self.queue.flush_backoff(self.now)
        for heap in (self.queue.backing_off, self.queue.errors):
            assert all((pod.backoff_expiry or 0) >= floor(self.now) for pod in heap)

    @rule()
    def flush_unschedulable(self) -> None:
        self.queue.flush_unschedulable(Incoming(event=events.UNSCHEDULABLE_TIMEOUT), self.now)
        assert all(self.now - pod.timestamp <= 300 or pod.gating_plugin for pod in self.queue.parked)
        self.forget_wildcards()

    @rule()
    def retry_all(self) -> None:
        self.queue.retry_all(Incoming(event=events.RETRY_ALL), self.now)
        assert all("gate" in pod.pod.metadata.labels for pod in self.queue.parked)
        self.forget_wildcards()

    def forget_wildcards(self) -> None:
        """Wildcard events wake everybody in flight: end those attempts, so that the oracle need not know of
        them.
        """
        for uid in list(self.open):
            del self.open[uid], self.flying[uid]
            self.queue.fail(uid, self.now)

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name: str) -> None:
        pod = self.known(name)
        if pod is not None and pod.uid not in self.open:
            self.queue.activate(pod.uid, self.now)
            assert pod.pool in ("activeQ", "gated")

    @invariant()
    def every_pod_is_in_one_place(self) -> None:
        queue = self.queue
        places: dict[str, list[str]] = {uid: [] for uid in queue.pods}
        for pool, pods in (
            ("activeQ", queue.active),
            ("backoffQ", queue.backing_off),
            ("errorBackoffQ", queue.errors),
            ("parked", queue.parked),
        ):
            for pod in pods:
                places[pod.uid].append(pool)
        for uid in self.open:
            if uid not in self.gone:
                places[uid].append("inFlight")
        assert all(len(found) == 1 for found in places.values()), places

    @invariant()
    def every_pop_ends_once(self) -> None:
        assert set(self.queue.in_flight.uids()) == set(self.open)
        if not self.open:
            assert self.queue.in_flight.listing() == [], "events are kept for nobody"

    @invariant()
    def gated_pods_are_counted(self) -> None:
        assert self.queue.parked.gated == sum(pod.pool == "gated" for pod in self.queue.parked)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestQueueMachine = QueueMachine.TestCase
