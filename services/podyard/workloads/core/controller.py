"""The core of workloads: which keys to look at, when, and what to write for them.

Own writes that the view does not show yet cannot lead to duplicates: a key with writes under way is not
looked at, and afterwards not before the view has passed the position of the last of them. So every look sees
all that was done for the key, and counts need no guesses.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from podyard.cluster import finalizing
from podyard.cluster.changes import Change
from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.objects import claims
from podyard.objects.admission import NAMESPACE_TERMINATING
from podyard.objects.errors import AdmissionError, ObjectError
from podyard.proto import subjects
from podyard.proto.codec import MessageError
from podyard.proto.operations import Reason
from podyard.proto.traces import is_sampled
from podyard.workloads.core import actions, ended_pods, garbage, jobs, stateful_sets, syncing, volumes, waits
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.actions import Effect, Lost, Message, Write
from podyard.workloads.core.adoption import FreeSets
from podyard.workloads.core.budget_index import BudgetIndex
from podyard.workloads.core.daemon_sets import DAEMON_SETS
from podyard.workloads.core.ended_pods import EndedPods
from podyard.workloads.core.looking import Looked, Surroundings
from podyard.workloads.core.ownership import Ownership, View, metadata_of
from podyard.workloads.core.quotas import QuotaCounts
from podyard.workloads.core.receipts import Receipts
from podyard.workloads.core.stateful_sets import STATEFUL_SETS
from podyard.workloads.core.templates import Maker

GATHER_S: Final = 0.010
"""Changes that come together are looked at together."""

POLL_S: Final = 0.1
"""How soon to see whether the view has passed own writes, if no change comes."""

RESYNC_S: Final = 300.0
"""Everything is looked at once in a while: a safety net, counted on by nobody."""

FIRST_RETRY_S: Final = 0.5
LAST_RETRY_S: Final = 60.0

MOST_WRITES: Final = 1024
"""Of one step; what is left waits for the next."""

MOST_LOST: Final = 1024
"""Remembered per owner."""

FAILED_CREATE: Final = Reason("FailedCreate")
CREATING: Final = "Error creating: "
"""How the message of that event begins. Source: pkg/controller/controller_utils.go, createPods (v1.36.2)."""
FAILED_SYNC: Final = Reason("FailedSync")

CONTROLLERS: Final = {
    "ReplicaSet": "replicasets",
    "ReplicationController": "replicationcontrollers",
    "Deployment": "deployments",
    "DaemonSet": "daemonsets",
    "StatefulSet": "statefulsets",
    "Job": "jobs",
    "CronJob": "cronjobs",
}
"""Resource of each kind whose dependents are followed."""


ROLLS_OUT_S: Final = 600.0
"""For so long what a controller makes of a workload is taken to come of the last change of it."""


class Led(NamedTuple):
    """A change, by its traceparent, and until when what follows is taken to come of it."""

    trace: str
    until: float


class Documents(Protocol):
    """Raw documents at the same position as the view (`podyard.cluster.documents.DocumentView`)."""

    def stored(self, key: ObjectKey) -> Stored | None: ...


class Workloads:
    """One term. Owned by one task."""

    def __init__(
        self, view: View, documents: Documents, maker: Maker, *, ended_kept: int = ended_pods.THRESHOLD
    ) -> None:
        """
        :param ended_kept: how many ended pods are kept; 0: all
        """
        self.ownership = Ownership(view)
        self._view = view
        self._budgets = BudgetIndex(view)
        self._quotas = QuotaCounts(view)
        self._lost: dict[str, deque[Lost]] = {}
        self._led_by: dict[ObjectKey, str] = {}
        """What led to the next look at a key, where that trace is kept."""
        self._leads = ""
        """Traceparent of the change that is being noted, if its trace is kept."""
        self._written: dict[ObjectKey, Led] = {}
        """What last changed a workload itself, where that trace is kept: later steps of its rollout come of
        it, too."""
        self._receipts = Receipts()
        self._ended = EndedPods(ended_kept)
        self._free = FreeSets(view)
        around = Surroundings(view, documents, self.ownership, self._free, maker, self._lost, self._receipts)
        self._syncing = syncing.Syncing(view, around, self._budgets, self._quotas, self._ended)
        self._ending: set[str] = set()
        """Namespaces that are deleted."""
        self._dirty: dict[ObjectKey, None] = {}
        self._busy: set[ObjectKey] = set()
        """Keys with writes under way."""
        self._again: set[ObjectKey] = set()
        """Busy keys that something else concerned meanwhile."""
        self._unseen: dict[ObjectKey, int] = {}
        """Keys whose own writes the view must pass first, with the position."""
        self._later: dict[ObjectKey, float] = {}
        self._failures: dict[ObjectKey, int] = {}
        self._gather_from: float | None = None
        self._resync_at = float("inf")
        self._now = 0.0
        self._handlers: dict[type[Any], Callable[[Any, float], None]] = {
            actions.Changed: self._on_changed,
            actions.Listed: self._on_listed,
            actions.Done: self._on_done,
            actions.Tick: self._on_tick,
        }

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done.

        :param now: seconds since 1970, UTC
        """
        self._now = now
        self._handlers[type(message)](message, now)
        self._wake_seen()
        due = self._ended.due
        if due is not None and now >= due:
            self._mark(*self._ended.choose(now))
        if self._dirty and self._gather_from is None:
            self._gather_from = now
        if self._gather_from is None or now < self._gather_from + GATHER_S:
            return []
        self._gather_from = None
        return self._look(now)

    @property
    def wake_at(self) -> float:
        """When a `Tick` is due, seconds since 1970."""
        due = min(self._later.values(), default=self._resync_at)
        if self._gather_from is not None:
            due = min(due, self._gather_from + GATHER_S)
        if self._unseen:  # the position may move without a change
            due = min(due, self._now + POLL_S)
        ended = self._ended.due
        return min(due, self._resync_at) if ended is None else min(due, self._resync_at, ended)

    # ---- what comes in -------------------------------------------------------------------------------------

    def _on_changed(self, message: actions.Changed, now: float) -> None:
        del now
        for change in message.changes:
            self.ownership.follow(change)
            if change.resource == syncing.REPLICA_SETS:
                self._mark(*self._free.follow(change))
            self._mark(*self._budgets.follow(change))
            self._mark(*self._quotas.follow(change))
        for change in message.changes:
            self._leads = change.origin.trace if is_sampled(change.origin.trace) else ""
            self._note(change)
        self._leads = ""

    def _on_listed(self, message: actions.Listed, now: float) -> None:
        del message
        self._resync_at = now + RESYNC_S
        self._mark(*self._everything())

    def _on_done(self, message: actions.Done, now: float) -> None:
        owner = message.owner
        if owner not in self._busy:
            return
        self._busy.discard(owner)
        if message.failures:
            failures = self._failures[owner] = self._failures.get(owner, 0) + 1
            self._later[owner] = now + waits.doubling_s(FIRST_RETRY_S, LAST_RETRY_S, failures)
        else:
            self._failures.pop(owner, None)
        again = owner in self._again
        self._again.discard(owner)
        if message.position > self._view.position:
            self._unseen[owner] = message.position
        elif again or message.position:
            self._mark(owner)

    def _on_tick(self, message: actions.Tick, now: float) -> None:
        del message
        for key in [key for key, at in self._later.items() if at <= now]:
            del self._later[key]
            self._mark(key)
        if now >= self._resync_at:
            self._on_listed(actions.Listed(), now)

    def _wake_seen(self) -> None:
        """Keys whose own writes the view has passed are looked at again: what they led to may have come
        before their answer."""
        if self._unseen:
            position = self._view.position
            for key in [key for key, wanted in self._unseen.items() if wanted <= position]:
                del self._unseen[key]
                self._mark(key)

    def _mark(self, *keys: ObjectKey) -> None:
        """Look at these keys soon; at those with own writes under way or unseen when these are seen."""
        for key in keys:
            if self._leads:
                self._led_by[key] = self._leads
            if key in self._busy:
                self._again.add(key)
            elif key not in self._unseen:
                self._dirty[key] = None

    # ---- what a change concerns ----------------------------------------------------------------------------

    def _note(self, change: Change) -> None:
        if change.resource == subjects.PODS:
            self._note_pod(change)
        else:
            self._note_object(change)

    def _note_pod(self, change: Change) -> None:
        old, new = change.old, change.new
        self._ended.follow(change)
        if new is None or new.gone:
            self._receipts.forget(change.uid)
        self._mark(*self._concerned(change, None if new is None or new.gone else new))
        pod: PodView | None = new if new is not None else old
        if pod is None:
            return
        controller = pod.stored.metadata.controller
        if controller is not None and controller.kind in CONTROLLERS:
            self._mark(ObjectKey(CONTROLLERS[controller.kind], pod.namespace, controller.name))
            self._note_lost(controller.uid, old, new, change)
        if new is not None and (new.deleting or new.released or _is_left_by_its_job(new)):
            self._mark(change.key)

    def _concerned(self, change: Change, new: Any) -> Iterable[ObjectKey]:
        """Whom a change concerns as owner, as owned, and as the namespace of what is left in it.

        :param new: what is there now
        """
        yield from self.ownership.waiting_owners(change)
        if change.old is not None or new is not None:
            yield from garbage.concerned(self.ownership, change.key, change.old, new)
        if change.key.namespace in self._ending:
            yield ObjectKey(finalizing.NAMESPACES, "", change.key.namespace)

    def _note_lost(self, owner_uid: str, old: PodView | None, new: PodView | None, change: Change) -> None:
        """A replica was lost: whoever did it is the cause of its replacement. One whose work is done is not
        replaced: what comes next is the next piece of work."""
        if old is None or not change.origin.trace or not pod_facts.is_active(old):
            return
        if new is None or not (pod_facts.is_active(new) or pod_facts.phase(new) == pod_facts.SUCCEEDED):
            lost = Lost(change.origin.trace, old.name)
            self._lost.setdefault(owner_uid, deque(maxlen=MOST_LOST)).append(lost)

    def _note_object(self, change: Change) -> None:
        key = change.key
        if change.resource == finalizing.NAMESPACES:
            self._note_namespace(key.name, change.new)
        self._mark(*self._concerned(change, change.new))
        if self._leads:
            self._written[key] = Led(self._leads, self._now + ROLLS_OUT_S)
        elif change.origin.trace or change.new is None:
            self._written.pop(key, None)
        if change.resource in syncing.HANDLED:
            self._mark(key)
        self._mark(*volumes.concerned(change, self._view.objects))
        if change.resource == subjects.NODES and _is_another(change.old, change.new):
            self._mark(*self._all_of(DAEMON_SETS))
        if change.resource == claims.CLAIMS:
            self._mark(*stateful_sets.of_claim(key, self._view.objects(STATEFUL_SETS)))
        controller = metadata_of(change.new if change.new is not None else change.old).controller
        if controller is not None and controller.kind in CONTROLLERS:
            self._mark(ObjectKey(CONTROLLERS[controller.kind], key.namespace, controller.name))
        if change.resource in syncing.SCALES:
            self._mark(*self._budgets.of_namespace(key.namespace))
        if change.new is None:
            self._lost.pop(change.uid, None)

    def _note_namespace(self, name: str, new: Any) -> None:
        if new is not None and metadata_of(new).deletion_timestamp is not None:
            self._ending.add(name)
        else:
            self._ending.discard(name)

    def _everything(self) -> Iterable[ObjectKey]:
        """All that has a controller here; pods on their way out and orphans come as changes, also from a
        listing."""
        for resource in syncing.HANDLED:
            yield from self._all_of(resource)
        yield from self._quotas.left_over()

    def _all_of(self, resource: str) -> Iterable[ObjectKey]:
        return (ObjectKey(resource, *key) for key in self._view.objects(resource))

    # ---- looking -------------------------------------------------------------------------------------------

    def _look(self, now: float) -> list[Effect]:
        """Look at keys that may be looked at, until there is enough to write."""
        found: list[Effect] = []
        writes = 0
        for key in list(self._dirty):
            if writes >= MOST_WRITES:
                self._gather_from = now - GATHER_S
                break
            del self._dirty[key]
            led_by = self._led_by.pop(key, "") or self._rolls_out(key, now)
            for effect in self._look_at(key, now, led_by):
                found.append(effect)
                if isinstance(effect, actions.Work | actions.Count):
                    self._busy.add(key)
                if isinstance(effect, actions.Work):
                    writes += len(effect.writes)
        return found

    def _rolls_out(self, key: ObjectKey, now: float) -> str:
        led = self._written.get(key)
        if led is not None and now >= led.until:
            del self._written[key]
            return ""
        return "" if led is None else led.trace

    def _look_at(self, key: ObjectKey, now: float, led_by: str) -> Sequence[Effect]:
        try:
            looked = self._syncing.look(key, now)
        except (AdmissionError, ObjectError, MessageError, ValueError) as error:
            self._later[key] = now + LAST_RETRY_S
            if isinstance(error, AdmissionError) and error.faults[0].type == NAMESPACE_TERMINATING:
                return ()  # it goes, too. Source: replica_set.go, slowStartBatch
            return (
                actions.Failed(key, FAILED_CREATE, f"{CREATING}{error}")
                if isinstance(error, AdmissionError)
                else actions.Failed(key, FAILED_SYNC, str(error)),
            )
        if looked.again_at is not None:
            self._later[key] = looked.again_at
        else:
            self._later.pop(key, None)
        works = [actions.Work(key, looked.why, writes, led_by, atomic) for writes, atomic in _parts(looked)]
        counts = [actions.Count(key, looked.usages)] if looked.usages else []
        return [*looked.told, *works, *counts]


def _is_left_by_its_job(pod: PodView) -> bool:
    """Whether it waits to be counted, and no controller is there to do it."""
    metadata = pod.stored.metadata
    return jobs.FINALIZER in metadata.finalizers and metadata.controller is None


def _is_another(old: NodeView | None, new: NodeView | None) -> bool:
    """Whether a node came, went, or takes other pods now. Source: pkg/controller/daemon/daemon_controller.go
    (updateNode)."""
    if old is None or new is None:
        return old is not new
    return old.labels != new.labels or old.node.spec.taints != new.node.spec.taints


def _parts(looked: Looked) -> list[tuple[Sequence[Write], bool]]:
    if looked.together:
        return [(looked.together, True)]
    return [(looked.writes, False)] if looked.writes else []
