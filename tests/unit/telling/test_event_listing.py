"""What `get events` says of one event: kubectl's rows, and core/v1 Events."""

from typing import Any

import pytest

from podyard.objects import times
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.telling import event_listing

AT = 1_800_000_000.0
WEB = ObjectRef(resource="pods", namespace="shop", name="web", uid="u")


def event(about: ObjectRef = WEB, **more: Any) -> K8sEvent:
    fields = {
        "reason": "Evicted",
        "message": "The node was low.\n ",
        "reporter": "node_agent",
        "at": AT,
        "id": "1f",
        **more,
    }
    return K8sEvent(regarding=about, **fields)


def cells(one: K8sEvent, **more: bool) -> tuple[str, ...]:
    return event_listing.row(one, AT + 120, **{"wide": False, "namespaces": False, **more})


def test_a_row_is_kubectls() -> None:
    assert event_listing.headers(wide=False, namespaces=False) == ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
    assert cells(event(type="Warning")) == ("2m", "Warning", "Evicted", "pod/web", "The node was low.")


def test_one_that_happened_again_says_how_often_and_since_when() -> None:
    assert cells(event(count=3, first_at=AT - 480))[0] == "2m (x3 over 10m)"


@pytest.mark.parametrize(
    ("resource", "shown"),
    [
        ("nodes", "node/web"),
        ("replicasets", "replicaset/web"),
        ("widgets.v1.example.com", "widgets/web"),
        ("?", "?/web"),
    ],
)
def test_objects_are_called_by_their_kind(resource: str, shown: str) -> None:
    assert cells(event(ObjectRef(resource=resource, name="web")))[3] == shown


def test_wide_rows_say_who_reports_and_since_when() -> None:
    one = event(controller="kubelet", instance="n1", field_path="spec.containers{app}", count=2, first_at=AT - 60)
    shown = dict(
        zip(event_listing.headers(wide=True, namespaces=True), cells(one, wide=True, namespaces=True), strict=True)
    )
    assert shown == {
        "NAMESPACE": "shop",
        "LAST SEEN": "2m (x2 over 3m)",
        "TYPE": "Normal",
        "REASON": "Evicted",
        "OBJECT": "pod/web",
        "SUBOBJECT": "spec.containers{app}",
        "SOURCE": "kubelet, n1",
        "MESSAGE": "The node was low.",
        "FIRST SEEN": "3m",
        "COUNT": "2",
        "NAME": "web.1f",
    }


def test_a_document_is_a_core_v1_event() -> None:
    one = event(
        type="Warning",
        controller="kubelet",
        instance="n1",
        field_path="spec.containers{app}",
        count=3,
        first_at=AT - 60,
        annotations={"starved_resource": "memory"},
    )
    assert event_listing.document(one) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": "web.1f",
            "namespace": "shop",
            "creationTimestamp": times.rfc3339(AT - 60),
            "annotations": {"starved_resource": "memory"},
        },
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
            "uid": "u",
            "fieldPath": "spec.containers{app}",
        },
        "type": "Warning",
        "reason": "Evicted",
        "message": "The node was low.\n ",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": times.rfc3339(AT - 60),
        "lastTimestamp": times.rfc3339(AT),
        "count": 3,
        "eventTime": None,
        "reportingComponent": "kubelet",
        "reportingInstance": "n1",
    }


def test_one_with_an_action_has_the_time_of_the_newer_kind() -> None:
    found = event_listing.document(event(action="Descheduled"))
    assert (found["action"], found["eventTime"]) == ("Descheduled", times.rfc3339_micro(AT))


def test_one_of_release_0_1_0_has_a_name_and_a_reporter() -> None:
    found = event_listing.document(event(ObjectRef(resource="nodes", name="n1"), id=""))
    assert found["metadata"]["name"].startswith("n1.")
    assert (found["metadata"]["namespace"], found["reportingComponent"]) == ("default", "node_agent")
