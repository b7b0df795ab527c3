"""What a client may write as an event, and the message that it becomes."""

from typing import Any

import msgspec
import pytest

from podyard.kube_api.core import event_rules
from podyard.kube_api.core.event_forms import CORE, NEW
from podyard.objects.errors import AdmissionError
from podyard.proto import codec
from podyard.proto.operations import K8sEvent
from podyard.telling import event_listing

Document = dict[str, Any]
AT = "2026-01-01T00:00:00.000000Z"
NOW = 1_800_000_000.0


def core(**more: Any) -> Document:
    about = {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": "web", "uid": "u"}
    metadata = {"name": "web.1", "namespace": "default"}
    return {"kind": "Event", "apiVersion": CORE, "metadata": metadata, "involvedObject": about, **more}


def new(**more: Any) -> Document:
    found = core()
    said = {"reason": "R", "action": "A", "type": "Normal", "reportingController": "c", "reportingInstance": "i"}
    about = found.pop("involvedObject")
    return {**found, "apiVersion": NEW, "regarding": about, "eventTime": AT, **said, **more}


def settled(document: Document, old: Document | None = None) -> Document:
    return event_rules.settled(document, document["apiVersion"], old=old, validation="warn", warnings=[])


def faults(document: Document, old: Document | None = None) -> list[str]:
    with pytest.raises(AdmissionError) as refused:
        settled(document, old)
    return [f"{one.field}: {one.detail}" for one in refused.value.faults]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (
            core(metadata={"name": "x", "namespace": "kube-system"}),
            ['involvedObject.namespace: Invalid value: "default": does not match event.namespace'],
        ),
        (
            core(involvedObject={}, metadata={"name": "x", "namespace": "other"}),
            ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
        ),
        (
            core(eventTime=AT, reportingComponent="c", action="a" * 129, reason="r"),
            [
                "reportingInstance: Required value",
                'action: Invalid value: "": can have at most 128 characters',
            ],
        ),
        (new(note="x" * 1025), ['message: Invalid value: "": can have at most 1024 characters']),
        (new(type="Odd"), ['type: Invalid value: "": has invalid value: Odd']),
        (new(deprecatedCount=1), ['count: Invalid value: "": needs to be unset']),
        (new(deprecatedSource={"host": "h"}), ['source: Invalid value: "": needs to be unset']),
        (
            new(series={"count": 1}),
            ['series.count: Invalid value: "": should be at least 2', "series.lastObservedTime: Required value"],
        ),
        (new(metadata={"name": "UPPER", "namespace": "default"}), ["metadata.name: Invalid value"]),
    ],
)
def test_what_the_reference_refuses(document: Document, told: list[str]):
    found = faults(document)
    assert len(found) == len(told)
    assert all(one.startswith(begins) for one, begins in zip(found, told, strict=True)), found


@pytest.mark.parametrize(
    "document",
    [
        core(),
        core(type="Odd", message="x" * 5000, count=7),
        core(metadata={"name": "UPPER", "namespace": "default"}),
        core(involvedObject={"kind": "Node", "name": "n1"}),
        new(),
        new(metadata={"name": "x", "namespace": "kube-system"}, regarding={"kind": "Node", "name": "n1"}),
    ],
)
def test_what_the_reference_takes(document: Document):
    assert settled(document)["apiVersion"] == CORE


def test_of_the_newer_group_only_the_series_changes():
    old = settled(new())
    series = {"count": 2, "lastObservedTime": AT}
    assert settled(new(series=series), old)["series"] == series
    assert faults(new(note="other"), old) == ['message: Invalid value: "other": field is immutable']
    assert faults(new(eventTime="2026-01-01T00:00:01.000000Z"), old)[0].startswith("eventTime: ")
    assert settled({**core(), "message": "other"}, old)["message"] == "other"


def test_an_unknown_field_is_left_out_and_told():
    warnings: list[str] = []
    found = event_rules.settled(core(colour="red"), CORE, old=None, validation="warn", warnings=warnings)
    assert ("colour" in found, warnings) == (False, ['unknown field "colour"'])


@pytest.mark.parametrize(
    ("name", "id_"),
    [("web.17a", "17a"), ("other", "=other"), ("web", "=web"), ("web.", "=web."), ("webs.1", "=webs.1")],
)
def test_a_message_says_what_others_read_and_the_whole(name: str, id_: str):
    written = settled(core(metadata={"name": name, "namespace": "default", "labels": {"a": "b"}}, message="m" * 2000))
    event = event_rules.message(written, NOW)
    assert event.id == id_
    assert (event.regarding.resource, event.at, len(event.message)) == ("pods", NOW, 1024)
    again = codec.decode(K8sEvent, codec.encode(event))
    assert event_listing.name_of(again) == name
    shown = event_listing.document(again)
    assert (shown["message"], shown["metadata"]["labels"]) == ("m" * 2000, {"a": "b"})
    assert (shown["firstTimestamp"], shown["reportingComponent"], shown["source"]) == (None, "", {})


@pytest.mark.parametrize(
    ("about", "resource"),
    [
        ({"kind": "Deployment", "apiVersion": "apps/v1"}, "deployments"),
        ({"kind": "Pond", "apiVersion": "example.com/v1"}, "ponds.v1.example.com"),
        ({"kind": "Node"}, "nodes"),
        ({"kind": "Nothing", "apiVersion": "v9"}, "nothings"),
        ({}, ""),
    ],
)
def test_an_event_may_be_about_anything(about: Document, resource: str):
    event = event_rules.message(settled(core(involvedObject={**about, "namespace": "default"})), NOW)
    assert event.regarding.resource == resource
    assert event_rules.subject(event).startswith("k8sevents.default.")


def test_times_and_counts_are_those_of_the_series():
    last = "2026-01-01T00:01:00.000000Z"
    event = event_rules.message(settled(new(series={"count": 5, "lastObservedTime": last})), NOW)
    assert (event.count, event.at - event.first_at) == (5, 60.0)


@pytest.mark.parametrize(
    "more", [{"at": 1e300}, {"at": -1.0}, {"first_at": float("inf")}, {"written": (b'{"metadata":1}',)}], ids=str
)
def test_what_says_no_event(more: dict[str, Any]):
    if "written" in more:
        more = {"written": tuple(map(msgspec.Raw, more["written"]))}
    event = msgspec.structs.replace(event_rules.message(settled(core()), NOW), **more)
    assert event_rules.absurd(event)
