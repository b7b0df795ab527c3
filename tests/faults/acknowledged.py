"""Writes that are under way while something fails, and what must hold of them afterwards. Knows nothing of
placements.

`Load` writes as Podyard's services do: single messages that must not exist yet, compare-and-sets one after
the other on one subject, and atomic batches with a fence; it repeats nothing without reading back first. What
it was told is kept, and `check` compares:

- what was acknowledged is there, as it was acknowledged;
- a compare-and-set that won had no acknowledged successor of its predecessor (else that one was lost
  meanwhile);
- of a batch everything is there or nothing, of an acknowledged one everything;
- nothing is there that was not sent, or that was clearly refused.
"""

import base64
import itertools
import statistics
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import anyio
import msgspec

from podyard.bus import Bus, Outgoing
from podyard.bus.errors import BatchUnclear, BusError, Unclear
from podyard.proto import streams

ROOT: Final = "cluster.faults.default"
"""No service follows these, so that services may run beside."""

BATCH: Final = 8
PAUSE_S: Final = 0.01
"""Between two writes of a writer: load enough to see every gap, and room for others on the machine."""

READ_WITHIN_S: Final = 30.0
READS_AT_ONCE: Final = 32
NOT_READY: Final = 503
"""What a server answers that has just been elected."""


class Stored(NamedTuple):
    """What is on a subject."""

    sequence: int
    payload: bytes


class Load:
    """Writers under way while `running`."""

    def __init__(
        self,
        buses: list[Bus],
        *,
        name: str = "load",
        singles: int = 4,
        chains: int = 2,
        batches: int = 1,
        size: int = 200,
    ) -> None:
        """
        :param buses: connections that the writers share in turn
        :param name: begins the names of its subjects, so that several loads may follow each other in one
            stream
        :param size: bytes of each message
        """
        self.acknowledged: dict[str, Stored] = {}
        self.sent: dict[str, bytes] = {}
        self.refused: set[str] = set()
        """Subjects that were written once, and clearly not."""

        self.batches: list[tuple[list[str], bool]] = []
        """Subjects of each batch sent, and whether it was acknowledged."""

        self.answers: list[float] = []
        """When writes were acknowledged, seconds on the monotonic clock."""

        self.outcomes: Counter[str] = Counter()
        self.lost: list[str] = []
        """Acknowledged versions that a later compare-and-set did not find."""

        self._size = size
        self._prefix = f"{ROOT}.{name}-"
        self._numbers = itertools.count(1)
        self._stopped = False
        kinds = [(self._single, "single", singles), (self._chain, "chain", chains), (self._batch, "batch", batches)]
        writers = [(write, f"{kind}-{number}") for write, kind, count in kinds for number in range(count)]
        self._writers = list(zip(writers, itertools.cycle(buses), strict=False))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Load"]:
        """Write while the block runs; at its end every write has its answer or its time-out."""
        async with anyio.create_task_group() as tasks:
            for (write, name), bus in self._writers:
                tasks.start_soon(write, bus, name)
            await self.more(1)
            yield self
            self._stopped = True

    async def more(self, number: int, within_s: float = 60.0) -> None:
        """Wait until so many writes more are acknowledged.

        :raises TimeoutError: if they are not in time
        """
        wanted = len(self.answers) + number
        with anyio.fail_after(within_s):
            while len(self.answers) < wanted:  # noqa: ASYNC110  # counted by others, at any rate
                await anyio.sleep(PAUSE_S)

    async def in_vain(self, number: int, within_s: float = 60.0) -> None:
        """Wait until so many writes more have ended without an acknowledgement.

        :raises TimeoutError: if they have not in time
        """
        wanted = self.failures + number
        with anyio.fail_after(within_s):
            while self.failures < wanted:  # noqa: ASYNC110  # as above
                await anyio.sleep(PAUSE_S)

    @property
    def failures(self) -> int:
        """Writes that have ended without an acknowledgement."""
        return self.outcomes.total() - self.outcomes["acknowledged"]

    def gap_s(self, since: float = 0.0) -> float:
        """The longest time without an acknowledgement, from `since` on."""
        times = [at for at in self.answers if at >= since]
        return max((after - before for before, after in itertools.pairwise([since or times[0], *times])), default=0.0)

    # ---- the writers

    async def _single(self, bus: Bus, name: str) -> None:
        """Messages on subjects of their own that must not exist yet."""
        while not self._stopped:
            number = next(self._numbers)
            message = self._message(f"{self._prefix}{name}-{number}", number, 0)
            error = await self._publish(bus, message)
            if error is not None and not isinstance(error, Unclear):
                self.refused.add(message.subject)
            await anyio.sleep(PAUSE_S)

    async def _chain(self, bus: Bus, name: str) -> None:
        """One compare-and-set after the other on one subject."""
        subject, expect = f"{self._prefix}{name}", 0
        while not self._stopped:
            before = self.acknowledged.get(subject, Stored(0, b""))
            error = await self._publish(bus, self._message(subject, next(self._numbers), expect))
            if error is None:
                if expect < before.sequence:
                    self.lost.append(f"{subject}: @{before.sequence} was acknowledged, a later write found @{expect}")
                expect = self.acknowledged[subject].sequence
            else:
                expect = await _found(bus, subject, expect)
            await anyio.sleep(PAUSE_S)

    async def _batch(self, bus: Bus, name: str) -> None:
        """Batches: new messages, last a fence, as commits are written."""
        fence, expect = f"{self._prefix}{name}-fence", 0
        while not self._stopped:
            number = next(self._numbers)
            messages = [self._message(f"{self._prefix}{name}-{number}-{place}", number, 0) for place in range(BATCH)]
            messages.append(self._message(fence, number, expect))
            subjects = [message.subject for message in messages[:-1]]
            place = len(self.batches)
            self.batches.append((subjects, False))
            try:
                ack = await bus.publish_batch(messages, timeout_s=2.0)
            except BusError as error:
                self.outcomes[type(error).__name__] += 1
                if not isinstance(error, Unclear | BatchUnclear):
                    self.refused.update(subjects)
                expect = await _found(bus, fence, expect)
            else:
                self._acknowledged(fence, ack.sequence)
                for back, subject in enumerate(reversed(subjects), 1):
                    self.acknowledged[subject] = Stored(ack.sequence - back, self.sent[subject])
                self.batches[place] = (subjects, True)
                expect = ack.sequence
            await anyio.sleep(PAUSE_S)

    def _message(self, subject: str, number: int, expect: int) -> Outgoing:
        payload = f"{number} ".encode().ljust(self._size, b".")
        self.sent[subject] = payload
        return Outgoing(subject, payload, expect)

    async def _publish(self, bus: Bus, message: Outgoing) -> BusError | None:
        try:
            ack = await bus.publish(message, timeout_s=2.0)
        except BusError as error:
            self.outcomes[type(error).__name__] += 1
            return error
        self._acknowledged(message.subject, ack.sequence)
        return None

    def _acknowledged(self, subject: str, sequence: int) -> None:
        self.outcomes["acknowledged"] += 1
        self.answers.append(time.monotonic())
        self.acknowledged[subject] = Stored(sequence, self.sent[subject])

    # ---- afterwards

    def faults(self, found: dict[str, Stored]) -> list[str]:
        """What is wrong with what is stored; sentences, empty is good."""
        wrong = list(self.lost)
        for subject, told in self.acknowledged.items():
            there = found.get(subject)
            if there is None or there.sequence < told.sequence:
                wrong.append(f"{subject}: @{told.sequence} was acknowledged, there is {_shown(there)}")
            elif there.sequence == told.sequence and there.payload != told.payload:
                wrong.append(f"{subject}: @{told.sequence} is not what was acknowledged, but {_shown(there)}")
        for subjects, acknowledged in self.batches:
            there = sum(subject in found for subject in subjects)
            if there != len(subjects) and (there or acknowledged):
                wrong.append(f"of the batch of {subjects[0]} there are {there} of {len(subjects)}, {acknowledged=}")
        wrong += [f"{subject} was refused, and is there" for subject in self.refused if subject in found]
        wrong += [f"nobody sent {subject}" for subject in found if subject not in self.sent and self._is_own(subject)]
        return wrong

    def _is_own(self, subject: str) -> bool:
        return subject.startswith(self._prefix)

    async def check(self, bus: Bus) -> None:
        """Compare with what is stored now.

        :raises AssertionError: naming what is wrong
        """
        wrong = self.faults(await stored(bus))
        assert not wrong, f"{len(wrong)} faults, the first: {wrong[:5]}; {dict(self.outcomes)}"
        assert self.acknowledged, "nothing was ever acknowledged"


def spread(gaps_s: list[float]) -> str:
    """Median and worst of some gaps, for people."""
    return f"median {statistics.median(gaps_s):.1f} s, longest {max(gaps_s):.1f} s of {len(gaps_s)}"


async def stored(bus: Bus) -> dict[str, Stored]:
    """Everything below `ROOT` as the stream's leader has it: these two requests go to nobody else."""
    told = await asked(bus, "STREAM.INFO", {"subjects_filter": f"{ROOT}.>"})
    subjects = list(told["state"].get("subjects") or {})
    found: dict[str, Stored] = {}
    waiting = iter(subjects)

    async def reading() -> None:
        for subject in waiting:
            message = (await asked(bus, "STREAM.MSG.GET", {"last_by_subj": subject}))["message"]
            found[subject] = Stored(message["seq"], base64.b64decode(message["data"]))

    async with anyio.create_task_group() as tasks:
        for _ in range(READS_AT_ONCE):
            tasks.start_soon(reading)
    return found


async def asked(bus: Bus, verb: str, body: dict[str, Any]) -> dict[str, Any]:
    """An answer of the leader of CLUSTER, asked again while there is none."""
    with anyio.fail_after(READ_WITHIN_S):
        while True:
            try:
                answer = await bus.request(f"$JS.API.{verb}.{streams.CLUSTER.name}", msgspec.json.encode(body))
            except BusError:
                await anyio.sleep(PAUSE_S)
                continue
            decoded = msgspec.json.decode(answer.payload)
            error = decoded.get("error", {})
            if error.get("code") != NOT_READY:
                assert not error, f"{verb} {body}: {error}"
                return decoded
            await anyio.sleep(PAUSE_S)


async def _found(bus: Bus, subject: str, otherwise: int) -> int:
    """The subject's last sequence as some replica tells it; maybe an old one, which the next compare-and-set
    shows."""
    try:
        found = await bus.get(streams.CLUSTER.name, subject)
    except BusError:
        return otherwise
    return 0 if found is None else found.sequence


def _shown(there: Stored | None) -> str:
    return "nothing" if there is None else f"@{there.sequence} {there.payload[:20]!r}"
