"""What keeps a deleted object, and when it goes."""

import json
from typing import Any

import msgspec
import pytest

from podyard.cluster import finalizing, intents
from podyard.cluster.intents import Keep, Put, Remove, Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects import times
from podyard.proto import codec
from podyard.proto.events import ClusterEvent

NOW = 1_800_000_000.0
MAP = ObjectKey("configmaps", "default", "a")
POD = ObjectKey("pods", "default", "a")
NAMESPACE = ObjectKey("namespaces", "", "shop")
ENDED = {"deletionTimestamp": times.rfc3339(NOW - 5), "deletionGracePeriodSeconds": 0}


def stored(key: ObjectKey, *finalizers: str, spec: Any = None, **metadata: Any) -> Stored:
    about = {"name": key.name, "namespace": key.namespace, "uid": "u", **metadata}
    if finalizers:
        about["finalizers"] = list(finalizers)
    content = msgspec.Raw(json.dumps({"metadata": about, "spec": spec or {}}).encode())
    event = ClusterEvent(
        resource=key.resource, name=key.name, namespace=key.namespace, uid="u", who="x", object=content
    )
    return Stored(7, codec.encode(event), False)


def deletion(key: ObjectKey, there: Stored, *, occupies: bool = False, **more: Any) -> intents.Step:
    return intents.deletion(key, now=NOW, occupies=lambda _: occupies, **more)(there)


def metadata(step: intents.Step) -> dict[str, Any]:
    assert isinstance(step, Put)
    return step.document["metadata"]


def test_an_object_with_finalizers_is_marked_and_stays() -> None:
    found = metadata(deletion(MAP, stored(MAP, "a/b")))
    assert (found["deletionTimestamp"], found["deletionGracePeriodSeconds"]) == (times.rfc3339(NOW), 0)
    assert deletion(MAP, stored(MAP, "a/b", **ENDED)) == Keep()


def test_a_first_deletion_is_a_new_generation() -> None:
    assert metadata(deletion(MAP, stored(MAP, "a/b", generation=3)))["generation"] == 4
    assert metadata(deletion(POD, stored(POD, generation=1), occupies=True))["generation"] == 2
    assert "generation" not in metadata(deletion(MAP, stored(MAP, "a/b")))


@pytest.mark.parametrize(
    ("before", "policy", "after"),
    [
        ((), "Orphan", ["orphan"]),
        ((), "Foreground", ["foregroundDeletion"]),
        (("a/b",), "Foreground", ["a/b", "foregroundDeletion"]),
        (("orphan", "a/b"), "Background", ["a/b"]),
        (("orphan",), "Foreground", ["foregroundDeletion"]),
        (("orphan",), None, ["orphan"]),
    ],
)
def test_a_policy_sets_the_collectors_finalizer(before: tuple[str, ...], policy: Any, after: list[str]) -> None:
    assert metadata(deletion(MAP, stored(MAP, *before), propagation=policy))["finalizers"] == after


def test_in_the_background_nothing_is_waited_for() -> None:
    assert deletion(MAP, stored(MAP, "foregroundDeletion"), propagation="Background") == Remove()
    assert deletion(MAP, stored(MAP), propagation=None) == Remove()


def test_a_running_pod_gets_its_time_and_the_finalizer_of_the_policy() -> None:
    found = metadata(deletion(POD, stored(POD), occupies=True, propagation="Foreground"))
    assert (found["deletionGracePeriodSeconds"], found["finalizers"]) == (30, ["foregroundDeletion"])


def test_once_a_pods_time_runs_the_policy_stands() -> None:
    going = {"deletionTimestamp": times.rfc3339(NOW + 20), "deletionGracePeriodSeconds": 30}
    there = stored(POD, "orphan", **going)
    assert deletion(POD, there, occupies=True, propagation="Foreground") == Keep()


def test_of_a_pod_that_has_ended_the_time_is_over() -> None:
    going = {"deletionTimestamp": times.rfc3339(NOW + 20), "deletionGracePeriodSeconds": 30}
    found = metadata(deletion(POD, stored(POD, "a/b", **going)))
    assert (found["deletionTimestamp"], found["deletionGracePeriodSeconds"]) == (times.rfc3339(NOW), 0)


@pytest.mark.parametrize(
    ("there", "goes"),
    [
        pytest.param(stored(MAP, "a/b", **ENDED), True, id="deleted"),
        pytest.param(stored(MAP, "a/b", deletionTimestamp=ENDED["deletionTimestamp"]), True, id="without seconds"),
        pytest.param(stored(MAP, "a/b"), False, id="not deleted"),
        pytest.param(stored(MAP, "a/b", "c/d", **ENDED), False, id="another keeps it"),
        pytest.param(stored(MAP, "a/b", **{**ENDED, "deletionGracePeriodSeconds": 30}), False, id="its time runs"),
    ],
)
def test_an_object_goes_with_its_last_finalizer(there: Stored, goes: bool) -> None:
    step = intents.alteration(MAP, finalizing.taking("a/b"))(there)
    assert isinstance(step, Remove) is goes


def test_a_namespace_terminates_first() -> None:
    step = deletion(NAMESPACE, stored(NAMESPACE, spec={"finalizers": ["kubernetes"]}))
    assert isinstance(step, Put)
    assert step.document["status"] == {"phase": "Terminating"}
    assert step.document["metadata"]["deletionTimestamp"] == times.rfc3339(NOW)


def test_a_namespace_stays_for_what_its_spec_says() -> None:
    kept = stored(NAMESPACE, spec={"finalizers": ["kubernetes"]}, deletionTimestamp=times.rfc3339(NOW))
    assert deletion(NAMESPACE, kept) == Keep()
    emptied = stored(NAMESPACE, deletionTimestamp=times.rfc3339(NOW))
    assert deletion(NAMESPACE, emptied) == Remove()
