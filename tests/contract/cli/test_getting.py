"""What `get` reads and follows on a bus."""

from typing import Any

import anyio
import msgspec
import pytest
import yaml

from podyard.bus import Bus, Outgoing
from podyard.bus._inbox import Inbox
from podyard.bus.watch import Watch
from podyard.cli import getting
from podyard.cli.errors import CliError
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Nomination, PodStatusFact
from podyard.proto.placement import BoundPod, Usage, binding_of
from tests.support import objects, stored

LIMIT_S = 5.0


async def printed(capsys: pytest.CaptureFixture[str], lines: list[str], wanted: int) -> None:
    """Collect what is printed until there are so many lines."""
    with anyio.fail_after(LIMIT_S):
        while len(lines) < wanted:
            await anyio.sleep(0.01)
            lines += capsys.readouterr().out.splitlines()


async def test_get_prints_what_is_stored_and_says_what_is_not_there(bus: Bus, capsys: pytest.CaptureFixture[str]):
    await bus.publish(stored.version("pods", objects.pod("a")))
    assert await getting.once(bus, getting.parse("pods", (), "default", "", "name")) == 0
    assert capsys.readouterr().out == "pod/a\n"
    with pytest.raises(CliError, match="not found in namespace default: pods/zzz"):
        await getting.once(bus, getting.parse("pods", ("zzz",), "default", "", "name"))


async def test_get_that_follows_prints_the_listing_then_each_change_of_what_was_asked_for(
    bus: Bus, capsys: pytest.CaptureFixture[str]
):
    await bus.publish(stored.version("pods", objects.pod("a", labels={"app": "web"})))
    query = getting.parse("pods", (), "default", "app=web", "name")
    lines: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(getting.follow, bus, query)
        await printed(capsys, lines, 1)
        await bus.publish(stored.version("pods", objects.pod("b", labels={"app": "db"})))
        await bus.publish(stored.version("pods", objects.pod("c", namespace="other", labels={"app": "web"})))
        await bus.publish(stored.version("pods", objects.pod("d", labels={"app": "web"})))
        await printed(capsys, lines, 2)
        await bus.publish(stored.marker("pods", objects.pod("a", labels={"app": "web"})))
        await printed(capsys, lines, 3)
        tasks.cancel_scope.cancel()
    assert lines == ["pod/a", "pod/d", "pod/a deleted"]


async def test_values_of_secrets_are_not_shown_where_the_api_does_not_say_them(
    bus: Bus, capsys: pytest.CaptureFixture[str]
):
    """No api answers here; what follows never asks."""
    metadata = {"name": "db", "namespace": "default", "uid": "u1"}
    await bus.publish(stored.version("secrets", {"metadata": metadata, "data": {"password": "sealed:v1:0:text"}}))
    query = getting.parse("secret/db", (), "default", "", "json")
    assert await getting.once(bus, query) == 0
    shown = capsys.readouterr()
    assert '"password": "<encrypted>"' in shown.out
    assert shown.err.startswith("warning: values of secrets are not shown: ")
    lines: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(getting.follow, bus, query)
        await printed(capsys, lines, 1)
        tasks.cancel_scope.cancel()
    assert "<encrypted>" in lines[0]
    assert "sealed" not in shown.out + lines[0]


MOST_NAMED_READINGS = 4
"""Streams' parts that are read for one name, as `getting.MOST_NAMED` says."""


class Counted:
    """What one process asks for, and what is delivered to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests = self.deliveries = 0
        request, on_message = Inbox.request, Watch.on_message

        async def counted_request(inbox: Inbox, *what: Any, **how: Any) -> Any:
            self.requests += 1
            return await request(inbox, *what, **how)

        def counted_message(watch: Watch, *what: Any) -> None:
            self.deliveries += 1
            on_message(watch, *what)

        monkeypatch.setattr(Inbox, "request", counted_request)
        monkeypatch.setattr(Watch, "on_message", counted_message)


async def _cost(bus: Bus, monkeypatch: pytest.MonkeyPatch, *words: str, output: str = "name") -> tuple[int, int]:
    """Requests and deliveries of one `get`."""
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        query = getting.parse(words[0], words[1:], "default", "", output)
        assert await getting.once(bus, query) == 0
    return counted.requests, counted.deliveries


async def test_get_by_name_costs_the_same_however_many_pods_there_are(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    await bus.publish(stored.version("nodes", objects.node("n1")))

    async def create(first: int, last: int) -> None:
        pods = [objects.pod(f"p{number}") for number in range(first, last)]
        await bus.publish_many([stored.version("pods", pod) for pod in pods])
        bound = [BoundPod(namespace="default", name=f"p{n}", uid=f"uid-p{n}", node="n1") for n in range(first, last)]
        await bus.publish_many([stored.binding(one) for one in bound])

    await create(0, 5)
    asked = (("pods", "p1"), ("pod/p1", "pod/p2"), ("node/n1",))
    few = [await _cost(bus, monkeypatch, *words) for words in asked]
    listed = await _cost(bus, monkeypatch, "pods")
    await create(5, 505)
    many = [await _cost(bus, monkeypatch, *words) for words in asked]
    assert [delivered for _, delivered in many] == [delivered for _, delivered in few]
    # whether a listing asks once more where its stream ends is a matter of what the server says first
    assert all(abs(now - before) <= MOST_NAMED_READINGS for (now, _), (before, _) in zip(many, few, strict=True))
    assert few[0][1] == 2, "the pod and its binding"
    more = await _cost(bus, monkeypatch, "pods")
    assert more[1] == listed[1] + 1000, "what is delivered is counted"


async def test_an_object_by_name_is_joined_as_in_the_listing(bus: Bus, capsys: pytest.CaptureFixture[str]):
    await bus.publish(stored.version("pods", objects.pod("a", uid="u")))
    await bus.publish(stored.binding(BoundPod(namespace="default", name="a", uid="u", node="n1")))
    status = PodStatusFact(namespace="default", name="a", uid="u", node="n1", phase="Running")
    await bus.publish(stored.pod_status(status))
    await bus.publish(stored.nomination(Nomination(namespace="default", name="a", uid="u", node="n2")))
    outputs: list[str] = []
    for names in ((), ("a",)):
        for form in ("wide", "yaml"):
            assert await getting.once(bus, getting.parse("pods", names, "default", "", form)) == 0
            outputs.append(capsys.readouterr().out)
    for known in ("n1", "Running", "n2"):
        assert known in outputs[0]
    assert outputs[2] == outputs[0]
    (item,) = yaml.safe_load(outputs[1])["items"]
    assert yaml.safe_load(outputs[3]) == item


async def test_nodes_say_what_is_requested_of_them(bus: Bus, capsys: pytest.CaptureFixture[str]):
    await bus.publish(stored.version("nodes", objects.node("n1", cpu="4", memory="8Gi")))
    await bus.publish(stored.version("pods", objects.pod("a", uid="u", cpu="1", memory="2Gi")))
    usage = Usage(requests={"cpu": 1000, "memory": 2 << 30})
    await bus.publish(stored.binding(BoundPod(namespace="default", name="a", uid="u", node="n1", usage=usage)))
    for names in ((), ("n1",)):
        await getting.once(bus, getting.parse("nodes", names, "default", "", "table"))
        _, row = capsys.readouterr().out.splitlines()
        assert row.endswith("1/4 25%   2/8Gi 25%   1/110")


async def test_a_whole_pod_says_whether_it_is_scheduled(bus: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("waits", "placed", "new"):
        await bus.publish(stored.version("pods", objects.pod(name, uid=f"uid-{name}")))
    for number in (1, 2):
        record = AttemptRecord(
            namespace="default",
            name="waits",
            uid="uid-waits",
            attempt=f"1-{number}",
            number=number,
            outcome="unschedulable",
            at=1_800_000_000.0 + number,
            message="0/3 nodes are available: 3 Insufficient cpu.",
        )
        await bus.publish(Outgoing(subjects.decisions("default", "waits", "uid-waits"), codec.encode(record)))
    place = BoundPod(namespace="default", name="placed", uid="uid-placed", node="n1")
    await bus.publish(
        Outgoing(subjects.binding("default", "placed", "uid-placed"), codec.encode(binding_of(place, bound_at=1.8e9)))
    )

    async def conditions(*names: str) -> dict[str, Any]:
        query = getting.parse("pods", names, "default", "", "json")
        assert await getting.once(bus, query) == 0
        shown = msgspec.json.decode(capsys.readouterr().out)
        found = shown.get("items", [shown])
        return {one["metadata"]["name"]: one["status"].get("conditions", []) for one in found}

    waits = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "lastTransitionTime": "2027-01-15T08:00:01Z",
    }
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}
    assert await conditions() == {"waits": [waits], "placed": [placed], "new": []}
    assert await conditions("waits") == {"waits": [waits]}
    assert await conditions("placed") == {"placed": [placed]}
