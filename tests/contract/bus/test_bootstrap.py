"""Making streams: missing, different, impossible, by several at once, on a server that is not ready."""

import asyncio

import msgspec
import pytest

from podyard.bus import EmbeddedServer, NotFound, Outgoing, StreamSettingsConflict, ensure_streams
from podyard.bus._api import StreamInfo
from podyard.bus.bootstrap import config_of
from podyard.proto import streams
from tests.support.buses import ConnectBus

SPEC = streams.StreamSpec(name="TRIAL", subjects=("trial.>",), purpose="a trial", max_msgs_per_subject=1)


async def test_a_changed_setting_is_updated_and_messages_stay(connect_bus: ConnectBus):
    bus = await connect_bus()
    await ensure_streams(bus, specs=[SPEC])
    await bus.publish_many([Outgoing("trial.a", b"{}"), Outgoing("trial.b", b"{}")])
    wider = msgspec.structs.replace(SPEC, subjects=("trial.>", "more.>"), max_age_s=60, allow_msg_ttl=True)
    await ensure_streams(bus, specs=[wider])
    info = await bus.api.stream_info("TRIAL")
    assert info.config["subjects"] == ["trial.>", "more.>"]
    assert info.config["max_age"] == 60_000_000_000
    assert info.state.messages == 2


async def test_what_the_operator_chose_besides_stays(connect_bus: ConnectBus):
    bus = await connect_bus()
    await bus.api.call(
        "STREAM.CREATE.TRIAL", {**config_of(SPEC), "max_age": 300_000_000_000, "compression": "s2"}, dict
    )
    await ensure_streams(bus, specs=[SPEC])
    config = (await bus.api.stream_info("TRIAL")).config
    assert (config["compression"], config["max_age"]) == ("s2", 0)


async def test_settings_that_cannot_be_changed_are_a_clear_error(connect_bus: ConnectBus):
    bus = await connect_bus()
    await bus.api.call("STREAM.CREATE.TRIAL", {**config_of(SPEC), "storage": "memory"}, dict)
    with pytest.raises(StreamSettingsConflict) as caught:
        await ensure_streams(bus, specs=[SPEC])
    assert caught.value.stream == "TRIAL"
    assert caught.value.differences == ("storage is 'memory', wanted 'file'",)


async def test_subjects_that_another_stream_has_are_a_clear_error(connect_bus: ConnectBus):
    bus = await connect_bus()
    await ensure_streams(bus, specs=[SPEC])
    rival = msgspec.structs.replace(SPEC, name="RIVAL")
    with pytest.raises(StreamSettingsConflict, match="RIVAL"):
        await ensure_streams(bus, specs=[rival])


async def test_several_at_once_agree(connect_bus: ConnectBus):
    buses = [await connect_bus(f"b{i}") for i in range(5)]
    await asyncio.gather(*(ensure_streams(bus) for bus in buses))
    names = await buses[0].api.call("STREAM.NAMES", None, dict)
    assert sorted(names["streams"]) == sorted(spec.name for spec in streams.ALL_STREAMS)


async def test_somebody_quicker_with_other_settings_is_put_right(
    connect_bus: ConnectBus, monkeypatch: pytest.MonkeyPatch
):
    """Between asking for the stream and making it, an older version of Podyard has made it."""
    bus = await connect_bus()
    ask = bus.api.stream_info
    asked = 0

    async def too_early(stream: str, timeout_s: float | None = None) -> StreamInfo:
        nonlocal asked
        asked += 1
        if asked == 1:
            await bus.api.call("STREAM.CREATE.TRIAL", {**config_of(SPEC), "max_msgs_per_subject": 5}, dict)
            raise NotFound(stream, "stream not found")
        return await ask(stream, timeout_s)

    monkeypatch.setattr(bus.api, "stream_info", too_early)
    await ensure_streams(bus, specs=[SPEC])
    assert (await ask("TRIAL")).config["max_msgs_per_subject"] == 1


async def test_a_server_that_comes_later_is_waited_for(connect_bus: ConnectBus, nats_server: EmbeddedServer):
    bus = await connect_bus(request_timeout_s=0.5)
    await nats_server.kill()
    making = asyncio.create_task(ensure_streams(bus))
    await nats_server.start()
    async with asyncio.timeout(10):
        await making
    assert await bus.last_sequence("CLUSTER") == 0
