"""A connection whose key files are replaced: it goes over to the new ones by itself, and what is under way
meanwhile is done."""

import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from podyard.bus import Bus, BusSettings, EmbeddedServer, Outgoing, Request, connect, embedded_server
from podyard.bus.bootstrap import ensure_streams
from podyard.cli.security import keys
from tests.support.waiting import eventually

SLOW_S = 0.3
"""A request's answer: longer than a connection takes to be made."""
WITHIN_S = 10.0
ONLY_ANSWERS = {
    "publish": {"allow": ["_INBOX.one.>"]},
    "subscribe": {"allow": [">"]},
    "allow_responses": {"max": 1, "expires": "1m"},
}
"""As services have it: a request is answered on the connection that it came by, or not at all."""


class Keys:
    """Seed files of two keys; the server knows both."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "nkey.seed"
        first, self.old = keys.new_user()
        self.second, self.new = keys.new_user()
        keys.write_secret(self.file, first)

    def replace(self) -> None:
        keys.replace_secret(self.file, self.second)

    def server(self, *names: str, **permissions: object) -> dict[str, Any]:
        return {"authorization": {"users": [{"nkey": name, **permissions} for name in names]}}

    def settings(self, server: EmbeddedServer, name: str) -> BusSettings:
        return BusSettings(servers=(server.url,), name=name, nkey_seed_file=str(self.file), ping_interval_s=0.2)


async def changed(bus: Bus) -> None:
    async def again() -> bool:
        return bus.state.connected and bus.state.connects == 2

    await eventually("the connection is made anew", again, WITHIN_S)


async def test_what_is_published_meanwhile_is_stored_once_and_never_unclear(tmp_path: Path) -> None:
    made = Keys(tmp_path)
    async with (
        embedded_server(tmp_path / "nats", settings=made.server(made.old, made.new)) as server,
        connect(made.settings(server, "writer")) as bus,
    ):
        await ensure_streams(bus)
        stored: list[int] = []
        ended = anyio.Event()

        async def write(writer: int) -> None:
            number = 0
            while not ended.is_set():
                subject = f"cluster.pods.default.w{writer}-{number}"
                acks = await bus.publish_many([Outgoing(f"{subject}-{n}", b"{}") for n in range(20)])
                stored.extend(ack.sequence for ack in acks)  # an error has none: it ends the test
                stored.append((await bus.publish(Outgoing(subject, b"{}"))).sequence)
                number += 1

        async with anyio.create_task_group() as tasks:
            for writer in range(4):
                tasks.start_soon(write, writer)
            await anyio.sleep(0.1)
            made.replace()
            await changed(bus)
            await anyio.sleep(0.1)
            ended.set()
        assert sorted(stored) == list(range(1, len(stored) + 1))
        assert await bus.last_sequence("CLUSTER") == len(stored)
        assert bus.state.connects == 2
        server.reload(made.server(made.new))
        await bus.publish(Outgoing("cluster.pods.default.last", b"{}"))
        assert bus.state.connects == 2  # the old key is gone, and nobody used it any more


async def test_requests_in_hand_are_answered_and_new_ones_find_another_member(tmp_path: Path) -> None:
    made, steady = Keys(tmp_path), tmp_path / "steady"
    steady.mkdir()
    other = Keys(steady)
    known = made.server(made.old, made.new, permissions=ONLY_ANSWERS)
    known["authorization"]["users"] += other.server(other.old)["authorization"]["users"]
    async with (
        embedded_server(tmp_path / "nats", settings=known) as server,
        connect(made.settings(server, "one")) as one,
        connect(other.settings(server, "two")) as two,
        connect(other.settings(server, "asks")) as asks,
    ):
        by: list[str] = []

        async def answer(bus: Bus) -> None:
            async def slowly(request: Request) -> bytes:
                await anyio.sleep(SLOW_S)
                by.append(bus.settings.name)
                return request.payload

            await bus.serve("svc.test", slowly, queue_group="test")

        await answer(one)
        await answer(two)
        answers: list[bytes] = []

        async def ask(number: int) -> None:
            answers.append((await asks.request("svc.test", str(number).encode())).payload)

        asked = 0
        async with anyio.create_task_group() as tasks:
            while asked < 60 or one.state.connects < 2:
                tasks.start_soon(ask, asked)
                asked += 1
                await anyio.sleep(0.02)
                if asked == 10:
                    made.replace()
        assert sorted(answers, key=int) == [str(number).encode() for number in range(asked)]
        assert set(by) == {"one", "two"}
        by.clear()
        async with anyio.create_task_group() as tasks:
            for number in range(60):
                tasks.start_soon(ask, number)
        assert set(by) == {"one", "two"}  # it takes requests again


async def test_files_that_say_nothing_new_or_nothing_at_all_change_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = Keys(tmp_path)
    async with (
        embedded_server(tmp_path / "nats", settings=made.server(made.old, made.new)) as server,
        connect(made.settings(server, "writer")) as bus,
    ):
        with caplog.at_level(logging.WARNING):
            made.file.rename(tmp_path / "away")
            await eventually("it is told", lambda: "the new key files are not used" in caplog.text, WITHIN_S)
        assert (bus.state.connected, bus.state.connects) == (True, 1)
        (tmp_path / "away").rename(made.file)
        await anyio.sleep(3 * bus.settings.ping_interval_s)
        assert (bus.state.connected, bus.state.connects) == (True, 1)
