"""Events for people, about one object each. Nobody waits for them: losing one loses nothing but news.

What is worth a message says `event_correlator`, how many are sent `event_outbox`. What cannot be stored is
sent again until too many wait; those that are lost are counted, told on `/readyz` and, once a minute, in the
log. The service stays ready: its work goes on.
"""

from collections.abc import Sequence
from typing import Any, Final, NoReturn

import anyio
import prometheus_client

from podyard.bus import Ack, BusError, Outgoing, PermanentError, TemporaryError, Unclear
from podyard.proto import codec, subjects
from podyard.proto.operations import K8sEvent
from podyard.runtime.service import Service
from podyard.shell.event_correlator import Correlator, Event
from podyard.shell.event_outbox import A_SECOND, Outbox

CHECK: Final = "events"
"""There only while events cannot be stored, or too many come. Ready all the same: only news is lost."""
RETRY_S: Final = 2.0
TOLD_EVERY_S: Final = 60.0
"""Between two words of the log about events that are not stored."""
END_WITHIN_S: Final = 1.0
"""How long what waits at the end of a term may take."""

STORED: Final = "stored"
SPARED: Final = "spared"
LOST: Final = "lost"
TOO_MANY: Final = f"more than {A_SECOND} a second"
NOT_STORED: Final = "events for people are not stored"
STORED_AGAIN: Final = "events for people are stored again"


class Recorder:
    """Of one process: what it remembers outlives terms. Put by synchronous code, sent by the task that runs
    `run`."""

    def __init__(self, service: Service[Any]) -> None:
        self._bus = service.bus
        self._now = service.clock.now
        self._health = service.health
        self._log = service.log
        self._correlator = Correlator(service.name, service.instance)
        self._outbox = Outbox()
        self._some = anyio.Event()
        self._sending = anyio.Lock()
        self._under_way: Sequence[K8sEvent] = ()
        self._lost = 0
        """Since all were stored."""
        self._troubled = False
        self._told_at = -TOLD_EVERY_S
        self._told = False
        """The log was told of this trouble."""
        self._events = prometheus_client.Counter(
            "podyard_events",
            "Events for people that were stored, spared (their object was told of often enough), or lost",
            ["outcome"],
            registry=service.metrics,
        )
        for outcome in (STORED, SPARED, LOST):
            self._events.labels(outcome)

    def record(self, event: Event) -> None:
        """Tell people, soon, if it is worth a message."""
        told = self._correlator.correlate(event)
        if told is None:
            self._events.labels(SPARED).inc()
            return
        if dropped := self._outbox.put(told):
            self._lose(dropped)
            self._trouble(TOO_MANY)
        self._some.set()

    async def run(self) -> NoReturn:
        """Send for ever."""
        try:
            while True:
                if not len(self._outbox):
                    self._some = anyio.Event()
                    await self._some.wait()
                stored = await self._send()
                pause_s = self._outbox.due_at(self._now()) - self._now() if stored else RETRY_S
                await anyio.sleep(max(pause_s, 0.0))
        finally:
            self._take_back()
            self._health.remove(CHECK)

    async def flush(self) -> None:
        """Send what may be sent now, those included that a cancelled caller was at; within a second."""
        if len(self._outbox):
            with anyio.move_on_after(END_WITHIN_S, shield=True):
                await self._send()
            self._take_back()

    async def _send(self) -> bool:
        """One try; whether all of it is settled."""
        async with self._sending:
            self._under_way = self._outbox.take(self._now())
            if not self._under_way:
                return True
            try:
                answers = await self._bus.publish_many([_message(event) for event in self._under_way])
            except Exception as error:  # boundary: whatever an event holds, others are sent
                self._log.exception("events for people could not be sent", events=len(self._under_way))
                answers = [PermanentError(str(error)) for _ in self._under_way]
            events, self._under_way = self._under_way, ()
            return self._settle(events, answers)

    def _settle(self, events: Sequence[K8sEvent], answers: Sequence[Ack | BusError]) -> bool:
        failed = [
            (event, answer) for event, answer in zip(events, answers, strict=True) if isinstance(answer, BusError)
        ]
        again = [event for event, answer in failed if isinstance(answer, TemporaryError | Unclear)]
        self._events.labels(STORED).inc(len(events) - len(failed))
        self._lose(len(failed) - len(again) + self._outbox.give_back(again))
        if failed:
            self._trouble(str(failed[0][1]))
        elif self._troubled and not len(self._outbox):
            self._recover()
        return not again

    def _take_back(self) -> None:
        """A try that was cut off may have stored them: storing the same once more changes nothing."""
        events, self._under_way = self._under_way, ()
        self._lose(self._outbox.give_back(events))

    # ---- what is lost --------------------------------------------------------------------------------------

    def _lose(self, number: int) -> None:
        self._lost += number
        self._events.labels(LOST).inc(number)

    def _trouble(self, reason: str) -> None:
        """Said on `/readyz` for as long as it lasts."""
        self._troubled = True
        waiting, now = len(self._outbox), self._now()
        told = f"{NOT_STORED}: {reason}; {waiting} wait, {self._lost} are lost"
        self._health.set_ready(CHECK, True, told)
        if now - self._told_at >= TOLD_EVERY_S:
            self._told_at, self._told = now, True
            self._log.warning(NOT_STORED, reason=reason, wait=waiting, lost=self._lost)

    def _recover(self) -> None:
        if self._told:
            self._log.info(STORED_AGAIN, lost=self._lost)
        self._health.remove(CHECK)
        self._troubled, self._told, self._lost = False, False, 0


def _message(event: K8sEvent) -> Outgoing:
    about = event.regarding
    subject = subjects.k8s_event(about.namespace, about.resource, about.name, event.id)
    return Outgoing(subject, codec.encode(event), trace=event.trace)
