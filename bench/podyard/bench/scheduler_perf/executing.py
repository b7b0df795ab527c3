"""The ops of a workload, done one after the other on a bus.

Source of what each does: kubernetes v1.36.2, test/integration/scheduler_perf/executor.go.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup

from podyard.bench.meters import ServerCounts
from podyard.bench.scheduler_perf import documents, moulds, planning, rehearsing
from podyard.bench.scheduler_perf.cluster import Cluster
from podyard.bench.scheduler_perf.config import (
    Barrier,
    Case,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    Sleep,
    StartCollectingMetrics,
    Step,
    StopCollectingMetrics,
    UpdateAny,
)
from podyard.bench.scheduler_perf.documents import Document, Files
from podyard.bench.scheduler_perf.figures import Bound
from podyard.bench.scheduler_perf.following import Follower, Wanted
from podyard.bench.scheduler_perf.histograms import Look
from podyard.bench.scheduler_perf.measuring import Meters, Reading
from podyard.bench.scheduler_perf.moulds import INDEX, NAME, UID, Mould
from podyard.bench.scheduler_perf.through_api import ThroughApi
from podyard.bus import Bus, Outgoing
from podyard.cli.errors import CliError, InputError
from podyard.cluster.keys import ObjectKey
from podyard.objects import admission
from podyard.proto import codec, subjects
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from podyard.runtime import clock

POLL_S: Final = 1.0
"""How often the reference looks whether what it waits for is the case."""
STALLED_AFTER_S: Final = 60.0
ATTEMPTED_WITHIN_S: Final = 600.0
LISTED: Final = 10_000
REQUEST_WITHIN_S: Final = 10.0
CHURN_MS: Final = 500
NOT_ATTEMPTED: Final = "activeQ"
RESIZE: Final = "resize"
IN_FLIGHT: Final = "inFlight"

Tell: TypeAlias = Callable[[int, int, str], None]


class StalledError(CliError):
    """What a workload waits for does not come."""


class Measured(msgspec.Struct, frozen=True):
    """What was seen of the measured part."""

    bound: list[Bound]
    started: float
    """Seconds since 1970."""
    stopped: float
    before: Reading
    after: Reading
    memory: dict[str, float]
    events: list[float]


class Executor:
    """One run of one workload.

    :param equal_churn: pods a second of another run: churn goes on as often for each pod as it did there, by
        the interval of the file; 0: by the clock
    :param pace: pods a second at which those that are measured are created; 0: as fast as they are stored
    :param api: by which objects are written; None: past it
    :param tell: told how far it is
    """

    def __init__(
        self,
        bus: Bus,
        case: Case,
        files: Files,
        follower: Follower,
        meters: Meters,
        *,
        equal_churn: float = 0.0,
        pace: float = 0.0,
        api: ThroughApi | None = None,
        tell: Tell,
    ) -> None:
        self.cluster = Cluster(bus, follower, api)
        self.rounds = 0
        self._by_api = api is not None
        self._bus = bus
        self._case = case
        self._files = files
        self._follower = follower
        self._meters = meters
        self._equal_churn = equal_churn
        self._pace = pace
        self._tell = tell
        self._expected: dict[str, int] = {}
        """Pods that a barrier has to wait for, by namespace."""
        self._events: list[float] | None = None
        self._before: Reading | None = None
        self._last: Reading | None = None
        self._memory: dict[str, float] = {}
        self._started = 0.0
        self._across_ops = False
        self.found: list[Measured] = []
        self._step = 0
        self._steps = 0

    async def run(self, steps: Sequence[Step]) -> list[Measured]:
        """All ops; each part that was measured.

        :raises CliError: something is refused, or does not come
        """
        self._steps = len(steps)
        if self._by_api:
            for one in sorted(rehearsing.rehearse(self._case, steps, self._files, by_api=True)):
                mould = self.cluster.mould(moulds.priority_class(one))
                await self.cluster.create([self.cluster.cast(mould, moulds.class_name(one))])
        async with anyio.create_task_group() as tasks:
            for number, step in enumerate(steps):
                self._step = number
                self._tell(number, len(steps), str(type(step).__struct_config__.tag))
                await self._do(step, number, tasks)
            tasks.cancel_scope.cancel()
        if self._before is not None:
            raise InputError(f"{self._case.name}: startCollectingMetrics without stopCollectingMetrics")
        return self.found

    async def _do(self, step: Step, number: int, tasks: TaskGroup) -> None:
        match step:
            case CreateNodes():
                await self._create_nodes(step, number)
            case CreateNamespaces():
                await self._create_namespaces(step)
            case CreatePods():
                await self._create_pods(step, number)
            case CreateAny():
                await self._create_any(step)
            case UpdateAny():
                await self._update_any(step)
            case DeletePods():
                await self._delete_pods(step, tasks)
            case Churn():
                await self._begin_churn(step, number, tasks)
            case Barrier():
                await self._barrier(step)
            case Sleep():
                await anyio.sleep(planning.seconds(step.duration))
            case StartCollectingMetrics():
                self._across_ops = True
                await self._begin(Wanted(frozenset(step.namespaces), tuple(step.label_selector.items())))
            case StopCollectingMetrics():
                await self._end()
            case _:
                raise AssertionError(f"the plan leaves no {type(step).__name__}")

    # what is created

    async def _create_nodes(self, op: CreateNodes, number: int) -> None:
        self._event()
        await self.cluster.create(self._node_messages(op, number))

    def _node_messages(self, op: CreateNodes, number: int) -> Iterator[Outgoing]:
        moulds: dict[bytes, Mould] = {}
        name = ""
        for document in documents.nodes(op, self._files, number, UID, NAME):
            if document["kind"] == "Node":
                name = self.cluster.name_for(document["metadata"])
            key = msgspec.json.encode(document)
            if key not in moulds:
                moulds[key] = self.cluster.mould(document)
            yield self.cluster.cast(moulds[key], name)

    async def _create_namespaces(self, op: CreateNamespaces) -> None:
        messages: list[Outgoing] = []
        for index in range(op.count):
            name = f"{op.prefix}-{index}"
            self._expected.setdefault(name, 0)
            if name in self.cluster.namespaces:
                continue
            document = documents.namespace(name)
            if op.namespace_template_path is not None:
                document = self._files.typed_plain(op.namespace_template_path, "Namespace")
                document["metadata"]["name"] = name
            messages.append(self.cluster.cast(self.cluster.mould(document), name))
        await self.cluster.create(messages)

    async def _namespace(self, name: str) -> None:
        self._expected.setdefault(name, 0)
        await self._namespace_object(name)

    async def _namespace_object(self, name: str) -> None:
        if name not in self.cluster.namespaces and name not in admission.ALWAYS_THERE:
            mould = self.cluster.mould(documents.namespace(name))
            await self.cluster.create([self.cluster.cast(mould, name)])

    async def _create_pods(self, op: CreatePods, number: int) -> None:
        namespace = op.namespace or f"namespace-{number}"
        await self._namespace(namespace)
        wanted = Wanted(frozenset((namespace,)))
        messages = self._pod_messages(op, namespace)
        if op.collect_metrics:
            self._across_ops = False
            await self._begin(wanted)
        else:
            self._event()
        if op.steady_state:
            await self._steadily(op, namespace, wanted)
        else:
            if self._pace and op.collect_metrics:
                await self._create_at_pace(messages)
            else:
                await self.cluster.create(messages)
            if op.skip_wait_to_completion:
                self._expected[namespace] += op.count
            else:
                await self._until_bound(wanted, op.count)
        if op.collect_metrics:
            await self._end()

    def _pod_messages(self, op: CreatePods, namespace: str) -> Iterator[Outgoing]:
        """Pods, each after its claim and volume. What is equal for all of them is admitted now."""
        path = op.pod_template_path or self._case.default_pod_template_path
        varies = path is not None and self._files.template(path).varies
        shared = None if varies or not op.count else self._pod_moulds(op, namespace, INDEX, 0)
        return self._pods(op, namespace, shared)

    def _pods(self, op: CreatePods, namespace: str, shared: list[tuple[Mould, Document]] | None) -> Iterator[Outgoing]:
        for index in range(op.count):
            for mould, metadata in shared or self._pod_moulds(op, namespace, index, index):
                name = self.cluster.name_for(metadata).replace(INDEX, str(index))
                yield self.cluster.cast(mould, name, index)

    def _pod_moulds(
        self, op: CreatePods, namespace: str, index: int | str, number: int
    ) -> list[tuple[Mould, Document]]:
        pod = documents.pod(op, self._files, self._case.default_pod_template_path, number)
        claimed = documents.claimed(op, self._files, namespace, index, pod)
        found: list[tuple[Mould, Document]] = []
        for document in (*((claimed.claim, claimed.volume) if claimed else ()), pod):
            metadata = dict(document["metadata"])
            place = "" if document["kind"] == "PersistentVolume" else namespace
            found.append((self.cluster.mould(document, place), metadata))
        return found

    async def _create_at_pace(self, messages: Iterator[Outgoing]) -> None:
        """Each pod at its time, with what comes before it."""
        began, pods = time.monotonic(), 0
        together: list[Outgoing] = []
        for message in messages:
            together.append(message)
            if subjects.parse_object(message.subject).resource == subjects.PODS:
                pods += 1
                await _at(began + pods / self._pace)
                await self.cluster.create(together)
                together = []

    async def _steadily(self, op: CreatePods, namespace: str, wanted: Wanted) -> None:
        """Pods that all go as soon as all are bound, again and again."""
        with anyio.move_on_after(planning.seconds(op.duration)):
            while True:
                await self.cluster.create(self._pod_messages(op, namespace))
                await self._commits_bring(lambda: self._follower.count(wanted) >= op.count, wanted, op.count)
                await self.cluster.delete(list(self.cluster.chosen(wanted)), grace_s=0)
                await self._commits_bring(lambda: self._follower.count(wanted) == 0, wanted, 0)
        await self._read()
        if not self._follower.bound:
            raise StalledError("no pod was bound while the steady state lasted", "give it more time: duration")

    async def _create_any(self, op: CreateAny) -> None:
        if op.namespace:
            await self._namespace(op.namespace)
        for index in range(op.count):
            document = self._files.document(op.template_path, index, op.count)
            name = self.cluster.name_for(document["metadata"])
            rehearsing.fit(document, op.namespace, op.template_path)
            self._event()
            await self.cluster.create([self.cluster.cast(self.cluster.mould(document, op.namespace), name)])

    async def _update_any(self, op: UpdateAny) -> None:
        if set(op.subresources) - {RESIZE}:
            raise InputError(
                f"{op.template_path}: subresources {', '.join(op.subresources)}: only resize is understood"
            )
        if op.namespace:
            await self._namespace(op.namespace)
        began = time.monotonic()
        for index in range(op.count):
            document = self._files.document(op.template_path, index, op.count)
            kind = rehearsing.fit(document, op.namespace, op.template_path)
            name: str = document["metadata"].get("name", "")
            if not name:
                raise InputError(f"{op.template_path}: an object that is to be updated needs a name")
            if op.update_per_second:
                await _at(began + (index + 1) / op.update_per_second)
            self._event()
            await self.cluster.update(ObjectKey(kind, op.namespace, name), document, resize=RESIZE in op.subresources)

    # what goes

    async def _delete_pods(self, op: DeletePods, tasks: TaskGroup) -> None:
        wanted = Wanted(frozenset((op.namespace,)), tuple(op.label_selector.items()))
        keys = list(self.cluster.chosen(wanted))

        async def delete() -> None:
            if not op.delete_pods_per_second:
                self._event()
                await self.cluster.delete(keys)
                return
            began = time.monotonic()
            for number, key in enumerate(keys):
                await _at(began + (number + 1) / op.delete_pods_per_second)
                self._event()
                await self.cluster.delete([key])

        if op.skip_wait_to_completion:
            tasks.start_soon(delete)
        else:
            await delete()

    async def _begin_churn(self, op: Churn, number: int, tasks: TaskGroup) -> None:
        namespace = op.namespace or f"namespace-{number}"
        await self._namespace_object(namespace)
        for path in op.template_paths:
            self._files.plain(path)
        tasks.start_soon(self._churn, op, namespace)

    async def _churn(self, op: Churn, namespace: str) -> None:
        interval = (op.interval_milliseconds or CHURN_MS) / 1000
        slots: list[list[ObjectKey | None]] = [[None] * op.number for _ in op.template_paths]
        ticker = _Ticker(interval, self._equal_churn * interval, self._follower)
        count = 0
        while op.mode == "recreate" or not op.number or count < op.number:
            await ticker.next()
            for place, path in enumerate(op.template_paths):
                if op.mode == "create":
                    await self._churn_one(path, namespace)
                    continue
                slot = count % op.number
                there = slots[place][slot]
                if there is not None:
                    await self.cluster.delete([there])
                    slots[place][slot] = None
                else:
                    slots[place][slot] = await self._churn_one(path, namespace)
            count += 1
            self.rounds += 1

    async def _churn_one(self, path: str, namespace: str) -> ObjectKey:
        document = self._files.plain(path)
        kind = admission.kind_of(document)
        name = self.cluster.name_for(document["metadata"])
        place = namespace if kind.namespaced else ""
        await self.cluster.create([self.cluster.cast(self.cluster.mould(document, place), name)])
        return ObjectKey(kind.resource, place, name)

    # waiting

    async def _barrier(self, op: Barrier) -> None:
        for one in op.namespaces:
            if one not in self._expected:
                raise InputError(f"{self._case.name}: barrier on {one}, a namespace that no op has named")
        labels = tuple(op.label_selector.items())
        for one in op.namespaces or sorted(self._expected):
            wanted = Wanted(frozenset((one,)), labels)
            if op.stage_requirement == "Attempted":
                await self._until_attempted(wanted, self._expected[one])
            else:
                await self._until_bound(wanted, self._expected[one])
        if op.stage_requirement != "Attempted":
            for one in op.namespaces or tuple(self._expected):
                del self._expected[one]

    async def _until_bound(self, wanted: Wanted, count: int) -> None:
        """Until so many pods are bound, and from there to where the reference would look again."""
        began = time.monotonic()
        await self._commits_bring(lambda: self._follower.count(wanted) >= count, wanted, count)
        if self._before is not None:
            await self._read()
        await _to_next_look(began)

    async def _commits_bring(self, done: Callable[[], bool], wanted: Wanted, count: int) -> None:
        def told() -> bool:
            if self._before is not None:
                self._tell(self._step, self._steps, f"{self._follower.noted_pods:,} pods bound")
            return done()

        if not await self._follower.until(told, STALLED_AFTER_S):
            raise StalledError(
                f"{self._follower.count(wanted)} of {count} pods are bound in {', '.join(wanted.namespaces)}, and none "
                f"more for {STALLED_AFTER_S:g} s",
                "see the services' logs: run it again with --data DIR",
            )

    async def _until_attempted(self, wanted: Wanted, count: int) -> None:
        """Until so many pods were tried at least once, as the queue tells."""
        began = time.monotonic()
        while time.monotonic() - began < ATTEMPTED_WITHIN_S:
            if await self._attempted(wanted) >= count:
                return
            await anyio.sleep(POLL_S)
        raise StalledError(
            f"not all of {count} pods in {', '.join(wanted.namespaces)} were tried in {ATTEMPTED_WITHIN_S:g} s",
            "see the services' logs: run it again with --data DIR",
        )

    async def _attempted(self, wanted: Wanted) -> int:
        """Pods that are bound, or were tried and wait."""
        [namespace] = wanted.namespaces
        untried: set[str] = set()
        for pool in (NOT_ATTEMPTED, IN_FLIGHT):
            request = QueueListRequest(pool=pool, namespace=namespace, limit=LISTED)
            answer = await self._bus.request(
                subjects.queue_verb("list"), codec.encode(request), timeout_s=REQUEST_WITHIN_S
            )
            reply = codec.decode(QueueListReply, answer.payload)
            if reply.position < self.cluster.position or reply.left_out:
                return -1
            untried |= {one.name for one in reply.pods if one.attempts == 0}
        there = [key.name for key in self.cluster.chosen(wanted)]
        return sum(name not in untried for name in there)

    # measuring

    async def _begin(self, wanted: Wanted) -> None:
        if self._before is not None:
            raise InputError(f"{self._case.name}: two parts that are measured overlap")
        self._follower.note(wanted)
        self._events = []
        told = await self._meters.told()
        server, stored = await self._meters.server()
        self._started = clock.now()
        self._before = self._last = self._reading(told, server, stored)

    async def _read(self) -> None:
        if self._before is None:
            return
        cpu_first = self._meters.cpu()
        server, stored = await self._meters.server()
        reading = self._reading(self._before.told, server, stored)
        self._last = msgspec.structs.replace(reading, cpu=cpu_first)
        self._memory = self._meters.memory()

    async def _end(self) -> None:
        before, last, wanted = self._before, self._last, self._follower.measured
        if before is None or last is None or wanted is None or self._events is None:
            raise InputError(f"{self._case.name}: stopCollectingMetrics without startCollectingMetrics")
        stopped = clock.now()
        self._follower.measured = None
        if last is before:
            await self._read()
            last = self._last or before
        told = await self._meters.told()
        self.found.append(
            Measured(
                bound=self._follower.noted,
                started=self._started,
                stopped=stopped,
                before=before,
                after=msgspec.structs.replace(last, told=told),
                memory=self._memory,
                events=self._events if self._across_ops else [],
            )
        )
        self._before = self._last = self._events = None

    def _reading(self, told: Look, server: ServerCounts | None, stored: int) -> Reading:
        return Reading(
            cpu=self._meters.cpu(),
            server=server,
            stored=stored,
            told=told,
            commits=self._follower.commits,
            released=self._follower.released,
            created=self.cluster.created,
            deleted=self.cluster.deleted,
            rounds=self.rounds,
        )

    def _event(self) -> None:
        if self._events is not None:
            self._events.append(clock.now())


class _Ticker:
    """When churn goes on: at intervals, or once so many more pods are bound."""

    def __init__(self, interval: float, pods: float, follower: Follower) -> None:
        self._interval = interval
        self._pods = pods
        self._follower = follower
        self._next_at = time.monotonic() + interval
        self._next_pods = pods

    async def next(self) -> None:
        if not self._pods:
            await _at(self._next_at)
            # as Go's ticker: what was missed is left out
            self._next_at = max(self._next_at + self._interval, time.monotonic())
            return
        await self._follower.until(lambda: self._follower.noted_pods >= self._next_pods, math.inf)
        self._next_pods += self._pods


async def _at(when: float) -> None:
    """Wait until a time of the steady clock; one that has passed is now."""
    await anyio.sleep(max(0.0, when - time.monotonic()))


async def _to_next_look(began: float) -> None:
    passed = time.monotonic() - began
    await anyio.sleep(-passed % POLL_S)
