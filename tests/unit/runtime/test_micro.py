"""The formats of NATS ADR-32."""

import json

import pytest

from podyard.bus import Prompt
from podyard.runtime.micro import Endpoints


class FakeBus:
    """Keeps handlers by subject."""

    def __init__(self) -> None:
        self.handlers = {}

    async def serve(self, subject, handler, *, queue_group="", max_inflight=256):
        self.handlers[subject] = handler


@pytest.fixture
def bus():
    return FakeBus()


@pytest.fixture
def endpoints(bus):
    return Endpoints(bus, name="podyard-queue", identity="queue-0-abc", version="0.1.0", description="the queue")


async def test_every_form_of_discovery_is_answered(bus, endpoints):
    await endpoints.describe()
    assert set(bus.handlers) == {
        f"$SRV.{verb}{suffix}"
        for verb in ("PING", "INFO", "STATS")
        for suffix in ("", ".podyard-queue", ".podyard-queue.queue-0-abc")
    }
    answer = json.loads(await bus.handlers["$SRV.PING"](None))
    assert answer == {
        "type": "io.nats.micro.v1.ping_response",
        "name": "podyard-queue",
        "id": "queue-0-abc",
        "version": "0.1.0",
        "metadata": {},
    }


async def test_endpoints_are_described_and_counted(bus, endpoints):
    async def handler(request):
        if request == "bad":
            raise ValueError("no")
        return b"yes"

    await endpoints.serve("pop", "svc.queue.pop", handler)
    assert await bus.handlers["svc.queue.pop"]("good") == b"yes"
    with pytest.raises(ValueError, match="no"):
        await bus.handlers["svc.queue.pop"]("bad")
    info = json.loads(endpoints.response("INFO"))
    assert info["description"] == "the queue"
    assert info["endpoints"] == [{"name": "pop", "subject": "svc.queue.pop", "queue_group": "", "metadata": {}}]
    (stats,) = json.loads(endpoints.response("STATS"))["endpoints"]
    assert (stats["num_requests"], stats["num_errors"], stats["last_error"]) == (2, 1, "ValueError: no")
    assert stats["average_processing_time"] == stats["processing_time"] // 2


async def test_a_prompt_handler_counts_alike(bus, endpoints):
    async def later():
        raise ValueError("late")

    def begin(request):
        if request == "bad":
            raise ValueError("no")
        return later if request == "later" else b"yes"

    await endpoints.serve("pop", "svc.queue.pop", Prompt(begin))
    served = bus.handlers["svc.queue.pop"]
    assert (served.begin("good"), await served("good")) == (b"yes", b"yes")
    with pytest.raises(ValueError, match="no"):
        served.begin("bad")
    with pytest.raises(ValueError, match="late"):
        await served.begin("later")()
    (stats,) = json.loads(endpoints.response("STATS"))["endpoints"]
    assert (stats["num_requests"], stats["num_errors"], stats["last_error"]) == (4, 2, "ValueError: late")
    assert stats["processing_time"] > 0


async def test_a_new_leader_serves_again_under_the_same_counts(bus, endpoints):
    async def handler(request):
        return b""

    await endpoints.serve("pop", "svc.queue.pop", handler)
    await bus.handlers["svc.queue.pop"](None)
    await endpoints.serve("pop", "svc.queue.pop", handler)
    await bus.handlers["svc.queue.pop"](None)
    (stats,) = json.loads(endpoints.response("STATS"))["endpoints"]
    assert stats["num_requests"] == 2
