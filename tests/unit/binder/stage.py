"""A stage for the binder's core: the CLUSTER stream, terms on it whose effects are carried out at once, and
faults."""

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

from podyard.binder import writer
from podyard.binder.core import effects
from podyard.binder.core.binder import Binder, Phase
from podyard.binder.core.blocking import LOOK_AGAIN_S
from podyard.bus import Ack, Conflict, Delivery, Outgoing
from podyard.cluster.changes import DeadDelivery, RelistNeeded
from podyard.cluster.view import ClusterView
from podyard.framework.extenders import Extender
from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.proto import headers, subjects
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, Decision
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import PodRef
from podyard.proto.placement import BoundPod, Fence, Release, Tombstone
from tests.support import objects, stored
from tests.support.stream import ClusterStream

PROFILE = default_profile()
GATHER_S = 0.011
MAX_LISTINGS = 100
FOLLOWED = ("cluster.", "placement.commits.", subjects.FENCE)


class Term:
    """One binder core with its view; effects are carried out at once, except where a fault says otherwise."""

    def __init__(self, stage: "Stage", name: str, profile: Profile, extender: Extender | None = None) -> None:
        self.stage = stage
        self.view = ClusterView(remembers=True)
        self.core = Binder(
            self.view,
            {profile.name: profile},
            holder=name,
            session=name,
            child_trace=lambda trace: trace + "/bind",
            binding_extender=extender,
        )
        self.position = 0
        self.listings = 0
        """Those that it asked for."""
        self.replies: dict[int, BindReply] = {}
        self.done: list[effects.Effect] = []
        self.sends: list[effects.Send] = []
        self.faults: deque[str] = deque()
        """What happens to the next sends: `ok`, `lost ack`, `lost`, `late`, `no number`, `hold`."""
        self.may_relist = False
        """Whether its view may find that it has to be listed anew."""
        self.stale_fence: effects.FenceFound | None = None
        """What the next read of the fence says, instead of the truth."""
        self.held: list[effects.Send] = []
        self._tickets = itertools.count(1)

    # ---- driving

    def elect(self, lease_epoch: int = 1) -> "Term":
        self.step(effects.Elected(lease_epoch))
        return self

    def step(self, message: effects.Message) -> None:
        pending = deque([message])
        while pending:
            for effect in self.core.step(pending.popleft(), self.stage.now):
                self.done.append(effect)
                answer = self.carry_out(effect)
                if answer is not None:
                    pending.append(answer)

    def carry_out(self, effect: effects.Effect) -> effects.Message | None:
        match effect:
            case effects.Send():
                self.sends.append(effect)
                return self.send(effect)
            case effects.ReadFence():
                return self.read_fence() if effect.delay_s < LOOK_AGAIN_S else None
            case effects.Inspect():
                found = {subject: self.stored(subject) for subject in effect.subjects}
                there = {subject: one for subject, one in found.items() if one is not None}
                return effects.Inspected(effect.batch_id, self.read_fence(), there)
            case effects.ReadBindings():
                return effects.BindingsRead(
                    {pod.uid: self.stored(subjects.binding(pod.namespace, pod.name, pod.uid)) for pod in effect.pods}
                )
            case effects.StartListing() | effects.Relist():
                self.listings += 1
                assert self.listings < MAX_LISTINGS, "it lists for ever"
                self.list_all()
                return effects.Listed(self.tombstones())
            case effects.Reply():
                self.replies[effect.ticket] = effect.reply
        return None

    def send(self, send: effects.Send) -> effects.Message | None:
        fault = self.faults.popleft() if self.faults else "ok"
        match fault:
            case "lost ack":
                self.write(send)
                return effects.Unclear(send.batch_id, "lost ack")
            case "lost":
                return effects.Unclear(send.batch_id, "lost")
            case "no number":
                return effects.Unclear(send.batch_id, "10164")
            case "late":
                self.held.append(send)
                return effects.Unclear(send.batch_id, "time-out")
            case "hold":
                self.held.append(send)
                return None
            case _:
                return self.write(send)

    def write(self, send: effects.Send) -> effects.Message:
        """What the binder's writer says of it."""
        messages = [
            Outgoing(write.subject, write.payload, write.expect, expires=write.expires) for write in send.writes
        ]
        match self.stage.stream.publish_batch(messages, send.batch_id):
            case Ack(sequence=sequence):
                return effects.Applied(send.batch_id, sequence)
            case Conflict(last_sequence=there):
                return effects.Conflicted(send.batch_id, there)
            case error:
                return effects.Unclear(send.batch_id, str(error))

    def release_held(self) -> list[effects.Message]:
        """What was held up arrives now; its answers are returned, not told."""
        held, self.held = self.held, []
        return [self.write(send) for send in held]

    def read_fence(self) -> effects.FenceFound:
        if self.stale_fence is not None:
            found, self.stale_fence = self.stale_fence, None
            return found
        return writer.fence_of(self.stage.stream.find(subjects.FENCE))

    def stored(self, subject: str) -> effects.Stored | None:
        there = self.stage.stream.find(subject)
        return None if there is None else writer.stored_of(there)

    # ---- the view

    def list_all(self) -> None:
        stream = self.stage.stream
        self.view.begin_listing()
        for delivery in stream.listed():
            self.view.apply(delivery)
        changes = self.view.end_listing(stream.last)
        assert all(isinstance(effect, DeadDelivery) for effect in self.view.take_effects())
        self.position = stream.last
        if changes:
            self.step(effects.Changed(changes))

    def tombstones(self) -> list[PodRef]:
        found: list[PodRef] = []
        for message in self.stage.stream.held():
            if not message.subject.startswith("placement.bindings.") or headers.TTL in message.headers:
                continue
            if isinstance(writer.stored_of(message).placement, Tombstone):
                pod = subjects.parse_pod(message.subject)
                found.append(PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid))
        return found

    def pump(self) -> None:
        """Follow the stream to its end."""
        for delivery in self.stage.stream.after(self.position):
            self.follow(delivery)
        self.position = self.stage.stream.last
        self.view.advance(self.position)

    def follow(self, delivery: Delivery) -> None:
        """One message reaches the view."""
        self.position = delivery.sequence
        if delivery.subject.startswith(FOLLOWED):
            changes = self.view.apply(delivery)
            if changes:
                self.step(effects.Changed(changes))
        self.view.advance(self.position)
        wanted = [effect for effect in self.view.take_effects() if isinstance(effect, RelistNeeded)]
        assert self.may_relist or not wanted
        if wanted:
            self.list_all()
            self.step(effects.Listed(self.tombstones()))

    # ---- requests

    def ask(
        self, *decisions: Decision, session: str = "s1", wait: bool = True, digest: dict[str, str] | None = None
    ) -> int:
        """Send a request; returns its ticket."""
        ticket = next(self._tickets)
        request = BindRequest(session=session, decisions=decisions, digest=digest or {})
        self.step(effects.Requested(ticket, request))
        if wait:
            self.stage.pass_time(GATHER_S)
            self.stage.pass_time(0.003)  # the view may have been a message short of the position
        return ticket

    def answers(self, ticket: int) -> tuple[BindAnswer, ...]:
        return self.replies[ticket].answers

    def bind(self, *decisions: Decision, session: str = "s1") -> list[str]:
        """Results of a request that is answered at once."""
        return [answer.result for answer in self.answers(self.ask(*decisions, session=session))]

    def of(self, kind: type[Any]) -> list[Any]:
        """Effects of one kind so far."""
        return [effect for effect in self.done if isinstance(effect, kind)]


class Stage:
    """The stream, the terms on it, and the clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.stream = ClusterStream(lambda: self.now)
        self.terms: list[Term] = []
        self._numbers = itertools.count(1)

    def term(self, name: str = "binder-a", profile: Profile = PROFILE, extender: Extender | None = None) -> Term:
        term = Term(self, name, profile, extender)
        self.terms.append(term)
        return term

    def serving(self, name: str = "binder-a", profile: Profile = PROFILE) -> Term:
        term = self.term(name, profile).elect()
        assert term.core.phase is Phase.SERVING
        return term

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for term in self.terms:
            if term.core.phase is not Phase.DEPOSED:
                term.pump()
                term.step(effects.Tick())
                term.pump()

    # ---- objects

    def node(self, name: str = "n1", cpu: str = "4", pods: str = "110", **spec: Any) -> None:
        self.put_object("nodes", objects.node(name, cpu=cpu, pods=pods, **spec))

    def pod(self, name: str, cpu: str = "1", host_port: int = 0, phase: str = "", **more: Any) -> None:
        """:param more: as of the builder of pods"""
        if host_port:
            more["container"] = {"ports": [{"containerPort": host_port, "hostPort": host_port}]}
        status = {"phase": phase} if phase else None
        self.put_object("pods", objects.pod(name, cpu=cpu, status=status, **more))

    def put_object(self, resource: str, document: dict[str, Any]) -> None:
        self.stream.put(stored.version(resource, document))
        self.pump()

    def remove(self, resource: str, name: str) -> None:
        """Write the deletion marker."""
        there = self.stream.find(subjects.object_(resource, "default" if resource == "pods" else "", name))
        assert there is not None
        self.stream.put(stored.marker(resource, stored.document(there)))
        self.pump()

    def status(self, name: str, node: str = "n1", ended: bool = True, phase: str = "Succeeded") -> None:
        fact = PodStatusFact(
            namespace="default",
            name=name,
            uid=uid_of(name),
            node=node,
            phase=phase,
            ended=ended,  # pyright: ignore[reportArgumentType]
        )
        self.stream.put(stored.pod_status(fact))
        self.pump()

    def pump(self) -> None:
        for term in self.terms:
            term.pump()

    def decide(
        self,
        name: str,
        node: str = "n1",
        attempt: str = "",
        number: int = 0,
        uid: str = "",
        position: int | None = None,
    ) -> Decision:
        number = number or next(self._numbers)
        attempt = attempt or f"1-{name}"
        record = AttemptRecord(
            namespace="default",
            name=name,
            uid=uid or uid_of(name),
            attempt=attempt,
            outcome="scheduled",
            at=1.0,
            node=node,
        )
        return Decision(
            namespace="default",
            name=name,
            uid=uid or uid_of(name),
            attempt=attempt,
            node=node,
            number=number,
            position=self.stream.last if position is None else position,
            record=record,
            trace=f"trace-{name}",
        )

    def move_fence(self, holder: str, after: Callable[[Fence], int] = lambda fence: fence.epoch + 1) -> None:
        """Somebody else takes over, as by a lease that we lost unawares."""
        fence = self.stream.fence()
        moved = Fence(epoch=after(fence), n=fence.n, batch=f"{holder}.1", holder=holder)
        self.stream.put(stored.fence(moved))


def uid_of(name: str) -> str:
    return f"uid-{name}"


def binding_subject(name: str, uid: str = "") -> str:
    return subjects.binding("default", name, uid or uid_of(name))


def foreign_binding(name: str, node: str = "n1", attempt: str = "9-x") -> Outgoing:
    """A binding that our term did not write and its view does not know."""
    return stored.binding(BoundPod(namespace="default", name=name, uid=uid_of(name), node=node, attempt=attempt))


__all__ = ["BoundPod", "Release", "Stage"]
