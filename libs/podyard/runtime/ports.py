"""Ports for processes that are about to start."""

import itertools
import random
import socket
from collections.abc import Iterator
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_FIRST: Final = 10_000
_LAST: Final = 32_767
"""From 32,768 on Linux gives ports to outgoing connections (ip_local_port_range), others from 49,152 on: one
that is free now may be taken by a connection before the process listens."""


def _from_anywhere() -> Iterator[int]:
    begin = random.randint(_FIRST, _LAST)
    return itertools.cycle((*range(begin, _LAST + 1), *range(_FIRST, begin)))


_next: Final = _from_anywhere()
"""Each port once, then all again: what was handed out may not be listened on yet."""


def free_ports(count: int) -> list[int]:
    """Ports on the loopback address that nobody uses now, all different.

    Another process may look for one at the same time and begin at the same place, which is unlikely; nobody
    else takes them, unless somebody listens there by intention.

    :raises OSError: if there are not so many
    """
    found: list[int] = []
    for port in itertools.islice(_next, _LAST - _FIRST + 1):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"{LOOPBACK} has no {count} free ports from {_FIRST} to {_LAST}")
    return found


def free_port() -> int:
    """One of them.

    :raises OSError: if there is none
    """
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
