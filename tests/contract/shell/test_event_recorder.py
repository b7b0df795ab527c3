"""Events on a bus whose stream keeps the last version of each, is missing, or is full."""

from typing import Any

import anyio
import pytest

from podyard.bus import Bus
from podyard.bus.bootstrap import ensure_streams
from podyard.proto import codec, streams, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent, Reason
from podyard.scheduler.service import SERVICE
from podyard.shell import event_recorder, stream_reading
from podyard.shell.event_correlator import Event
from podyard.shell.event_recorder import CHECK, Recorder
from tests.support.services import make_service
from tests.support.waiting import eventually

KILLED = Reason("Killed")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "RETRY_S", 0.05)


def event(message: str, at: float = 1000.0) -> Event:
    return Event(ObjectRef(resource="pods", namespace="default", name="web", uid="u"), KILLED, message, at)


async def kept(bus: Bus) -> list[K8sEvent]:
    """What the stream holds about the pod."""
    _, wanted = subjects.k8s_events_about("default", "pods", "web")
    found = await stream_reading.listing(bus, streams.K8SEVENTS.name, (wanted,))
    return [codec.decode(K8sEvent, one.payload) for one in found]


async def test_an_event_that_happens_again_takes_the_place_of_the_one_before(bus: Bus) -> None:
    recorder = Recorder(make_service(SERVICE, bus))
    for at in (1000.0, 1010.0, 1020.0):
        recorder.record(event("again", at))
        await recorder.flush()
    recorder.record(event("another", 1030.0))
    await recorder.flush()
    found = [(one.message, one.count, one.first_at, one.at) for one in await kept(bus)]
    assert found == [("again", 3, 1000.0, 1020.0), ("another", 1, 1030.0, 1030.0)]


async def test_without_its_stream_work_goes_on_and_what_waits_is_stored_when_it_is_back(bus: Bus) -> None:
    await bus.api.call("STREAM.DELETE.K8SEVENTS", None, dict[str, Any])
    service = make_service(SERVICE, bus)
    recorder = Recorder(service)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(recorder.run)
        recorder.record(event("early"))
        check = await eventually("it is told", lambda: service.health.checks.get(CHECK))
        assert check.ok
        assert "the stream is not there yet; 1 wait, 0 are lost" in check.reason
        await ensure_streams(bus)
        await eventually("it is told no more", lambda: CHECK not in service.health.checks)
        tasks.cancel_scope.cancel()
    assert [one.message for one in await kept(bus)] == ["early"]


async def test_while_its_stream_is_full_work_goes_on_and_what_waits_is_stored_when_there_is_room(bus: Bus) -> None:
    info = await bus.api.stream_info(streams.K8SEVENTS.name)
    small = {**info.config, "max_bytes": 100, "discard": "new"}
    await bus.api.call("STREAM.UPDATE.K8SEVENTS", small, dict[str, Any])
    service = make_service(SERVICE, bus)
    recorder = Recorder(service)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(recorder.run)
        recorder.record(event("early"))
        check = await eventually("it is told", lambda: service.health.checks.get(CHECK))
        assert check.ok
        assert "no room for k8sevents.default.Pod.web." in check.reason
        await bus.api.call("STREAM.UPDATE.K8SEVENTS", info.config, dict[str, Any])
        await eventually("it is told no more", lambda: CHECK not in service.health.checks)
        tasks.cancel_scope.cancel()
    assert [one.message for one in await kept(bus)] == ["early"]
