"""A view is fresh or known to be stale: shown within 2 s, true again without help, and then what the stream
folds to."""

import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import pytest

from podyard.bus import Bus, Outgoing, connect, ensure_streams
from podyard.bus.errors import BusError
from podyard.cluster.view import ClusterView
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from podyard.shell.informer import Informer, with_placements
from podyard.shell.snapshot import snapshot
from tests.faults import servers
from tests.faults.servers import Servers

STREAM: Final = streams.CLUSTER.name
SHOWN_WITHIN_S: Final = 2.0 + 1.0
"""2 s of silence, and a machine at work."""

GOES_ON_S: Final = 15.0
LISTED_WITHIN_S: Final = 10.0
"""For a list of consumers: the servers ask each other, and give up after 4 s themselves."""


class Reader:
    """An informer, and when it said that it is fresh."""

    def __init__(self, bus: Bus) -> None:
        self.view = ClusterView()
        self.contacts: list[tuple[float, bool]] = []
        self._changed = anyio.Event()
        self.informer = Informer(
            bus, self.view, with_placements([subjects.ALL_OBJECTS]), service="test", on_contact=self._contact
        )

    def _contact(self, fresh: bool) -> None:
        self.contacts.append((time.monotonic(), fresh))
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, *, fresh: bool, since: float, within_s: float) -> float:
        """Wait until it says so; seconds since `since`."""
        with anyio.fail_after(within_s):
            while True:
                for at, said in self.contacts:
                    if at >= since and said is fresh:
                        return at - since
                changed = self._changed
                await changed.wait()


@asynccontextmanager
async def reading(bus: Bus) -> AsyncGenerator[Reader]:
    reader = Reader(bus)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.informer.run)
        with anyio.fail_after(20):
            await reader.informer.synced()
        yield reader
        tasks.cancel_scope.cancel()


async def put(bus: Bus, name: str) -> int:
    """Store a node's object as the api does; its sequence."""
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}}
    event = ClusterEvent(
        resource=subjects.NODES,
        name=name,
        uid=name,
        op="put",
        who="test",
        object=msgspec.Raw(msgspec.json.encode(document)),
    )
    message = Outgoing(subjects.object_(subjects.NODES, "", name), codec.encode(event), None)
    with anyio.fail_after(30):
        while True:
            try:
                return (await bus.publish(message)).sequence
            except BusError:
                await anyio.sleep(0.05)


async def host_of(bus: Bus) -> str:
    """The server that has the consumer of the only reader; empty while there is none, or two."""
    answer = await bus.request(f"$JS.API.CONSUMER.LIST.{STREAM}", b"", timeout_s=LISTED_WITHIN_S)
    consumers: list[dict[str, Any]] = msgspec.json.decode(answer.payload).get("consumers") or []
    return consumers[0]["cluster"]["leader"] if len(consumers) == 1 else ""


async def same_as_listed(reader: Reader, bus: Bus) -> None:
    """Wait until the view has come to the stream's end, and compare it with a new listing."""
    with anyio.fail_after(GOES_ON_S):
        await reader.informer.reached(await bus.last_sequence(STREAM))
    listed = await snapshot(bus)
    assert {name: (one.uid, one.sequence) for name, one in reader.view.nodes.items()} == {
        name: (one.uid, one.sequence) for name, one in listed.nodes.items()
    }


async def test_a_reader_goes_on_although_the_server_of_its_consumer_never_comes_back(cluster: Servers) -> None:
    """Its own connection, and the stream, are elsewhere, so nobody tells it anything."""
    nats = cluster
    async with connect(nats.settings("watcher")) as bus:
        await put(bus, "before")
        async with AsyncExitStack() as stack:
            reader, host = await _fed_from_elsewhere(nats, bus, stack)
            killed_at = time.monotonic()
            await nats[host].kill()
            await put(bus, "meanwhile")
            stale_s = await reader.until(fresh=False, since=killed_at, within_s=SHOWN_WITHIN_S)
            fresh_s = await reader.until(fresh=True, since=killed_at + stale_s, within_s=GOES_ON_S)
            print(f"stale {stale_s:.1f} s after the kill, fresh {fresh_s:.1f} s later")
            assert stale_s + fresh_s < GOES_ON_S
            await same_as_listed(reader, bus)


async def _fed_from_elsewhere(nats: Servers, bus: Bus, stack: AsyncExitStack) -> tuple[Reader, str]:
    """A reader that connects to one server and is fed by another, which does not lead the stream; NATS
    chooses it at random."""
    for name in list(nats.by_name) * 20:
        async with AsyncExitStack() as trial:
            own = await trial.enter_async_context(connect(nats.settings("reader", at=name)))
            reader = await trial.enter_async_context(reading(own))
            await reader.informer.reached(
                await put(bus, "followed")
            )  # so it is the consumer that follows, not the one that listed
            host = await host_of(bus)
            if host not in {"", name, await nats.leader(bus, STREAM)}:
                await stack.enter_async_context(trial.pop_all())
                return reader, host
    raise AssertionError("no reader was ever fed by another server")


@pytest.mark.parametrize("fault", ["killed", "paused"])
async def test_a_view_says_that_it_is_stale_and_is_true_again(tmp_path: Path, fault: str) -> None:
    async with servers.one_server(tmp_path) as nats, connect(nats.settings("watcher")) as bus:
        await ensure_streams(bus)
        [server] = nats.by_name.values()
        await put(bus, "before")
        async with connect(nats.settings("reader")) as own, reading(own) as reader:
            began_at = time.monotonic()
            if fault == "killed":
                await server.kill()
            else:
                server.pause()
            stale_s = await reader.until(fresh=False, since=began_at, within_s=SHOWN_WITHIN_S)
            assert not reader.informer.fresh
            ended_at = time.monotonic()
            if fault == "killed":
                await server.start()
            else:
                server.resume()
            await put(bus, "after")
            fresh_s = await reader.until(fresh=True, since=ended_at, within_s=GOES_ON_S)
            print(f"{fault}: stale after {stale_s:.1f} s, fresh {fresh_s:.1f} s after its end")
            await same_as_listed(reader, bus)
