"""The server: routes messages, keeps streams, answers the JetStream API."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import msgspec

from podyard.bus import _heads
from podyard.bus.errors import STREAM_NAME_IN_USE, SUBJECTS_OVERLAP
from podyard.proto import headers
from tests.memory_nats.consumer import Consumer
from tests.memory_nats.routing import Listening, Routes
from tests.memory_nats.stream import NO_ROOM, Incoming, Refusal, Stored, Stream

API: Final = "$JS.API."
DIRECT_GET: Final = "$JS.API.DIRECT.GET."
STREAM_MISSING: Final = Refusal(10059, "stream not found")
CONSUMER_MISSING: Final = Refusal(10014, "consumer not found")
PURGE_DENIED: Final = Refusal(10115, "purge is not allowed")
_NO_RESPONDERS: Final = f"{_heads.VERSION} {_heads.NO_RESPONDERS}\r\n\r\n".encode()
_NOT_FOUND: Final = f"{_heads.VERSION} {_heads.NOT_FOUND} Message Not Found\r\n\r\n".encode()


class Timers(Protocol):
    """Time, as the server knows it."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        ...

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        """Call once, `delay_s` seconds from now."""
        ...


class Wire(Protocol):
    """The way between one client and the server. Keeps the order of what is sent, and of what comes for one
    subscription."""

    def up(self, subject: str, call: Callable[[], None]) -> None:
        """A message on `subject` to the server: `call` when it arrives."""
        ...

    def down(self, subject: str, call: Callable[[], None], lane: str = "") -> None:
        """A message on `subject` to the client: `call` on its event loop when it arrives.

        :param lane: the subscription that it is for. A consumer's messages may come after the acknowledgement
            of a later write: the server hands them out when it gets to it
        """
        ...


class LoopTimers:
    """The running event loop's timers, and a clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(delay_s, call)


class LoopWire:
    """At once, on the running event loop."""

    def up(self, subject: str, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(call)

    def down(self, subject: str, call: Callable[[], None], lane: str = "") -> None:
        asyncio.get_running_loop().call_soon(call)


class MemoryServer:
    """Owned by whoever calls it; nothing in it waits."""

    def __init__(self, timers: Timers) -> None:
        self.streams: dict[str, Stream] = {}
        self.stale_read_s: Callable[[str], float] = lambda subject: 0.0
        """How stale the next read of a subject is: a replica that lags."""
        self.on_stored: Callable[[Stream, list[Stored]], None] = lambda stream, stored: None
        """Told of every write that was applied, a batch as one."""
        self._timers = timers
        self._routes = Routes()
        self._consumers: dict[tuple[str, str], Consumer] = {}
        self._connections = 0
        self._subscriptions = 0
        self._of_connection: dict[int, dict[int, Listening]] = {}

    # ---- connections

    def connect(self) -> int:
        """A new connection's number."""
        self._connections += 1
        self._of_connection[self._connections] = {}
        return self._connections

    def disconnect(self, connection: int) -> None:
        """It is gone, and what it listened to."""
        for listening in self._of_connection.pop(connection, {}).values():
            self._routes.remove(listening)

    def subscribe(
        self, connection: int, pattern: str, queue: str, deliver: Callable[[str, str, bytes, bytes], None]
    ) -> int:
        """Listen; returns the subscription's number, 0 if the connection is gone."""
        known = self._of_connection.get(connection)
        if known is None:
            return 0
        self._subscriptions += 1
        listening = Listening(self._subscriptions, connection, pattern, queue, deliver)
        known[listening.identity] = listening
        self._routes.add(listening)
        return listening.identity

    def unsubscribe(self, connection: int, subscription: int) -> None:
        """Stop listening."""
        listening = self._of_connection.get(connection, {}).pop(subscription, None)
        if listening is not None:
            self._routes.remove(listening)

    # ---- messages

    def publish(self, subject: str, payload: bytes, reply: str = "", head: bytes = b"") -> None:
        """A message arrives."""
        if subject.startswith("$JS."):
            if subject.startswith(API):
                self._ask(subject, payload, reply)
            return
        listening = self._routes.listening(subject)
        for one in listening:
            one.deliver(subject, reply, payload, head)
        stream = self._stream_of(subject)
        if stream is not None:
            self._store(stream, Incoming(subject, payload, head, _heads.parse(head) if head else {}), reply)
        elif reply and not listening:
            self._reply(reply, b"", _NO_RESPONDERS)

    def write(self, subject: str, payload: bytes, lines: dict[str, str] | None = None) -> Stored | Refusal | int:
        """Store a message from outside, at once, as if somebody's publish had just arrived."""
        stream = self._stream_of(subject)
        if stream is None:
            return STREAM_MISSING
        head = _heads.build(lines) if lines else b""
        answer = stream.store(Incoming(subject, payload, head, lines or {}), self._timers.now())
        if isinstance(answer, Stored):
            self._stored(stream, [answer])
        return answer

    def remake(self, name: str) -> None:
        """Delete a stream and make it again: empty, its sequences from 1."""
        config = self.streams[name].config
        self._delete(self.streams[name])
        self.streams[name] = Stream(config, self._timers.now())

    def forget_consumers(self) -> None:
        """Lose all consumers, as a server does that restarts."""
        for consumer in list(self._consumers.values()):
            self._forget(consumer)

    def bring_back(self, name: str) -> list[Stored]:
        """Be killed and started again: consumers are gone, and of a stream old messages are back, which are
        returned."""
        self.forget_consumers()
        return self.streams[name].bring_back()

    def stall_consumers(self) -> None:
        """Let all consumers lag until their next heartbeat, as a server does that is busy elsewhere."""
        for consumer in self._consumers.values():
            consumer.stall()

    def _store(self, stream: Stream, message: Incoming, reply: str) -> None:
        now = self._timers.now()
        if headers.BATCH_ID in message.lines:
            outcome = stream.stage(message, now)
            if outcome is None:
                self._reply(reply, b"")  # of the first message: the batch has begun
                return
            answer = outcome if isinstance(outcome, Refusal) else list(outcome)
        else:
            single = stream.store(message, now)
            answer = [single] if isinstance(single, Stored) else single
        match answer:
            case Refusal():
                self._refuse(reply, answer)
            case int():
                self._answer(reply, {"stream": stream.name, "seq": answer, "duplicate": True})
            case _:
                self._stored(stream, answer)
                self._answer(reply, {"stream": stream.name, "seq": answer[-1].sequence})

    def _stored(self, stream: Stream, stored: list[Stored]) -> None:
        self.on_stored(stream, stored)
        for consumer in list(self._consumers.values()):
            if consumer.stream is stream:
                for message in stored:
                    consumer.stored(message)

    def _stream_of(self, subject: str) -> Stream | None:
        for stream in self.streams.values():
            if stream.takes(subject):
                return stream
        return None

    def _reply(self, reply: str, payload: bytes, head: bytes = b"") -> None:
        if reply:
            for one in self._routes.listening(reply):
                one.deliver(reply, "", payload, head)

    def _answer(self, reply: str, body: object) -> None:
        if reply:
            self._reply(reply, msgspec.json.encode(body))

    def _refuse(self, reply: str, refusal: Refusal) -> None:
        code = 404 if refusal in (STREAM_MISSING, CONSUMER_MISSING) else 503 if refusal.code == NO_ROOM else 400
        self._answer(reply, {"error": {"code": code, "err_code": refusal.code, "description": refusal.text}, "seq": 0})

    # ---- the JetStream API

    def _ask(self, subject: str, payload: bytes, reply: str) -> None:
        if subject.startswith(DIRECT_GET):
            self._get(subject, reply)
            return
        topic, verb, stream, *rest = [*subject.removeprefix(API).split("."), "", ""]
        body: dict[str, Any] = msgspec.json.decode(payload) if payload else {}
        if topic == "INFO":
            answer: object = {"streams": len(self.streams)}
        elif verb == "NAMES":
            answer = {
                "streams": list(self.streams),
                "consumers": [name for of_stream, name in self._consumers if of_stream == stream],
            }
        else:
            answer = (
                self._stream_api(verb, stream, body)
                if topic == "STREAM"
                else self._consumer_api(verb, stream, rest, body)
            )
        if isinstance(answer, Refusal):
            self._refuse(reply, answer)
        else:
            self._answer(reply, answer)

    def _get(self, subject: str, reply: str) -> None:
        name, _, wanted = subject.removeprefix(DIRECT_GET).partition(".")
        stream = self.streams.get(name)
        if stream is None:
            self._reply(reply, b"", _NO_RESPONDERS)
            return
        found = stream.get(wanted, self._timers.now(), self.stale_read_s(wanted))
        if found is None:
            self._reply(reply, b"", _NOT_FOUND)
            return
        stamp = datetime.fromtimestamp(found.stored_at, UTC).isoformat()
        own = _heads.parse(found.head) if found.head else {}
        place = {
            "Nats-Stream": name,
            "Nats-Subject": wanted,
            "Nats-Sequence": str(found.sequence),
            "Nats-Time-Stamp": stamp,
        }
        self._reply(reply, found.payload, _heads.build({**own, **place}))

    def _stream_api(self, verb: str, name: str, body: dict[str, Any]) -> object:
        stream = self.streams.get(name)
        if verb == "CREATE":
            if stream is not None:
                return Refusal(STREAM_NAME_IN_USE, "stream name already in use")
            if any(one.takes(subject) for one in self.streams.values() for subject in body["subjects"]):
                return Refusal(SUBJECTS_OVERLAP, "subjects overlap with an existing stream")
            stream = self.streams[name] = Stream(body, self._timers.now())
        if stream is None:
            return STREAM_MISSING
        match verb:
            case "PURGE" if stream.config.get("deny_purge"):
                return PURGE_DENIED
            case "PURGE":
                return {"success": True, "purged": stream.purge(body["filter"], self._timers.now())}
            case "UPDATE":
                stream.config.update(body)
            case "DELETE":
                self._delete(stream)
                return {"success": True}
            case _:
                pass
        stream.expire(self._timers.now())
        state = {"last_seq": stream.last, "messages": len(stream)}
        return {"config": stream.config, "created": stream.created, "state": state}

    def _delete(self, stream: Stream) -> None:
        del self.streams[stream.name]
        for consumer in [one for one in self._consumers.values() if one.stream is stream]:
            self._forget(consumer)

    def _consumer_api(self, verb: str, name: str, rest: list[str], body: dict[str, Any]) -> object:
        stream, key = self.streams.get(name), (name, rest[0])
        if stream is None:
            return STREAM_MISSING
        if verb == "CREATE":
            return self._create(stream, key, body["config"])
        consumer = self._consumers.get(key)
        if consumer is None:
            return CONSUMER_MISSING
        if verb == "DELETE":
            self._forget(consumer)
            return {"success": True}
        return {"name": consumer.name, "stream_name": name, "num_pending": consumer.pending}

    def _create(self, stream: Stream, key: tuple[str, str], config: dict[str, Any]) -> object:
        target: str = config["deliver_subject"]

        def deliver(subject: str, reply: str, payload: bytes, head: bytes) -> bool:
            listening = self._routes.listening(target)
            for one in listening:
                one.deliver(subject or target, reply, payload, head)
            return bool(listening)

        consumer = Consumer(stream, config, deliver, self._timers.now, self._timers.later, self._forget)
        self._consumers[key] = consumer
        consumer.start()
        return {"name": consumer.name, "stream_name": stream.name, "num_pending": consumer.pending}

    def _forget(self, consumer: Consumer) -> None:
        consumer.closed = True
        self._consumers.pop((consumer.stream.name, consumer.name), None)
