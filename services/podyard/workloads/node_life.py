"""The shell of the core that says which nodes are lost: listens to heartbeats, stores facts, has pods
deleted."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from podyard.bus import Ack, BusError, Conflict, Outgoing
from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.proto.signals import NodeHeartbeat
from podyard.runtime.service import Service
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.driver import Driver
from podyard.shell.event_correlator import Event
from podyard.shell.event_recorder import Recorder
from podyard.shell.hearing import Hearing
from podyard.workloads.core import node_life
from podyard.workloads.core.actions import Changed, Done, Listed, Work
from podyard.workloads.core.node_life import Announce, Ask, Effect, Message, Said, Say, Saying
from podyard.workloads.instruments import Instruments
from podyard.workloads.settings import WorkloadsSettings

FLOOR_S: Final = 0.001
"""What is due within so short a time is done together."""


class NodeLife:
    """Of one term. Reads what the term reads; owned by one event loop."""

    def __init__(
        self,
        service: Service[WorkloadsSettings],
        instruments: Instruments,
        boundary: Boundary,
        events: Recorder,
        view: ClusterView,
        write: Callable[[Work], Awaitable[Done]],
        cause: Callable[[Sequence[Change]], Cause | None],
    ) -> None:
        """
        :param write: carries out the deletion of pods
        :param cause: what a core raised on that was told of these changes just now
        """
        self._service = service
        self._bus = service.bus
        self._now = service.clock.now
        self._instruments = instruments
        self._events = events
        self._write = write
        self._hearing = Hearing(service.bus, lambda hears: self._driver.step(node_life.Hearing(hears)))
        core = node_life.NodeLife(view, service.settings.periods(), service.settings.rates())
        self._driver: Driver[Message, Effect, Ask] = Driver(
            core,
            now=self._now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=lambda message: cause(message.changes) if isinstance(message, Changed) else None,
            answer=self._answer,
            tick=node_life.Tick(),
            wake_at=lambda: core.wake_at,
            floor_s=FLOOR_S,
        )

    async def run(self) -> None:
        """Watch nodes until cancelled, or until the core has raised."""
        async with self._driver:
            heartbeats = await self._bus.subscribe(subjects.ALL_HEARTBEATS, self._beat)
            self._hearing.start()
            try:
                await anyio.sleep_forever()
            finally:
                self._hearing.stop()
                with anyio.CancelScope(shield=True):
                    await heartbeats.close()

    # ---- what is heard

    def changed(self, changes: Sequence[Change]) -> None:
        """The view changed."""
        self._driver.step(Changed(changes))

    def listed(self) -> None:
        """The view has listed everything."""
        self._driver.step(Listed())

    def contact(self, fresh: bool) -> None:
        """The stream fell silent, or is heard again."""
        self._hearing.contact(fresh)

    def _beat(self, subject: str, payload: bytes, trace: str) -> None:
        """Who may send is known by the subject."""
        del trace
        node = subjects.parse_heartbeat(subject)
        if codec.decode(NodeHeartbeat, payload).node != node:
            raise MessageError("NodeHeartbeat", f"names another node than its subject, {node} - at `$.node`")
        self._driver.step(node_life.Beat(node))

    # ---- what the core wants

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Announce):
                self._announce(effect)
                continue
            if isinstance(effect, Work):
                self._instruments.work(effect)
            self._driver.ask(effect)

    async def _answer(self, ask: Ask) -> Message:
        return await self._say(ask) if isinstance(ask, Say) else await self._write(ask)

    async def _say(self, say: Say) -> Said:
        """Whatever came of it, the core compares again with what is stored."""
        position, failure = 0, ""
        for saying, answer in await self._stored(say.facts):
            if isinstance(answer, Ack):
                position = max(position, answer.sequence)
                self._tell(saying)
            else:
                failure = f"{saying.node}: {answer}"
        if failure:
            self._instruments.failed(subjects.NODES)
            self._service.log.warning("what is known of nodes could not be stored", first=failure)
        return Said(say.number, position, bool(failure))

    async def _stored(self, facts: Sequence[Saying]) -> list[tuple[Saying, Ack | BusError]]:
        """Each with what came of it. Where a marker lay that has expired, nothing is to be expected."""
        answers = await self._published(facts)
        expired = [saying._replace(expect=0) for saying, answer in answers if _has_expired(saying, answer)]
        if not expired:
            return answers
        kept = [one for one in answers if not _has_expired(*one)]
        return [*kept, *await self._published(expired)]

    async def _published(self, facts: Sequence[Saying]) -> list[tuple[Saying, Ack | BusError]]:
        answers = await self._bus.publish_many([_message(one) for one in facts])
        return list(zip(facts, answers, strict=True))

    def _tell(self, saying: Saying) -> None:
        fact = saying.fact
        taints = () if fact is None else tuple(f"{taint.key}:{taint.effect}" for taint in fact.taints)
        self._service.log.info("a node is as it should be" if fact is None else "a node is not as it should be",
                               node=saying.node, taints=taints)  # fmt: skip

    def _announce(self, effect: Announce) -> None:
        key = effect.key
        about = ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name, uid=effect.uid)
        self._events.record(Event(about, effect.reason, effect.message, self._now(), controller=effect.controller))


def _has_expired(saying: Saying, answer: Ack | BusError) -> bool:
    return isinstance(answer, Conflict) and answer.last_sequence == 0 and saying.expect > 0


def _message(saying: Saying) -> Outgoing:
    subject = subjects.node_life(saying.node)
    if saying.fact is None:
        return Outgoing(subject, b"", expect=saying.expect, deleted=True, expires=True)
    return Outgoing(subject, codec.encode(saying.fact), expect=saying.expect)
