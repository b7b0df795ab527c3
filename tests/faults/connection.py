"""One connection of a process through its proxy: bytes of both directions, cut into messages, which rules may
harm."""

import asyncio
import json
import socket
import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from tests.faults.frames import Frame, Parser
from tests.faults.message_rules import Rule

CHUNK: Final = 1 << 18
MOST_OPEN: Final = 20_000
"""Requests of a connection whose answers are still told apart; older ones are forgotten."""

Observer = Callable[[Frame], None]
Queue = asyncio.Queue[tuple[float, Frame] | None]
"""What goes one way, with the time at which it is due (monotonic seconds); at its end `None`."""

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Way:
    """One direction of all connections of a proxy."""

    def __init__(self) -> None:
        self.latency_s = 0.0
        """What every byte takes longer."""
        self.bytes_left: int | None = None
        """After so many bytes the connection is reset, in the middle of a message if need be. `None`: no
        limit."""
        self._open = asyncio.Event()
        self._open.set()

    @property
    def harmed(self) -> bool:
        """Whether anything is not as it should be."""
        return bool(self.latency_s) or self.bytes_left is not None or not self._open.is_set()

    def hold(self) -> None:
        """From now on nothing comes through; what is sent meanwhile arrives late, as by a network that comes
        back."""
        self._open.clear()

    def release(self) -> None:
        """Let through what was held and what comes."""
        self._open.set()

    async def passable(self, due_s: float) -> None:
        """Wait until bytes that are due at `due_s` may arrive."""
        delay_s = due_s - time.monotonic()
        if delay_s > 0:
            await asyncio.sleep(delay_s)
        await self._open.wait()


class Owner(Protocol):
    """What a connection must know of its proxy."""

    up: Way
    down: Way
    sent: list[Observer]
    said: list[Observer]
    kill: Callable[[], None]

    def tell(self, text: str) -> None: ...
    def rules(self) -> list[Rule]: ...
    def send(self, frame: Frame) -> bool: ...
    def later(self, delay_s: float, arrive: Callable[[], None]) -> None: ...


class Connection:
    """One connection of the process, and its counterpart to the server."""

    def __init__(self, proxy: Owner, client: Ends, server: Ends) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._asked: OrderedDict[str, str] = OrderedDict()
        """What the process asked: reply subject -> subject of the request."""
        self._to_answer: OrderedDict[str, str] = OrderedDict()
        """What the process was asked, likewise."""
        self._killed = False
        self._up: Queue = asyncio.Queue()
        self._down: Queue = asyncio.Queue()

    async def run(self) -> None:
        """Carry both ways until one of them ends."""
        proxy = self._proxy
        readers = [
            asyncio.ensure_future(self._read(self._client[0], proxy.up, self._up, self._out)),
            asyncio.ensure_future(self._read(self._server[0], proxy.down, self._down, self._in)),
        ]
        writers = [
            asyncio.ensure_future(self._write(self._server[1], proxy.up, self._up, proxy.sent)),
            asyncio.ensure_future(self._write(self._client[1], proxy.down, self._down, ())),
        ]
        to_server, to_client = writers
        try:
            await asyncio.wait(writers, return_when=asyncio.FIRST_COMPLETED)
            if to_client.done() and not self._server_ended:
                # the process has gone, and what it sent may still be on its way
                await asyncio.wait((to_server, readers[1]), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*readers, *writers):
                task.cancel()
            ended = await asyncio.gather(*readers, *writers, return_exceptions=True)
        for failure in ended:
            if isinstance(failure, Exception):
                raise failure

    @property
    def _server_ended(self) -> bool:
        return self._server[0].at_eof()

    def reset(self) -> None:
        """End it at once, in both directions."""
        for _, writer in (self._client, self._server):
            with suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def inject(self, frame: Frame) -> None:
        """Something more for the server, now."""
        self._up.put_nowait((0.0, frame))

    # ---- bytes

    async def _read(
        self, reader: asyncio.StreamReader, way: Way, queue: Queue, judge: Callable[[Frame], Sequence[Frame]]
    ) -> None:
        parser = Parser()
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                due_s = time.monotonic() + way.latency_s
                for frame in parser.feed(data):
                    for kept in judge(frame):
                        queue.put_nowait((due_s, kept))
        queue.put_nowait(None)

    async def _write(self, writer: asyncio.StreamWriter, way: Way, queue: Queue, observers: Sequence[Observer]) -> None:
        with suppress(OSError):
            while (item := await queue.get()) is not None:
                due_s, frame = item
                await way.passable(due_s)
                if writer.is_closing() or not self._send(writer, way, frame):
                    return
                for observer in observers if frame.message else ():
                    observer(frame)
                if queue.empty():
                    await writer.drain()
            await writer.drain()

    def _send(self, writer: asyncio.StreamWriter, way: Way, frame: Frame) -> bool:
        """Whether the whole frame may go."""
        if way.bytes_left is None or way.bytes_left > len(frame.raw):
            writer.write(frame.raw)
            way.bytes_left = None if way.bytes_left is None else way.bytes_left - len(frame.raw)
            return True
        writer.write(frame.raw[: way.bytes_left])
        self._proxy.tell(f"cuts {frame.verb} {frame.subject} after {way.bytes_left} of {len(frame.raw)} bytes")
        way.bytes_left = None
        self.reset()
        return False

    # ---- messages

    def _out(self, frame: Frame) -> Sequence[Frame]:
        """Of the process."""
        if self._killed:
            return ()
        if not frame.message:
            return (frame,)
        name = frame.subject
        if frame.reply:
            _remember(self._asked, frame.reply, frame.subject)
        elif frame.subject in self._to_answer:
            name = f"answer to {self._to_answer.pop(frame.subject)}"
        return self._apply(name, frame, up=True)

    def _in(self, frame: Frame) -> Sequence[Frame]:
        """Of the server."""
        if frame.verb == "INFO":
            return (_without_other_servers(frame),)
        if frame.message:
            for observer in self._proxy.said:
                observer(frame)
        if self._killed:
            return ()
        if not frame.message:
            return (frame,)
        name = frame.subject
        if frame.subject in self._asked:
            name = f"answer to {self._asked[frame.subject]}"
        elif frame.reply and not frame.reply.startswith("$JS."):
            _remember(self._to_answer, frame.reply, frame.subject)
        return self._apply(name, frame, up=False)

    def _apply(self, name: str, frame: Frame, *, up: bool) -> Sequence[Frame]:
        """What becomes of a message: the first rule that says something decides."""
        for rule in self._proxy.rules():
            deed = rule.judge(name, frame, up=up)
            if deed is not None:
                for delay_s, later in deed.later:
                    self._proxy.later(delay_s, partial(self._late, later, up))
                if deed.kill:
                    self._killed = True
                    self._proxy.kill()
                return deed.now
        return (frame,)

    def _late(self, frame: Frame, up: bool) -> None:
        if not up:
            self._down.put_nowait((0.0, frame))
        elif not self._proxy.send(frame):
            self._proxy.tell(f"has no connection to bring {frame.subject} late")


def _remember(known: OrderedDict[str, str], reply: str, subject: str) -> None:
    known[reply] = subject
    if len(known) > MOST_OPEN:
        known.popitem(last=False)


def _without_other_servers(frame: Frame) -> Frame:
    """The server's greeting without the addresses of its mates: the process must not find a way around the
    proxy."""
    known = json.loads(frame.raw.split(b" ", 1)[1])
    if not known.pop("connect_urls", None):
        return frame
    return frame._replace(raw=b"INFO " + json.dumps(known).encode() + b"\r\n")
