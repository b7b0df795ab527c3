"""What was read at one go: told as such, before anything of another subscription, and before anybody else."""

import asyncio
import logging

import pytest

from podyard.bus._client import DirectClient
from podyard.bus._link import Link
from podyard.bus.settings import BusSettings
from tests.unit.bus.test_parser import message

FIRST, SECOND = 7, 8


class Told(list[str]):
    """What receivers were given, and when a read ended. A receiver wants to know that, as a watch does."""

    def __init__(self) -> None:
        super().__init__()
        self.link = Link(BusSettings())
        client = self.link._client  # pyright: ignore[reportPrivateUsage]
        self.client: DirectClient = client
        for sid in (FIRST, SECOND):
            client._receivers[sid] = self.taker(sid)  # pyright: ignore[reportPrivateUsage]

    def taker(self, sid: int):  # a receiver
        def take(subject: str, reply: str, payload: bytes, head: bytes) -> None:
            del subject, reply, head
            self.append(f"{sid}:{payload.decode()}")
            self.link.after_read(lambda: self.append(f"{sid} ends"))

        return take

    def read(self, *pieces: bytes) -> None:
        async def parse() -> None:
            for piece in pieces:
                await self.client._ps.parse(piece)  # pyright: ignore[reportPrivateUsage]

        asyncio.run(parse())


def sent(sid: int, payload: bytes) -> bytes:
    return message(sid, b"a", b"", b"", payload, b" ")


def test_a_read_ends_once_behind_all_its_messages() -> None:
    told = Told()
    told.read(sent(FIRST, b"a") + sent(FIRST, b"b") + sent(FIRST, b"c"))
    assert told == ["7:a", "7:b", "7:c", "7 ends"]


def test_it_ends_before_anything_of_another_subscription() -> None:
    told = Told()
    told.read(sent(FIRST, b"a") + sent(SECOND, b"b") + sent(FIRST, b"c"))
    assert told == ["7:a", "7 ends", "8:b", "8 ends", "7:c", "7 ends"]


def test_a_message_in_pieces_is_a_read_of_its_own() -> None:
    told, whole = Told(), sent(FIRST, b"second")
    told.read(sent(FIRST, b"first") + whole[:12], whole[12:] + sent(FIRST, b"third"))
    assert told == ["7:first", "7 ends", "7:second", "7 ends", "7:third", "7 ends"]


def test_what_follows_a_read_may_fail_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()

    def fail() -> None:
        raise ValueError("no")

    def take(subject: str, reply: str, payload: bytes, head: bytes) -> None:
        del subject, reply, payload, head
        told.link.after_read(fail)

    told.client._receivers[FIRST] = take  # pyright: ignore[reportPrivateUsage]
    with caplog.at_level(logging.ERROR):
        told.read(sent(FIRST, b"a") + sent(SECOND, b"b"))
    assert told == ["8:b", "8 ends"]
    assert "what follows a read failed" in caplog.text
