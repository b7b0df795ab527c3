"""What is stored, as far as events are told from it: messages in, events out. Pure."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from podyard.objects import decoding
from podyard.objects.errors import ObjectError
from podyard.objects.pod import Pod
from podyard.proto import codec, placement_reading, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding, Tombstone
from podyard.telling import events


class Scope(NamedTuple):
    """What is read of each stream, for the events of one namespace or of all."""

    cluster: tuple[str, ...]
    decisions: tuple[str, ...]
    sent: tuple[str, ...]


def scope(namespace: str | None) -> Scope:
    """:param namespace: None: every one. Events about what is in none belong to `default`"""
    if namespace is None:
        pods = (subjects.objects(subjects.PODS), subjects.ALL_BINDINGS, subjects.ALL_POD_STATUS)
        return Scope((*pods, subjects.ALL_NODE_STATUS), (subjects.ALL_DECISIONS,), (subjects.ALL_K8SEVENTS,))
    pods = (
        subjects.objects(subjects.PODS, namespace),
        subjects.bindings_in(namespace),
        subjects.pod_statuses_in(namespace),
    )
    nodes: tuple[str, ...] = ()
    sent: tuple[str, ...] = (subjects.k8s_events_in(namespace),)
    if namespace == events.DEFAULT:
        nodes, sent = (subjects.ALL_NODE_STATUS,), (*sent, subjects.k8s_events_in(""))
    return Scope((*pods, *nodes), (subjects.decisions_in(namespace),), sent)


class _Pod:
    """What is stored about one pod."""

    __slots__ = ("at", "attempts", "object", "placement", "status", "stored_at")

    def __init__(self) -> None:
        self.at = 0.0
        """When the last of it was stored."""
        self.object: Pod | None = None
        self.stored_at = 0.0
        """When this version of the object was stored."""
        self.placement: Binding | Tombstone | None = None
        self.status: PodStatusFact | None = None
        self.attempts = deque[AttemptRecord](maxlen=streams.DECISIONS.max_msgs_per_subject)


class EventFacts:
    """Of the scope that is read. What was stored before `since` is passed over: its events are too old."""

    def __init__(self, since: float) -> None:
        """:param since: seconds since 1970, UTC"""
        self.since = since
        self.unreadable = 0
        """Messages that could not be decoded."""
        self._pods: dict[str, _Pod] = {}
        """By uid."""
        self._nodes: dict[str, tuple[float, NodeStatusFact]] = {}
        self._sent: dict[tuple[str, int], K8sEvent] = {}
        """By subject, and where that names no event by sequence."""
        self._readers: tuple[tuple[str, Callable[[str, bytes, float], None]], ...] = (
            (_prefix(subjects.objects(subjects.PODS)), self._object),
            (_prefix(subjects.ALL_POD_STATUS), self._status),
            (_prefix(subjects.ALL_NODE_STATUS), self._node),
            (_prefix(subjects.ALL_BINDINGS), self._placement),
            (_prefix(subjects.ALL_DECISIONS), self._attempt),
        )

    def take(self, subject: str, payload: bytes, sequence: int, stored_at: float) -> bool:
        """One stored message; whether anything may have to be told anew."""
        if stored_at < self.since or not payload:
            return False
        try:
            if subject.startswith(_prefix(subjects.ALL_K8SEVENTS)):
                is_old = subject.count(".") == _WITHOUT_ID
                key, event = (subject, sequence if is_old else 0), codec.decode(K8sEvent, payload)
                if event.deleted:
                    return self._sent.pop(key, None) is not None
                self._sent[key] = event
                return True
            for prefix, read in self._readers:
                if subject.startswith(prefix):
                    read(subject, payload, stored_at)
                    return True
        except (MessageError, ObjectError, ValueError):
            self.unreadable += 1
        return False

    def forget(self, before: float) -> None:
        """What was stored before a time is too old now."""
        self.since = before
        self._pods = {uid: pod for uid, pod in self._pods.items() if pod.at >= before}
        self._nodes = {name: one for name, one in self._nodes.items() if one[0] >= before}
        self._sent = {key: event for key, event in self._sent.items() if event.at >= before}

    def events(self) -> list[K8sEvent]:
        """All of them, by the time when they happened last."""
        sent = list(self._sent.values())
        told = [*self._of_pods(), *events.unsent(self._of_nodes(), sent)]
        return events.in_order(event for event in (*sent, *told) if event.at >= self.since)

    def _of_pods(self) -> Iterator[K8sEvent]:
        made: list[K8sEvent] = []
        for pod in self._pods.values():
            if pod.placement is not None:
                yield from events.scheduled(pod.placement)
            yield from events.failed_scheduling(pod.attempts)
            if pod.object is not None:
                yield from events.killing(pod.object, pod.status, pod.stored_at)
                made += [
                    event for event in events.created(pod.object.metadata, pod.stored_at) if event.at >= self.since
                ]
        yield from events.combined(made)

    def _of_nodes(self) -> Iterator[K8sEvent]:
        for _, fact in self._nodes.values():
            yield from events.of_node(fact)

    # ---- messages ------------------------------------------------------------------------------------------

    def _pod(self, uid: str, stored_at: float) -> _Pod:
        found = self._pods.setdefault(uid, _Pod())
        found.at = max(found.at, stored_at)
        return found

    def _object(self, subject: str, payload: bytes, stored_at: float) -> None:
        event = codec.decode(ClusterEvent, payload)
        found = self._pod(event.uid, stored_at)
        found.object, found.stored_at = decoding.decode_as(Pod, event.object), stored_at

    def _status(self, subject: str, payload: bytes, stored_at: float) -> None:
        fact = codec.decode(PodStatusFact, payload)
        self._pod(fact.uid, stored_at).status = fact

    def _node(self, subject: str, payload: bytes, stored_at: float) -> None:
        fact = codec.decode(NodeStatusFact, payload)
        self._nodes[fact.node] = stored_at, fact

    def _placement(self, subject: str, payload: bytes, stored_at: float) -> None:
        placement = placement_reading.decode(subject, payload)
        self._pod(placement.uid, stored_at).placement = placement

    def _attempt(self, subject: str, payload: bytes, stored_at: float) -> None:
        record = codec.decode(AttemptRecord, payload)
        self._pod(record.uid, stored_at).attempts.append(record)


_WITHOUT_ID: Final = 3
"""Dots in the subject of an event of release 0.1.0."""


def _prefix(wildcard: str) -> str:
    return wildcard.removesuffix(">")
