"""`bench growth`: what every process takes in memory while changes come for a long time, each with names that
nobody has seen before.

All services run against a real NATS server, with retention times divided, so that what is kept for a time has
come and gone many times over. Pods are created, bound, relabelled, fail, succeed and are deleted; nodes
change their taints, labels and resources. As many live at the end as at the beginning, so memory that still
grows in the second half is memory that nothing gives back.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import anyio
import msgspec
import psutil

from podyard.bench import churn, load
from podyard.bench.churn import Document, StoredNode
from podyard.bus import Ack, Bus, Outgoing
from podyard.bus.errors import Unclear
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, ObjectsReply
from podyard.proto.placement import CommitRecord

SAMPLES: Final = 400
"""Looks at the memory in a run, about."""
MOST_WAITING: Final = 512
"""Pods that may wait for their binding before the next ones are created."""
STALLED_AFTER_S: Final = 120.0
FAILS_AFTER_ROUNDS: Final = 4
RELABELLED_AFTER_ROUNDS: Final = 2
REQUEST_TIMEOUT_S: Final = 60.0
GRACE_S: Final = 1
BEAT_S: Final = 10.0
"""Between two signs of life of the nodes whose agent is played here: `workloads` waits 50 s for one."""
CUSTOM_ROUNDS: Final = 16
"""A kind of its own lives so many rounds."""


class GrowthError(Exception):
    """The run did not go as it must for the figures to mean anything."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Memory at one moment. MB are 10^6 bytes, resident."""

    at_s: float
    """Since the first change."""
    played: int
    """Changes that the benchmark made itself."""
    changes: int
    """All that CLUSTER has stored since the first: what services made of them (bindings, statuses, releases,
    markers) is among them."""
    memory_mb: dict[str, float]


class GrowthResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    changes: int
    """Stored in CLUSTER."""
    played: int
    """Of these, by the benchmark itself."""
    seconds: float
    changes_per_second: float
    nodes: int
    living_pods: int
    retention_divided_by: int
    slopes_mb: dict[str, float]
    """Growth of each process over the second half, MB per 100,000 changes."""
    samples: tuple[Sample, ...]


Tell = Callable[[Sample], None]


class Growth:
    """One run over running services.

    :param pids: of the processes to look at, by name
    :param tell: called with every sample
    """

    def __init__(self, bus: Bus, pids: Mapping[str, int], *, nodes: int, living: int, tell: Tell) -> None:
        self._bus = bus
        self._pids = pids
        self._nodes_wanted = nodes
        self._rounds_living = max(FAILS_AFTER_ROUNDS + 2, living // churn.CREATED)
        self._tell = tell
        self._nodes: list[StoredNode] = []
        self._rounds: deque[list[Document]] = deque()
        """Pods that live, by the round in which they were created, oldest first."""
        self._waiting: dict[str, None] = {}
        """Uids of pods that will be bound and are not yet."""
        self._bound: dict[str, tuple[str, str]] = {}
        """Name and node by uid of pods on nodes whose agent is played here."""
        self._early: dict[str, None] = {}
        """Uids whose binding was heard of before the answer to their creation."""
        self._to_fail: deque[list[str]] = deque()
        self._uids: dict[str, str] = {}
        self._played = 0
        self._stored = 0
        self._round = 0
        self._first_sequence = 0
        self._begun = 0.0
        self._beats_at = 0.0
        self._samples: list[Sample] = []
        self._progress = anyio.Event()

    async def run(self, changes: int, within_s: float) -> tuple[Sample, ...]:
        """Play until CLUSTER has stored so many changes, or so many seconds have passed.

        :raises GrowthError: changes are refused, or pods are not bound
        """
        await load.create(self._bus, load.requests(churn.node(number, 0) for number in range(self._nodes_wanted)))
        self._nodes = [await self._stored_node(number) for number in range(self._nodes_wanted)]
        subscription = await self._bus.subscribe(subjects.ALL_COMMITS, self._on_commit)
        self._first_sequence = await self._bus.last_sequence(streams.CLUSTER.name)
        self._begun = time.monotonic()
        await self._sample()
        next_sample = 0.0
        while self._stored < changes and time.monotonic() - self._begun < within_s:
            self._beat()
            await self._play()
            self._stored = await self._bus.last_sequence(streams.CLUSTER.name) - self._first_sequence
            if self._stored >= next_sample:
                await self._sample()
                next_sample = self._stored + changes / SAMPLES
        await self._sample()
        await subscription.close()
        return tuple(self._samples)

    def _beat(self) -> None:
        """Nodes whose agent is played here live."""
        now = time.monotonic()
        if now < self._beats_at:
            return
        self._beats_at = now + BEAT_S
        for number in filter(churn.plays_agent, range(self._nodes_wanted)):
            beat = churn.heartbeat(number)
            self._bus.send(beat.subject, beat.payload)

    async def _play(self) -> None:
        """One round."""
        self._round += 1
        numbers = range(self._round * churn.CREATED, (self._round + 1) * churn.CREATED)
        created = [churn.pod(number, self._round) for number in numbers]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._create, created)
            tasks.start_soon(self._change_nodes)
            tasks.start_soon(self._relabel)
            tasks.start_soon(self._fail)
            tasks.start_soon(self._customs)
            if len(self._rounds) >= self._rounds_living:
                tasks.start_soon(self._delete, self._rounds.popleft())
        self._rounds.append(created)
        await self._until_bound()

    # ---- changes -------------------------------------------------------------------------------------------

    async def _create(self, documents: list[Document]) -> None:
        reply = await self._apply(documents, create_only=True)
        for document, result in zip(documents, reply.results, strict=True):
            if result.outcome != "created":
                raise GrowthError(f"{result.name} was not created: {result.outcome} {result.message} {result.errors}")
            self._uids[result.name] = result.uid
            if _will_be_bound(document) and result.uid not in self._early:
                self._waiting[result.uid] = None
        self._early.clear()
        self._to_fail.append([result.uid for result in reply.results])

    async def _relabel(self) -> None:
        if len(self._rounds) <= RELABELLED_AFTER_ROUNDS:
            return
        chosen = self._rounds[-RELABELLED_AFTER_ROUNDS][: churn.RELABELLED]
        await self._apply([churn.relabelled(document, self._round) for document in chosen], create_only=False)

    async def _delete(self, documents: Sequence[Document]) -> None:
        """Half with a grace period, half at once."""
        half = len(documents) // 2
        for part, grace_s in ((documents[:half], GRACE_S), (documents[half:], 0)):
            request = DeleteRequest(objects=churn.references(part), grace_period_s=grace_s, who="bench")
            await self._request(subjects.OBJECTS_DELETE, codec.encode(request))
            self._played += len(part)
        for document in documents:
            uid = self._uids.pop(document["metadata"]["name"], "")
            self._waiting.pop(uid, None)
            self._bound.pop(uid, None)

    async def _change_nodes(self) -> None:
        count = min(churn.NODES_CHANGED, len(self._nodes))
        first = self._round * count
        chosen = [self._nodes[(first + number) % len(self._nodes)] for number in range(count)]
        messages = [one.change(self._round) for one in chosen]
        answers = await self._bus.publish_many(messages, timeout_s=REQUEST_TIMEOUT_S)
        for one, answer in zip(chosen, answers, strict=True):
            match answer:
                case Ack():
                    one.sequence = answer.sequence
                case Unclear():
                    one.sequence = (await self._stored_node(one.number)).sequence
                case _:
                    raise GrowthError(f"a change of {churn.node_name(one.number)} was refused: {answer}")
        self._played += len(chosen)

    async def _fail(self) -> None:
        """Pods of an earlier round that are on nodes whose agent is played here; their status goes a moment
        later."""
        if len(self._to_fail) <= FAILS_AFTER_ROUNDS:
            return
        found = [(uid, *self._bound.pop(uid)) for uid in self._to_fail.popleft() if uid in self._bound]
        statuses = [churn.failed(churn.NAMESPACE, name, uid, node) for uid, name, node in found]
        answers = await self._bus.publish_many(statuses)
        markers = [churn.forgotten(status, ack.sequence) for status, ack in _stored(statuses, answers)]
        await self._bus.publish_many(markers)
        self._played += len(statuses) + len(markers)

    async def _customs(self) -> None:
        await self._apply([churn.custom(self._round)], create_only=True)
        if self._round > CUSTOM_ROUNDS:
            reference = churn.custom_reference(self._round - CUSTOM_ROUNDS)
            request = DeleteRequest(objects=(reference,), who="bench")
            await self._request(subjects.OBJECTS_DELETE, codec.encode(request))
            self._played += 1

    async def _apply(self, documents: Sequence[Document], *, create_only: bool) -> ObjectsReply:
        raws = tuple(msgspec.Raw(msgspec.json.encode(document)) for document in documents)
        request = ApplyRequest(objects=raws, who="bench", create_only=create_only, partial=True)
        reply = codec.decode(ObjectsReply, await self._request(subjects.OBJECTS_APPLY, codec.encode(request)))
        if reply.refused:
            raise GrowthError(reply.refused)
        self._played += len(documents)
        return reply

    async def _request(self, subject: str, payload: bytes) -> bytes:
        return (await self._bus.request(subject, payload, timeout_s=REQUEST_TIMEOUT_S)).payload

    # ---- what comes of it ----------------------------------------------------------------------------------

    def _on_commit(self, _subject: str, payload: bytes, _trace: str) -> None:
        try:
            record = codec.decode(CommitRecord, payload)
        except MessageError as error:
            raise GrowthError(f"a commit record cannot be read: {error}") from error
        for bound in record.bindings:
            if bound.uid in self._waiting:
                del self._waiting[bound.uid]
            else:
                self._early[bound.uid] = None
            if churn.plays_agent(int(bound.node.rpartition("-")[2])):
                self._bound[bound.uid] = bound.name, bound.node
        self._progress.set()

    async def _until_bound(self) -> None:
        """Until few enough wait.

        :raises GrowthError: nothing is bound any more
        """
        while len(self._waiting) > MOST_WAITING:
            self._beat()
            self._progress = anyio.Event()
            with anyio.move_on_after(STALLED_AFTER_S) as limit:
                await self._progress.wait()
            if limit.cancelled_caught:
                raise GrowthError(f"{len(self._waiting)} pods wait, none was bound for {STALLED_AFTER_S:.0f} s")

    async def _stored_node(self, number: int) -> StoredNode:
        subject = subjects.object_(subjects.NODES, "", churn.node_name(number))
        delivery = await self._bus.get(streams.CLUSTER.name, subject)
        if delivery is None:
            raise GrowthError(f"{subject} is not stored")
        return StoredNode(number, msgspec.json.decode(delivery.payload)["uid"], delivery.sequence)

    async def _sample(self) -> None:
        memory = {name: psutil.Process(pid).memory_info().rss / 1e6 for name, pid in self._pids.items()}
        sample = Sample(
            at_s=round(time.monotonic() - self._begun, 1),
            played=self._played,
            changes=self._stored,
            memory_mb={name: round(size, 2) for name, size in memory.items()},
        )
        self._samples.append(sample)
        self._tell(sample)


def _will_be_bound(document: Document) -> bool:
    """Whether some node takes it."""
    spec: dict[str, Any] = document["spec"]
    asked = spec["containers"][0]["resources"]["requests"]
    return "nodeSelector" not in spec and "nodeName" not in spec and len(asked) <= 2


def _stored(messages: Sequence[Outgoing], answers: Sequence[object]) -> list[tuple[Outgoing, Ack]]:
    """Those that were; a status may have been written by nobody else, so that the others' pods are gone."""
    return [(message, answer) for message, answer in zip(messages, answers, strict=True) if isinstance(answer, Ack)]


def slopes(samples: Sequence[Sample]) -> dict[str, float]:
    """Growth of each process over the second half of the changes, MB per 100,000 changes: the line of least
    squares."""
    last = samples[-1].changes
    half = [sample for sample in samples if sample.changes >= last / 2]
    names = half[0].memory_mb
    return {name: round(_slope((one.changes, one.memory_mb[name]) for one in half) * 1e5, 3) for name in names}


def _slope(points: Iterable[tuple[float, float]]) -> float:
    found = list(points)
    mean_x = sum(x for x, _ in found) / len(found)
    mean_y = sum(y for _, y in found) / len(found)
    spread = sum((x - mean_x) ** 2 for x, _ in found)
    return sum((x - mean_x) * (y - mean_y) for x, y in found) / spread if spread else 0.0


def result(samples: tuple[Sample, ...], *, nodes: int, living: int, divided_by: int) -> GrowthResult:
    """What a run found."""
    last = samples[-1]
    return GrowthResult(
        changes=last.changes,
        played=last.played,
        seconds=last.at_s,
        changes_per_second=round(last.changes / max(last.at_s, 0.1), 1),
        nodes=nodes,
        living_pods=living,
        retention_divided_by=divided_by,
        slopes_mb=slopes(samples),
        samples=samples,
    )
