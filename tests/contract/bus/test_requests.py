"""Requests and services, core messages, dead letters of both."""

import asyncio

import pytest

from podyard.bus import (
    Bus,
    Busy,
    EmbeddedServer,
    Later,
    NoResponders,
    Prompt,
    RemoteError,
    Reply,
    Request,
    RequestTimeout,
    Unclear,
    services,
)
from podyard.bus.errors import Unavailable
from podyard.proto import codec
from podyard.proto.operations import DeadLetter, Lease
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually

NOT_FOUND = b"NATS/1.0 404 Message Not Found\r\n\r\n"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def dead_letter(bus: Bus, service: str) -> DeadLetter:
    """The last dead letter of a service, once there is one."""
    stored = await eventually("a dead letter", lambda: bus.get("DEAD", f"dead.{service}"))
    assert stored is not None
    return codec.decode(DeadLetter, stored.payload)


async def test_a_request_is_answered_and_carries_its_trace(bus: Bus):
    seen: list[Request] = []

    async def handler(request: Request) -> bytes:
        seen.append(request)
        return request.payload.upper()

    await bus.serve("svc.test.*", handler)
    reply = await bus.request("svc.test.shout", b"hello", trace=TRACE)
    assert reply.payload == b"HELLO"
    assert (seen[0].subject, seen[0].trace) == ("svc.test.shout", TRACE)
    assert seen[0].reply.startswith("_INBOX.test."), "replies go where permissions let this service listen"


async def test_what_is_read_is_asked_for_again_until_somebody_answers(bus: Bus, connect_bus: ConnectBus):
    """Of the servers that have a stream the one that was asked may be silent."""
    reader = await connect_bus("reader", jetstream_prefix="TEST.API")
    asked: list[str] = []

    async def silent_twice(request: Request) -> bytes | None:
        asked.append(request.subject)
        if len(asked) >= 3:
            bus._link.publish(request.reply, b"", "", NOT_FOUND)  # as a server, below the public face
        return None

    await bus.serve("TEST.API.DIRECT.GET.>", silent_twice)
    assert await reader.get("CLUSTER", "cluster.pods.default.web") is None
    assert len(asked) >= 3
    assert set(asked) == {"TEST.API.DIRECT.GET.CLUSTER.cluster.pods.default.web"}


async def test_who_answers_nothing_leaves_the_answer_to_another(bus: Bus, connect_bus: ConnectBus):
    seen: list[str] = []

    async def silent(request: Request) -> bytes | None:
        seen.append(request.subject)
        return None

    async def late(request: Request) -> bytes:
        await eventually("that the other was asked", lambda: seen)
        return b"mine"

    await (await connect_bus("other")).serve("test.shared", silent)
    await bus.serve("test.shared", late)
    assert (await bus.request("test.shared", b"")).payload == b"mine"
    assert seen == ["test.shared"]


async def test_nobody_there(bus: Bus):
    with pytest.raises(NoResponders) as caught:
        await bus.request("svc.nobody", b"")
    assert caught.value.subject == "svc.nobody"


async def test_no_answer_in_time_is_unclear(bus: Bus, connect_bus: ConnectBus):
    async def handler(request: Request) -> bytes:
        await asyncio.sleep(60)
        return b""

    service = await connect_bus("slow", drain_timeout_s=0.1)
    await service.serve("svc.slow", handler)
    await service.request("$JS.API.INFO", b"")
    with pytest.raises(RequestTimeout) as caught:
        await bus.request("svc.slow", b"", timeout_s=0.1)
    assert isinstance(caught.value, Unclear)


async def test_a_lost_connection_is_unclear_at_once(connect_bus: ConnectBus, nats_server: EmbeddedServer):
    bus = await connect_bus("slow", drain_timeout_s=0.1)
    received = asyncio.Event()

    async def handler(request: Request) -> bytes:
        received.set()
        await asyncio.sleep(60)
        return b""

    await bus.serve("svc.slow", handler)
    asking = asyncio.create_task(bus.request("svc.slow", b"", timeout_s=60))
    await received.wait()
    await nats_server.kill()
    async with asyncio.timeout(5):
        with pytest.raises(Unclear):
            await asking


async def test_a_refusal_reaches_the_caller_with_its_reason(bus: Bus):
    async def handler(request: Request) -> bytes:
        raise RemoteError("the profile is\nnot the queue's")

    await bus.serve("svc.refuse", handler)
    with pytest.raises(RemoteError) as caught:
        await bus.request("svc.refuse", b"")
    assert caught.value.reason == "the profile is not the queue's"


async def test_a_temporary_refusal_says_when_to_come_back(bus: Bus):
    async def handler(request: Request) -> bytes:
        raise Unavailable("not synced yet", delay_s=0.25)

    await bus.serve("svc.later", handler)
    with pytest.raises(Busy) as caught:
        await bus.request("svc.later", b"")
    assert caught.value.delay_s == 0.25


async def test_a_prompt_handler_answers_at_once_or_later(bus: Bus):
    release, begun = asyncio.Event(), list[bytes]()

    async def later() -> bytes:
        await release.wait()
        return b"later"

    def begin(request: Request) -> bytes | Later:
        begun.append(request.payload)
        return later if request.payload == b"wait" else request.payload.upper()

    await bus.serve("svc.prompt", Prompt(begin), max_inflight=1)
    waits = asyncio.create_task(bus.request("svc.prompt", b"wait"))
    await eventually("it waits", lambda: begun)
    behind = asyncio.create_task(bus.request("svc.prompt", b"behind"))
    await bus.serve("svc.other", Prompt(lambda request: b"answered"))
    assert (await bus.request("svc.other", b"")).payload == b"answered"
    assert begun == [b"wait"], "one is in hand, and the one behind it waits"
    release.set()
    assert ((await waits).payload, (await behind).payload) == (b"later", b"BEHIND")
    assert begun == [b"wait", b"behind"], "each is begun once"


async def test_what_a_prompt_handler_raises_is_answered(bus: Bus, caplog: pytest.LogCaptureFixture):
    faults: dict[bytes, Exception] = {
        b"bug": KeyError("a bug"),
        b"no": RemoteError("not you"),
        b"busy": Busy("svc.prompt", "too much", delay_s=2.5),
    }

    def begin(request: Request) -> bytes:
        if request.payload == b"{":
            codec.decode(Lease, request.payload)
        raise faults[request.payload]

    await bus.serve("svc.prompt", Prompt(begin))
    with pytest.raises(RemoteError, match="KeyError"):
        await bus.request("svc.prompt", b"bug")
    with pytest.raises(RemoteError, match="not you"):
        await bus.request("svc.prompt", b"no")
    with pytest.raises(Busy, match="too much") as caught:
        await bus.request("svc.prompt", b"busy")
    assert caught.value.delay_s == 2.5
    with pytest.raises(RemoteError, match="not a Lease"):
        await bus.request("svc.prompt", b"{")
    assert (await dead_letter(bus, "test")).subject == "svc.prompt"
    assert caplog.text.count("the handler of svc.prompt failed") == 1


async def test_a_handlers_bug_is_answered_and_the_service_goes_on(bus: Bus, caplog: pytest.LogCaptureFixture):
    async def handler(request: Request) -> bytes:
        if request.payload == b"bad":
            raise KeyError("a bug")
        return b"good"

    await bus.serve("svc.bug", handler)
    with pytest.raises(RemoteError, match="KeyError"):
        await bus.request("svc.bug", b"bad")
    assert (await bus.request("svc.bug", b"fine")).payload == b"good"
    assert "the handler of svc.bug failed" in caplog.text


async def test_an_unreadable_request_is_refused_and_becomes_a_dead_letter(bus: Bus):
    async def handler(request: Request) -> bytes:
        return codec.encode(codec.decode(Lease, request.payload))

    await bus.serve("svc.read", handler)
    with pytest.raises(RemoteError, match="not a Lease"):
        await bus.request("svc.read", b"{", trace=TRACE)
    letter = await dead_letter(bus, "test")
    assert (letter.service, letter.subject, letter.payload, letter.sequence) == ("test", "svc.read", b"{", 0)
    assert "not a Lease" in letter.reason
    assert letter.headers["traceparent"] == TRACE


async def test_requests_above_the_limit_wait_and_above_that_are_refused(bus: Bus):
    in_hand, most, release = 0, 0, asyncio.Event()

    async def handler(request: Request) -> bytes:
        nonlocal in_hand, most
        in_hand += 1
        most = max(most, in_hand)
        await release.wait()
        in_hand -= 1
        return b"done"

    await bus.serve("svc.limited", handler, max_inflight=2)
    asking = [asyncio.create_task(bus.request("svc.limited", b"")) for _ in range(15)]
    done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_EXCEPTION)
    while len(done) < 5:
        more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        done |= more
    assert all(isinstance(task.exception(), Busy) for task in done), "2 in hand, 8 wait, 5 are refused"
    release.set()
    answers = await asyncio.gather(*waiting)
    assert [answer.payload for answer in answers] == [b"done"] * 10
    assert most == 2


async def test_large_requests_are_refused_before_they_fill_the_memory(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(services, "MOST_BYTES", 4 << 20)
    release = asyncio.Event()

    async def handler(request: Request) -> bytes:
        await release.wait()
        return b"done"

    await bus.serve("svc.large", handler, max_inflight=2)
    large, fit = bytes(1 << 20), 4
    asking = [asyncio.create_task(bus.request("svc.large", large)) for _ in range(fit + 2)]
    done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_EXCEPTION)
    while len(done) < 2:
        more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        done |= more
    assert all(isinstance(task.exception(), Busy) and "MiB are in hand" in str(task.exception()) for task in done)
    release.set()
    assert [(await task).payload for task in waiting] == [b"done"] * fit
    assert (await bus.request("svc.large", large)).payload == b"done", "they count only while they are there"


async def test_a_queue_group_shares_the_work(bus: Bus, connect_bus: ConnectBus):
    served: list[str] = []

    def handler_of(name: str):
        async def handler(request: Request) -> bytes:
            served.append(name)
            return name.encode()

        return handler

    other = await connect_bus("other")
    await bus.serve("svc.shared", handler_of("one"), queue_group="g")
    await other.serve("svc.shared", handler_of("two"), queue_group="g")
    await other.request("$JS.API.INFO", b"")  # a round trip: its subscription is known
    await asyncio.gather(*(bus.request("svc.shared", b"") for _ in range(100)))
    assert len(served) == 100
    assert set(served) == {"one", "two"}


async def test_a_closed_service_takes_no_more(bus: Bus):
    async def handler(request: Request) -> bytes:
        return b""

    service = await bus.serve("svc.gone", handler)
    await bus.request("svc.gone", b"")
    await service.close()
    with pytest.raises(NoResponders):
        await bus.request("svc.gone", b"")


async def test_who_asks_while_a_service_finishes_is_answered_or_told_that_nobody_listens(
    bus: Bus, connect_bus: ConnectBus
):
    others = await connect_bus("others")

    async def handler(request: Request) -> bytes:
        return request.payload

    async def ask(number: int) -> str:
        try:
            return (await others.request("svc.test", b"%d" % number, timeout_s=2.0)).payload.decode()
        except NoResponders:
            return "nobody"

    for _ in range(20):
        subscription = await bus.serve("svc.test", handler)
        asked = [asyncio.ensure_future(ask(number)) for number in range(50)]
        await asyncio.sleep(0)
        await subscription.finish()
        told = await asyncio.gather(*asked)
        assert {one for number, one in enumerate(told) if one != str(number)} <= {"nobody"}
        assert await ask(0) == "nobody"


async def test_services_outlive_a_restart_of_the_server(bus: Bus, connect_bus: ConnectBus, nats_server: EmbeddedServer):
    async def handler(request: Request) -> bytes:
        return b"still here"

    await bus.serve("svc.stays", handler)
    client = await connect_bus("client")
    await nats_server.kill()
    await nats_server.start()

    async def answer() -> Reply | None:
        try:
            return await client.request("svc.stays", b"", timeout_s=1)
        except (NoResponders, Unclear):  # the service has not connected again yet
            return None

    reply = await eventually("an answer", answer)
    assert reply is not None
    assert reply.payload == b"still here"


async def test_plain_messages_reach_every_subscriber_in_order(bus: Bus, connect_bus: ConnectBus):
    other = await connect_bus("other")
    received: list[tuple[str, bytes, str]] = []
    complete = asyncio.Event()

    def callback(subject: str, payload: bytes, trace: str) -> None:
        received.append((subject, payload, trace))
        if len(received) == 100:
            complete.set()

    await other.subscribe("signals.>", callback)
    await other.request("$JS.API.INFO", b"")
    for number in range(100):
        bus.send("signals.n1", str(number).encode(), trace=TRACE)
    async with asyncio.timeout(5):
        await complete.wait()
    assert received == [("signals.n1", str(number).encode(), TRACE) for number in range(100)]


async def test_plain_messages_without_a_connection_are_dropped_and_counted(bus: Bus, nats_server: EmbeddedServer):
    received: list[bytes] = []
    await bus.subscribe("signals.>", lambda subject, payload, trace: received.append(payload))
    lost = asyncio.Event()
    bus.on_state(lambda state: None if state.connected else lost.set())
    await nats_server.kill()
    await lost.wait()
    bus.send("signals.n1", b"nobody hears it")
    assert bus.dropped == 1
    await nats_server.start()
    await bus.connected()
    bus.send("signals.n1", b"after")
    await eventually("what was sent", lambda: received)
    assert received == [b"after"]


async def test_a_callbacks_failure_harms_nobody(bus: Bus, caplog: pytest.LogCaptureFixture):
    received: list[bytes] = []
    complete = asyncio.Event()

    def callback(subject: str, payload: bytes, trace: str) -> None:
        received.append(payload)
        if payload == b"bug":
            raise ZeroDivisionError
        if payload == b"poison":
            codec.decode(Lease, payload)
        if payload == b"last":
            complete.set()

    await bus.subscribe("signals.>", callback)
    for payload in (b"bug", b"poison", b"last"):
        bus.send("signals.n1", payload)
    async with asyncio.timeout(5):
        await complete.wait()
    assert received == [b"bug", b"poison", b"last"]
    assert "ZeroDivisionError" in caplog.text
    assert (await dead_letter(bus, "test")).payload == b"poison"


async def test_a_service_can_be_asked_as_soon_as_serving_returned(bus: Bus, connect_bus):
    """Twenty times over: the subscription must be known to the server, not only on its way."""
    other = await connect_bus("asker")

    async def answer(request):
        return request.payload

    for round_ in range(20):
        await bus.serve(f"test.soon.{round_}", answer)
        assert (await other.request(f"test.soon.{round_}", b"x")).payload == b"x"
