"""Cores that raise on one message, and what is told of it.

raise_on(monkeypatch, Workloads, "_note", lambda core, change: change.key.name == "poison")
letter = await dead_letter(bus, "workloads")
"""

from collections.abc import Callable
from typing import Any

import pytest

from podyard.bus import Bus
from podyard.proto import codec, streams, subjects
from podyard.proto.operations import DeadLetter
from tests.support.waiting import eventually


class Bug(Exception):
    """What a core raises that nobody thought of."""


def raise_on(patch: pytest.MonkeyPatch, owner: Any, method: str, is_poison: Callable[..., bool]) -> list[Any]:
    """`owner.method` raises `Bug` when `is_poison` says so of its arguments; returns what it has raised on,
    as it grows."""
    plain, met = getattr(owner, method), list[Any]()

    def raising(*arguments: Any, **options: Any) -> Any:
        if is_poison(*arguments):
            met.append(arguments)
            raise Bug("nobody thought of this")
        return plain(*arguments, **options)

    patch.setattr(owner, method, raising)
    return met


async def dead_letter(bus: Bus, service: str) -> DeadLetter:
    """The last one of a service, as soon as there is one."""

    async def found() -> DeadLetter | None:
        stored = await bus.get(streams.DEAD.name, subjects.dead(service))
        return None if stored is None else codec.decode(DeadLetter, stored.payload)

    return await eventually(f"a dead letter of {service}", found)
