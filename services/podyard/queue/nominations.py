"""Nomination facts, written by compare-and-set: the highest epoch counts."""

from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

import anyio
import structlog

from podyard.bus import Ack, Bus, BusError, Conflict, Outgoing
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.facts import Nomination

RETRY_S: Final = 0.5


class Wanted(NamedTuple):
    """The fact as it should be; `over`: a deletion marker in its place, the pod is bound or gone."""

    fact: Nomination
    over: bool


class Nominations:
    """Writes the last wish for each pod. Owned by the task that runs `run`.

    A fact that is stored after its pod's end would stay: no change tells of it. So what was acknowledged for
    a pod that is no longer pending is taken back at once, and what was written for one that goes later when
    it goes (`gone`).

    :param version_of: last sequence of a subject that the view knows
    :param is_pending: whether the view has a pod of this uid that is still to be scheduled
    """

    def __init__(
        self,
        bus: Bus,
        log: structlog.stdlib.BoundLogger,
        epoch: int,
        version_of: Callable[[str], int],
        is_pending: Callable[[str], bool],
    ) -> None:
        self._bus = bus
        self._log = log
        self._epoch = epoch
        self._version_of = version_of
        self._is_pending = is_pending
        self._wanted: dict[str, Wanted] = {}
        self._written: dict[str, int] = {}
        """Sequences of what is stored, by subject; of pods that live."""
        self._some = anyio.Event()

    def put(
        self, namespace: str, name: str, uid: str, *, node: str = "", priority: int = 0, over: bool = False
    ) -> None:
        """Have the fact say so soon; a later wish replaces an earlier one."""
        fact = Nomination(namespace=namespace, name=name, uid=uid, node=node, priority=priority, epoch=self._epoch)
        self._wanted[subjects.nomination(namespace, name, uid)] = Wanted(fact, over)
        self._some.set()

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """The pod was deleted: whatever fact there is about it is to go. One that is being sent is taken back
        when it is acknowledged."""
        if not self._written and not self._wanted:
            return
        subject = subjects.nomination(namespace, name, uid)
        if subject in self._written or subject in self._wanted:
            self.put(namespace, name, uid, over=True)

    async def run(self) -> NoReturn:
        """Write for ever."""
        while True:
            await self._some.wait()
            self._some = anyio.Event()
            while self._wanted:
                await self._write()

    async def _write(self) -> None:
        wanted, self._wanted = self._wanted, {}
        messages = [self._message(subject, one) for subject, one in wanted.items()]
        answers = await self._bus.publish_many(messages)
        wait = False
        for message, one, answer in zip(messages, wanted.values(), answers, strict=True):
            if isinstance(answer, Ack):
                self._acknowledged(message.subject, answer, one)
            elif await self._may_write(message.subject, answer, one):
                self._wanted.setdefault(message.subject, one)
                wait = wait or not isinstance(answer, Conflict)
            elif one.over:
                self._written.pop(message.subject, None)
        if wait:
            await anyio.sleep(RETRY_S)

    def _message(self, subject: str, wanted: Wanted) -> Outgoing:
        expect = max(self._written.get(subject, 0), self._version_of(subject))
        return Outgoing(subject, codec.encode(wanted.fact), expect=expect, deleted=wanted.over, expires=wanted.over)

    def _acknowledged(self, subject: str, ack: Ack, wanted: Wanted) -> None:
        if wanted.over:
            self._written.pop(subject, None)
        else:
            self._written[subject] = ack.sequence
            fact = wanted.fact
            if subject not in self._wanted and not self._is_pending(fact.uid):
                self.put(fact.namespace, fact.name, fact.uid, over=True)

    async def _may_write(self, subject: str, error: BusError, wanted: Wanted) -> bool:
        """Whether to try again. After a conflict only if what is there is from no later leader, and is not
        what is wanted."""
        if not isinstance(error, Conflict):
            self._log.info("a nomination could not be written yet", subject=subject, reason=str(error))
            return True
        try:
            found = await self._bus.get(streams.CLUSTER.name, subject)
        except BusError:
            return True
        self._written[subject] = 0 if found is None else found.sequence
        if found is None:
            return not wanted.over
        there = None if found.deleted else _read(found.payload)
        if there is None:
            return not wanted.over
        if there.epoch > self._epoch:
            self._log.warning("another leader wrote a nomination", subject=subject, epoch=there.epoch)
            return False
        return wanted.over or there.node != wanted.fact.node


def _read(payload: bytes) -> Nomination | None:
    """The fact; None if it cannot be read: it is then written over."""
    try:
        return codec.decode(Nomination, payload)
    except MessageError:
        return None
