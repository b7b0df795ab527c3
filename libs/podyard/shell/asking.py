"""Requests that are sent again until they are answered: whoever leads the service that is asked, and whatever
became of the one before."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

import anyio
import structlog
from msgspec import structs

from podyard.bus import Bus, BusError, TemporaryError, Unclear
from podyard.proto import codec
from podyard.proto.codec import MessageError
from podyard.proto.message import Message
from podyard.runtime.health import Health

PAUSE_S: Final = 0.1
"""After a request that nobody answered in time: its answer may be on its way. After an answer that counts as
none, too."""
REFUSED_PAUSE_S: Final = 0.5
"""After a refusal and after an answer that cannot be read: another leader, or a person, has to do something
first."""


class Answer(Protocol):
    """What the replies of services with a leader have in common."""

    @property
    def epoch(self) -> int:
        """Of the leader that answers."""
        ...

    @property
    def refused(self) -> str:
        """Why nothing was done; empty if it was."""
        ...


A = TypeVar("A", bound=Answer)


class Epochs:
    """Which answer counts while a service changes its leader, and two answer: that of the highest epoch.

    Every request names the highest one, so that a leader that is none any more, and does not know it, steps
    down.
    """

    def __init__(self) -> None:
        self.highest = 0
        """Of all answers so far."""

    def outdated(self, epoch: int) -> str:
        """Why an answer of this epoch counts as none; empty: it counts, and no lower one does from now on."""
        if epoch < self.highest:
            return f"a leader of epoch {epoch} answers, and there is one of {self.highest}"
        self.highest = epoch
        return ""


class Asking:
    """Of one service that is asked. Its health check is named after the service.

    Each request must be one that may safely be carried out twice. While requests on a subject are not
    answered, the check says why, and so does one line of the log for each reason.
    """

    def __init__(
        self,
        bus: Bus,
        service: str,
        *,
        health: Health,
        log: structlog.stdlib.BoundLogger,
        repeated: Callable[[str], None],
        epochs: Epochs | None = None,
        refusal_is_answer: bool = False,
        at_first: str = "",
    ) -> None:
        """
        :param service: name of the service, `queue`
        :param repeated: told the subject of each request that is sent again
        :param epochs: for requests with a field `epoch`; None: an answer counts, whatever its epoch
        :param refusal_is_answer: whether a refusal is for the caller; else the request is sent again
        :param at_first: why the check is not ready until `accepted`; empty: it is ready
        """
        self._bus = bus
        self._service = service
        self._health = health
        self._log = log
        self._repeated = repeated
        self._epochs = epochs
        self._refusal_is_answer = refusal_is_answer
        self._refusal = at_first
        self._troubles: dict[str, str] = {}
        """By subject: why its last request was not answered; none if it was."""
        self._show()

    async def ask(self, subject: str, request: Message, reply_type: type[A], *, timeout_s: float | None = None) -> A:
        """The answer that counts.

        :param timeout_s: seconds until one request counts as not answered; None: the bus's own
        """
        while True:
            found = await self._once(subject, request, reply_type, timeout_s)
            if not isinstance(found, _NoAnswer):
                if self._troubles.pop(subject, None) is not None:
                    self._show()
                return found
            self._repeated(subject)
            self._trouble(subject, found.why)
            await anyio.sleep(found.pause_s)

    def accepted(self) -> None:
        """The service does what it is asked for."""
        self._refuses("")

    def refused(self, reason: str) -> None:
        """The service wants nothing of what it is asked for: the check says so until `accepted`."""
        self._refuses(f"the {self._service} refuses: {reason}")

    async def _once(
        self, subject: str, request: Message, reply_type: type[A], timeout_s: float | None
    ) -> "A | _NoAnswer":
        if self._epochs is not None:
            request = structs.replace(request, epoch=self._epochs.highest)
        try:
            answer = await self._bus.request(subject, codec.encode(request), timeout_s=timeout_s)
            reply = codec.decode(reply_type, answer.payload)
        except Unclear as error:
            return _NoAnswer(str(error), PAUSE_S)
        except TemporaryError as error:
            return _NoAnswer(str(error), error.delay_s)
        except (BusError, MessageError) as error:
            return _NoAnswer(str(error), REFUSED_PAUSE_S)
        if self._epochs is not None and (why := self._epochs.outdated(reply.epoch)):
            return _NoAnswer(why, PAUSE_S)
        if reply.refused and not self._refusal_is_answer:
            return _NoAnswer(f"the {self._service} refuses: {reply.refused}", REFUSED_PAUSE_S)
        return reply

    # ---- what people see

    def _trouble(self, subject: str, why: str) -> None:
        if self._troubles.get(subject) == why:  # who is missing is told of once, not twice a second
            return
        self._troubles[subject] = why
        self._show()
        self._log.warning("no answer that counts, asking again", subject=subject, reason=why)

    def _refuses(self, refusal: str) -> None:
        if refusal != self._refusal:
            self._refusal = refusal
            self._show()

    def _show(self) -> None:
        reason = next(iter(self._troubles.values()), self._refusal)
        self._health.set_ready(self._service, not reason, reason)


class _NoAnswer(NamedTuple):
    why: str
    pause_s: float
    """Before it is asked again."""
