"""The source of events: versions of its own, a watch that goes on from a list, and ends."""

from typing import Any

import msgspec
import pytest

from podyard.kube_api.core import event_forms, listing
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.event_store import EVENTS, EventStore, key_of
from podyard.kube_api.core.forms import Bodies, Whole
from podyard.kube_api.core.listing import ListOptions
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.watching import Watcher, Watchers
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent, Reason
from tests.unit.kube_api.core.world import events, ignore, told

BEGAN = 1_800_000_000.0
KEPT_S = 3600.0
NO_OPTIONS = ListOptions()


def event(name: str = "web", id_: str = "1", at: float = 0.0, **more: Any) -> K8sEvent:
    about = ObjectRef(resource="pods", namespace="default", name=name, uid="u")
    return K8sEvent(regarding=about, reason=Reason("Evicted"), reporter="node_agent", at=BEGAN + at, id=id_, **more)


class Made:
    """A store, what is sent into its stream, and who watches."""

    def __init__(self, *, began_at: float = BEGAN, most_bytes: int = 1 << 20) -> None:
        self.store = EventStore(began_at, KEPT_S, most_bytes=most_bytes)
        self.watchers = Watchers(self.store)
        self.store.reader = self.watchers
        self.form = Whole(Bodies(), api_version="v1", kind="Event", list_kind="EventList")
        self._last = 0

    def send(self, sent: K8sEvent, *, stored_at: float | None = None) -> None:
        self._last += 1
        about = sent.regarding
        subject = f"k8sevents.{about.namespace}.Pod.{about.name}.{sent.id}"
        self.store.sent(subject, sent, self._last, sent.at if stored_at is None else stored_at)

    def listed(self, options: ListOptions = NO_OPTIONS, namespace: str = "") -> dict[str, Any]:
        page = listing.list_of(self.store, Scope(EVENTS, namespace), options)
        return msgspec.json.decode(self.form.several(page, self.form.pieces(page.items, 0)))

    def names(self, **options: Any) -> list[str]:
        return [one["metadata"]["name"] for one in self.listed(ListOptions(**options))["items"]]

    def watch(self, version: str = "") -> Watcher:
        return self.watchers.open(Scope(EVENTS), self.form, ListOptions(version=version), wake=ignore)


def short(watcher: Watcher) -> list[tuple[str, str]]:
    return [(type_, name) for type_, name, _ in told(watcher.take(0))]


def test_versions_grow_from_the_moment_when_the_instance_began():
    made = Made()
    assert made.store.position == int(BEGAN * 1e6)
    made.send(event("a"))
    made.send(event("b"))
    found = made.listed()
    assert [int(one["metadata"]["resourceVersion"]) - int(BEGAN * 1e6) for one in found["items"]] == [1, 2]
    assert int(found["metadata"]["resourceVersion"]) == made.store.position


def test_a_watch_from_a_list_is_told_all_that_comes():
    made = Made()
    made.send(event("a"))
    version = made.listed()["metadata"]["resourceVersion"]
    made.send(event("b"))
    made.send(event("a", count=2, at=1))
    watcher = made.watch(version)
    made.send(event("c"))
    assert short(watcher) == [("ADDED", "b.1"), ("MODIFIED", "a.1"), ("ADDED", "c.1")]
    versions = [version for _, _, version in told(made.watch(version).take(0))]
    assert versions == sorted(set(versions))


def test_a_list_goes_on_page_by_page_as_it_was():
    made = Made()
    for name in "abc":
        made.send(event(name))
    first = made.listed(ListOptions(limit=2))
    made.send(event("b", count=2, at=1))
    made.send(event("d"))
    rest = made.listed(ListOptions(more=first["metadata"]["continue"]))
    assert [one["metadata"]["name"] for one in (*first["items"], *rest["items"])] == ["a.1", "b.1", "c.1"]


@pytest.mark.parametrize("began", [BEGAN - 5.0, BEGAN + 5.0])
def test_versions_of_another_instance_are_expired(began: float):
    made, other = Made(), Made(began_at=began)
    made.send(event("a"))
    version = str(made.store.position)
    ((type_, status),) = events(other.watch(version).take(0))
    assert (type_, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    with pytest.raises(ApiError) as refused:
        other.listed(ListOptions(version=version, match="Exact"))
    assert (refused.value.code, refused.value.reason) == (410, "Expired")


def test_an_event_ends_and_who_watches_is_told():
    made = Made()
    made.send(event("a"))
    made.send(event("b", at=10))
    watcher = made.watch(str(made.store.position))
    made.store.expire(BEGAN + KEPT_S + 1)
    assert (short(watcher), made.names()) == ([("DELETED", "a.1")], ["b.1"])


def test_one_that_happened_again_lasts_longer():
    made = Made()
    made.send(event("a"))
    made.send(event("a", count=2, at=10))
    made.store.expire(BEGAN + KEPT_S + 1)
    assert made.names() == ["a.1"]
    made.store.expire(BEGAN + KEPT_S + 11)
    assert (made.names(), made.store.bytes) == ([], 0)


def test_what_has_ended_by_now_is_not_told():
    made = Made()
    made.store.expire(BEGAN + 2 * KEPT_S)
    made.send(event("a"))
    made.store.told(event("b"))
    assert made.names() == []


def test_one_that_was_deleted_is_told_again_only_if_it_happens_again():
    made = Made()
    made.store.told(event("a"))
    made.send(event("a", deleted=True, at=5))
    made.store.told(event("a"))
    assert made.names() == []
    made.store.told(event("a", at=6), counts=True)
    (found,) = made.listed()["items"]
    assert found["count"] == 1
    assert made.store.last_of(key_of(event("a"))) == ("k8sevents.default.Pod.a.1", 1)


def test_what_is_told_counts_what_happened_again_once():
    made = Made()
    for at in (0, 5, 5, 9):
        made.store.told(event("a", at=at), counts=True)
    (found,) = made.listed()["items"]
    assert (found["count"], found["firstTimestamp"], found["lastTimestamp"]) == (
        3,
        "2027-01-15T08:00:00Z",
        "2027-01-15T08:00:09Z",
    )


def test_events_take_no_more_than_they_may():
    made = Made(most_bytes=10_000)
    for at in range(20):
        made.send(event(f"p{at:02}", at=at))
    names = made.names()
    assert names == [f"p{at:02}.1" for at in range(20 - len(names), 20)]
    assert 0 < made.store.bytes <= 10_000
    watcher = made.watch("0")
    made.send(event("z", message="x" * 5000, at=30))
    assert [type_ for type_, _ in short(watcher)].count("DELETED") >= 3


def test_an_event_that_nobody_gave_a_uid_has_always_the_same():
    one, other = Made(), Made(began_at=BEGAN + 1)
    for made in (one, other):
        made.send(event("a"))
    uids = {made.listed()["items"][0]["metadata"]["uid"] for made in (one, other)}
    assert len(uids) == 1


def test_the_same_event_in_both_groups():
    made = Made()
    made.send(event("a", message="why", count=4, controller="kubelet", instance="n1", action="Evicting"))
    core = {"apiVersion": "v1", "kind": "Event", **made.listed()["items"][0]}
    new = event_forms.shown(core, event_forms.NEW)
    assert (new["apiVersion"], new["note"], new["regarding"], new["deprecatedCount"]) == (
        "events.k8s.io/v1",
        "why",
        core["involvedObject"],
        4,
    )
    assert (new["reportingController"], new["deprecatedSource"]) == ("kubelet", {"component": "kubelet", "host": "n1"})
    assert event_forms.stored(new, event_forms.NEW) == core
