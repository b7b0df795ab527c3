"""The CLUSTER stream with its history, and readers that follow it at their own pace."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from podyard.bus.delivery import Delivery
from podyard.cluster.view import ClusterView
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import Nomination, PodStatusFact
from podyard.proto.placement import Binding, Placement, Tombstone
from tests.unit.binder.stage import Stream
from tests.unit.queue.small_world.clock import Clock

Document = dict[str, Any]
NAMESPACE = "default"
BINDINGS = "placement.bindings."
_decode_placement = codec.decoder(Placement).decode


class Log(Stream):
    """The stream as it is, and all that was ever written to it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.history: list[Delivery] = []
        self.readers: list[Callable[[], None]] = []
        """Told of every write."""
        self.documents: dict[tuple[str, str], Document] = {}
        """Objects that live, by (resource, name)."""

    def put(
        self, subject: str, payload: bytes, expect: int | None = None, ttl_s: int | None = None, **more: str
    ) -> int:
        sequence = super().put(subject, payload, expect, ttl_s, **more)
        message = self.messages[subject]
        self.history.append(Delivery(subject, payload, sequence, self.clock.now, message.headers))
        for reader in tuple(self.readers):
            reader()
        return sequence

    def put_object(self, resource: str, document: Document) -> None:
        """A version of an object, as the api writes it."""
        metadata = document["metadata"]
        self.documents[resource, metadata["name"]] = document
        event = ClusterEvent(
            resource=resource,
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata["uid"],
            who="test",
            object=msgspec.Raw(json.dumps(document).encode()),
        )
        self.put(subjects.object_(resource, event.namespace, event.name), codec.encode(event))

    def remove(self, resource: str, name: str) -> None:
        """The deletion marker of an object that lives."""
        document = self.documents.pop((resource, name))
        namespace = document["metadata"].get("namespace", "")
        event = ClusterEvent(
            resource=resource, namespace=namespace, name=name, uid="", op="delete", who="test", object=codec.NULL
        )
        self._mark(subjects.object_(resource, namespace, name), codec.encode(event))

    def named(self, resource: str) -> dict[str, Document]:
        """Living objects of a kind by name."""
        return {name: document for (kind, name), document in self.documents.items() if kind == resource}

    def placement_of(self, name: str, uid: str) -> Binding | Tombstone | None:
        """What the binder has written about a pod."""
        found = self.messages.get(subjects.binding(NAMESPACE, name, uid))
        return _decode_placement(found.payload) if found else None

    def end_pod(self, name: str, uid: str, node: str) -> None:
        """The agent says that nothing of the pod runs any more."""
        fact = PodStatusFact(namespace=NAMESPACE, name=name, uid=uid, node=node, phase="Succeeded", ended=True)
        self.put(subjects.pod_status(node, NAMESPACE, name, uid), codec.encode(fact))

    def nominate(self, fact: Nomination, over: bool) -> None:
        """The queue's fact, or its marker."""
        subject = subjects.nomination(fact.namespace, fact.name, fact.uid)
        if over:
            self._mark(subject, codec.encode(fact))
        else:
            self.put(subject, codec.encode(fact))

    def _mark(self, subject: str, payload: bytes) -> None:
        self.put(subject, payload, None, None, **{headers.OPERATION: headers.DELETED})


def follows_all(subject: str) -> bool:
    """Whether the binder follows it: bindings come by commit records."""
    return not subject.startswith(BINDINGS)


def follows_base(subject: str) -> bool:
    """Whether queue and scheduler follow it."""
    return follows_all(subject) and not subject.startswith("cluster.podstatus.")


class Reader:
    """Reads on, `lag_s` after each write, a few messages at a time.

    :param wants: which subjects are followed
    :param deliver: one message; None: the position moved on without one
    """

    def __init__(
        self,
        log: Log,
        lag_s: float,
        wants: Callable[[str], bool],
        deliver: Callable[[Delivery], None],
        advance: Callable[[int], None],
    ) -> None:
        self._log, self._wants, self._deliver, self._advance = log, wants, deliver, advance
        self.lag_s = lag_s
        self.frozen_until = 0.0
        self._next = 0
        self.over = False
        log.readers.append(self._later)

    @property
    def behind(self) -> int:
        """Messages that are to be read."""
        return len(self._log.history) - self._next

    def skip_to_end(self) -> None:
        """A listing has read all that there is."""
        self._next = len(self._log.history)

    def stop(self) -> None:
        self.over = True
        self._log.readers.remove(self._later)

    def _later(self) -> None:
        self._log.clock.after(self.lag_s, self._read)

    def _read(self) -> None:
        clock, history = self._log.clock, self._log.history
        if clock.now < self.frozen_until:
            clock.after(self.frozen_until - clock.now, self._read)
            return
        for _ in range(clock.random.randint(1, 5)):
            if self.over or not self.behind:
                return
            message = history[self._next]
            if message.stored_at + self.lag_s > clock.now + 1e-6:
                break
            self._next += 1
            if self._wants(message.subject):
                self._deliver(message)
            self._advance(message.sequence)
        if self.behind:
            clock.after(max(0.001, history[self._next].stored_at + self.lag_s - clock.now), self._read)


def listed(log: Log, view: ClusterView, wants: Callable[[str], bool]) -> Iterable[Any]:
    """List everything that there is into a view; returns the changes."""
    view.begin_listing()
    for subject, message in list(log.messages.items()):
        if not subject.startswith("placement.commits.") and (wants(subject) or subject.startswith(BINDINGS)):
            view.apply(Delivery(subject, message.payload, message.sequence, 0.0, message.headers))
    return view.end_listing(log.last)
