"""Events that nobody sends, since what is stored says them: told as soon as the store has read it. Pure.

They are those of `telling.events`, made out of the steps of the store, so that nothing is decoded twice. Of
what was there before this instance began those are told that are not too old.

A burst of pods costs next to nothing while nobody looks: what is to be told of them waits until somebody
does, or there is time.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.kube_api.core.event_store import EventStore, key_of
from podyard.kube_api.core.history import Gap
from podyard.kube_api.core.items import Item, Step
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Store
from podyard.memory.latest import Latest
from podyard.objects import times
from podyard.objects.meta import ObjectMeta
from podyard.proto import subjects
from podyard.proto.decisions import DEFAULT_SCHEDULER
from podyard.proto.facts import NodeStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.telling import events


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """As much of an `AttemptRecord` as its event and the pod's condition tell: a tenth of it."""

    namespace: str
    name: str
    uid: str
    outcome: str
    at: float
    position: int = 0
    message: str = ""
    profile: str = ""
    scheduler: str = ""
    trace: str = ""


MOST_NODES: Final = 16384
"""Of which it is remembered what was said."""


MOST_WAITING: Final = 32768
"""Of what is to be told; above it the oldest is told at once."""


class Teller:
    """A reader of the store."""

    def __init__(self, store: Store, into: EventStore, watched: Callable[[], bool] = lambda: False) -> None:
        """:param watched: whether somebody is to be told at once"""
        self._store = store
        self._into = into
        self._watched = watched
        self._waiting = deque[tuple[Callable[..., None], tuple[Any, ...]]]()
        into.catch_up = self.catch_up
        self._combiner = events.Combiner()
        self._nodes = Latest[str, _Node](MOST_NODES)
        self._anew = True
        """All that there is has to be told."""

    # Reader of the store

    def offer(self, steps: Sequence[Step]) -> None:
        """Steps were made."""
        for step in steps:
            if step.resource == subjects.PODS:
                self._pod(step.before, step.after)
            elif step.resource == subjects.NODES:
                self._node(step.path, step.after)

    def missed(self, gap: Gap) -> None:
        """What came of a gap is offered next."""

    def forgotten(self, position: int) -> None:
        """Everything is there anew: `listed` is called next."""
        self._anew = True

    def listed(self) -> None:
        """The store has listed everything: tell of all that there is, if its steps do not. What was told
        before is the same."""
        if not self._anew:
            return
        self._anew, self._combiner = False, events.Combiner()
        made: list[K8sEvent] = []
        for item in self._store.items(Scope(subjects.PODS)):
            self._pod(None, item, made)
        for event in events.in_order(made):
            self._made(event)
        for item in self._store.items(Scope(subjects.NODES)):
            self._node(item.path, item)

    def catch_up(self, most: int = MOST_WAITING) -> None:
        """Tell so much of what waits."""
        for _ in range(min(most, len(self._waiting))):
            tell, about = self._waiting.popleft()
            tell(*about)

    # What else is stored

    def attempted(self, record: FailedAttempt) -> None:
        """An attempt that did not bind."""
        if record.outcome in events.FAILURES and not self._into.is_over(record.at):
            self._into.told(events.failed(record), counts=True)

    def sent(self, subject: str, event: K8sEvent, sequence: int, stored_at: float) -> None:
        """An event lies in its stream. What is told of a node is not told beside an event that says it."""
        self._into.sent(subject, event, sequence, stored_at)
        if event.regarding.resource == subjects.NODES and not event.deleted:
            node = self._known(event.regarding.name)
            node.sent.keep((event.reason, event.controller), event)
            self._settle(node)

    # ---- parts ---------------------------------------------------------------------------------------------

    def _pod(self, before: Item | None, after: Item | None, made: list[K8sEvent] | None = None) -> None:
        """
        :param made: where events about its controller are put that are to be combined in order of time; None:
            this pod was made last
        """
        now: Any = None if after is None else after.moment.viewed
        if after is None or not isinstance(now, PodView):
            return
        old: Any = None if before is None else before.moment.viewed
        if not isinstance(old, PodView) or old.uid != now.uid:
            old = None
            self._created(now, made)
        bound_at = after.moment.evidence.bound_at
        if _is_placed(now) and not (old is not None and _is_placed(old)) and not self._into.is_over(bound_at):
            self._soon(self._scheduled, now.key, now.uid, now.node_name, bound_at, now.stored.spec.scheduler_name)
        if now.stored.metadata.deletion_timestamp and not (old is not None and old.deleting):
            for event in events.killing(now.stored, now.status):
                self._into.told(event)

    def _created(self, pod: PodView, made: list[K8sEvent] | None) -> None:
        if self._into.is_over(times.seconds_or(pod.stored.metadata.creation_timestamp, 0.0)):
            return
        if made is not None:
            made += events.created(pod.stored.metadata)
        elif pod.stored.metadata.controller is not None:
            self._soon(self._created_by, pod.stored.metadata)

    def _soon(self, tell: Callable[..., None], *about: Any) -> None:
        if self._watched():
            tell(*about)
            return
        if len(self._waiting) >= MOST_WAITING:
            self.catch_up(1)
        self._waiting.append((tell, about))

    def _created_by(self, pod: ObjectMeta) -> None:
        for event in events.created(pod):
            self._made(event)

    def _scheduled(self, key: NamespacedName, uid: str, node: str, at: float, profile: str) -> None:
        about = ObjectRef(resource=subjects.PODS, namespace=key[0], name=key[1], uid=uid)
        self._into.told(events.assigned(about, node, at, profile=profile or DEFAULT_SCHEDULER))

    def _made(self, event: K8sEvent) -> None:
        """A controller has made a pod: of those that are combined the last stands for all."""
        told = self._combiner.add(event)
        self._into.told(told, counts=told.id == event.id)

    def _node(self, path: str, after: Item | None) -> None:
        viewed: Any = None if after is None else after.moment.viewed
        fact = viewed.status if isinstance(viewed, NodeView) else None
        if fact is None:
            self._nodes.pop(path, None)
            return
        node = self._known(path)
        if node.fact is not fact:
            node.fact = fact
            self._settle(node)

    def _known(self, name: str) -> "_Node":
        node = self._nodes.get(name)
        if node is None:
            node = _Node()
        self._nodes.keep(name, node)
        return node

    def _settle(self, node: "_Node") -> None:
        """Tell what no event says that was sent."""
        if node.fact is None:
            return
        wanted = {key_of(event): event for event in events.unsent(events.of_node(node.fact), node.sent.values())}
        for key in node.told - wanted.keys():
            self._into.withdraw(key)
        node.told = set(wanted)
        for event in wanted.values():
            self._into.told(event)


MOST_REASONS: Final = 64
"""Of one node."""


class _Node:
    """What is known of one node."""

    __slots__ = ("fact", "sent", "told")

    def __init__(self) -> None:
        self.fact: NodeStatusFact | None = None
        """What its agent said last."""
        self.sent = Latest[tuple[str, str], K8sEvent](MOST_REASONS)
        """The last one of each reason and reporter."""
        self.told: set[ObjectKey] = set()


def _is_placed(pod: PodView) -> bool:
    """Whether a scheduler found it a node, whatever became of it then."""
    if pod.bound is not None:
        return bool(pod.bound.attempt)
    return pod.release is not None and not pod.stored.spec.node_name
