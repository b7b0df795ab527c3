"""Writing objects: every write is a compare-and-set, repeated through markers, conflicts and unclear answers.

Many objects go as atomic batches of 256 first; if any of a batch is at another version than expected, each of
it is written on its own.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

import anyio

from podyard.bus.connection import Bus
from podyard.bus.errors import BatchUnclear, BusError, Conflict, Unclear
from podyard.bus.outgoing import Ack, Outgoing
from podyard.cluster import intents
from podyard.cluster.errors import ClusterError, Contended, ObjectExists, ObjectMissing, VersionMoved
from podyard.cluster.intents import Author, Document, Intent, Keep, Put, Remove, Stored, Written
from podyard.cluster.keys import ObjectKey
from podyard.objects.errors import ObjectError
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.objects_api import Propagation

Failure: TypeAlias = ClusterError | ObjectError | MessageError | BusError
Result: TypeAlias = Written | Failure
"""A failure left its object as it was, except a bus error that is `Unclear`."""

Known: TypeAlias = Callable[[ObjectKey], Stored | None]

ATTEMPTS: Final = 8
"""Compare-and-sets of one object in a row; each lost one means that somebody else got on."""

FIRST_PAUSE_S: Final = 0.002
LAST_PAUSE_S: Final = 0.1
"""Pauses after lost compare-and-sets are up to that, at random."""

BATCH_FROM: Final = 32
"""From so many messages on one batch (1.2 ms of the server, whatever its size) is cheaper than single ones
(about 30 µs each)."""


BATCH_BYTES: Final = 16 * streams.MEBIBYTE
"""Above it single ones: a batch cannot wait for the socket, and what it may hold would be 400 MB of the
largest objects."""

READS_AT_ONCE: Final = 16
"""Direct reads under way at once: enough to hide the round trip, and of the largest objects (1.5 MiB) less
than half of what the server keeps for a client before it closes the connection (`max_pending`, 64 MiB)."""


class Job:
    """One intent on its way; it is open until it has a result."""

    __slots__ = ("attempts", "before", "intent", "message", "result", "step", "unclear")

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self.before = intent.known
        self.attempts = 0
        self.step: Put | Remove | None = None
        self.message: Outgoing | None = None
        self.result: Result | None = None
        self.unclear = False
        """`message` was sent and not answered: what lies in the stream may be it."""

    def prepare(self, author: Author) -> None:
        """Decide the step from `before`, and make its message."""
        key = self.intent.key
        try:
            step = self.intent.plan(self.before)
        except (ClusterError, ObjectError, MessageError) as error:
            self.result = error
            return
        except Exception as error:  # boundary: a document that somebody wrote; the others are written
            self.result = ObjectError("", f"cannot be changed as it is stored: {type(error).__name__}: {error}")
            return
        if isinstance(step, Keep):
            self.result = Written(key, step, 0 if self.before is None else self.before.sequence, self.before)
            return
        if self.intent.causes:
            causes = (*author.causes, *self.intent.causes)
            author = author._replace(causes=causes, replaces=self.intent.replaces)
        self.step = step
        self.attempts += 1
        self.message = message_of(key, step, self.before, author)

    def written(self, sequence: int) -> None:
        """The step is in the stream."""
        step, message = self.step, self.message
        if step is not None and message is not None:
            after = Stored(sequence, message.payload, message.deleted)
            self.result = Written(self.intent.key, step, sequence, self.before, after)


def message_of(key: ObjectKey, step: Put | Remove, before: Stored | None, author: Author) -> Outgoing:
    """The message that carries out a step, a compare-and-set on the version it was decided from."""
    removes = isinstance(step, Remove)
    return Outgoing(
        subject=subjects.object_(*key),
        payload=codec.encode(intents.event_of(key, step, before, author)),
        expect=0 if before is None else before.sequence,
        trace=author.trace,
        deleted=removes,
        expires=removes,
    )


class Charges(Protocol):
    """Writes what quotas count together with what is used of them (`shell.charging`)."""

    async def settle(self, jobs: Sequence[Job], author: Author) -> None:
        """Settle those of the prepared, open jobs that take something of a quota; leave all others open."""
        ...


async def carry_out(bus: Bus, wanted: Sequence[Intent], author: Author, charges: Charges | None = None) -> list[Result]:
    """Write many objects; each succeeds or fails on its own, whatever becomes of the others.

    :param wanted: an object named twice is written twice, in order
    :param charges: the quotas that creations are held to; None: nothing is created that one may count
    :return: results in the order of `wanted`
    """
    jobs = [Job(intent) for intent in wanted]
    for wave in _waves(jobs):
        await _write(bus, wave, author, charges)
    return [_settled(job) for job in jobs]


def _waves(jobs: list[Job]) -> list[list[Job]]:
    """Jobs such that no wave has an object twice."""
    waves: list[list[Job]] = []
    seen: dict[ObjectKey, int] = {}
    for job in jobs:
        number = seen.get(job.intent.key, 0)
        seen[job.intent.key] = number + 1
        if number == len(waves):
            waves.append([])
        waves[number].append(job)
        if number:
            job.before = None
    return waves


async def _write(bus: Bus, jobs: list[Job], author: Author, charges: Charges | None) -> None:
    for job in jobs:
        job.prepare(author)
    doubtful = (ObjectExists, ObjectMissing, VersionMoved)
    await _look_again(bus, [job for job in jobs if isinstance(job.result, doubtful)], author)
    open_jobs = await _charged([job for job in jobs if job.result is None], author, charges)
    for start in range(0, len(open_jobs), streams.MAX_BATCH):
        part = open_jobs[start : start + streams.MAX_BATCH]
        size = sum(len(job.message.payload) for job in part if job.message is not None)
        if len(part) >= BATCH_FROM and size <= BATCH_BYTES:
            await _write_at_once(bus, part)
    open_jobs = [job for job in open_jobs if job.result is None]
    while open_jobs:
        answers = await bus.publish_many([job.message for job in open_jobs if job.message is not None])
        lost = [job for job, answer in zip(open_jobs, answers, strict=True) if _take(job, answer)]
        losses = max((job.attempts for job in lost), default=0)
        if losses > 1:
            await get_out_of_step(losses - 1)
        versions = await read_all(bus, [job.intent.key for job in lost])
        for job, stored in zip(lost, versions, strict=True):
            replan(job, stored, author)
        open_jobs = [job for job in open_jobs if job.result is None]
        if lost:  # decided anew, one may be a creation now
            open_jobs = await _charged(open_jobs, author, charges)


async def get_out_of_step(losses: int) -> None:
    """Wait a moment that chance decides, a longer one after each loss: writers in step would take turns in
    losing."""
    await anyio.sleep(random.uniform(0.0, min(FIRST_PAUSE_S * 2 ** min(losses, 16), LAST_PAUSE_S)))


async def _charged(jobs: list[Job], author: Author, charges: Charges | None) -> list[Job]:
    """Those that are open once all that a quota counts is settled."""
    if charges is None or not jobs:
        return jobs
    await charges.settle(jobs, author)
    return [job for job in jobs if job.result is None]


async def _look_again(bus: Bus, jobs: list[Job], author: Author) -> None:
    """What the caller knew speaks against these; it may be old, so the stream is asked before they fail."""
    for job, stored in zip(jobs, await read_all(bus, [job.intent.key for job in jobs]), strict=True):
        job.result = None
        replan(job, stored, author)


async def _write_at_once(bus: Bus, jobs: list[Job]) -> None:
    """One atomic batch. If it is refused or unclear, the jobs stay open: single compare-and-sets settle
    them."""
    try:
        ack = await bus.publish_batch([job.message for job in jobs if job.message is not None])
    except (Conflict, BatchUnclear):
        return
    except Unclear:
        for job in jobs:
            job.unclear = True
        return
    except BusError as error:
        for job in jobs:
            job.result = error
        return
    first = ack.sequence - len(jobs) + 1
    for number, job in enumerate(jobs):
        job.written(first + number)


def _take(job: Job, answer: Ack | BusError) -> bool:
    """Note an answer; True if the object is at another version, so that it must be looked at again."""
    if isinstance(answer, Ack):
        job.written(answer.sequence)
    elif not isinstance(answer, Conflict | Unclear):
        job.result = answer
    elif job.attempts >= ATTEMPTS:
        job.result = answer if isinstance(answer, Unclear) else Contended(job.intent.key, job.attempts)
    elif isinstance(answer, Unclear):
        job.attempts += 1
        job.unclear = True  # the same compare-and-set again tells what became of the first
    else:
        return True
    return False


def replan(job: Job, stored: Stored | BusError | None, author: Author) -> None:
    """It may be our own write, answered late; else decide again from what is there."""
    message = job.message
    if isinstance(stored, BusError):
        job.result = stored
    elif job.unclear and message is not None and stored is not None and _same(stored, message):
        job.written(stored.sequence)
    else:
        job.unclear = False
        job.before = stored
        job.step = job.message = None
        job.prepare(author)


def _same(stored: Stored, message: Outgoing) -> bool:
    return stored.deleted == message.deleted and stored.payload == message.payload


def _settled(job: Job) -> Result:
    if job.result is None:
        raise AssertionError(f"{job.intent.key} was left open")
    return job.result


# One object, by its usual names


async def read(bus: Bus, key: ObjectKey) -> Stored | None:
    """The last version of an object; may be stale, which a later compare-and-set finds out.

    :raises BusError: it cannot be read now
    """
    return intents.stored_of(await bus.get(streams.CLUSTER.name, subjects.object_(*key)))


async def read_all(bus: Bus, keys: Sequence[ObjectKey]) -> list[Stored | BusError | None]:
    """The last versions of many objects, some at a time; for each what `read` returns or raises."""
    versions: list[Stored | BusError | None] = [None] * len(keys)
    limit = anyio.CapacityLimiter(READS_AT_ONCE)

    async def read_one(index: int) -> None:
        async with limit:
            try:
                versions[index] = await read(bus, keys[index])
            except BusError as error:
                versions[index] = error

    async with anyio.create_task_group() as tasks:
        for index in range(len(keys)):
            tasks.start_soon(read_one, index)
    return versions


async def _read_unknown(bus: Bus, keys: Sequence[ObjectKey], known: Known | None) -> list[Stored | None]:
    """What the caller knows, else what is read; a version that cannot be read now is left to the
    compare-and-set."""
    versions = [known(key) if known is not None else None for key in keys]
    missing = [index for index, version in enumerate(versions) if version is None]
    for index, version in zip(missing, await read_all(bus, [keys[index] for index in missing]), strict=True):
        if isinstance(version, BusError):
            raise version
        versions[index] = version
    return versions


async def one(bus: Bus, intent: Intent, author: Author) -> Written:
    """Carry out one intent.

    :raises ClusterError: it was not done, and why
    :raises BusError: the bus failed; if `Unclear`, it may have been done
    """
    result = (await carry_out(bus, (intent,), author))[0]
    if isinstance(result, Written):
        return result
    raise result


async def create(bus: Bus, key: ObjectKey, document: Document, author: Author) -> Written:
    """Create an admitted object, which has its uid; through an old marker if there is one.

    :raises ObjectExists: another object lives there
    """
    return await one(bus, Intent(key, intents.creation(key, document)), author)


async def update(
    bus: Bus,
    key: ObjectKey,
    alter: Callable[[Document], Document | None],
    author: Author,
    *,
    uid: str = "",
    known: Stored | None = None,
) -> Written:
    """Change a living object; `alter` is called again with the newer version when somebody else was faster.

    :raises ObjectMissing: it is not there, or has another uid than `uid`
    """
    known = known or await read(bus, key)
    return await one(bus, Intent(key, intents.alteration(key, alter, uid), known), author)


async def mark_deleting(
    bus: Bus,
    objects: Sequence[tuple[ObjectKey, str]],
    author: Author,
    *,
    now: float,
    occupies: Callable[[str], bool],
    grace_s: int | None = None,
    known: Known | None = None,
    expected: Sequence[int] = (),
    propagation: Propagation | None = None,
) -> list[Result]:
    """Delete objects as their kinds are deleted: pods that take room and what has finalizers get the deletion
    timestamp, all others a marker at once.

    :param objects: key and uid (empty: whichever is there)
    :param now: seconds since 1970, UTC
    :param occupies: whether the pod with this uid is bound and not released
    :param grace_s: seconds; None means each pod's own, 0 removes at once
    :param known: versions that the caller has already, None for those to be read
    :param expected: for each object the sequence of the version that is meant, 0 for any; empty: any
    :param propagation: what becomes of dependents
    :raises BusError: a version cannot be read now; nothing was written
    """
    versions = await _read_unknown(bus, [key for key, _ in objects], known)
    wanted: list[Intent] = []
    for (key, uid), stored, version in zip(objects, versions, expected or (0,) * len(objects), strict=True):
        plan = intents.deletion(key, now=now, occupies=occupies, grace_s=grace_s, uid=uid, propagation=propagation)
        wanted.append(Intent(key, intents.of_version(key, plan, version) if version else plan, stored))
    return await carry_out(bus, wanted, author)


async def remove(bus: Bus, key: ObjectKey, author: Author, *, uid: str = "", known: Stored | None = None) -> Written:
    """Put a marker in the object's place; readers see a deletion, the server forgets it after
    `BusSettings.marker_ttl_s`.

    :raises ObjectMissing: it is not there, or has another uid than `uid`
    """
    known = known or await read(bus, key)
    return await one(bus, Intent(key, intents.removal(key, uid), known), author)
