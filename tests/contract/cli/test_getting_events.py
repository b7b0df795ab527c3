"""What `get events` reads and follows on a bus."""

import json
from typing import Any

import anyio
import pytest

from podyard.bus import Bus, Outgoing
from podyard.bus.bootstrap import ensure_streams
from podyard.cli import getting_events
from podyard.cli.errors import InputError
from podyard.objects import times
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Condition, NodeStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import Binding
from podyard.runtime import clock
from tests.support import objects, stored
from tests.support.waiting import eventually

NO_ROOM = "0/5 nodes are available: 5 Insufficient cpu."


def sent(name: str, reason: str = "Evicted", *, id_: str = "1", count: int = 1, namespace: str = "default") -> Outgoing:
    about = ObjectRef(resource="pods", namespace=namespace, name=name, uid=f"uid-{name}")
    event = K8sEvent(
        regarding=about, reason=reason, message="sent", reporter="node_agent", at=clock.now(), id=id_, count=count
    )
    return Outgoing(subjects.k8s_event(namespace, "pods", name, id_), codec.encode(event))


def attempt(name: str, number: int = 1) -> Outgoing:
    record = AttemptRecord(
        namespace="default",
        name=name,
        uid=f"uid-{name}",
        attempt=f"{number}",
        outcome="unschedulable",
        message=NO_ROOM,
        at=clock.now() - 30 + number,
    )
    return Outgoing(subjects.decisions("default", name, f"uid-{name}"), codec.encode(record))


def bound(name: str) -> Outgoing:
    binding = Binding(
        namespace="default", name=name, uid=f"uid-{name}", node="n1", attempt="1", bound_at=clock.now() - 10
    )
    return Outgoing(subjects.binding("default", name, f"uid-{name}"), codec.encode(binding))


def query(about: str = "", namespace: str | None = "default", output: str = "table") -> getting_events.Query:
    return getting_events.parse((), namespace, about, "", output)


async def shown(bus: Bus, capsys: pytest.CaptureFixture[str], **asked: Any) -> list[list[str]]:
    """The words of each line."""
    assert await getting_events.once(bus, query(**asked)) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
async def told(bus: Bus) -> Bus:
    """A bus on which some events are, and some facts that tell of others."""
    ready = Condition(
        type="Ready", status="True", reason="KubeletReady", last_transition_time=times.rfc3339(clock.now() - 60)
    )
    node = NodeStatusFact(node="n1", node_uid="un", conditions=(ready,))
    for message in (
        attempt("web", 1),
        attempt("web", 2),
        stored.version("pods", objects.pod("web")),
        bound("web"),
        stored.node_status(node),
        sent("web"),
        sent("db", namespace="shop"),
    ):
        await bus.publish(message)
    return bus


async def test_sent_ones_and_those_that_facts_tell_are_listed_by_time(
    told: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    heads, *rows = await shown(told, capsys)
    assert heads == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert [row[1:3] for row in rows if "(x2" not in row] == [
        ["Normal", "NodeReady"],
        ["Normal", "Scheduled"],
        ["Normal", "Evicted"],
    ]
    (failed,) = [row for row in rows if "(x2" in row]
    assert failed[1:3] == ["(x2", "over"]
    assert failed[4:] == ["Warning", "FailedScheduling", "pod/web", *NO_ROOM.split()]


async def test_an_objects_own_events_are_asked_for_by_its_name(told: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row[2] for row in (await shown(told, capsys, about="node/n1"))[1:]] == ["NodeReady"]
    assert await shown(told, capsys, about="pod/other") == []
    assert [row[3] for row in (await shown(told, capsys, about="pod/db", namespace="shop"))[1:]] == ["pod/db"]


async def test_every_namespace_has_a_column(told: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    rows = await shown(told, capsys, namespace=None)
    assert rows[0][0] == "NAMESPACE"
    assert {row[0] for row in rows[1:]} == {"default", "shop"}


async def test_programs_get_core_v1_events(told: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    assert await getting_events.once(told, query(output="json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], {item["kind"] for item in found["items"]}) == ("List", {"Event"})
    assert [item["reason"] for item in found["items"]] == ["NodeReady", "FailedScheduling", "Scheduled", "Evicted"]


async def test_without_their_stream_facts_are_told(told: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    await told.api.call("STREAM.DELETE.K8SEVENTS", None, dict[str, Any])
    assert await getting_events.once(told, query(output="name")) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert printed.err == "warning: there is no stream K8SEVENTS: what it would hold is not shown\n"


async def test_none_is_said_so(bus: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    assert await getting_events.once(bus, query()) == 0
    assert capsys.readouterr() == ("", "No events found in namespace default.\n")


async def test_who_follows_is_told_each_once_and_again_when_it_happens_again(
    bus: Bus, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getting_events, "GATHER_S", 0.01)
    await bus.publish(sent("a"))
    printed: list[str] = []

    def more() -> list[str]:
        printed.extend(capsys.readouterr().out.splitlines())
        return printed

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(getting_events.follow, bus, query())
        await eventually("the listing", lambda: len(more()) == 2)
        await bus.publish(bound("web"))
        await eventually("a binding", lambda: len(more()) == 3)
        await bus.publish(sent("a", count=2))
        await eventually("a repetition", lambda: len(more()) == 4)
        await bus.publish(sent("x", namespace="other"))
        await bus.publish(sent("b", id_="2"))
        await eventually("another", lambda: len(more()) == 5)
        tasks.cancel_scope.cancel()
    told = [next(word for word in line.split() if "/" in word) for line in printed[1:]]
    assert told == ["pod/a", "pod/web", "pod/a", "pod/b"]
    assert "(x2 over" in printed[3]


async def test_who_follows_is_told_what_comes_once_a_missing_stream_is_there(
    told: Bus, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getting_events, "GATHER_S", 0.01)
    monkeypatch.setattr(getting_events, "AGAIN_S", 0.01)
    await told.api.call("STREAM.DELETE.K8SEVENTS", None, dict[str, Any])
    printed: list[str] = []

    def more() -> list[str]:
        printed.extend(capsys.readouterr().out.splitlines())
        return printed

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(getting_events.follow, told, query(output="name"))
        await eventually("what facts tell", lambda: len(more()) == 3)
        await ensure_streams(told)
        await told.publish(sent("late", id_="9"))
        await eventually("what is sent", lambda: len(more()) == 4)
        tasks.cancel_scope.cancel()
    assert printed[-1] == "event/late.9"


@pytest.mark.parametrize(
    ("names", "about", "selector", "what"),
    [
        (("x",), "", "", "events are found by their object"),
        ((), "", "app=web", "events have no labels"),
        ((), "pod", "", "pod: expected KIND/NAME"),
    ],
)
def test_what_events_do_not_have_is_said(names: tuple[str, ...], about: str, selector: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        getting_events.parse(names, "default", about, selector, "table")
