"""What else a process reads from its surroundings: clocks, chance, the order of sets. All of it comes from the simulator."""

import gc
import random
import secrets
import time
import typing
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import nats.nuid
from anyio._backends import _asyncio

from podyard.telemetry import traceparent
from tests.simulation.clock import Clock

_make_scope: Callable[..., None] = _asyncio.CancelScope.__init__
_protocol_attributes = cache(typing._get_protocol_attrs)  # type: ignore[attr-defined]


class _Ordered(dict[Any, None]):
    """A set that is iterated in the order of its additions, whatever its members' addresses are."""

    def add(self, member: Any) -> None:
        self[member] = None

    def remove(self, member: Any) -> None:
        del self[member]

    def discard(self, member: Any) -> None:
        self.pop(member, None)


def freeze(clock: Clock, seed: int) -> None:
    """For the rest of this (forked) process, time and chance are the simulation's. Cannot be undone, only done again."""
    source = Random(seed * 7919 + 1)
    time.time = lambda: clock.now
    time.monotonic = lambda: clock.now
    time.perf_counter = lambda: clock.now
    time.time_ns = lambda: int(clock.now * 1e9)
    time.perf_counter_ns = lambda: int(clock.now * 1e9)
    random.seed(seed)
    secrets.token_hex = lambda nbytes=32: f"{source.getrandbits((nbytes or 32) * 8):0{(nbytes or 32) * 2}x}"
    nats.nuid.randbelow = source.randrange
    nats.nuid.token_bytes = source.randbytes
    traceparent._random = traceparent._fast = source  # type: ignore[assignment]
    gc.freeze = _nothing
    gc.collect = _nothing
    gc.disable()  # the process ends with the simulation; and what was killed must not be cleaned up
    _order_scopes()
    typing._get_protocol_attrs = _protocol_attributes  # type: ignore[attr-defined]  # Python 3.11 finds them anew for each isinstance


def _nothing(*_: Any) -> int:
    return 0


def _order_scopes() -> None:
    """Cancelling a scope goes through its tasks and child scopes, which are sets ordered by addresses."""
    made = _make_scope

    def ordered(self: Any, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        self._child_scopes = _Ordered()
        self._tasks = _Ordered()

    _asyncio.CancelScope.__init__ = ordered  # type: ignore[method-assign]
