"""A stage for the binder's core: a model of the CLUSTER stream, reigns on it whose effects are carried out at once, and faults."""

import itertools
import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from podyard.binder.core import effects
from podyard.binder.core.binder import Binder, Phase
from podyard.bus.delivery import Delivery
from podyard.cluster.view import ClusterView
from podyard.framework.extenders import Extender
from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.proto import codec, headers, streams, subjects
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, Decision
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import PodRef
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Placement, Release, Tombstone

PROFILE = default_profile()
GATHER_S = 0.011
MOST_MESSAGES = 1000
"""Of one atomic batch. Source: ADR-50."""
FOLLOWED = ("cluster.", "placement.commits.", subjects.FENCE)


class Message(NamedTuple):
    sequence: int
    payload: bytes
    headers: dict[str, str]


class Stream:
    """One message a subject; atomic batches as ADR-50, errors as NATS.md 2."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.last = 0
        self.commits: list[CommitRecord] = []
        """Every commit record ever written, in order."""

    def write(self, batch_id: str, writes: Sequence[effects.Write]) -> effects.Message:
        if len({write.subject for write in writes}) < len(writes):
            return effects.Unclear(batch_id, "10164: a subject twice")
        assert len(writes) <= MOST_MESSAGES, "the server abandons a larger batch"
        assert all(len(write.payload) <= streams.MAX_PAYLOAD_BYTES for write in writes), (
            "the server takes no such message"
        )
        for write in writes:
            there = self.messages.get(write.subject)
            if (there.sequence if there else 0) != write.expect:
                return effects.Conflicted(batch_id, there.sequence if there else 0)
        for write in writes:
            self.put(write.subject, write.payload, write.expect, write.ttl_s)
            if write.subject.startswith("placement.commits."):
                self.commits.append(codec.decode(CommitRecord, write.payload))
        return effects.Applied(batch_id, self.last)

    def put(
        self, subject: str, payload: bytes, expect: int | None = None, ttl_s: int | None = None, **more: str
    ) -> int:
        self.last += 1
        before = self.messages.pop(subject, None)
        lines = {
            headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(
                expect if expect is not None else before.sequence if before else 0
            ),
            **more,
        }
        if ttl_s is not None:
            lines[headers.TTL] = f"{ttl_s}s"
        self.messages[subject] = Message(self.last, payload, lines)
        return self.last

    def fence(self) -> Fence:
        return codec.decode(Fence, self.messages[subjects.FENCE].payload)

    def placement(self, name: str) -> Binding | Tombstone | None:
        found = self.messages.get(binding_subject(name))
        return codec.decoder(Placement).decode(found.payload) if found else None

    def live(self) -> dict[str, str]:
        """Node by name of the pods that the commit records leave bound."""
        bound: dict[str, str] = {}
        for record in self.commits:
            bound.update({pod.name: pod.node for pod in record.bindings})
            for release in record.releases:
                bound.pop(release.name, None)
        return bound


class Reign:
    """One binder core with its view; effects are carried out at once, except where a fault says otherwise."""

    def __init__(self, stage: "Stage", name: str, profile: Profile, extender: Extender | None = None) -> None:
        self.stage = stage
        self.view = ClusterView()
        self.core = Binder(
            self.view,
            {profile.name: profile},
            holder=name,
            session=name,
            child_trace=lambda trace: trace + "/bind",
            binding_extender=extender,
        )
        self.position = 0
        self.replies: dict[int, BindReply] = {}
        self.done: list[effects.Effect] = []
        self.sends: list[effects.Send] = []
        self.faults: deque[str] = deque()
        """What happens to the next sends: `ok`, `lost ack`, `lost`, `late`, `no number`, `hold`."""
        self.stale_fence: effects.FenceFound | None = None
        """What the next read of the fence says, instead of the truth."""
        self.held: list[effects.Send] = []
        self._tickets = itertools.count(1)

    # ---- driving

    def elect(self, lease_epoch: int = 1) -> "Reign":
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
        stream = self.stage.stream
        match effect:
            case effects.Send():
                self.sends.append(effect)
                return self.send(effect)
            case effects.ReadFence():
                return self.read_fence()
            case effects.Inspect():
                found = {s: self.stored(s) for s in effect.subjects if s in stream.messages}
                return effects.Inspected(effect.batch_id, self.read_fence(), found)
            case effects.ReadBindings():
                subjects_ = {pod.uid: subjects.binding(pod.namespace, pod.name, pod.uid) for pod in effect.pods}
                return effects.BindingsRead(
                    {uid: self.stored(s) if s in stream.messages else None for uid, s in subjects_.items()}
                )
            case effects.StartListing() | effects.Relist():
                self.list_all()
                return effects.Listed(self.tombstones())
            case effects.Reply():
                self.replies[effect.ticket] = effect.reply
        return None

    def send(self, send: effects.Send) -> effects.Message | None:
        fault = self.faults.popleft() if self.faults else "ok"
        match fault:
            case "lost ack":
                self.stage.stream.write(send.batch_id, send.writes)
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
                return self.stage.stream.write(send.batch_id, send.writes)

    def release_held(self) -> list[effects.Message]:
        """What was held up arrives now; its answers are returned, not told."""
        held, self.held = self.held, []
        return [self.stage.stream.write(send.batch_id, send.writes) for send in held]

    def read_fence(self) -> effects.FenceFound:
        if self.stale_fence is not None:
            found, self.stale_fence = self.stale_fence, None
            return found
        there = self.stage.stream.messages.get(subjects.FENCE)
        return (
            effects.FenceFound(None, 0)
            if there is None
            else effects.FenceFound(self.stage.stream.fence(), there.sequence)
        )

    def stored(self, subject: str) -> effects.Stored:
        there = self.stage.stream.messages[subject]
        placement = codec.decoder(Placement).decode(there.payload) if "bindings" in subject else None
        return effects.Stored(there.sequence, placement, headers.TTL in there.headers)

    # ---- the view

    def list_all(self) -> None:
        stream = self.stage.stream
        self.view.begin_listing()
        for subject, found in list(stream.messages.items()):
            if not subject.startswith("placement.commits."):
                self.view.apply(_delivery(subject, found))
        changes = self.view.end_listing(stream.last)
        self.position = stream.last
        if changes:
            self.step(effects.Changed(changes))

    def tombstones(self) -> list[PodRef]:
        found: list[PodRef] = []
        for subject, message in self.stage.stream.messages.items():
            if not subject.startswith("placement.bindings.") or headers.TTL in message.headers:
                continue
            if isinstance(codec.decoder(Placement).decode(message.payload), Tombstone):
                pod = subjects.parse_pod(subject)
                found.append(PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid))
        return found

    def pump(self) -> None:
        """Follow the stream to its end."""
        while self.position < self.stage.stream.last:
            ahead = [(m.sequence, s) for s, m in self.stage.stream.messages.items() if m.sequence > self.position]
            self.position, subject = min(ahead) if ahead else (self.stage.stream.last, "")
            if subject.startswith(FOLLOWED):
                changes = self.view.apply(_delivery(subject, self.stage.stream.messages[subject]))
                if changes:
                    self.step(effects.Changed(changes))
            self.view.advance(self.position)
            assert not self.view.take_effects()

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
    """The stream, the reigns on it, and the clock."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.now = 1000.0
        self.reigns: list[Reign] = []
        self._numbers = itertools.count(1)

    def reign(self, name: str = "binder-a", profile: Profile = PROFILE, extender: Extender | None = None) -> Reign:
        reign = Reign(self, name, profile, extender)
        self.reigns.append(reign)
        return reign

    def serving(self, name: str = "binder-a", profile: Profile = PROFILE) -> Reign:
        reign = self.reign(name, profile).elect()
        assert reign.core.phase is Phase.SERVING
        return reign

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for reign in self.reigns:
            if reign.core.phase is not Phase.DEPOSED:
                reign.pump()
                reign.step(effects.Tick())
                reign.pump()

    # ---- objects

    def node(self, name: str = "n1", cpu: str = "4", pods: str = "110", **spec: Any) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": spec,
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}},
        }
        self.put_object("nodes", "", name, f"uid-{name}", document)

    def pod(
        self,
        name: str,
        cpu: str = "1",
        uid: str = "",
        host_port: int = 0,
        phase: str = "",
        deleting: bool = False,
        **spec: Any,
    ) -> None:
        container: dict[str, Any] = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        if host_port:
            container["ports"] = [{"containerPort": host_port, "hostPort": host_port}]
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": uid or uid_of(name)},
            "spec": {"containers": [container], **spec},
        }
        if deleting:
            document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if phase:
            document["status"] = {"phase": phase}
        self.put_object("pods", "default", name, uid or uid_of(name), document)

    def put_object(self, resource: str, namespace: str, name: str, uid: str, document: dict[str, Any]) -> None:
        event = ClusterEvent(
            resource=resource,
            namespace=namespace,
            name=name,
            uid=uid,
            who="test",
            object=msgspec.Raw(json.dumps(document).encode()),
        )
        self.stream.put(subjects.object_(resource, namespace, name), codec.encode(event))
        self.pump()

    def remove(self, resource: str, name: str) -> None:
        """Write the deletion marker."""
        namespace = "default" if resource == "pods" else ""
        event = ClusterEvent(
            resource=resource, namespace=namespace, name=name, uid="", op="delete", who="test", object=codec.NULL
        )
        self.stream.put(
            subjects.object_(resource, namespace, name), codec.encode(event), **{headers.OPERATION: headers.DELETED}
        )
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
        self.stream.put(subjects.pod_status(node, "default", name, uid_of(name)), codec.encode(fact))
        self.pump()

    def pump(self) -> None:
        for reign in self.reigns:
            reign.pump()

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
        self.stream.put(subjects.FENCE, codec.encode(moved))


def uid_of(name: str) -> str:
    return f"uid-{name}"


def binding_subject(name: str, uid: str = "") -> str:
    return subjects.binding("default", name, uid or uid_of(name))


def foreign_binding(name: str, node: str = "n1", attempt: str = "9-x") -> bytes:
    """A binding that our reign did not write and its view does not know."""
    return codec.encode(Binding(namespace="default", name=name, uid=uid_of(name), node=node, attempt=attempt))


def _delivery(subject: str, message: Message) -> Delivery:
    return Delivery(subject, message.payload, message.sequence, 0.0, message.headers)


__all__ = ["BoundPod", "Release", "Stage"]
