"""The agent as a service: who leads, what is read, and what the core's effects become."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import anyio

from podyard.bus import Request
from podyard.cluster.changes import Change
from podyard.node_agent import spans_and_events
from podyard.node_agent.agent_view import AgentView, followed
from podyard.node_agent.core import effects
from podyard.node_agent.core.agent import Agent
from podyard.node_agent.core.eviction.messages import REASON
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.fact_writer import FactWriter
from podyard.node_agent.instruments import Instruments
from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto import codec, subjects
from podyard.proto.signals import NodeHeartbeat, NodeSignals
from podyard.runtime.service import Service, ServiceDefinition
from podyard.runtime.settings import SettingsError
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.guard import Guard
from podyard.shell.informer import Informer

Told: TypeAlias = Cause | Sequence[Change]
"""What the core is told: signals, what changed; nothing when time passed."""

NAME: Final = "node_agent"
LEADER: Final = "leader"
CLUSTER: Final = "cluster"
FACTS: Final = "facts"

STEP_S: Final = 0.01
"""Steps that are due within so short a time are taken together, so that their facts make a batch."""


async def main(service: Service[NodeAgentSettings]) -> None:
    """Play the nodes whenever this process leads; wait as a standby else."""
    settings = service.settings
    try:
        settings.eviction()
    except ThresholdError as error:
        raise SettingsError((f"node_agent.eviction_*: {error}",)) from error
    service.health.set_ready(LEADER, True, "standing by")
    instruments, boundary = Instruments(service.metrics), Boundary(service)
    lease = service.lease(settings.lease())

    async def play(epoch: int) -> None:
        service.health.set_ready(LEADER, True, f"plays its nodes, epoch {epoch}")
        try:
            await Player(service, instruments, boundary).run()
        finally:
            service.health.remove(CLUSTER)
            service.health.remove(FACTS)
            service.health.set_ready(LEADER, True, "standing by")

    while True:
        await lease.lead(play)
        await boundary.pause()


class Player:
    """One term of playing the nodes. All state is made new: it begins from what is stored."""

    def __init__(self, service: Service[NodeAgentSettings], instruments: Instruments, boundary: Boundary) -> None:
        settings = service.settings
        self._service = service
        self._now = service.clock.now
        self._boundary = boundary
        self._guard: Guard[Told] = Guard(self._failed)
        self._tasks = anyio.create_task_group()
        self._bus = service.bus
        self._instruments = instruments
        self._view = AgentView()
        self._agent = Agent(
            selection=settings.selection(),
            usual=settings.pace(),
            eviction=settings.eviction(),
            rhythm=settings.rhythm(),
        )
        self._informer = Informer(
            service.bus,
            self._view,
            followed(settings.nodes),
            service=NAME,
            on_changes=self._changed,
            on_listed=self._listed,
            on_contact=self._contact,
            aside=boundary.aside,
        )
        self._writer = FactWriter(
            service.bus,
            self._view.version_of,
            service.log,
            linger_s=settings.linger_s,
            on_stored=self._instruments.facts.inc,
            on_trouble=lambda reason: service.health.set_ready(FACTS, not reason, reason),
        )
        self._evictions: dict[str, str] = {}
        """Traceparents of evictions whose pod has not ended yet, by uid."""
        self._wake = anyio.Event()
        self._sleeps_until = 0.0
        """When the sleeper wakes, UTC seconds; 0 while it is awake."""
        self._alarm: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Until cancelled, or until the core has raised."""
        self._service.health.set_ready(CLUSTER, False, "listing the cluster")
        subscription = await self._bus.subscribe(subjects.ALL_SIGNALS, self._observed)
        try:
            async with self._tasks as tasks:
                tasks.start_soon(self._writer.run)
                tasks.start_soon(self._informer.run)
                await self._informer.synced()
                tasks.start_soon(self._take_steps)
        finally:
            with anyio.CancelScope(shield=True):
                await subscription.close()

    # What is seen

    def _changed(self, changes: list[Change]) -> None:
        """The view changed. Nodes come first: their pods need them."""
        if len(changes) > 1:
            changes = sorted(changes, key=_nodes_first)
        told = causes.told(changes, self._informer.delivery)
        self._guard.call(told, self._follow, told)

    def _failed(self, told: Told, error: Exception) -> None:
        """The core raised: the term ends, without what it was told."""
        if isinstance(told, Cause):
            cause = told
        else:
            changed = causes.of(told, self._informer.delivery, self._view.version_of) if told else None
            cause = changed or causes.unknown("Changed" if told else "Tick")
        self._boundary.raised(cause, error)
        self._tasks.cancel_scope.cancel()

    def _follow(self, changes: Sequence[Change]) -> None:
        now = self._now()
        for change in changes:
            if change.resource == subjects.NODES:
                self._node_changed(change, now)
            elif change.resource == subjects.PODS and _concerns_agents(change):
                self._pod_changed(change, now)
            else:
                continue
            self._rearm()

    def _node_changed(self, change: Change, now: float) -> None:
        if change.new is None:
            self._carry_out(self._agent.node_gone(change.key.name, now))
        else:
            self._carry_out(self._agent.node_seen(change.new, self._view.pods_on(change.new.name).values(), now))

    def _pod_changed(self, change: Change, now: float) -> None:
        if change.new is None:
            self._carry_out(self._agent.pod_gone(change.uid))
        else:
            self._carry_out(self._agent.pod_seen(change.new, change.origin.at, now))

    def _listed(self, reason: str) -> None:
        """A listing is complete: facts about pods and nodes that went meanwhile go too.

        An agent that picks nodes by their labels cannot know whether one that is gone was its own.
        """
        if not self._agent.selection.labels:
            for name in self._view.take_node_orphans():
                self._writer.put(subjects.node_status(name), None)
        for status in self._view.take_orphans():
            unknown = status.node not in self._view.nodes and self._agent.selection.everything
            if status.node in self._agent.nodes or unknown:
                self._writer.put(subjects.pod_status(*status), None)
        nodes, pods = len(self._agent.nodes), len(self._agent.pods)
        self._service.log.info("listed the cluster", reason=reason, nodes=nodes, pods=pods)

    def _contact(self, fresh: bool) -> None:
        self._service.health.set_ready(CLUSTER, fresh, "" if fresh else "the cluster was not heard of for 2 s")

    def _observed(self, subject: str, payload: bytes, trace: str) -> None:
        signals = codec.decode(NodeSignals, payload)
        if subjects.signals(signals.node) != subject:
            raise codec.MessageError("NodeSignals", f"it is about node {signals.node}, but came on {subject}")
        if self._boundary.refusal((subject,)):
            return
        asked = Cause(Request(subject, payload, trace), (subject,))
        self._carry_out(self._guard.call(asked, self._agent.observe, signals, self._now()) or ())
        self._rearm()

    # Steps

    async def _take_steps(self) -> None:
        while True:
            self._sleeps_until = 0.0
            self._carry_out(self._guard.call((), self._agent.tick, self._now()) or ())
            self._instruments.nodes.set(len(self._agent.nodes))
            self._instruments.pods.set(len(self._agent.pods))
            await self._sleep()

    async def _sleep(self) -> None:
        """Until the next step is due, or something earlier was seen."""
        self._wake = anyio.Event()
        self._sleeps_until = float("inf")
        self._rearm()
        await self._wake.wait()
        if self._alarm is not None:
            self._alarm.cancel()

    def _rearm(self) -> None:
        """See that the sleeper wakes in time for the next step.

        By a timer of the loop: uvloop's fire up to 1 ms early, and a cancel scope with a deadline spins for
        that long.
        """
        due = self._agent.next_due()
        if due is None or due >= self._sleeps_until:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._sleeps_until = due
        wait_s = max(due - self._now(), STEP_S)
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._wake.set)

    # Effects

    def _carry_out(self, found: Iterable[effects.Effect]) -> None:
        for effect in found:
            match effect:
                case effects.PutPodStatus(fact, trace):
                    if fact.reason == REASON:
                        trace = self._evictions.pop(fact.uid, trace)
                    subject = subjects.pod_status(fact.node, fact.namespace, fact.name, fact.uid)
                    self._writer.put(subject, fact, trace)
                case effects.PodStarted():
                    self._instruments.start_delay.observe(max(effect.running_at - effect.accepted_at, 0.0))
                    spans_and_events.started(self._service.spans, effect)
                case effects.RemovePodStatus(node, namespace, name, uid):
                    self._evictions.pop(uid, None)
                    self._writer.put(subjects.pod_status(node, namespace, name, uid), None)
                case effects.PutNodeStatus(fact):
                    self._writer.put(subjects.node_status(fact.node), fact)
                case effects.RemoveNodeStatus(node):
                    self._writer.put(subjects.node_status(node), None)
                case effects.PodEvicted():
                    self._evicted(effect)
                case effects.Announce():
                    spans_and_events.announce(self._bus, effect, NAME)
                case effects.PublishUsage(usage):
                    self._bus.send(subjects.usage(usage.node), codec.encode(usage))
                case effects.Heartbeat(node):
                    beat = NodeHeartbeat(node=node, agent=self._service.instance, at=self._now())
                    self._bus.send(subjects.heartbeat(node), codec.encode(beat))

    def _evicted(self, effect: effects.PodEvicted) -> None:
        pod = self._agent.pods.get(effect.uid)
        trace = spans_and_events.evicted(self._service.spans, effect, "" if pod is None else pod.trace)
        self._evictions[effect.uid] = trace
        self._instruments.evicted.labels(effect.signal).inc()
        spans_and_events.announce_eviction(self._bus, effect, NAME, trace)
        self._service.log.warning(
            "evicted a pod",
            pod=f"{effect.namespace}/{effect.name}",
            node=effect.node,
            signal=effect.signal,
            reason=effect.message.strip(),
        )


def _concerns_agents(change: Change) -> bool:
    """Pods without a place do not; there are many of them."""
    view = change.new
    return view is None or view.bound is not None or view.release is not None


def _nodes_first(change: Change) -> bool:
    return change.resource != subjects.NODES


SERVICE: Final = ServiceDefinition(
    name=NAME,
    settings_type=NodeAgentSettings,
    main=main,
    description="Plays the nodes: pods start, run and end, nodes report, pods are evicted under pressure.",
)
