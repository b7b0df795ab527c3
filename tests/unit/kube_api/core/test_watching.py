"""WATCH: what it begins with, what it tells, how it ends."""

from typing import Any

import msgspec
import pytest

from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.forms import MetadataOnly, Whole
from podyard.kube_api.core.listing import ListOptions
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.watching import Watcher, settle
from tests.support import stored
from tests.unit.kube_api.core.test_reading_properties import selection
from tests.unit.kube_api.core.world import World, events, ignore, told


def world(*, history_bytes: int = 64 << 20) -> World:
    made = World(history_bytes=history_bytes)
    made.node("n1")
    made.pod("a")
    made.pod("b", labels={"app": "x"})
    made.relist()
    return made


def taken(watcher: Watcher) -> list[tuple[str, str, int]]:
    return told(watcher.take(0))


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_from_no_version_begins_with_what_there_is(version: str):
    made = world()
    watcher = made.watch(ListOptions(version=version))
    made.pod("c")
    made.deliver()
    assert taken(watcher) == [("ADDED", "a", 2), ("ADDED", "b", 3), ("ADDED", "c", 4)]


def test_what_there_is_ends_with_a_bookmark():
    made = world()
    options = ListOptions(send_initial=True, match="NotOlderThan", version="3", bookmarks=True)
    found = events(made.watch(options).take(0))
    assert [type_ for type_, _ in found] == ["ADDED", "ADDED", "BOOKMARK"]
    assert found[-1][1] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "resourceVersion": "3",
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }


def test_without_initial_events_a_watch_tells_what_comes():
    made = world()
    watcher = made.watch(ListOptions(send_initial=False, match="NotOlderThan"))
    made.pod("c")
    made.deliver()
    assert taken(watcher) == [("ADDED", "c", 4)]


def test_a_watch_from_a_version_tells_what_came_after_it():
    made = world()
    made.pod("a", cpu="2")
    made.delete_pod("b")
    made.deliver()
    assert taken(made.watch(ListOptions(version="4"))) == [("DELETED", "b", 5)]
    assert taken(made.watch(ListOptions(version="3"))) == [("MODIFIED", "a", 4), ("DELETED", "b", 5)]


def test_a_watch_from_a_version_to_come_leaves_out_what_comes_before_it():
    made = world()
    watcher = made.watch(ListOptions(version="4"))
    made.pod("c")
    made.pod("d")
    made.deliver()
    assert taken(watcher) == [("ADDED", "d", 5)]


def test_an_object_that_begins_to_be_meant_comes_and_one_that_ceases_goes():
    made = world()
    watcher = made.watch(ListOptions(version="3"), selection=selection(labels="app=x"))
    made.pod("a", labels={"app": "x"})
    made.pod("b", labels={"app": "y"})
    made.pod("b", labels={"app": "z"})
    made.deliver()
    found = events(watcher.take(0))
    assert [(type_, one["metadata"]["name"]) for type_, one in found] == [("ADDED", "a"), ("DELETED", "b")]
    gone = found[1][1]["metadata"]
    # as it was last, at the version at which it ceased
    assert gone["labels"] == {"app": "x"}


def test_a_watch_of_a_namespace_tells_of_no_other():
    made = world()
    watcher = made.watch(ListOptions(version="3"), Scope("pods", "default"))
    made.pod("c", namespace="default-b", uid="other")
    made.pod("d")
    made.deliver()
    assert taken(watcher) == [("ADDED", "d", 5)]


def test_a_version_that_is_too_old_is_told_as_an_event():
    made = world(history_bytes=1)
    made.pod("c")
    made.deliver()
    watcher = made.watch(ListOptions(version="2"))
    ((type_, found),) = events(watcher.take(0))
    assert type_ == "ERROR"
    assert (found["code"], found["reason"]) == (410, "Expired")
    assert found["message"] == "too old resource version: 2 (4)"
    assert watcher.done
    assert len(made.watchers) == 0


def test_what_there_is_at_a_version_to_come_is_a_timeout_told_as_an_event():
    watcher = world().watch(ListOptions(send_initial=True, match="NotOlderThan", version="9"))
    assert [found["code"] for _, found in events(watcher.take(0))] == [504]


def test_one_that_does_not_take_is_let_go_and_others_are_not():
    made = world()
    slow = made.watch(ListOptions(version="3"), most_bytes=3_000)
    quick = made.watch(ListOptions(version="3"), most_bytes=3_000)
    seen = 0
    for at in range(30):
        made.pod("a", cpu=f"{at + 1}")
        made.deliver()
        seen += len(quick.take(0))
    assert slow.too_slow
    assert slow.done
    assert seen == 30
    assert not quick.over


def test_bookmarks_are_told_to_those_who_want_them():
    made = world()
    wanting = made.watch(ListOptions(version="3", bookmarks=True))
    other = made.watch(ListOptions(version="3"))
    made.node("n2")
    made.deliver()
    made.watchers.mark()
    assert [(type_, one["metadata"]["resourceVersion"]) for type_, one in events(wanting.take(0))] == [
        ("BOOKMARK", "4")
    ]
    assert other.take(0) == []


def test_whoever_watches_when_all_is_listed_anew_is_told_the_differences():
    made = world()
    watcher = made.watch(ListOptions(version="3"))
    made.delete_pod("a")
    made.pod("c")
    made.relist()
    assert taken(watcher) == [("DELETED", "a", 4), ("ADDED", "c", 5)]
    assert not watcher.over


def test_whoever_waits_for_a_version_in_the_gap_begins_anew():
    made = world()
    watcher = made.watch(ListOptions(version="4"))
    for name in ("c", "d", "e"):
        made.pod(name)
    made.relist()
    assert [found["code"] for _, found in events(watcher.take(0))] == [410]
    assert watcher.done
    # what came of the gap is known, what happened within it is not
    ((_, found),) = events(made.watch(ListOptions(version="5")).take(0))
    assert found["code"] == 410


def test_a_stream_that_was_made_again_ends_all_watches():
    made = world()
    watcher = made.watch(ListOptions(version="3"))
    made.stream.remake()
    made.pod("a")
    made.relist()
    assert [found["message"] for _, found in events(watcher.take(0))] == ["too old resource version: 3 (1)"]
    assert watcher.done


def test_an_event_is_written_once_for_all_who_read_the_same():
    made = world()
    one, two = made.watch(ListOptions(version="3")), made.watch(ListOptions(version="3"))
    made.pod("c")
    made.deliver()
    assert one.take(0)[0] is two.take(0)[0]


def test_a_watch_that_ended_is_told_nothing():
    made = world()
    woken: list[int] = []
    watcher = made.watchers.open(Scope("pods"), made.pods_form, ListOptions(version="3"), wake=lambda: woken.append(1))
    made.pod("c")
    made.deliver()
    made.watchers.close(watcher)
    made.pod("d")
    made.deliver()
    assert taken(watcher) == [("ADDED", "c", 4)]
    assert woken == [1]


def test_what_there_is_is_taken_piece_by_piece():
    made = World()
    for at in range(40):
        made.pod(f"p{at:02}", metadata={"annotations": {"long": "x" * 20_000}})
    made.relist()
    watcher = made.watch()
    takes: list[int] = []
    while watcher.waiting:
        takes.append(len(watcher.take(0)))
    assert sum(takes) == 40
    assert max(takes) < 20


def test_values_of_a_secret_are_put_in_when_it_is_sent():
    made = world()
    revealed: dict[ObjectKey, dict[str, str]] = {}
    form = Whole(made.bodies, api_version="v1", kind="Secret", list_kind="SecretList", revealed=revealed)
    watcher = made.watchers.open(Scope("secrets"), form, ListOptions(version="3"), wake=ignore)
    secret: dict[str, Any] = {"metadata": {"name": "s", "namespace": "default", "uid": "u"}, "data": {"a": "sealed"}}
    made.stream.put(stored.version("secrets", secret))
    made.deliver()
    (key,) = watcher.due()
    revealed[key] = {"a": "eA=="}
    ((_, found),) = events(watcher.take(0))
    assert found["data"] == {"a": "eA=="}
    # what is kept for others shows nothing
    item = made.store.item(key)
    assert item is not None
    assert b"eA==" not in made.bodies.of(item)


def test_metadata_alone_is_watched_too():
    made = world()
    form = MetadataOnly(made.bodies)
    watcher = made.watchers.open(Scope("pods"), form, ListOptions(), wake=ignore)
    found = [msgspec.json.decode(line)["object"] for line in watcher.take(0)]
    assert {(one["kind"], one["apiVersion"]) for one in found} == {("PartialObjectMetadata", "meta.k8s.io/v1")}
    assert set(found[0]) == {"kind", "apiVersion", "metadata"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (ListOptions(send_initial=True), "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (
            ListOptions(match="NotOlderThan", version="3"),
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            ListOptions(send_initial=True, match="NotOlderThan", more="x"),
            "resourceVersionMatch is forbidden when continue is provided",
        ),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(options: ListOptions, told: str):
    with pytest.raises(ApiError) as caught:
        settle(options)
    assert (caught.value.code, caught.value.message) == (
        422,
        f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {told}',
    )
