"""Whoever lists and watches as client-go's reflector does ends with what the store has, whatever happens on
the way."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.kube_api.core import selecting
from podyard.kube_api.core.listing import ListOptions
from podyard.kube_api.core.selecting import Selection
from podyard.objects.kinds import kind_of_resource
from tests.unit.kube_api.core.world import Document, Reflector, World, content, path

NAMES = ("a", "b", "c", "d")
NODES = ("n1", "n2")


def selection(labels: str = "", fields: str = "") -> Selection:
    return selecting.parse(labels, fields, kind=kind_of_resource("pods"), api_version="v1")


SELECTIONS = (
    selection(),
    selection(labels="app=x"),
    selection(fields="spec.nodeName=n1"),
    selection(labels="app", fields="status.phase!=Failed"),
)


class Play:
    """Writers that behave as the services do; each step is chosen by two small numbers."""

    def __init__(self, history_bytes: int) -> None:
        self.world = World(history_bytes=history_bytes)
        self.living: dict[str, str] = {}
        self.places: dict[str, tuple[str, str]] = {}
        self.made = 0
        for node in NODES:
            self.world.node(node)
        self.world.relist()
        self.clients = [
            *(Reflector(self.world, one) for one in SELECTIONS),
            Reflector(self.world, SELECTIONS[0], limit=2),
            Reflector(self.world, SELECTIONS[1], streaming=True),
        ]
        for client in self.clients:
            client.read()

    def step(self, what: str, one: int, two: int) -> None:
        getattr(self, what)(NAMES[one % len(NAMES)], NODES[two % len(NODES)], one + two)

    def put(self, name: str, node: str, salt: int) -> None:
        if name not in self.living:
            self.made += 1
            self.living[name] = f"uid-{self.made}"
        labels = ({"app": "x"}, {"app": "y"}, {})[salt % 3]
        self.world.pod(name, uid=self.living[name], labels=labels, cpu=f"{1 + salt}m")

    def delete(self, name: str, node: str, salt: int) -> None:
        uid = self.living.pop(name, None)
        if uid is not None:
            self.world.delete_pod(name, uid=uid)

    def bind(self, name: str, node: str, salt: int) -> None:
        uid = self.living.get(name)
        if uid is not None and uid not in self.places:
            self.places[uid] = (name, node)
            self.world.bind(name, node, uid=uid)

    def bind_all(self, name: str, node: str, salt: int) -> None:
        for one in NAMES:
            self.bind(one, NODES[0], salt)
            self.report(one, node, 0)

    def report(self, name: str, node: str, salt: int) -> None:
        uid = self.living.get(name)
        if uid is not None and uid in self.places:
            self.world.status(name, self.places[uid][1], ("Running", "Failed")[salt % 2], uid=uid)

    def end(self, name: str, node: str, salt: int) -> None:
        for uid, (bound, place) in list(self.places.items()):
            if bound == name and place:
                self.world.release(bound, place, uid=uid)
                self.places[uid] = (bound, "")
                break

    def nominate(self, name: str, node: str, salt: int) -> None:
        uid = self.living.get(name)
        if uid is not None:
            self.world.nominate(name, node, uid=uid, over=salt % 3 == 0)

    def lose(self, name: str, node: str, salt: int) -> None:
        self.world.lose(node)

    def hear(self, name: str, node: str, salt: int) -> None:
        self.world.hear(node)

    def lose_many(self, name: str, node: str, salt: int) -> None:
        """One message changes several pods, and readers are cut off among them."""
        for one in NAMES:
            self.put(one, node, 0)
            self.bind(one, NODES[0], 0)
            self.report(one, NODES[0], 0)
        self.world.deliver()
        for client in self.clients:
            client.read()
        self.world.lose(NODES[0])
        if salt % 2:
            self.world.deliver()
        else:
            self.world.relist()
        self.read_some(name, node, salt)

    def deliver(self, name: str, node: str, salt: int) -> None:
        self.world.deliver()

    def relist(self, name: str, node: str, salt: int) -> None:
        self.world.relist()

    def read(self, name: str, node: str, salt: int) -> None:
        self.clients[salt % len(self.clients)].read()

    def read_some(self, name: str, node: str, salt: int) -> None:
        for client in self.clients:
            client.read(most=1 + salt % 3)

    def cut(self, name: str, node: str, salt: int) -> None:
        for client in self.clients:
            client.cut()

    def mark(self, name: str, node: str, salt: int) -> None:
        self.world.watchers.mark()


WHAT = (
    *("put", "put", "delete", "bind", "bind_all", "report", "end", "nominate", "lose", "hear", "deliver", "deliver"),
    *("relist", "lose_many", "hear", "read", "read_some", "cut", "mark"),
)
STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 7), st.integers(0, 7)), max_size=60)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.sampled_from((4_000, 64 << 20)))
def test_a_client_that_lists_and_watches_ends_with_what_there_is(steps: list[tuple[str, int, int]], history_bytes: int):
    play = Play(history_bytes)
    for what, one, two in steps:
        play.step(what, one, two)
    play.world.deliver()
    other = World()
    other.stream = play.world.stream
    other.relist()
    for client in play.clients:
        while client.watcher is None or client.watcher.waiting:
            client.read()
        there = play.world.list(selection=client.selection)["items"]
        assert {key: content(one) for key, one in client.known.items()} == {path(one): one for one in there}
        assert _unversioned(client.known.values()) == _unversioned(other.list(selection=client.selection)["items"])


def _unversioned(found: Iterable[Document]) -> dict[str, Document]:
    """Objects by path. Who lists does not know every version that a follower has seen, nor since when a pod
    was bound whose binding has ended.
    """
    plain: dict[str, Document] = {}
    for one in found:
        status = dict(one["status"])
        conditions = [{**each, "lastTransitionTime": ""} for each in status.pop("conditions", [])]
        metadata = {**one["metadata"], "resourceVersion": ""}
        plain[path(one)] = {**content(one), "metadata": metadata, "status": {**status, "conditions": conditions}}
    return plain


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_an_earlier_version_is_told_as_it_was(steps: list[tuple[str, int, int]]):
    play = Play(64 << 20)
    seen: dict[int, list[dict[str, object]]] = {}
    for what, one, two in steps:
        play.step(what, one, two)
        listed = play.world.list()
        seen[int(listed["metadata"]["resourceVersion"])] = listed["items"]
    for at, items in seen.items():
        assert play.world.list(ListOptions(version=str(at), match="Exact"))["items"] == items
