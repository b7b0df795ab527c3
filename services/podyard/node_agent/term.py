"""One term: from getting the lease to losing it. Feeds the core and carries out what it wants.

All state is made new: it begins from what is stored.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from podyard.bus import Request, Subscription
from podyard.node_agent import spans_and_events
from podyard.node_agent.agent_view import AgentView, followed
from podyard.node_agent.core import admission, effects, messages
from podyard.node_agent.core.agent import Agent
from podyard.node_agent.core.claims import Patience, Player
from podyard.node_agent.core.effects import AskHost, Effect
from podyard.node_agent.core.messages import Message
from podyard.node_agent.core.node_config import NodeConfigs
from podyard.node_agent.fact_writer import FactWriter
from podyard.node_agent.instruments import Instruments
from podyard.node_agent.listening import Heartbeats
from podyard.node_agent.previews import Previews
from podyard.node_agent.removing import Removing
from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto import codec, subjects
from podyard.proto.signals import NodeHeartbeat, NodeSignals
from podyard.runtime import sessions
from podyard.runtime.service import Service
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.driver import Driver
from podyard.shell.event_recorder import Recorder
from podyard.shell.hearing import Hearing
from podyard.shell.reading import Reading
from podyard.telemetry import traceparent

if TYPE_CHECKING:
    from podyard.node_agent.host_link import HostLink

MakeLink: TypeAlias = "Callable[[Callable[[Message], None], Callable[[str], Awaitable[None]]], HostLink]"
"""Of a term: who tells the core, and who waits until what is said of a pod is stored."""

FACTS_CHECK: Final = "facts"
"""Not ready while facts cannot be stored: no room in the stream, or NATS silent."""
FLOOR_S: Final = 0.01
"""Steps that are due within so short a time are taken together, so that their facts make a batch."""
END_WITHIN_S: Final = 1.0
"""How long the end of a term may take."""


class Term:
    """Owned by the task that runs `run`; callbacks of what it reads and of the bus run on the same event
    loop."""

    def __init__(
        self,
        service: Service[NodeAgentSettings],
        configs: NodeConfigs,
        instruments: Instruments,
        boundary: Boundary,
        events: Recorder,
        host: "MakeLink | None",
        *,
        take_over: bool,
    ) -> None:
        """
        :param host: makes the link to the machine that one of the nodes is; None: none is
        :param take_over: whether it takes its nodes from whoever plays them
        """
        settings = service.settings
        self._service = service
        self._bus = service.bus
        self._now = service.clock.now
        self._instruments = instruments
        self._boundary = boundary
        self._events = events
        self._view = AgentView()
        self._core = Agent(
            self._view,
            selection=settings.selection(),
            usual=settings.pace(),
            configs=configs,
            rhythm=settings.rhythm(),
            player=Player(service.session, settings.lease()),
            patience=Patience(settings.take_over_after_s, take_over),
            host=settings.host(),
        )
        self._writer = FactWriter(
            service.bus,
            self._view.version_of,
            service.log,
            linger_s=settings.linger_s,
            on_stored=instruments.facts.inc,
            on_trouble=service.health.trouble(FACTS_CHECK),
        )
        self._removing = Removing(service.bus, service.log, who=service.name)
        self._hearing = Hearing(service.bus, lambda hears: self._driver.step(messages.Hearing(hears)))
        self._reading = Reading(
            service.bus,
            self._view,
            followed(settings.played()),
            service.health,
            service=service.name,
            on_changes=lambda changes: self._driver.step(messages.Changed(changes)),
            on_listed=lambda _: self._driver.step(
                messages.Listed(self._view.take_node_orphans(), self._view.take_orphans())
            ),
            on_contact=self._hearing.contact,
            aside=boundary.aside,
        )
        self._signals: Request | None = None
        """Those that the core is being told of."""
        self._evictions: dict[str, str] = {}
        """Traceparents of evictions whose pod has not ended yet, by uid."""
        self._ends: dict[str, str] = {}
        """Of ends whose fact is to follow at once, by uid."""
        self._previews = Previews(self._on_asked, boundary.refusal)
        self._driver: Driver[Message, Effect, AskHost] = Driver(
            self._core,
            now=self._now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=self._cause,
            answer=self._answer,
            close=self._core.close,
            tick=messages.Tick(),
            wake_at=lambda: self._core.wake_at,
            floor_s=FLOOR_S,
        )
        self._host = None if host is None else host(self._driver.step, self._writer.settled)
        self._heartbeats = Heartbeats(service.bus, self._core.claims.awaited, self._driver.step)

    async def run(self) -> None:
        """Play the nodes until cancelled, or until the core has raised."""
        opened: list[Subscription] = []
        self._instruments.plays(self._core.nodes, self._core.pods, self._core.claims.awaited)
        self._instruments.signals.show(lambda: self._core.nodes, self._now)
        try:
            async with self._driver as tasks:
                if self._host is not None:
                    await tasks.start(self._host.run)
                tasks.start_soon(self._writer.run)
                tasks.start_soon(self._removing.run)
                tasks.start_soon(self._events.run)
                tasks.start_soon(self._reading.run)
                tasks.start_soon(self._heartbeats.run)
                self._hearing.start()
                opened.append(await self._bus.subscribe(subjects.ALL_SIGNALS, self._on_signals))
                await self._previews.serve(self._service.endpoints, self._service.settings.played(), opened)
        finally:
            self._service.health.remove(FACTS_CHECK)
            self._hearing.stop()
            self._instruments.plays((), (), ())
            self._instruments.signals.hide()
            self._previews.end()
            await self._events.flush()
            with anyio.move_on_after(END_WITHIN_S, shield=True):
                for subscription in opened:
                    await subscription.close()

    def _on_signals(self, subject: str, payload: bytes, trace: str) -> None:
        signals = codec.decode(NodeSignals, payload)
        if subjects.signals(signals.node) != subject:
            raise codec.MessageError("NodeSignals", f"it is about node {signals.node}, but came on {subject}")
        if self._boundary.refusal((subject,)):
            return
        self._signals = Request(subject, payload, trace)
        self._driver.step(messages.Observed(signals))
        self._signals = None

    def _on_asked(self, asked: messages.Asked) -> None:
        self._driver.step(asked)

    async def _answer(self, asked: AskHost) -> Message:
        assert self._host is not None, "only a host is asked"
        return await self._host.answer(asked)

    # ---- the core ------------------------------------------------------------------------------------------

    def _carry_out(self, wanted: Sequence[Effect]) -> None:
        for effect in wanted:
            self._do(effect)
        self._heartbeats.follow()

    def _do(self, effect: Effect) -> None:
        match effect:
            case effects.PutPodStatus(fact, trace):
                if fact.ended:
                    trace = self._ends.pop(fact.uid, trace)
                self._writer.put(subjects.pod_status(fact.node, fact.namespace, fact.name, fact.uid), fact, trace)
            case effects.RemovePodStatus(node, namespace, name, uid):
                self._evictions.pop(uid, None)
                self._writer.put(subjects.pod_status(node, namespace, name, uid), None, self._ends.pop(uid, ""))
            case effects.RemovePod():
                self._removing.put(effect)
            case effects.PutNodeStatus(fact, expect):
                self._writer.put(subjects.node_status(fact.node), fact, claims_over=expect)
            case effects.Awaits():
                self._leave(effect)
            case effects.ListAgain(nodes):
                self._reading.informer.relist(f"facts about the pods of {len(nodes)} nodes came before they were ours")
            case effects.RemoveNodeStatus(node):
                self._writer.put(subjects.node_status(node), None)
            case effects.PodStarted():
                self._instruments.start_delay.observe(max(effect.running_at - effect.accepted_at, 0.0))
                spans_and_events.started(self._service.spans, effect)
            case effects.PodEnded(about):
                by = self._evictions.pop(about.uid, effect.ended_by)
                self._ends[about.uid] = spans_and_events.ended(self._service.spans, effect, by)
            case effects.PodRefused(about, node, reason, message):
                self._instruments.refused.labels(admission.counted_as(reason)).inc()
                self._service.log.warning(
                    "refused a pod", pod=f"{about.namespace}/{about.name}", node=node, reason=f"{reason}: {message}"
                )
                self._events.record(spans_and_events.refused(effect))
            case effects.PodPreempted(resource):
                self._instruments.reference.preempted(resource)
            case effects.MustEvict(ages):
                self._instruments.reference.must_evict(ages)
            case effects.PodEvicted():
                self._evicted(effect)
            case effects.Announce():
                self._events.record(spans_and_events.event_of(effect))
            case effects.RoundFailed(about, fault):
                self._service.log.warning("a round of an eviction manager failed", node=about.name, reason=fault)
                self._events.record(spans_and_events.failed_round(effect))
            case effects.ImagesCollected(about, for_age, for_space):
                self._instruments.collected(for_age, for_space)
                self._service.log.info(
                    "collected images", node=about.name, bytes_too_old=for_age, bytes_to_make_room=for_space
                )
            case effects.PublishUsage(usage):
                self._bus.send(subjects.usage(usage.node), codec.encode(usage))
            case effects.Reply() | effects.Declined() | effects.NotPlayed():
                self._previews.answer(effect)
            case effects.AskHost():
                self._driver.ask(effect)
            case effects.LookUpPod() | effects.StartContainer() | effects.LimitPod() | effects.StopPod():
                assert self._host is not None, "only a host has processes"
                self._host.do(effect)
            case effects.Heartbeat(node):
                beat = NodeHeartbeat(node=node, agent=self._service.instance, at=self._now())
                self._bus.send(subjects.heartbeat(node), codec.encode(beat))

    def _leave(self, effect: effects.Awaits) -> None:
        """The nodes are another agent's: what still waits to be said of them stays unsaid."""
        for node in effect.nodes if effect.lost else ():
            self._writer.drop(subjects.node_status(node), subjects.pod_statuses(node).removesuffix(">"))
        self._service.log.warning(
            "nodes were taken over by another agent" if effect.lost else "nodes are played by another agent",
            agent=sessions.instance_of(effect.by.session),
            nodes=len(effect.nodes),
            first=effect.nodes[0],
            they_are_taken_after_s_of_silence=self._service.settings.take_over_after_s,
        )

    def _cause(self, message: Message) -> Cause | None:
        if isinstance(message, messages.Changed):
            return causes.of(message.changes, self._view.version_of)
        if isinstance(message, messages.Asked):
            return self._previews.cause(message.ticket)
        if isinstance(message, messages.Observed) and self._signals is not None:
            return Cause(self._signals, (self._signals.subject,))
        return None

    def _evicted(self, effect: effects.PodEvicted) -> None:
        """An eviction is one span and counts once, though its pod may be hurried later."""
        if effect.sooner:
            trace = self._evictions.get(effect.uid, "")
            self._events.record(spans_and_events.haste(effect, trace))
            self._tell("an evicted pod has less time", effect, trace)
            return
        trace = spans_and_events.evicted(self._service.spans, effect)
        self._evictions[effect.uid] = trace
        self._instruments.evicted(effect.signal)
        self._events.record(spans_and_events.eviction(effect, trace))
        self._tell("evicted a pod", effect, trace)

    def _tell(self, event: str, effect: effects.PodEvicted, trace: str) -> None:
        self._service.log.warning(
            event,
            pod=f"{effect.namespace}/{effect.name}",
            node=effect.node,
            signal=effect.signal,
            grace_s=effect.grace_s,
            reason=effect.message.strip(),
            **traceparent.told(trace),
        )
