"""Following every message gives the same view as listing what is left of them, whatever the order."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.proto import subjects
from podyard.proto.facts import Condition
from podyard.proto.placement import BoundPod
from tests.unit.cluster.stream import (
    WrittenStream,
    bound_pod,
    empty_view,
    listing_of,
    node_document,
    occupied_after,
    occupied_before,
    pod_document,
    release_of,
)

NAMES = ("a", "b", "c")
NODES = ("n1", "n2")


class Cluster:
    """Writers that behave as the services do; each step is chosen by two small numbers."""

    def __init__(self) -> None:
        self.stream = WrittenStream()
        self.living: dict[tuple[str, str], dict[str, Any]] = {}
        self.bound: dict[str, BoundPod] = {}
        self.ever_bound: set[str] = set()
        self.seen_pods: dict[str, str] = {}
        self.made = 0

    def step(self, what: str, one: int, two: int) -> None:
        getattr(self, what)(NAMES[one % len(NAMES)], NODES[two % len(NODES)], one + two)

    def _uid(self) -> str:
        self.made += 1
        return f"uid-{self.made}"

    def put_pod(self, name: str, node: str, salt: int) -> None:
        there = self.living.get(("pods", name))
        uid = there["metadata"]["uid"] if there is not None and salt % 3 else self._uid()
        if there is not None and there["metadata"]["uid"] != uid and salt % 2:
            self.remove_pod(name, node, salt)
        document = pod_document(name, uid, labels={"salt": str(salt)})
        self.living["pods", name] = document
        self.seen_pods[uid] = name
        self.stream.write("pods", document)

    def remove_pod(self, name: str, node: str, salt: int) -> None:
        document = self.living.pop(("pods", name), None)
        if document is not None:
            self.stream.remove("pods", document)

    def put_node(self, name: str, node: str, salt: int) -> None:
        there = self.living.get(("nodes", node))
        uid = there["metadata"]["uid"] if there is not None and salt % 4 else self._uid()
        document = node_document(node, uid, cpu=str(1 + salt % 3))
        self.living["nodes", node] = document
        self.stream.write("nodes", document)

    def remove_node(self, name: str, node: str, salt: int) -> None:
        document = self.living.pop(("nodes", node), None)
        if document is not None:
            self.stream.remove("nodes", document)

    def put_claim(self, name: str, node: str, salt: int) -> None:
        metadata = {"name": name, "namespace": "default", "uid": self._uid(), "labels": {"salt": str(salt)}}
        document = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        self.living["persistentvolumeclaims", name] = document
        self.stream.write("persistentvolumeclaims", document)

    def node_status(self, name: str, node: str, salt: int) -> None:
        there = self.living.get(("nodes", node))
        uid = there["metadata"]["uid"] if there is not None and salt % 4 else "foreign"
        self.stream.node_status(node, uid, *(("pressure",) if salt % 2 else ()))

    def node_life(self, name: str, node: str, salt: int) -> None:
        there = self.living.get(("nodes", node))
        uid = there["metadata"]["uid"] if there is not None and salt % 4 else "foreign"
        self.stream.node_life(node, uid, *(("unreachable",) if salt % 3 else ()))

    def bind(self, name: str, node: str, salt: int) -> None:
        """Of a living pod, or of one that was just deleted: the binder may know less than the deleter."""
        free = [uid for uid, pod in self.seen_pods.items() if pod == name and uid not in self.ever_bound]
        if free:
            uid = free[salt % len(free)]
            self.ever_bound.add(uid)
            self.bound[uid] = bound_pod(name, uid, node)
            self.stream.commit([self.bound[uid]])

    def release(self, name: str, node: str, salt: int) -> None:
        if self.bound:
            uid = sorted(self.bound)[salt % len(self.bound)]
            self.stream.commit([], [release_of(self.bound.pop(uid))])

    def pod_status(self, name: str, node: str, salt: int) -> None:
        if self.seen_pods:
            uid = sorted(self.seen_pods)[salt % len(self.seen_pods)]
            where = self.bound[uid].node if uid in self.bound and salt % 3 else node
            self.stream.pod_status(
                where, self.seen_pods[uid], uid, "Running" if salt % 2 else "Succeeded", conditions=(READY,)
            )

    def nominate(self, name: str, node: str, salt: int) -> None:
        if self.seen_pods:
            uid = sorted(self.seen_pods)[salt % len(self.seen_pods)]
            self.stream.nominate(self.seen_pods[uid], uid, node if salt % 2 else "")

    def expire(self, name: str, node: str, salt: int) -> None:
        """A marker, or the tombstone of a pod without object, reaches its end."""
        living = {document["metadata"]["uid"] for (kind, _), document in self.living.items() if kind == "pods"}
        for subject, delivery in list(self.stream.messages.items()):
            ended = subject.startswith("placement.bindings.") and b'"tombstone"' in delivery.payload
            gone = ended and subjects.parse_pod(subject).uid not in living
            if (delivery.deleted or gone) and delivery.sequence % 3 == salt % 3:
                self.stream.expire(subject)


READY = Condition(type="Ready", status="True")
STEPS = (
    "put_pod", "put_pod", "remove_pod", "put_node", "remove_node", "put_claim", "node_status", "node_life",
    "bind", "bind", "release", "pod_status", "nominate", "expire",
)  # fmt: skip
small = st.integers(0, 11)
scripts = st.lists(st.tuples(st.sampled_from(STEPS), small, small), max_size=40)


def seen(view: ClusterView) -> dict[str, Any]:
    """What a view shows. Of a pod whose object is gone only its room is told alike by all readers."""
    return {
        "pods": {key: pod.facts() for key, pod in view.pods.items()},
        "joined": {key: (pod.pod, pod.usage, pod.node_name) for key, pod in view.pods.items()},
        "gone": {uid: pod.bound for uid, pod in view.pods_by_uid.items() if pod.gone},
        "room": {node: sorted(view.pods_on(node)) for node in NODES},
        "placements": {uid: place for uid, place in view.placements.items() if uid in view.pods_by_uid},
        "nodes": {name: (node.facts(), node.node) for name, node in view.nodes.items()},
        "others": {resource: dict(view.objects(resource)) for resource in view.resources},
        "fence": None if view.fence is None else (view.fence.epoch, view.fence.n),
    }


def follow(view: ClusterView, stream: WrittenStream, after: int) -> list[Change]:
    return [change for delivery in stream.followed(after) for change in view.apply(delivery)]


def room_of(changes: list[Change]) -> dict[str, BoundPod]:
    """The room taken, added up from changes alone, as a table of usage does."""
    room: dict[str, BoundPod] = {}
    for change in changes:
        before, after = occupied_before(change), occupied_after(change)
        assert room.pop(change.uid, None) == before
        if after is not None:
            room[change.uid] = after
    return room


def expected_room(view: ClusterView) -> dict[str, BoundPod]:
    return {uid: pod.bound for uid, pod in view.pods_by_uid.items() if pod.bound is not None}


@settings(max_examples=300, deadline=None)
@given(scripts)
def test_following_equals_listing(script: list[tuple[str, int, int]]) -> None:
    cluster = Cluster()
    for step in script:
        cluster.step(*step)
    live = empty_view()
    changes = follow(live, cluster.stream, 0)
    assert not live.take_effects()
    assert not [change for change in changes if change.gap]
    assert seen(live) == seen(listing_of(cluster.stream))
    assert room_of(changes) == expected_room(live)


@settings(max_examples=200, deadline=None)
@given(scripts, st.randoms(use_true_random=False))
def test_the_order_of_a_listing_does_not_matter(script: list[tuple[str, int, int]], random: Any) -> None:
    cluster = Cluster()
    for step in script:
        cluster.step(*step)
    shuffled = cluster.stream.listed()
    random.shuffle(shuffled)
    assert seen(listing_of(cluster.stream, shuffled)) == seen(listing_of(cluster.stream))


@settings(max_examples=300, deadline=None)
@given(scripts, scripts, scripts)
def test_listing_again_after_a_hole_equals_having_seen_all(
    first: list[tuple[str, int, int]], missed: list[tuple[str, int, int]], last: list[tuple[str, int, int]]
) -> None:
    cluster = Cluster()
    for step in first:
        cluster.step(*step)
    view = empty_view()
    changes = follow(view, cluster.stream, 0)
    for step in missed:
        cluster.step(*step)
    view.begin_listing()
    listed_to = 0
    for delivery in cluster.stream.listed():
        view.apply(delivery)
        listed_to = delivery.sequence
    changes += view.end_listing(cluster.stream.last)
    for step in last:
        cluster.step(*step)
    later = follow(view, cluster.stream, listed_to)
    assert seen(view) == seen(listing_of(cluster.stream))
    assert room_of(changes + later) == expected_room(view)
    assert view.position == cluster.stream.last or not later
