"""The view of raw documents: what is last, what was written here, who takes room."""

from typing import Any

import pytest

from podyard.bus import Outgoing
from podyard.cluster.changes import DeadDelivery, RelistNeeded
from podyard.cluster.documents import DocumentView, whole_kind
from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects import decoding
from podyard.proto import subjects
from tests.unit.cluster.stream import MEMORY_S, WrittenStream, bound_pod, pod_document, release_of

KEY = ObjectKey("pods", "default", "a")


@pytest.fixture
def stream() -> WrittenStream:
    return WrittenStream()


@pytest.fixture
def view() -> DocumentView:
    view = DocumentView()
    view.begin_listing()
    view.end_listing(0)
    return view


def follow(view: DocumentView, stream: WrittenStream, after: int = 0) -> None:
    for delivery in stream.followed(after):
        view.apply(delivery)


def test_the_last_version_is_known_by_key(view: DocumentView, stream: WrittenStream) -> None:
    stream.write("pods", pod_document("a", "u1"))
    stream.write("pods", pod_document("a", "u1", labels={"x": "y"}))
    follow(view, stream)
    stored = view.stored(KEY)
    assert stored is not None
    assert (stored.sequence, stored.document()["metadata"]["labels"]) == (2, {"x": "y"})
    assert view.typed(KEY).metadata.labels == {"x": "y"}
    assert [pod.metadata.name for pod in view.all("pods")] == ["a"]
    assert view.position == 2


def test_a_marker_is_known_but_no_object(view: DocumentView, stream: WrittenStream) -> None:
    stream.write("pods", pod_document("a", "u1"))
    stream.remove("pods", pod_document("a", "u1"))
    follow(view, stream)
    stored = view.stored(KEY)
    assert stored is not None
    assert (stored.deleted, stored.sequence) == (True, 2)
    assert view.typed(KEY) is None
    assert list(view.all("pods")) == []


def test_old_markers_are_forgotten_and_living_objects_are_not(view: DocumentView, stream: WrittenStream) -> None:
    stream.write("pods", pod_document("a", "u1"))
    stream.remove("pods", pod_document("a", "u1"))
    stream.remove("pods", pod_document("b", "u2"))
    stream.write("pods", pod_document("b", "u3"))
    stream.remove("pods", pod_document("c", "u4")).stored_at += MEMORY_S + 10.0
    follow(view, stream)
    assert view.stored(KEY) is None
    assert view.typed(ObjectKey("pods", "default", "b")).metadata.uid == "u3"


def test_own_writes_are_known_before_they_come_back(view: DocumentView, stream: WrittenStream) -> None:
    first = stream.write("pods", pod_document("a", "u1"))
    second = stream.write("pods", pod_document("a", "u1", labels={"x": "y"}))
    view.note(KEY, Stored(second.sequence, second.payload, deleted=False))
    view.apply(first)
    assert view.typed(KEY).metadata.labels == {"x": "y"}
    view.note(KEY, Stored(first.sequence, first.payload, deleted=False))
    assert view.typed(KEY).metadata.labels == {"x": "y"}


def test_own_writes_after_a_listing_began_survive_it(view: DocumentView, stream: WrittenStream) -> None:
    view.begin_listing()
    written = stream.write("pods", pod_document("a", "u1"))
    view.note(KEY, Stored(written.sequence, written.payload, deleted=False))
    view.end_listing(0)
    assert view.typed(KEY).metadata.uid == "u1"
    view.begin_listing()
    view.end_listing(5)
    assert view.stored(KEY) is None


def test_nothing_of_a_stream_that_went_back_stays_known(view: DocumentView, stream: WrittenStream) -> None:
    stream.write("pods", pod_document("a", "u1"))
    stream.write("pods", pod_document("b", "u2"))
    follow(view, stream)
    view.begin_listing()
    view.end_listing(0)
    assert view.stored(KEY) is None
    assert list(view.all("pods")) == []


def test_an_unreadable_version_is_no_object(view: DocumentView, stream: WrittenStream) -> None:
    stream.put(Outgoing(subjects.object_(*KEY), b"{"))
    follow(view, stream)
    assert view.typed(KEY) is None
    assert view.stored(KEY) is not None
    assert list(view.unreadable("pods", "default")) == [KEY]
    assert list(view.unreadable("pods", "other")) == []


def test_that_a_version_is_unreadable_is_found_out_once(
    view: DocumentView, stream: WrittenStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotas are looked through for each write: bad ones cost that only once."""
    tried: list[str] = []
    decode = decoding.decode_stored

    def counting(resource: str, namespace: str, name: str, document: Any) -> Any:
        tried.append(name)
        return decode(resource, namespace, name, document)

    monkeypatch.setattr(decoding, "decode_stored", counting)
    stream.write("pods", pod_document("good", "u1"))
    stream.write("pods", {**pod_document("bad", "u2"), "spec": 7})
    follow(view, stream)
    for _ in range(3):
        assert [pod.metadata.name for pod in view.all("pods")] == ["good"]
    assert sorted(tried) == ["bad", "good"]


def test_who_takes_room_stays_known_where_it_cannot_be_read_any_more(view: DocumentView, stream: WrittenStream) -> None:
    stream.commit([bound_pod("a", "u1", "n1")])
    follow(view, stream)
    for name, uid in (("a", "u1"), ("b", "u2")):
        stream.put(Outgoing(subjects.binding("default", name, uid), b"7"))
    view.begin_listing()
    for delivery in stream.listed():
        view.apply(delivery)
    view.end_listing(stream.last)
    assert (view.node_of("u1"), view.node_of("u2")) == ("n1", "")
    assert [view.occupies(uid) for uid in ("u1", "u2", "u3")] == [True, True, False]
    assert [type(effect) for effect in view.take_effects()] == [DeadDelivery, DeadDelivery]
    read = stream.last
    stream.commit([], [release_of(bound_pod("b", "u2", "n1"))])
    follow(view, stream, read)
    assert not view.occupies("u2")


def test_room_follows_bindings_and_releases(view: DocumentView, stream: WrittenStream) -> None:
    bound = bound_pod("a", "u1", "n1")
    stream.commit([bound])
    follow(view, stream)
    assert view.node_of("u1") == "n1"
    stream.commit([], [release_of(bound)])
    listing = DocumentView()
    listing.begin_listing()
    for delivery in stream.listed():
        listing.apply(delivery)
    listing.end_listing(stream.last)
    follow(view, stream, 3)
    assert (view.node_of("u1"), listing.node_of("u1")) == ("", "")


def test_records_told_again_after_the_listing_are_ignored(view: DocumentView, stream: WrittenStream) -> None:
    bound = bound_pod("a", "u1", "n1")
    stream.commit([bound])
    stream.commit([], [release_of(bound)])
    view.begin_listing()
    for delivery in stream.listed():
        view.apply(delivery)
    view.end_listing(stream.last)
    view.apply(stream.log[1])
    assert view.node_of("u1") == ""
    stream.commit()
    follow(view, stream, view.position)
    assert not view.take_effects()


def test_a_missed_commit_asks_for_a_listing(view: DocumentView, stream: WrittenStream) -> None:
    stream.commit()
    follow(view, stream)
    read = stream.last
    stream.commit()
    missed = stream.last
    stream.commit()
    for delivery in stream.followed(read):
        if delivery.sequence > missed:
            view.apply(delivery)
    assert view.take_effects() == [RelistNeeded("commit 3 was read after 1")]


def test_an_unreadable_commit_is_a_dead_letter_and_a_listing(view: DocumentView, stream: WrittenStream) -> None:
    stream.put(Outgoing(subjects.commit(1), b"7"))
    follow(view, stream)
    assert [type(effect) for effect in view.take_effects()] == [DeadDelivery, RelistNeeded]


def test_a_deleted_object_leaves_its_sequence_and_nothing_of_what_it_held(
    view: DocumentView, stream: WrittenStream
) -> None:
    stream.write("pods", pod_document("a", "u1", labels={"x": "y" * 1000}))
    stream.remove("pods", pod_document("a", "u1", labels={"x": "y" * 1000}))
    follow(view, stream)
    stored = view.stored(KEY)
    assert stored is not None
    assert (stored.sequence, stored.deleted, stored.payload) == (2, True, b"")


def test_a_marker_that_was_written_here_is_known_before_it_comes_back(
    view: DocumentView, stream: WrittenStream
) -> None:
    stream.write("pods", pod_document("a", "u1"))
    follow(view, stream)
    view.note(KEY, Stored(2, b"{}", True))
    assert (view.typed(KEY), view.stored(KEY).sequence) == (None, 2)  # type: ignore[union-attr]
    stream.remove("pods", pod_document("a", "u1"))
    follow(view, stream, after=1)
    found = view.stored(KEY)
    assert found is not None
    assert (found.sequence, found.deleted) == (2, True)


def test_of_kinds_that_nobody_goes_by_the_sequence_is_kept(stream: WrittenStream) -> None:
    """Whoever writes one reads it first; a definition's schema is not kept, its scope is."""
    view = DocumentView(whole_kind)
    view.begin_listing()
    view.end_listing(0)
    versions = [{"name": "v1", "served": True, "schema": {"x": "y" * 1000}}]
    spec = {"group": "e.com", "scope": "Cluster", "versions": versions}
    stream.write("configmaps", {"metadata": {"name": "c", "namespace": "default", "uid": "u1"}, "data": {"a": "b"}})
    stream.write("customresourcedefinitions", {"metadata": {"name": "widgets.e.com", "uid": "u2"}, "spec": spec})
    stream.write("namespaces", {"metadata": {"name": "n", "uid": "u3"}})
    follow(view, stream)
    config_map = ObjectKey("configmaps", "default", "c")
    assert (view.put_aside(config_map), view.stored(config_map), view.typed(config_map)) == (True, None, None)
    assert list(view.keys("configmaps")) == [config_map]
    defined = ObjectKey("customresourcedefinitions", "", "widgets.e.com")
    assert view.put_aside(defined)
    assert view.typed(defined).served() == ("v1",)
    namespace = view.stored(ObjectKey("namespaces", "", "n"))
    assert namespace is not None
    assert namespace.uid == "u3"
    stream.remove("configmaps", {"metadata": {"name": "c", "namespace": "default", "uid": "u1"}})
    follow(view, stream, 3)
    assert not view.put_aside(config_map)
