"""The condition PodScheduled, as it is told from what others have stored."""

from typing import Any

import pytest

from podyard.cluster.pods import PodView
from podyard.proto import facts
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import BoundPod, Release
from podyard.telling import pod_conditions
from podyard.telling.pod_conditions import Evidence
from tests.support import objects

NO_ROOM = "0/3 nodes are available: 3 Insufficient cpu."


def attempt(number: int, outcome: Any = "unschedulable", message: str = NO_ROOM, uid: str = "uid-a") -> AttemptRecord:
    return AttemptRecord(
        namespace="default", name="a", uid=uid, attempt=f"{number}", number=number, outcome=outcome,
        at=1_800_000_000.0 + number, message=message,
    )  # fmt: skip


def view(**spec: Any) -> PodView:
    return objects.view(objects.pod("a", uid="uid-a", **spec))


def bound(release: bool = False) -> PodView:
    place = {"namespace": "default", "name": "a", "uid": "uid-a", "node": "n1"}
    if release:
        return view().with_placement(None, Release(**place, reason="completed"))
    return view().with_placement(BoundPod(**place), None)


def told(pod: PodView, evidence: Evidence = pod_conditions.NOTHING) -> tuple[str, str, str, str | None] | None:
    found = pod_conditions.scheduled(pod, evidence)
    if found is None:
        return None
    assert found.type == "PodScheduled"
    return found.status, found.reason, found.message, found.last_transition_time


def test_a_pod_that_nobody_tried_has_none() -> None:
    assert told(view()) is None


@pytest.mark.parametrize("released", [False, True])
def test_a_pod_with_a_place_is_scheduled_since_it_got_it(released: bool) -> None:
    assert told(bound(released), Evidence(bound_at=1_800_000_000.5)) == ("True", "", "", "2027-01-15T08:00:00Z")
    assert told(bound(released)) == ("True", "", "", None)


def test_a_pod_that_fits_nowhere_says_why_and_since_when() -> None:
    tried = [attempt(1), attempt(2, message="0/4 nodes are available: 4 Insufficient cpu.")]
    assert told(view(), Evidence(attempts=tried)) == (
        ("False", "Unschedulable", "0/4 nodes are available: 4 Insufficient cpu.", "2027-01-15T08:00:01Z")
    )


def test_of_a_later_attempt_alone_nobody_knows_since_when() -> None:
    assert told(view(), Evidence(attempts=[attempt(7)])) == ("False", "Unschedulable", NO_ROOM, None)
    assert told(view(), Evidence(attempts=[attempt(1)])) == (
        ("False", "Unschedulable", NO_ROOM, "2027-01-15T08:00:01Z")
    )


@pytest.mark.parametrize("outcome", ["error", "bindError"])
def test_an_attempt_that_failed_is_an_error_of_the_scheduler(outcome: Any) -> None:
    assert told(view(), Evidence(attempts=[attempt(1, outcome, "boom")])) == (
        ("False", "SchedulerError", "boom", "2027-01-15T08:00:01Z")
    )


def test_what_was_gated_or_is_about_another_pod_of_the_name_says_nothing() -> None:
    records = [attempt(1, "gated"), attempt(1, uid="uid-before"), attempt(2, "scheduled")]
    assert told(view(), Evidence(attempts=records)) is None


def test_a_gated_pod_says_so_since_it_was_made() -> None:
    pod = view(schedulingGates=[{"name": "example.com/wait"}])
    since = pod.stored.metadata.creation_timestamp
    assert told(pod) == ("False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", since)


def test_whose_place_cannot_be_read_has_none() -> None:
    pod = view()
    pod.unknown_place = True
    assert told(pod, Evidence(attempts=[attempt(1)])) is None


def test_what_the_agent_says_counts() -> None:
    pod = bound()
    said = facts.Condition(type="PodScheduled", status="True", last_transition_time="2026-01-01T00:00:00Z")
    ready = facts.Condition(type="Ready", status="True")
    pod.status = PodStatusFact(
        namespace="default", name="a", uid="uid-a", node="n1", phase="Running", conditions=(ready, said)
    )
    conditions = pod_conditions.with_scheduled(pod, Evidence(bound_at=7.0))
    assert [(one.type, one.last_transition_time) for one in conditions] == [
        ("Ready", None),
        ("PodScheduled", "2026-01-01T00:00:00Z"),
    ]


def test_what_is_read_is_what_decides() -> None:
    gated = view(schedulingGates=[{"name": "example.com/wait"}])
    waits, placed, ended = view(), bound(), bound(release=True)
    assert pod_conditions.wanted([gated, waits, placed, ended]) == ([placed, ended], [waits])
