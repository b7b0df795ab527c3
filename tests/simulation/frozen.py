"""What else a process reads from its surroundings: clocks, chance, the order of sets. All of it comes from
the simulator."""

import gc
import random
import secrets
import time
import typing
import uuid
from collections.abc import Callable
from functools import cache, lru_cache, partial
from random import Random
from typing import Any

import anyio.to_thread
import nats.nuid
from anyio._backends import _asyncio

from podyard.bus import _heads
from podyard.cluster import view
from podyard.telemetry import traceparent
from tests.simulation.clock import Clock

_make_scope: Callable[..., None] = _asyncio.CancelScope.__init__
_parse = lru_cache(64)(_heads.parse)
_decode_event = lru_cache(64)(view._decode_event)
_decode_commit = lru_cache(64)(view._decode_commit)
_protocol_attributes = cache(typing._get_protocol_attrs)  # type: ignore[attr-defined]


class _Ordered(dict[Any, None]):
    """A set that is iterated in the order of its additions, whatever its members' addresses are."""

    add = dict.setdefault  # type: ignore[assignment]
    remove = dict.__delitem__  # type: ignore[assignment]

    def discard(self, member: Any) -> None:
        self.pop(member, None)


def freeze(clock: Clock, seed: int, *, read_once: bool = True) -> None:
    """For the rest of this (forked) process, time and chance are the simulation's. Cannot be undone, only
    done again.

    :param read_once: what all processes read of one message is read once, which saves time; not where reading
        is counted
    """
    source = Random(seed * 7919 + 1)
    time.time = time.monotonic = time.perf_counter = partial(getattr, clock, "now")
    time.time_ns = lambda: int(clock.now * 1e9)
    time.perf_counter_ns = lambda: int(clock.now * 1e9)
    random.seed(seed)
    uuid.uuid4 = lambda: uuid.UUID(int=source.getrandbits(128), version=4)
    random.Random = partial(_seeded, source)  # type: ignore[misc,assignment]
    secrets.token_hex = lambda nbytes=32: f"{source.getrandbits((nbytes or 32) * 8):0{(nbytes or 32) * 2}x}"
    nats.nuid.randbelow = source.randrange
    nats.nuid.token_bytes = source.randbytes
    traceparent._random = traceparent._fast = source  # type: ignore[assignment]
    gc.freeze = _nothing
    gc.collect = _nothing
    gc.disable()  # the process ends with the simulation; and what was killed must not be cleaned up
    anyio.to_thread.run_sync = _at_once  # type: ignore[assignment]
    _order_scopes()
    if read_once:
        _read_once()
    typing._get_protocol_attrs = _protocol_attributes  # type: ignore[attr-defined]  # Python 3.11 finds them anew for each isinstance


def _seeded(source: Random, seed: Any = None) -> Random:
    """One that its user gives no seed has one of ours."""
    return Random(source.getrandbits(64) if seed is None else seed)


async def _at_once(call: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """No thread runs beside the simulation."""
    return call(*args)


def _nothing(*_: Any) -> int:
    return 0


def _read_once() -> None:
    """What all processes read of one stored message is read once: they never change it."""
    _heads.parse = _parse
    view._decode_event = _decode_event
    view._decode_commit = _decode_commit


def _order_scopes() -> None:
    """Cancelling a scope goes through its tasks and child scopes, which are sets ordered by addresses."""
    made = _make_scope

    def ordered(self: Any, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        self._child_scopes = _Ordered()
        self._tasks = _Ordered()

    _asyncio.CancelScope.__init__ = ordered  # type: ignore[method-assign]
