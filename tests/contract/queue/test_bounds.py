"""What no request and no bare event may bring: it is answered, or becomes a dead letter, and the queue goes
on."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest

from podyard.bus import Bus, RemoteError
from podyard.proto import subjects
from podyard.proto.queue_api import SessionHeartbeat
from tests.contract.queue.stack import Cluster, Scheduler
from tests.support.waiting import WITHIN_S, eventually

VERBS = ("pop", "heartbeat", "done", "activate", "preempting", "list", "would")
DEEP = b"[" * 960 + b"]" * 960
DEEPER = b"[" * 50_000 + b"]" * 50_000
POD = {"namespace": "default", "name": "a", "uid": "uid-a"}
EVENT = {"id": "bad", "resource": "Node", "actions": ["UpdateNodeTaint"], "who": "test", "old": None, "new": None}
FIELDS: dict[str, dict[str, Any]] = {
    "pop": {"session": "s", "popId": "p"},
    "heartbeat": {"session": "s"},
    "done": {"session": "s", "results": []},
    "activate": {"session": "s", "pods": [POD]},
    "preempting": {"session": "s", "pod": POD, "running": True},
    "list": {},
    "would": {"namespace": "default", "name": "a", "event": EVENT},
}


def with_event(**more: Any) -> dict[str, Any]:
    return {"namespace": "default", "name": "a", "event": EVENT | more}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"NaN",
        DEEPER,
        b'{"epoch":%d,"limit":%d}' % (10**30, -1),
        b'{"session":"%b","name":"%b"}' % (b"x" * 100_000, b"x" * 100_000),
    ],
    ids=["empty", "no utf-8", "null", "list", "NaN", "nested", "10^30", "long"],
)
async def test_a_request_that_cannot_be_read(cluster: Cluster, scheduler: Scheduler, verb: str, payload: bytes) -> None:
    await cluster.pod("a")
    if verb == "list" and payload == b"":
        return  # lists everything
    with pytest.raises(RemoteError):
        await cluster.bus.request(subjects.queue_verb(verb), payload, timeout_s=WITHIN_S)
    assert (await scheduler.take()).name == "a"


@pytest.mark.parametrize("verb", VERBS)
async def test_a_request_with_what_nobody_reads(cluster: Cluster, scheduler: Scheduler, verb: str) -> None:
    """Unknown fields are skipped; one that is nested too deep makes the request unreadable, or is skipped
    like the others."""
    await cluster.pod("a")
    known = msgspec.json.encode(FIELDS[verb])
    payload = b'{"later":%b%b' % (DEEP, b"," + known[1:] if len(known) > len(b"{}") else b"}")
    with suppress(RemoteError):
        await cluster.bus.request(subjects.queue_verb(verb), payload, timeout_s=WITHIN_S)
    assert (await scheduler.list()).counts


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (with_event(actions=["UpdateNodeTaint"] * 20_000), "$.event.actions"),
        (with_event(actions=["Explode"]), "Explode"),
        (with_event(resource="x" * 600), "$.event.resource"),
        (with_event(new={"metadata": {"name": 5}}), "metadata.name"),
        (with_event(new={"metadata": {"name": "n"}, "spec": {"taints": [{"key": 10**30}]}}), "spec.taints"),
        ({"namespace": "x" * 5000, "name": "a", "event": EVENT}, "$.namespace"),
    ],
    ids=["20,000 actions", "no action", "long resource", "wrong type", "10^30", "long name"],
)
async def test_what_if_is_refused_with_the_reason(
    cluster: Cluster, scheduler: Scheduler, fields: dict[str, Any], reason: str
) -> None:
    await cluster.pod("a")
    with pytest.raises(RemoteError) as caught:
        await cluster.bus.request(subjects.queue_verb("would"), msgspec.json.encode(fields), timeout_s=WITHIN_S)
    assert reason in str(caught.value)
    assert (await scheduler.take()).name == "a"


@pytest.mark.parametrize(
    "payload",
    [
        msgspec.json.encode(EVENT | {"actions": ["UpdateNodeTaint"] * 20_000}),
        msgspec.json.encode(EVENT).replace(b'"new":null', b'"new":{"metadata":{"name":"n"},"spec":{"x":%b}}' % DEEP),
        msgspec.json.encode(EVENT).replace(b'"new":null', b'"new":%b' % DEEPER),
        msgspec.json.encode(EVENT).replace(b'"new":null', b'"new":NaN'),
        msgspec.json.encode(EVENT).replace(b'"bad"', b'"%b"' % (b"x" * 129)),
        b"\xff",
    ],
    ids=["20,000 actions", "nested", "nested deeper", "NaN", "long id", "no utf-8"],
)
async def test_a_bare_event_beyond_the_bounds(bus: Bus, cluster: Cluster, scheduler: Scheduler, payload: bytes) -> None:
    bus.send(subjects.bare_event("Node", "UpdateNodeTaint"), payload)

    async def dead() -> bool:
        return await bus.get("DEAD", subjects.dead("q1")) is not None

    if b'"spec":{"x":' in payload:
        await cluster.pod("after")  # whether it can be read or not: the queue goes on
    else:
        await eventually("a dead letter", dead)
        await cluster.pod("after")
    assert (await scheduler.take()).name == "after"


@pytest.mark.parametrize("epoch", [2**63 - 1, 2**40])
async def test_an_epoch_that_was_never_a_leaders_deposes_nobody(
    cluster: Cluster, scheduler: Scheduler, epoch: int
) -> None:
    """Whoever led next would have to be above it, and there is nothing above the greatest number."""
    before = (await scheduler.list()).epoch
    with pytest.raises(RemoteError, match=f"epoch {epoch} was never a leader's"):
        await scheduler.ask("heartbeat", SessionHeartbeat(session="s", epoch=epoch))
    assert (await scheduler.list()).epoch == before
    await cluster.pod("a")
    assert (await scheduler.take()).name == "a"
