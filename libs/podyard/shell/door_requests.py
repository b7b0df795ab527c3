"""Requests to `svc.objects`, sent again while nobody answers.

An api that dies with a request in hand never answers it; its successor is asked again, soon enough that a
person does not wait for long. That is safe, since every write is a compare-and-set: what was done already is
left as it is the second time. Only what makes something new each time is asked once.
"""

from typing import Final

import anyio

from podyard.bus.connection import Bus
from podyard.bus.errors import Busy, TemporaryError, Unclear
from podyard.bus.requests import Reply

TRY_S: Final = 5.0
"""Seconds for the first try, twice as many for the second, and so on: 256 objects are admitted and written in
well under a second."""

PAUSE_S: Final = 0.2
"""Between a try that nobody answered and the next."""


class AskedOnce(Exception):
    """A request that must not be repeated was not answered: it may have been carried out."""


async def until_answered(
    bus: Bus, subject: str, payload: bytes, timeout_s: float, once: str = ""
) -> tuple[Reply, bool]:
    """Ask, and ask again: after a try without an answer whatever is in the way, else only an api that has too
    much to do.

    :param timeout_s: of all tries together
    :param once: why it is not asked again when the answer does not come; empty: it is
    :return: the answer, and whether a try before was not answered: it may have been carried out
    :raises AskedOnce: the answer did not come, and it is not asked again
    :raises BusError: nobody answers
    """
    end = anyio.current_time() + timeout_s
    unanswered: Unclear | None = None
    tries = 0
    while True:
        tries += 1
        left_s = max(end - anyio.current_time(), 0.01)
        try:
            reply = await bus.request(subject, payload, timeout_s=left_s if once else min(left_s, tries * TRY_S))
        except Unclear as error:
            if once:
                raise AskedOnce(f"{error}; it was not asked again: {once}") from error
            unanswered = failure = error
            pause_s = PAUSE_S
        except TemporaryError as error:
            if unanswered is None and not isinstance(error, Busy):
                raise
            failure, pause_s = unanswered or error, error.delay_s
        else:
            return reply, unanswered is not None
        if anyio.current_time() + pause_s >= end:
            raise failure
        await anyio.sleep(pause_s)
