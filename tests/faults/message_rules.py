"""What a proxy does to single messages: lose them, send them again, bring them late, and kill their sender at
a named point.

Each rule names messages by a pattern over the names that `proxy` gives them, counts what it did, and tells
it. `up` messages go to the server, others come from it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from podyard.bus.watch import picker
from tests.faults.frames import Frame

Moment = Literal["before", "stored", "answered"]
"""before: the message never reaches the server. stored: it does, and its answer does not reach the process.
answered: that too, and nothing that the process sends afterwards reaches the server."""

TOLD: Final = 3
"""How often a rule tells what it did; of the rest it tells the number, at its end."""

Where = Callable[[Frame], bool]


class Deed(NamedTuple):
    """What becomes of a message: `now` is sent on; `later` too, each after so many seconds; whether its
    process dies."""

    now: tuple[Frame, ...] = ()
    later: tuple[tuple[float, Frame], ...] = ()
    kill: bool = False


class Rule:
    """Acts on messages of one direction that match, up to `times` times."""

    up = True

    def __init__(self, pattern: str, *, times: int | None = None, where: Where | None = None) -> None:
        """:param pattern: as `svc.queue.*`, `placement.>`, `answer to svc.binder.bind`
        :param where: looks at the message too
        """
        self.pattern = pattern
        self.happened = 0
        self.over = False
        self._picked = picker((pattern,))
        self.times = times
        self._where = where
        self._tell: Callable[[str], None] = lambda text: None
        self._changed = asyncio.Event()

    def begin(self, tell: Callable[[str], None]) -> None:
        """The proxy applies it from now on."""
        self._tell = tell

    def end(self) -> None:
        """Do nothing more."""
        self.over = True
        if self.happened > TOLD:
            self._tell(f"ends: {self}")

    async def done(self, times: int, within_s: float) -> None:
        """Wait until it has acted so often.

        :raises AssertionError: if it has not in time
        """
        try:
            async with asyncio.timeout(within_s):
                while self.happened < times:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not {times} times within {within_s} s, but {self.happened}: {self}") from None

    def judge(self, name: str, frame: Frame, *, up: bool) -> Deed | None:
        """What becomes of a message; `None`: this rule leaves it alone."""
        if up is not self.up or not self._matches(name, frame):
            return None
        self._count()
        if self.times is not None and self.happened >= self.times:
            self.over = True
        return self._act(name, frame)

    def _act(self, name: str, frame: Frame) -> Deed:
        raise NotImplementedError

    def _matches(self, name: str, frame: Frame) -> bool:
        return self._picked(name) and (self._where is None or self._where(frame))

    def _say(self, text: str) -> None:
        if self.happened <= TOLD:
            self._tell(text)

    def _count(self) -> None:
        self.happened += 1
        self._changed.set()

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pattern!r}, {self.happened} times"


class Note(Rule):
    """Does nothing but count what the process sends, when it sends it."""

    def judge(self, name: str, frame: Frame, *, up: bool) -> Deed | None:
        """Leaves it alone."""
        if up is self.up and self._matches(name, frame):
            self._count()
        return None


class Drop(Rule):
    """Messages of the process that never arrive."""

    def _act(self, name: str, frame: Frame) -> Deed:
        self._say(f"loses {name}")
        return Deed()


class DropAnswers(Drop):
    """Messages to the process that never arrive: `answer to <subject>`, or deliveries."""

    up = False


class Repeat(Rule):
    """Messages of the process that arrive once more, or several times, so many seconds later (0: at once)."""

    def __init__(self, pattern: str, after_s: Sequence[float], *, times: int | None = None, where: Where | None = None):
        super().__init__(pattern, times=times, where=where)
        self._after_s = tuple(after_s)

    def _act(self, name: str, frame: Frame) -> Deed:
        self._say(f"repeats {name}, {', '.join(f'{delay_s:g} s' for delay_s in self._after_s)} later")
        return Deed((frame,), tuple((delay_s, frame) for delay_s in self._after_s))


class Late(Rule):
    """Messages of the process that are overtaken by those that it sends within so many seconds."""

    def __init__(self, pattern: str, delay_s: float, *, times: int | None = None, where: Where | None = None):
        super().__init__(pattern, times=times, where=where)
        self._delay_s = delay_s

    def _act(self, name: str, frame: Frame) -> Deed:
        self._say(f"brings {name} {self._delay_s:g} s late")
        return Deed((), ((self._delay_s, frame),))


class CrashPoint(Rule):
    """Kills the process around its `nth` matching message, at one of three moments.

    A message without a reply subject has no answer: its moments are `before` and `stored`.
    """

    def __init__(self, pattern: str, moment: Moment, *, nth: int = 1, where: Where | None = None) -> None:
        super().__init__(pattern, where=where)
        self.moment = moment
        self._left = nth
        self._awaited = ""
        """The reply subject of the message, once it is under way."""
        self._delivered = False
        self._name = ""

    async def hit(self, within_s: float) -> None:
        """Wait until the process was killed here.

        :raises AssertionError: if it was not in time
        """
        await self.done(1, within_s)

    def judge(self, name: str, frame: Frame, *, up: bool) -> Deed | None:
        """As its class says."""
        if self._awaited:
            return self._under_way(frame, up=up)
        if not up or not self._matches(name, frame):
            return None
        self._left -= 1
        if self._left:
            return None
        self._name = name
        if self.moment == "before":
            return self._kill(())
        if not frame.reply:
            assert self.moment == "stored", f"{name} has no answer"
            return self._kill((frame,))
        self._awaited = frame.reply
        return Deed((frame,))

    def _under_way(self, frame: Frame, *, up: bool) -> Deed | None:
        if up:
            return self._kill(()) if self._delivered else Deed()
        if frame.subject != self._awaited:
            return None
        if self.moment == "stored":
            return self._kill(())
        self._delivered = True
        return Deed((frame,))

    def _kill(self, now: tuple[Frame, ...]) -> Deed:
        self._count()
        self.over = True
        self._tell(f"KILLS the process: {self}")
        return Deed(now, kill=True)

    def __str__(self) -> str:
        return f"{self.moment} {self._name or self.pattern}"
