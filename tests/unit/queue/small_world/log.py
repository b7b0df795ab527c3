"""The CLUSTER stream with its history, and readers that follow it at their own pace."""

from collections.abc import Callable, Iterable
from typing import Any

from podyard.bus.delivery import Delivery
from podyard.cluster.view import ClusterView
from podyard.objects import quantity
from podyard.proto.facts import PodStatusFact
from tests.support import stored
from tests.support.stream import ClusterStream
from tests.unit.queue.small_world.clock import Clock

Document = dict[str, Any]
NAMESPACE = "default"
BINDINGS = "placement.bindings."


class Log(ClusterStream):
    """The stream as it is, all that was ever written to it, and who waits for more."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(lambda: clock.now, self._stored)
        self.clock = clock
        self.readers: list[Callable[[], None]] = []
        """Told of every write."""
        self.documents: dict[tuple[str, str], Document] = {}
        """Objects that live, by (resource, name)."""
        self._sizes: dict[str, list[tuple[int, int | None]]] = {}
        """By pod uid: sequence and milli-CPU of each version; `None`: the object is gone."""

    def _stored(self, delivery: Delivery) -> None:
        del delivery
        for reader in tuple(self.readers):
            reader()

    def put_object(self, resource: str, document: Document) -> None:
        """A version of an object, as the api writes it."""
        self.documents[resource, document["metadata"]["name"]] = document
        if resource == "pods":
            requests = document["spec"]["containers"][0].get("resources", {}).get("requests", {})
            self._note_size(document, quantity.milli(requests.get("cpu", "0")))
        self.put(stored.version(resource, document))

    def remove(self, resource: str, name: str) -> None:
        """The deletion marker of an object that lives."""
        document = self.documents.pop((resource, name))
        if resource == "pods":
            self._note_size(document, None)
        self.put(stored.marker(resource, document))

    def _note_size(self, document: Document, cpu: int | None) -> None:
        self._sizes.setdefault(document["metadata"]["uid"], []).append((self.last + 1, cpu))

    def size_at(self, uid: str, position: int) -> int | None:
        """Milli-CPU that a pod's object requests as of `position`; `None`: there is none."""
        return next((cpu for sequence, cpu in reversed(self._sizes.get(uid, ())) if sequence <= position), None)

    def named(self, resource: str) -> dict[str, Document]:
        """Living objects of a kind by name."""
        return {name: document for (kind, name), document in self.documents.items() if kind == resource}

    def end_pod(self, name: str, uid: str, node: str) -> None:
        """The agent says that nothing of the pod runs any more."""
        fact = PodStatusFact(namespace=NAMESPACE, name=name, uid=uid, node=node, phase="Succeeded", ended=True)
        self.put(stored.pod_status(fact))


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
        return len(self._log.log) - self._next

    def skip_to_end(self) -> None:
        """A listing has read all that there is."""
        self._next = len(self._log.log)

    def stop(self) -> None:
        self.over = True
        self._log.readers.remove(self._later)

    def _later(self) -> None:
        self._log.clock.after(self.lag_s, self._read)

    def _read(self) -> None:
        clock, history = self._log.clock, self._log.log
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
    for delivery in log.listed():
        if wants(delivery.subject) or delivery.subject.startswith(BINDINGS):
            view.apply(delivery)
    return view.end_listing(log.last)
