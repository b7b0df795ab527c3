"""A stream, the store that reads it, and a client that lists and watches as client-go's reflector does."""

from typing import Any

import msgspec

from podyard.kube_api.core import listing
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.forms import Bodies, Whole
from podyard.kube_api.core.listing import ListOptions
from podyard.kube_api.core.selecting import ALL, Selection
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Store
from podyard.kube_api.core.watching import QUEUE_BYTES, Watcher, Watchers
from podyard.proto import subjects
from podyard.proto.facts import Condition, NodeLifeFact, Nomination, PodStatusFact
from tests.support import objects, stored
from tests.support.cluster import bound, released
from tests.support.stream import ClusterStream

Document = dict[str, Any]
PODS = Scope("pods")
NO_OPTIONS = ListOptions()


def ignore() -> None:
    """Nobody waits."""


class World:
    """Everything is written by those who may, and read when the test says so."""

    def __init__(self, *, history_bytes: int = 64 << 20) -> None:
        self.stream = ClusterStream()
        self.store = Store(history_bytes=history_bytes)
        self.watchers = Watchers(self.store)
        self.store.reader = self.watchers
        self.bodies = Bodies()
        self.pods_form = Whole(self.bodies, api_version="v1", kind="Pod", list_kind="PodList")

    # reading

    def relist(self) -> None:
        """Everything that lies in the stream, anew."""
        self.store.begin_listing()
        for delivery in self.stream.listed():
            self.store.apply(delivery)
        self.store.end_listing(self.stream.last)

    def deliver(self) -> None:
        """What was written since."""
        for delivery in list(self.stream.after(self.store.position)):
            self.store.apply(delivery)
        self.store.advance(self.stream.last)

    def list(self, options: ListOptions = NO_OPTIONS, scope: Scope = PODS, selection: Selection = ALL) -> Document:
        """The answer to a LIST."""
        page = listing.list_of(self.store, scope, options, selection)
        return msgspec.json.decode(self.pods_form.several(page, self.pods_form.pieces(page.items, 0)))

    def watch(
        self,
        options: ListOptions = NO_OPTIONS,
        scope: Scope = PODS,
        selection: Selection = ALL,
        most_bytes: int = QUEUE_BYTES,
    ) -> Watcher:
        """A watch of pods."""
        return self.watchers.open(scope, self.pods_form, options, selection, wake=ignore, most_bytes=most_bytes)

    # writing

    def pod(self, name: str, **more: Any) -> int:
        return self.stream.put(stored.version("pods", objects.pod(name, **more))).sequence

    def delete_pod(self, name: str, *, uid: str = "") -> int:
        return self.stream.put(stored.marker("pods", objects.pod(name, uid=uid))).sequence

    def node(self, name: str, **more: Any) -> int:
        return self.stream.put(stored.version("nodes", objects.node(name, **more))).sequence

    def bind(self, name: str, node: str, *, uid: str = "") -> int:
        return self.stream.put(stored.binding(bound(name, node, uid=uid))).sequence

    def release(self, name: str, node: str, *, uid: str = "") -> int:
        return self.stream.put(stored.tombstone(released(name, node, uid=uid))).sequence

    def status(self, name: str, node: str, phase: Any, *, uid: str = "") -> int:
        ready = Condition(type="Ready", status="True")
        fact = PodStatusFact(
            namespace="default", name=name, uid=uid or f"uid-{name}", node=node, phase=phase, conditions=(ready,)
        )
        return self.stream.put(stored.pod_status(fact)).sequence

    def nominate(self, name: str, node: str, *, uid: str = "", over: bool = False) -> int:
        fact = Nomination(namespace="default", name=name, uid=uid or f"uid-{name}", node=node)
        return self.stream.put(stored.nomination(fact, over=over)).sequence

    def lose(self, node: str) -> int:
        """Nothing is heard of a node: its pods are not ready."""
        fact = NodeLifeFact(node=node, node_uid=f"uid-{node}", conditions=(Condition(type="Ready", status="Unknown"),))
        return self.stream.put(stored.Outgoing(subjects.node_life(node), stored.codec.encode(fact))).sequence

    def hear(self, node: str) -> int:
        """It is heard again."""
        fact = NodeLifeFact(node=node, node_uid=f"uid-{node}")
        message = stored.Outgoing(subjects.node_life(node), stored.codec.encode(fact), ttl_s=3600, deleted=True)
        return self.stream.put(message).sequence


def events(lines: list[bytes]) -> list[tuple[str, Document]]:
    """What a client reads of a watch."""
    return [(one["type"], one["object"]) for one in map(msgspec.json.decode, lines)]


def told(lines: list[bytes]) -> list[tuple[str, str, int]]:
    """The same in short: type, name, version."""
    return [
        (type_, found["metadata"].get("name", ""), int(found["metadata"]["resourceVersion"]))
        for type_, found in events(lines)
    ]


def path(found: Document) -> str:
    return f"{found['metadata']['namespace']}/{found['metadata']['name']}"


def version(found: Document) -> int:
    return int(found["metadata"]["resourceVersion"])


def content(found: Document) -> Document:
    """An object without what says only how it was read."""
    return {key: value for key, value in found.items() if key not in ("kind", "apiVersion")}


class Reflector:
    """Lists, watches from there, goes on after it was cut off, and lists again when it is told to. Fails when
    it is told something that cannot be."""

    def __init__(self, world: World, selection: Selection, *, limit: int = 0, streaming: bool = False) -> None:
        self.world = world
        self.selection = selection
        self.limit = limit
        self.streaming = streaming
        self.known: dict[str, Document] = {}
        self.version = 0
        self.watcher: Watcher | None = None
        self.relists = 0
        self._ended: dict[str, int] = {}
        self._again = False
        """It was cut off: the version it stopped at may be one of several told with one message."""
        self._begun: dict[str, Document] | None = None

    def begin(self) -> None:
        """List, or begin a watch with what there is."""
        self.relists += 1
        self._again = False
        if self.streaming:
            options = ListOptions(send_initial=True, match="NotOlderThan", bookmarks=True)
            self._begun = {}
            self.watcher = self.world.watch(options, selection=self.selection)
            return
        more, found = "", dict[str, Document]()
        while True:
            try:
                page = self.world.list(ListOptions(limit=self.limit, more=more), selection=self.selection)
            except ApiError as error:
                if error.code != 410:
                    raise
                more, found = "", {}
                continue
            found.update({path(item): item for item in page["items"]})
            more = page["metadata"].get("continue", "")
            if not more:
                break
        self._replace(found, int(page["metadata"]["resourceVersion"]))
        self._open()

    def _replace(self, found: dict[str, Document], at: int) -> None:
        for key, item in found.items():
            if key in self.known:
                assert version(item) >= version(self.known[key]), f"{key} went back"
        self.known, self.version = found, at

    def _open(self) -> None:
        self.watcher = self.world.watch(
            ListOptions(version=str(self.version), bookmarks=True), selection=self.selection
        )

    def cut(self) -> None:
        """The connection breaks; it watches again from where it was."""
        if self.watcher is None:
            return
        self.world.watchers.close(self.watcher)
        self.watcher = None
        if self._begun is not None or self.version == 0:
            self._begun = None
            self.begin()
            return
        self._again = True
        self._open()

    def read(self, most: int = 1_000_000) -> None:
        """Take what there is, `most` lines of it, and lose the rest if there is more."""
        if self.watcher is None:
            self.begin()
        watcher = self.watcher
        assert watcher is not None
        lines: list[bytes] = []
        while watcher.waiting:
            lines += watcher.take(0)
        for type_, found in events(lines[:most]):
            if self.watcher is watcher:
                self._read(type_, found)
        if self.watcher is watcher and (len(lines) > most or watcher.done):
            self.cut()

    def _read(self, type_: str, found: Document) -> None:
        if type_ == "ERROR":
            assert found["code"] == 410, found
            assert self.watcher is not None
            self.world.watchers.close(self.watcher)
            self.watcher = None
            self.begin()
            return
        if self._begun is not None:
            if type_ == "BOOKMARK":
                assert found["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
                begun, self._begun = self._begun, None
                self._replace(begun, version(found))
            else:
                assert type_ == "ADDED"
                self._begun[path(found)] = found
            return
        assert version(found) >= self.version, "the versions of a watch go back"
        if type_ == "BOOKMARK":
            self._again = False
            self.version = version(found)
            return
        key = path(found)
        known = self.known.get(key)
        if self._again and known is not None and version(known) == version(found):
            assert content(known) == content(found), "the same version of another content"
            return  # told again, as it was one of several told with one message
        if type_ == "DELETED":
            if known is None:
                assert self._again, f"{key} was not known"
                assert self._ended.get(key) == version(found), f"{key} was not known"
            else:
                assert version(found) > version(known), f"{key} at {version(found)} was known"
                del self.known[key]
            self._ended[key] = version(found)
        else:
            assert type_ == ("ADDED" if known is None else "MODIFIED"), f"{type_} of {key}"
            if known is not None:
                assert version(found) > version(known), f"{key} at {version(found)} was known"
            self.known[key] = found
        self.version = version(found)
