"""From EDGE into CORE by the ways around permissions: reply subjects, schedules, consumers that deliver where
they like.

Each is tried on a subject of its own, and CORE's stream is what tells
(docs/rules.md, permissions-protect-no-stream).
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Outgoing
from tests.contract.security.visitors import WITHIN_S, Site, Visitor, site
from tests.support.holding import held

pytestmark = pytest.mark.asyncio(loop_scope="module")

PEOPLE: Final = ("person", "bridge")
AGENTS: Final = ("node_agent", "agent-rack1")
EDGE: Final = (*PEOPLE, *AGENTS)
MINE: Final = {
    "agent-rack1": "cluster.podstatus.node-1.default.web.{}",
    "node_agent": "cluster.podstatus.node-3.default.web.{}",
}
"""What an agent may write; people write no fact."""

EVENT: Final = "k8sevents.default.Pod.seed"
SEED: Final = "cluster.pods.default.seed"
FORGED: Final = b'{"forged":true}'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with held(site(tmp_path_factory.mktemp("site"))) as found:
        await found.admin.publish(Outgoing(SEED, FORGED, expect=0))
        await found.admin.publish(Outgoing(EVENT, FORGED))
        yield found


async def listened_to(here: Site, subject: str) -> None:
    """A server delivers only where a client listens, which visitors may do in their inbox alone. Here one
    does, in READ: what the accounts are good for is seen without that."""
    await here.read.subscribe(subject, lambda _subject, _payload, _trace: None)


def targets(name: str, trick: str) -> list[str]:
    """Subjects of CORE that are nobody's in EDGE, and those of another node; of this trick and visitor
    alone."""
    own = f"{name}-{trick}"
    return [
        f"placement.bindings.default.web.{own}",
        f"cluster.pods.default.{own}",
        f"cluster.nominations.default.web.{own}",
        *([] if name == "node_agent" else [f"cluster.podstatus.node-2.default.web.{own}"]),
        f"decisions.default.web.{own}",
        f"leases.{own}",
    ]


async def untouched(here: Site, name: str, trick: str) -> None:
    """Nothing arrived in CORE, looked at once its stream and the mirror have taken something that was sent
    later."""
    async with here.visit("node_agent") as later:
        await later.ask(f"cluster.podstatus.node-9.default.web.{name}-{trick}", b"{}")
    await _mirrored(here, f"cluster.podstatus.node-9.default.web.{name}-{trick}")
    streams = {"decisions": "DECISIONS", "leases": "LEASES"}
    for subject in targets(name, trick):
        stream = streams.get(subject.split(".")[0], "CLUSTER")
        assert await here.admin.get(stream, subject) is None, subject


@pytest.mark.parametrize("name", EDGE)
async def test_a_reply_subject_leads_nowhere(here: Site, name: str):
    async with here.visit(name) as visitor:
        for number, target in enumerate(targets(name, "reply")):
            for subject in _allowed(name, f"reply{number}"):
                await visitor.client.publish(subject, FORGED, reply=target)
        await visitor.settled()
    await untouched(here, name, "reply")


def _allowed(name: str, uid: str) -> list[str]:
    """Subjects that CORE or READ answers."""
    asked = ["JS.read.API.STREAM.INFO.CLUSTER", "JS.read.API.DIRECT.GET.CLUSTER.cluster.pods.default.seed"]
    return [*asked, MINE[name].format(uid)] if name in MINE else [*asked, "svc.objects.apply", "events.Node.Add"]


@pytest.mark.parametrize("name", AGENTS)
async def test_a_schedule_is_not_carried_out(here: Site, name: str):
    async with here.visit(name) as visitor:
        for number, target in enumerate(targets(name, "schedule")):
            headers = {
                "Nats-Schedule": "@at 2020-01-01T00:00:00Z",
                "Nats-Schedule-Target": target,
                "Nats-Schedule-TTL": "1m",
            }
            answer = await visitor.ask(MINE[name].format(f"schedule{number}"), FORGED, headers)
            assert answer.get("error", {}).get("code"), answer
    await untouched(here, name, "schedule")


@pytest.mark.parametrize("name", EDGE)
async def test_a_consumer_delivers_only_outside(here: Site, name: str):
    async with here.visit(name) as visitor:
        for number, target in enumerate(targets(name, "consumer")):
            await listened_to(here, target)
            made = await _consumer(visitor, f"{name}-{number}", target)
            # it is made, and delivers: the account that it is in is what protects
            assert made.get("name") == f"{name}-{number}", made
            await _delivered(visitor, f"{name}-{number}")
    await untouched(here, name, "consumer")


@pytest.mark.parametrize("name", EDGE)
async def test_a_consumer_makes_no_consumer_in_core(here: Site, name: str):
    """A consumer in two steps: what is delivered asks CORE's JetStream to deliver into the protected
    stream."""
    for number, target in enumerate(targets(name, "steps")):
        order = f"cluster.podstatus.node-1.default.{name}.order{number}"
        await here.admin.publish(Outgoing(order, msgspec.json.encode(_request("K8SEVENTS", "deep", target, EVENT))))
        await _mirrored(here, order)
        async with here.visit(name) as visitor:
            for way, prefix in enumerate(("JS.core.API", "JS.read.API", "JS.cluster.API")):
                asks = f"{prefix}.CONSUMER.CREATE.K8SEVENTS.deep"
                await listened_to(here, asks)
                made = await _consumer(visitor, f"{name}-{number}-{way}", asks, order)
                assert "name" in made, made
                await _delivered(visitor, made["name"])
    await untouched(here, name, "steps")
    assert await _consumers(here) == ["mirror"]


async def _consumers(here: Site) -> list[str]:
    known: dict[str, Any] = await here.admin.api.call("CONSUMER.NAMES.K8SEVENTS", {}, dict[str, Any])
    return known["consumers"]


def _request(stream: str, name: str, target: str, subject: str) -> dict[str, Any]:
    config = {
        "name": name,
        "deliver_subject": target,
        "deliver_policy": "all",
        "ack_policy": "none",
        "replay_policy": "instant",
        "filter_subjects": [subject],
        "inactive_threshold": 60_000_000_000,
        "mem_storage": True,
    }
    return {"stream_name": stream, "config": config, "action": "create"}


async def _consumer(visitor: Visitor, name: str, target: str, subject: str = SEED) -> dict[str, Any]:
    return await visitor.ask(f"JS.read.API.CONSUMER.CREATE.CLUSTER.{name}", _request("CLUSTER", name, target, subject))


async def _delivered(visitor: Visitor, name: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not (await visitor.ask(f"JS.read.API.CONSUMER.INFO.CLUSTER.{name}", b""))["delivered"]["consumer_seq"]:
            pass


async def _mirrored(here: Site, subject: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while await here.read.get("CLUSTER", subject) is None:  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0.001)
