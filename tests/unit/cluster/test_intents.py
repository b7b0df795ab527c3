"""Plans: what is to become of an object, decided from what is stored."""

import json
from typing import Any

import msgspec
import pytest

from podyard.cluster import intents
from podyard.cluster.errors import ObjectExists, ObjectMissing
from podyard.cluster.intents import Author, Keep, Put, Remove, Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects import times
from podyard.proto import codec
from podyard.proto.events import ClusterEvent

KEY = ObjectKey("pods", "default", "a")
NOW = 1_800_000_000.0


def stored(uid: str = "u1", *, deleted: bool = False, metadata: Any = None, spec: Any = None) -> Stored:
    document = {"metadata": {"name": "a", "namespace": "default", "uid": uid} | (metadata or {}), "spec": spec or {}}
    content = msgspec.Raw(json.dumps(document).encode())
    event = ClusterEvent(resource="pods", name="a", namespace="default", uid=uid, who="x", object=content)
    return Stored(7, codec.encode(event), deleted)


JUNK = Stored(7, b"{", deleted=False)


@pytest.mark.parametrize("there", [None, stored(deleted=True), JUNK], ids=["nothing", "marker", "unreadable"])
def test_a_create_goes_where_nothing_lives(there: Stored | None) -> None:
    step = intents.creation(KEY, {"metadata": {"uid": "u2"}})(there)
    assert step == Put({"metadata": {"uid": "u2"}}, ("Add",))


def test_a_create_knows_itself_and_no_other() -> None:
    assert intents.creation(KEY, {"metadata": {"uid": "u1"}})(stored()) == Keep()
    with pytest.raises(ObjectExists):
        intents.creation(KEY, {"metadata": {"uid": "u2"}})(stored())


def alter(document: dict[str, Any]) -> dict[str, Any] | None:
    return None if document["spec"].get("done") else document | {"spec": {"done": True}}


def test_an_alteration_may_leave_the_object() -> None:
    plan = intents.alteration(KEY, alter)
    step = plan(stored())
    assert isinstance(step, Put)
    assert step.document["spec"] == {"done": True}
    assert plan(stored(spec={"done": True})) == Keep()


@pytest.mark.parametrize(
    "plan",
    [
        intents.alteration(KEY, alter, "u2"),
        intents.removal(KEY, "u2"),
        intents.deletion(KEY, now=NOW, occupies=lambda _: True, uid="u2"),
    ],
    ids=["alteration", "removal", "deletion"],
)
@pytest.mark.parametrize("there", [None, stored("u1"), stored("u2", deleted=True)], ids=["none", "foreign", "marker"])
def test_a_foreign_or_missing_object_is_left(plan: intents.Plan, there: Stored | None) -> None:
    with pytest.raises(ObjectMissing):
        plan(there)


def numbered(priority: int) -> Stored:
    return stored(spec={"priority": priority})


@pytest.mark.parametrize("there", [JUNK, numbered(10**30)], ids=["no event", "no pod"])
@pytest.mark.parametrize(
    "plan", [intents.removal(KEY), intents.deletion(KEY, now=NOW, occupies=lambda _: True)], ids=["removal", "deletion"]
)
def test_what_cannot_be_read_is_removed_at_once(plan: intents.Plan, there: Stored) -> None:
    assert plan(there) == Remove()
    event = intents.event_of(KEY, Remove(), there, Author("me"))
    assert (event.op, event.object) == ("delete", codec.NULL)


def test_what_cannot_be_read_is_removed_by_the_uid_that_it_says_and_no_other() -> None:
    assert intents.removal(KEY, "u1")(numbered(10**30)) == Remove()
    for there, uid in ((numbered(10**30), "u2"), (JUNK, "u1")):
        with pytest.raises(ObjectMissing):
            intents.removal(KEY, uid)(there)


def test_what_cannot_be_read_as_its_kind_is_no_object() -> None:
    there = numbered(10**30)
    assert intents.living(there) is None
    assert there.fault == "spec.priority: must be at most 9223372036854775807"
    assert intents.living(numbered(10**9)) is not None, "what is only out of bounds is read"
    with pytest.raises(ObjectMissing):
        intents.alteration(KEY, alter)(there)


def test_a_pod_without_room_is_removed_at_once() -> None:
    plan = intents.deletion(KEY, now=NOW, occupies=lambda uid: uid != "u1")
    assert plan(stored("u1")) == Remove()
    assert isinstance(plan(stored("u2")), Put)


def test_other_kinds_are_removed_at_once() -> None:
    node = ObjectKey("nodes", "", "n")
    assert intents.deletion(node, now=NOW, occupies=lambda _: True)(stored()) == Remove()


@pytest.mark.parametrize(
    ("spec", "asked", "expected"),
    [({}, None, 30), ({"terminationGracePeriodSeconds": 5}, None, 5), ({}, 7, 7), ({}, -5, 1)],
    ids=["default", "its own", "asked for", "less than nothing"],
)
def test_the_grace_period_ends_at_the_deletion_timestamp(spec: Any, asked: int | None, expected: int) -> None:
    step = intents.deletion(KEY, now=NOW, occupies=lambda _: True, grace_s=asked)(stored(spec=spec))
    assert isinstance(step, Put)
    metadata = step.document["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == expected
    assert times.seconds_of(metadata["deletionTimestamp"]) == NOW + expected


def test_a_grace_period_is_shortened_from_when_it_began_and_never_into_the_past() -> None:
    document: dict[str, Any] = {"metadata": {}}
    assert intents.begin_deletion(document, NOW, 30)
    assert not intents.begin_deletion(document, NOW + 1, 30)
    assert intents.begin_deletion(document, NOW + 1, 10)
    assert times.seconds_of(document["metadata"]["deletionTimestamp"]) == NOW + 10
    assert intents.begin_deletion(document, NOW + 8, 2)
    assert times.seconds_of(document["metadata"]["deletionTimestamp"]) == NOW + 8


def test_a_grace_period_ends_with_the_year_9999_and_may_be_shortened_from_when_it_began() -> None:
    document: dict[str, Any] = {"metadata": {}}
    assert intents.begin_deletion(document, NOW, 2**63 - 1)
    assert document["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"
    assert not intents.begin_deletion(document, NOW + 1, 2**63 - 1)
    assert intents.begin_deletion(document, NOW + 1, 30)
    assert times.seconds_of(document["metadata"]["deletionTimestamp"]) == NOW + 30


@pytest.mark.parametrize("written", ["garbage", "2026-13-01T00:00:00Z", ""])
def test_a_deletion_timestamp_that_is_no_time_is_set_anew(written: str) -> None:
    document: dict[str, Any] = {"metadata": {"deletionTimestamp": written, "deletionGracePeriodSeconds": 5}}
    assert intents.begin_deletion(document, NOW, 30)
    assert times.seconds_of(document["metadata"]["deletionTimestamp"]) == NOW + 30


def test_a_marker_holds_the_last_version_if_it_can_be_read() -> None:
    event = intents.event_of(KEY, Remove(), stored(spec={"x": 1}), Author("me", "why", causes=("t",)))
    assert (event.op, event.uid, event.who, event.why, event.causes) == ("delete", "u1", "me", "why", ("t",))
    assert json.loads(bytes(event.object))["spec"] == {"x": 1}
    assert bytes(intents.event_of(KEY, Remove(), JUNK, Author("me")).object) == b"null"
