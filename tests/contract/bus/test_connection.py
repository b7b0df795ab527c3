"""The connection on the real server: it waits, comes back, and survives what callbacks and servers do to
it."""

import asyncio
import gc
import logging

import pytest

from podyard.bus import Bus, BusSettings, BusState, Busy, EmbeddedServer, Outgoing, Unavailable, connect, ensure_streams
from podyard.bus.bootstrap import config_of
from podyard.proto import streams
from tests.contract.bus.readers import message
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually


class States:
    """The states a connection went through."""

    def __init__(self) -> None:
        self.seen: list[BusState] = []

    def __call__(self, state: BusState) -> None:
        self.seen.append(state)

    async def until(self, connected: bool) -> None:
        await eventually(f"connected: {connected}", lambda: self.seen[-1].connected == connected)


async def test_a_missing_server_is_waited_for_and_told_of(nats_server: EmbeddedServer):
    await nats_server.kill()
    states = States()
    settings = BusSettings(servers=(nats_server.url,), name="early")
    async with connect(settings, on_state=states, wait=False) as bus:
        with pytest.raises(Unavailable, match="no connection to NATS"):
            await bus.publish(message("a"), timeout_s=0.2)
        await eventually("an attempt that failed", lambda: "Connect" in states.seen[-1].last_error)
        await eventually("nobody listens", lambda: states.seen[-1].unreachable > 1)
        assert not bus.state.connected
        await nats_server.start()
        await states.until(connected=True)
        await ensure_streams(bus)
        await bus.publish(message("a"))
        assert (bus.state.connects, bus.state.unreachable) == (1, 0)


async def test_connect_enters_its_block_connected(nats_server: EmbeddedServer):
    async with connect(BusSettings(servers=(nats_server.url,), name="now")) as bus:
        assert bus.state.connected


async def test_losses_and_returns_are_told(bus: Bus, nats_server: EmbeddedServer):
    states = States()
    end = bus.on_state(states)
    for _ in range(2):
        await nats_server.kill()
        await states.until(connected=False)
        await nats_server.start()
        await states.until(connected=True)
    assert bus.state.connects == 3
    end()
    told = len(states.seen)
    await nats_server.kill()
    with pytest.raises(Unavailable):
        await eventually("a publish that is answered", lambda: bus.publish(message("a"), timeout_s=0.1))
    assert len(states.seen) == told


async def test_a_failing_listener_does_not_harm_the_connection(bus: Bus, nats_server: EmbeddedServer):
    def fail(state: BusState) -> None:
        if state.connects != 1:
            raise RuntimeError("a bug of a listener")

    states = States()
    bus.on_state(states)
    bus.on_state(fail)
    await nats_server.kill()
    await states.until(connected=False)
    await nats_server.start()
    await states.until(connected=True)
    await eventually("a connection", lambda: bus.state.connected)


async def test_a_client_that_was_closed_for_good_is_replaced(bus: Bus):
    """nats-py closes itself after some `-ERR`; subscriptions must be back on the new client."""
    received: list[bytes] = []
    states = States()
    bus.on_state(states)
    await bus.subscribe("signals.>", lambda subject, payload, trace: received.append(payload))
    old = bus._link._client  # the fault is below the public face
    await old.close()
    await states.until(connected=False)
    await states.until(connected=True)
    assert bus._link._client is not old
    bus.send("signals.n1", b"to myself")
    await eventually("what was sent", lambda: received)
    await bus.publish(message("a", expect=0))


async def test_a_silent_read_loop_is_noticed(connect_bus: ConnectBus):
    """nats-py calls itself connected although its read loop has ended: only an echo that stays away tells."""
    bus = await connect_bus("watched", ping_interval_s=0.1)
    states = States()
    bus.on_state(states)
    client = bus._link._client
    client._reading_task.cancel()  # type: ignore[union-attr]
    client._ping_interval_task.cancel()  # type: ignore[union-attr]
    assert client.is_connected
    await states.until(connected=False)
    await states.until(connected=True)
    assert (await bus.request("$JS.API.INFO", b"")).payload


async def test_a_paused_server_is_found_again(connect_bus: ConnectBus, nats_server: EmbeddedServer):
    bus = await connect_bus("patient", ping_interval_s=0.1)
    await ensure_streams(bus)
    states = States()
    bus.on_state(states)
    nats_server.pause()
    try:
        await states.until(connected=False)
    finally:
        nats_server.resume()
    await states.until(connected=True)
    await bus.publish(message("a", expect=0))


async def test_connections_that_a_server_does_not_greet_are_closed(
    connect_bus: ConnectBus, nats_server: EmbeddedServer
):
    opened, ended = 0, 0
    enough = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened, ended
        opened += 1
        await reader.read()
        writer.close()
        ended += 1
        if ended == 3:
            enough.set()

    await connect_bus(connect_timeout_s=0.2)
    await nats_server.kill()
    gc.disable()  # it would close them too, whenever it comes
    try:
        async with await asyncio.start_server(silent, "127.0.0.1", nats_server.port), asyncio.timeout(10):
            await enough.wait()
        assert opened <= ended + 1
    finally:
        gc.enable()


async def test_what_the_block_raises_comes_out_as_it_is(nats_server: EmbeddedServer):
    with pytest.raises(ZeroDivisionError):
        async with connect(BusSettings(servers=(nats_server.url,), name="brief")):
            raise ZeroDivisionError


async def test_leaving_the_block_sends_what_waits(bus: Bus, nats_server: EmbeddedServer):
    received: list[bytes] = []
    await bus.subscribe("signals.>", lambda subject, payload, trace: received.append(payload))
    await bus.request("$JS.API.INFO", b"")
    async with connect(BusSettings(servers=(nats_server.url,), name="brief")) as brief:
        for number in range(1000):
            brief.send("signals.n1", str(number).encode())
    await eventually("all 1,000 messages", lambda: len(received) == 1000)


async def test_leaving_the_block_finishes_what_is_in_hand(bus: Bus, nats_server: EmbeddedServer):
    received, answer_now, leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
    serving: asyncio.Future[Bus] = asyncio.get_running_loop().create_future()

    async def handler(request: object) -> bytes:
        received.set()
        await answer_now.wait()
        return b"in time"

    async def service() -> None:
        async with connect(BusSettings(servers=(nats_server.url,), name="service")) as served:
            await served.serve("svc.ending", handler)
            await served.request("$JS.API.INFO", b"")
            serving.set_result(served)
            await leave.wait()

    running = asyncio.create_task(service())
    served = await serving
    asking = asyncio.create_task(bus.request("svc.ending", b""))
    await received.wait()
    leave.set()
    await eventually("the connection is closing", lambda: served._link.closing)
    with pytest.raises(Busy, match="shutting down"):
        await bus.request("svc.ending", b"")
    answer_now.set()
    assert (await asking).payload == b"in time"
    await running


async def test_leaving_the_block_is_no_trouble(nats_server: EmbeddedServer, caplog: pytest.LogCaptureFixture):
    async with connect(BusSettings(servers=(nats_server.url,), name="brief")):
        pass
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_two_threads_of_work_share_one_connection(bus: Bus):
    results = await asyncio.gather(
        bus.publish_many([message(f"a{i}", expect=0) for i in range(300)]),
        bus.publish_batch([message(f"b{i}", expect=0) for i in range(100)]),
        *(bus.publish(message(f"c{i}", expect=0)) for i in range(100)),
    )
    assert len(results) == 102
    assert await bus.last_sequence("CLUSTER") == 500


async def test_ensure_streams_makes_what_is_declared(bus: Bus):
    for spec in streams.ALL_STREAMS:
        config = (await bus.api.stream_info(spec.name)).config
        for name, value in config_of(spec).items():
            assert config.get(name, type(value)()) == value, (spec.name, name)
        assert config["num_replicas"] == 1


async def test_purge_removes_a_subjects_messages_only(bus: Bus):
    await bus.publish_many(
        [Outgoing("decisions.d.a.u1", b"1"), Outgoing("decisions.d.a.u1", b"2"), Outgoing("decisions.d.b.u2", b"3")]
    )
    await bus.purge("DECISIONS", "decisions.d.a.>")
    assert await bus.get("DECISIONS", "decisions.d.a.u1") is None
    assert await bus.get("DECISIONS", "decisions.d.b.u2") is not None
