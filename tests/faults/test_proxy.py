"""The proxy does what it says, to real connections between podyard.bus and nats-server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from podyard.bus import Bus, BusSettings, Outgoing, Request, connect
from podyard.bus.bootstrap import ensure_streams
from podyard.bus.embedded import embedded_server
from podyard.bus.errors import Unclear
from tests.faults.frames import Parser
from tests.faults.message_rules import CrashPoint, Drop, DropAnswers, Late, Moment, Repeat
from tests.faults.overhearing import Overheard
from tests.faults.proxy import Proxy, serving
from tests.memory_nats.stream import Stored

SUBJECT = "cluster.faults.default.one"
SHORT_S = 0.4
"""For an answer that does not come."""


class Harmed(NamedTuple):
    """A connection through a proxy, another past it, and what the proxy did."""

    bus: Bus
    other: Bus
    proxy: Proxy
    told: list[str]


@asynccontextmanager
async def harmed() -> AsyncGenerator[Harmed]:
    """A server, a proxy, two connections."""
    told: list[str] = []
    async with (
        embedded_server() as server,
        serving(Proxy("test", [server.port], told.append)) as proxy,
        connect(BusSettings(servers=(server.url,), name="other", service="test", drain_timeout_s=0.2)) as other,
        connect(BusSettings(servers=(proxy.url,), name="harmed", service="test", drain_timeout_s=0.2)) as bus,
    ):
        await ensure_streams(other)
        yield Harmed(bus, other, proxy, told)


def test_a_parser_finds_the_same_frames_whatever_pieces_they_come_in():
    text = (
        b'INFO {"a": 1}\r\nPING\r\nPUB a.b 5\r\nhe\r\no\r\nPUB a.b _IN.1 0\r\n\r\n'
        b"HPUB c r 12 14\r\nNATS/1.0\r\n\r\nhi\r\nMSG a.b 7 2\r\nok\r\nHMSG x 1 back 12 12\r\nNATS/1.0\r\n\r\n\r\n+OK\r\n"
    )
    whole = Parser().feed(text)
    assert [(one.verb, one.subject, one.reply, one.payload) for one in whole] == [
        ("INFO", "", "", b""),
        ("PING", "", "", b""),
        ("PUB", "a.b", "", b"he\r\no"),
        ("PUB", "a.b", "_IN.1", b""),
        ("HPUB", "c", "r", b"hi"),
        ("MSG", "a.b", "", b"ok"),
        ("HMSG", "x", "back", b""),
        ("+OK", "", "", b""),
    ]
    assert b"".join(one.raw for one in whole) == text
    parser = Parser()
    assert [frame for byte in text for frame in parser.feed(bytes([byte]))] == whole


@pytest.mark.parametrize(
    ("moment", "stored", "answered"), [("before", 1, False), ("stored", 2, False), ("answered", 2, True)]
)
async def test_a_crash_point_kills_at_its_moment(moment: Moment, stored: int, answered: bool):
    async with harmed() as here:
        killed = asyncio.Event()
        here.proxy.kill = killed.set
        point = here.proxy.rule(CrashPoint("cluster.faults.>", moment, nth=2))
        first = await here.bus.publish(Outgoing(SUBJECT, b"1"))
        second = asyncio.ensure_future(here.bus.publish(Outgoing(SUBJECT, b"2"), timeout_s=SHORT_S))
        if answered:
            assert (await second).sequence == first.sequence + 1
            assert not killed.is_set()
            here.bus.send("whatever", b"the next thing that it sends")
        await point.hit(5)
        assert killed.is_set()
        if not answered:
            with pytest.raises(Unclear):
                await second
        with pytest.raises(Unclear):
            await here.bus.publish(Outgoing(SUBJECT, b"3"), timeout_s=SHORT_S)
        found = await here.other.get("CLUSTER", SUBJECT)
        assert found is not None
        assert found.payload == str(stored).encode()
        assert any("KILLS" in text for text in here.told)


async def test_what_is_held_one_way_comes_late_and_the_other_way_is_open():
    async with harmed() as here:
        heard = asyncio.Event()
        await here.bus.subscribe("news", lambda *_: heard.set())
        here.proxy.hold(up=True)
        write = asyncio.ensure_future(here.bus.publish(Outgoing(SUBJECT, b"1")))
        here.other.send("news", b"")
        await asyncio.wait_for(heard.wait(), 5)
        assert await here.other.get("CLUSTER", SUBJECT) is None
        assert not write.done()
        here.proxy.heal()
        assert (await write).sequence == 1


async def test_answers_of_services_are_named_after_the_question_on_both_sides():
    async with harmed() as here:
        questions: list[bytes] = []

        async def answer(request: Request) -> bytes:
            questions.append(request.payload)
            return b"answer"

        await here.other.serve("svc.test", answer)
        lost = here.proxy.rule(DropAnswers("answer to svc.test", times=1))
        with pytest.raises(Unclear):
            await here.bus.request("svc.test", b"1", timeout_s=SHORT_S)
        assert (await here.bus.request("svc.test", b"2")).payload == b"answer"
        assert (lost.happened, lost.over) == (1, True)
        await here.bus.serve("svc.mine", answer)
        dropped = here.proxy.rule(Drop("answer to svc.mine", times=1))
        with pytest.raises(Unclear):
            await here.other.request("svc.mine", b"3", timeout_s=SHORT_S)
        assert dropped.happened == 1
        assert questions == [b"1", b"2", b"3"]


async def test_a_message_can_come_twice_and_be_overtaken():
    async with harmed() as here:
        heard: list[bytes] = []
        complete = asyncio.Event()

        def hear(_subject: str, payload: bytes, _trace: str) -> None:
            heard.append(payload)
            if len(heard) == 4:
                complete.set()

        await here.other.subscribe("news.*", hear)
        here.proxy.rule(Repeat("news.twice", [0.0], times=1))
        here.proxy.rule(Late("news.late", 0.2))
        here.bus.send("news.late", b"late")
        here.bus.send("news.twice", b"twice")
        here.bus.send("news.plain", b"plain")
        await asyncio.wait_for(complete.wait(), 5)
        assert heard == [b"twice", b"twice", b"plain", b"late"] or heard == [b"twice", b"plain", b"twice", b"late"]


async def test_a_limit_cuts_a_message_in_the_middle_and_the_next_connection_works():
    async with harmed() as here:
        here.proxy.up.bytes_left = 2000
        with pytest.raises(Unclear):
            await here.bus.publish(Outgoing(SUBJECT, b"x" * 5000))
        assert any("cuts PUB" in text or "cuts HPUB" in text for text in here.told)
        assert (await here.bus.publish(Outgoing(SUBJECT, b"y"))).sequence == 1


async def test_what_is_stored_is_overheard_although_its_writer_never_knows():
    async with harmed() as here:
        found: list[Stored] = []
        Overheard(found.append).listen(here.proxy)
        here.proxy.rule(DropAnswers("answer to cluster.>"))
        batch = [Outgoing(f"{SUBJECT}-{number}", b"in a batch", expect=0) for number in range(3)]
        for write in (
            here.bus.publish(Outgoing(SUBJECT, b"1"), timeout_s=SHORT_S),
            here.bus.publish_batch(batch, timeout_s=SHORT_S),
        ):
            with pytest.raises(Unclear):
                await write
        with pytest.raises(Unclear):  # refused: nothing is stored
            await here.bus.publish(Outgoing(SUBJECT, b"2", expect=77), timeout_s=SHORT_S)
        assert [(one.sequence, one.subject, one.payload) for one in found] == [
            (1, SUBJECT, b"1"),
            *((2 + number, f"{SUBJECT}-{number}", b"in a batch") for number in range(3)),
        ]
