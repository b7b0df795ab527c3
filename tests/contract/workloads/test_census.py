"""The census taker on the bus: it writes when something has ended, and deletes again what a killed server
brought back."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Final
from unittest import mock

import pytest

from podyard.bus import Bus, Conflict, Delivery, Outgoing, census
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import Nomination
from podyard.workloads.core.census import CensusTaker, Effect, Listed, Message
from podyard.workloads.service import SERVICE
from tests.memory_nats import MemoryServer
from tests.support import stored
from tests.support.buses import ConnectBus, Server
from tests.support.services import make_service, running
from tests.support.waiting import eventually

LIFE_S: Final = 2
"""Of markers: a census is due half a second after the first."""
STREAM: Final = streams.CLUSTER.name
FACT: Final = Nomination(namespace="default", name="web", uid="u", node="n", priority=0, epoch=1)


def namespace(name: str) -> Outgoing:
    return stored.version("namespaces", {"metadata": {"name": name, "uid": f"uid-{name}"}})


def subject_of(name: str) -> str:
    return f"cluster.namespaces._.{name}"


class Stand:
    """Workloads, and somebody else."""

    def __init__(self, bus: Bus, workloads: Bus, server: Server) -> None:
        self.bus = bus
        self.workloads = workloads
        self.server = server

    def running(self) -> AbstractAsyncContextManager[Any]:
        return running(make_service(SERVICE, self.workloads))

    async def put(self, *messages: Outgoing) -> list[int]:
        return [(await self.bus.publish(one.but(expect=0))).sequence for one in messages]

    async def delete(self, message: Outgoing) -> int:
        """A marker in its place; its sequence."""
        found = await self.bus.get(STREAM, message.subject)
        assert found is not None
        marker = Outgoing(message.subject, message.payload, expect=found.sequence, deleted=True, expires=True)
        return (await self.bus.publish(marker)).sequence

    async def gone(self, message: Outgoing) -> None:
        async def expired() -> bool:
            return await self.bus.get(STREAM, message.subject) is None

        await eventually(f"{message.subject} has gone", expired)

    async def newest(self) -> Delivery | None:
        return await self.bus.get(STREAM, subjects.CENSUS)

    async def counted(self, position: int) -> census.Living:
        """The first census from that position on."""

        async def found() -> census.Living | None:
            there = await self.newest()
            living = None if there is None else census.decode(there.payload)
            return living if living is not None and living.position >= position else None

        return await eventually(f"a census at {position}", found)

    async def killed(self) -> None:
        if isinstance(self.server, MemoryServer):
            self.server.bring_back(STREAM)
        else:
            await self.server.kill()
            await self.server.start()


@pytest.fixture
async def stand(bus: Bus, connect_bus: ConnectBus, bus_server: Server) -> Stand:
    del bus  # the streams are made
    there = Stand(
        await connect_bus("writer", marker_ttl_s=LIFE_S),
        await connect_bus("workloads", marker_ttl_s=LIFE_S),
        bus_server,
    )
    await there.put(namespace("first"))
    return there


async def test_after_a_listing_and_after_an_end_it_says_what_lives(stand: Stand):
    kept, old = await stand.put(namespace("kept"), namespace("old"))
    async with stand.running():
        begun = await stand.counted(old)
        assert [begun.living(one) for one in (1, kept, old)] == [True, True, True]
        after = await stand.counted(await stand.delete(namespace("old")))
        assert [after.living(one) for one in (1, kept, old)] == [True, True, False]
        assert after.came_back(old)


async def test_without_an_end_it_says_nothing_more(stand: Stand):
    async with stand.running():
        await stand.counted(1)
        before = await stand.newest()
        assert before is not None
        await stand.put(namespace("new"))
        with pytest.raises(AssertionError, match="not seen"):
            await eventually("another census", lambda: changed(stand, before), within_s=LIFE_S)


async def changed(stand: Stand, before: Delivery) -> bool:
    found = await stand.newest()
    return found is None or found.sequence != before.sequence


async def test_who_takes_over_goes_on_behind_the_census_before(stand: Stand):
    async with stand.running():
        await stand.counted(1)
    (position,) = await stand.put(namespace("old"))
    last = await stand.delete(namespace("old"))
    await stand.gone(namespace("old"))
    async with stand.running():
        found = await stand.counted(last)
    assert found.came_back(position)
    there = await stand.newest()
    assert there is not None
    assert there.predecessor, "a compare-and-set on the one before"


async def test_what_came_back_is_deleted_again_objects_and_facts(stand: Stand):
    old, fact = namespace("old"), stored.nomination(FACT)
    positions = await stand.put(old, fact)
    async with stand.running():
        await stand.delete(old)
        await stand.counted(await stand.delete(fact))
        await stand.gone(old)
        await stand.gone(fact)
        await stand.killed()
        for message in (old, fact):
            found = await eventually("its marker", lambda message=message: marker(stand, message.subject))
            assert found.predecessor in positions
            assert found.headers["Nats-TTL"] == f"{LIFE_S}s"
            if message is old:
                event = codec.decode(ClusterEvent, found.payload)
                assert (event.op, event.uid, event.who) == ("delete", "uid-old", "workloads")
        await stand.gone(old)
    with pytest.raises(Conflict):
        await stand.put(namespace("first"))
    await stand.put(old)


async def marker(stand: Stand, subject: str) -> Delivery | None:
    found = await stand.bus.get(STREAM, subject)
    return found if found is not None and found.deleted else None


@pytest.mark.parametrize("when", ["get", "publish_many"])
async def test_who_was_written_again_meanwhile_stays(stand: Stand, monkeypatch: pytest.MonkeyPatch, when: str):
    """The marker is for the version that came back: a newer one is somebody's own, whether it came before
    workloads looked or after."""
    old = namespace("old")
    (position,) = await stand.put(old)
    async with stand.running():
        await stand.counted(await stand.delete(old))
        await stand.gone(old)
    done, written = getattr(stand.workloads, when), list[int]()

    async def late(*arguments: Any, **more: Any) -> Any:
        about = arguments[1] if when == "get" else [one.subject for one in arguments[0]]
        if old.subject in about and not written:
            written.append((await stand.bus.publish(old.but(expect=position))).sequence)
        return await done(*arguments, **more)

    monkeypatch.setattr(stand.workloads, when, late)
    await stand.killed()
    async with stand.running():
        await eventually("that it tries", lambda: written)
        found = await stand.counted(await stand.delete(namespace("first")))
    there = await stand.bus.get(STREAM, old.subject)
    assert there is not None
    assert (there.sequence, there.deleted) == (written[0], False)
    assert found.living(there.sequence)


async def test_a_census_that_is_too_large_is_told_and_the_one_before_counts(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    old = namespace("old")
    await stand.put(old)
    async with stand.running():
        before = await stand.counted(2)
        with monkeypatch.context() as patched:
            patched.setattr(census, "encode", mock.Mock(return_value=bytes(streams.MAX_PAYLOAD_BYTES + 1)))
            last = await stand.delete(old)
            said = await eventually("that it says so", lambda: told(capsys, "a census could not be stored"))
            assert f"{streams.MAX_PAYLOAD_BYTES}" in said
            found = await stand.newest()
            assert found is not None
            assert census.decode(found.payload).position == before.position
        assert len(await stand.counted(last)) == len(before) - 1, "one that fits is stored again"


def told(capsys: pytest.CaptureFixture[str], words: str) -> str:
    return next((line for line in capsys.readouterr().out.splitlines() if words in line), "")


async def test_a_core_that_raised_ends_the_term_and_the_next_one_takes_the_census(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
):
    step, met = CensusTaker.step, list[Message]()

    def raising(core: CensusTaker, message: Message, now: float) -> list[Effect]:
        if isinstance(message, Listed) and not met:
            met.append(message)
            raise RuntimeError("Bug: nobody thought of this")
        return step(core, message, now)

    monkeypatch.setattr(CensusTaker, "step", raising)
    async with stand.running():
        found = await stand.counted(1)
    assert met
    assert found.living(1)
