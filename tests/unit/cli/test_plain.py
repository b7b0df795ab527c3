"""What programs read: JSON and YAML with times as text."""

import importlib
import json
import pkgutil
from typing import Any

import msgspec
import pytest

from podyard import proto
from podyard.cli.jaeger import model
from podyard.cli.render import plain, watch
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import BareEvent
from podyard.proto.queue_api import QueuedPodInfo, QueueListReply
from podyard.telling import entries, explanation

AT = 1_800_000_000.25
TEXT = "2027-01-15T08:00:00.250000Z"


def test_times_are_rfc_3339_wherever_they_stand():
    pod = QueuedPodInfo(namespace="d", name="p", uid="u", pool="backoffQ", since=AT)
    reply = json.loads(plain.dump(QueueListReply(epoch=1, pods=(pod,)), "json"))
    assert (reply["pods"][0]["since"], "until" in reply["pods"][0]) == (TEXT, False)
    record = AttemptRecord(attempt="a", namespace="d", name="p", uid="u", number=1, outcome="unschedulable", at=AT)
    told = json.loads(plain.line(watch.Line(at=AT, kind="attempt", text="x", record=record)))
    assert (told["at"], told["record"]["at"]) == (TEXT, TEXT)
    inside = json.loads(plain.line({"one": [entries.Bound(at=AT, node="n")], "at": 1.5}))
    assert inside == {"one": [{"entry": "bound", "at": TEXT, "node": "n"}], "at": 1.5}


def test_an_object_that_a_message_holds_is_shown_as_it_was_written():
    event = BareEvent(
        id="1", old=msgspec.Raw(b"null"), resource="Node", actions=("Add",), new=msgspec.Raw(b'{"at":1.5}'), who="me"
    )
    told = json.loads(plain.line(watch.bare(event, AT)))
    assert (told["record"]["new"], told["record"]["old"]) == ({"at": 1.5}, None)


@pytest.mark.parametrize("at", [0.0, 1e300, -1e300])
def test_a_time_that_is_not_known_is_null(at):
    assert json.loads(plain.line(entries.Bound(at=at, node="n")))["at"] is None


def test_a_persons_document_stays_as_it_is():
    document = {"spec": {"at": 12.5, "since": [1.0, {"until": 3.25}]}, "n": None}
    assert json.loads(plain.dump(document, "json")) == document


def structs(module: Any) -> list[type[msgspec.Struct]]:
    return [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, msgspec.Struct)]


def test_every_time_of_a_message_is_known():
    """A new field of seconds since 1970 must be named among TIMES, or its JSON would be a number."""
    messages = [importlib.import_module(one.name) for one in pkgutil.iter_modules(proto.__path__, "podyard.proto.")]
    told = (*messages, model, entries, explanation, watch)
    found: set[str] = set()
    for struct in {struct for module in told for struct in structs(module)}:
        for field in msgspec.structs.fields(struct):
            info = msgspec.inspect.type_info(field.type)
            description = (getattr(info, "extra_json_schema", None) or {}).get("description", "")
            says = "since 1970" in description or field.name.endswith("_at") or field.name == "at"
            if says and float in _leaves(field.type):
                found.add(field.name)
    assert found
    assert found <= plain.TIMES


def _leaves(annotation: Any) -> set[Any]:
    inner = getattr(annotation, "__args__", ())
    return {leaf for one in inner for leaf in _leaves(one)} if inner else {annotation}
