"""What happened in a replay, folded into curves over the time of the recording. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from podyard.bench.replay.fragmentation import Devices, Requests, Taken
from podyard.bench.replay.plan import Plan
from podyard.bench.replay.rows import WHOLE_GPU, NodeRow

POINTS: Final = 400
"""Of a curve, at even distances."""
What = Literal["created", "bound", "ended", "removed"]


class Moment(NamedTuple):
    """Something that happened to a pod. `ended`: its binding was released; `removed`: its object is gone."""

    at: float
    """Seconds from the beginning of the replay."""
    what: What
    pod: int
    """Its number in the plan."""
    node: int = -1
    """That of the node, where it was bound."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one time. Shares are from 0 to 1."""

    cpu: float
    """Requested by bound pods, of what is allocatable; as `memory` and `gpu`."""
    memory: float
    gpu: float
    fragmented: float
    """Of the free GPUs, what the workload cannot use."""
    fragmented_of_all: float
    """The same, of all GPUs."""
    bound: int
    waiting: int


class Point(State, frozen=True, kw_only=True):
    """A point of the curves."""

    recorded_s: float
    """Second of the recording."""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """A curve in figures."""

    mean: float
    """Over time."""
    peak: float
    end: float


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """All curves."""

    points: tuple[Point, ...]
    cpu: Level
    memory: Level
    gpu: Level
    fragmented: Level
    fragmented_of_all: Level
    bound: Level
    waiting: Level
    split: int
    """Pods that were bound to a node none of whose devices had the room, though all together had it."""
    overloaded: tuple[str, ...]
    """Nodes that held more than they have. Always empty, or a rule was broken."""


LEVELS: Final = State.__struct_fields__


def fold(plan: Plan, moments: Iterable[Moment], seconds: float) -> Curves:
    """
    :param moments: in any order; those of one time in the order in which they happened
    :param seconds: how long the replay lasted
    """
    cluster = _Cluster(plan)
    course = _Course(plan, seconds, cluster.state())
    for moment in sorted(moments, key=_time):
        course.until(moment.at)
        cluster.take(moment)
        course.state = cluster.state()
    course.until(seconds)
    return Curves(
        points=course.points(),
        **course.levels(),
        split=cluster.split,
        overloaded=tuple(sorted(cluster.overloaded)),
    )


def waited(moments: Iterable[Moment]) -> Iterator[tuple[int, float]]:
    """Pods that were bound, each with the seconds that it had waited."""
    created: dict[int, float] = {}
    for moment in sorted(moments, key=_time):
        if moment.what == "created":
            created[moment.pod] = moment.at
        elif moment.what == "bound" and moment.pod in created:
            yield moment.pod, moment.at - created.pop(moment.pod)


def _time(moment: Moment) -> float:
    return moment.at


class _Course:
    """How states follow each other."""

    def __init__(self, plan: Plan, seconds: float, state: State) -> None:
        self._plan = plan
        self._seconds = seconds
        self.state = state
        self._now = 0.0
        self._sums = dict.fromkeys(LEVELS, 0.0)
        self._peaks = dict.fromkeys(LEVELS, 0.0)
        self._points: list[Point] = []

    def until(self, at: float) -> None:
        """The state lasts until then; what is behind the end counts as at the end."""
        at = min(max(self._now, at), self._seconds)
        if at == self._now:
            return
        while (next_at := len(self._points) * self._seconds / POINTS) < at:
            self._points.append(self._point(next_at))
        for name in LEVELS:
            value = getattr(self.state, name)
            self._sums[name] += value * (at - self._now)
            self._peaks[name] = max(self._peaks[name], value)
        self._now = at

    def points(self) -> tuple[Point, ...]:
        """Those at even distances, and the end."""
        return (*self._points, self._point(self._seconds))

    def levels(self) -> dict[str, Level]:
        """Of each curve."""
        found: dict[str, Level] = {}
        for name in LEVELS:
            end = getattr(self.state, name)
            mean = self._sums[name] / self._seconds if self._seconds > 0 else end
            found[name] = Level(mean=mean, peak=max(self._peaks[name], end), end=end)
        return found

    def _point(self, at: float) -> Point:
        return Point(recorded_s=round(self._plan.recorded_at(at), 1), **msgspec.structs.asdict(self.state))


class _Node:
    """What is free on a node."""

    def __init__(self, row: NodeRow) -> None:
        self.row = row
        self.cpu, self.memory = row.cpu_milli, row.memory_mib
        self.gpu = row.gpus * WHOLE_GPU
        self.devices = Devices(row.gpus)
        self.unusable = 0.0


class _Cluster:
    """What is bound where."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._nodes = [_Node(row) for row in plan.nodes]
        self._requests = Requests(plan.pods)
        self._placed: dict[int, tuple[_Node, list[Taken]]] = {}
        self._waiting: set[int] = set()
        self._all = (
            sum(row.cpu_milli for row in plan.nodes),
            sum(row.memory_mib for row in plan.nodes),
            sum(row.gpus for row in plan.nodes) * WHOLE_GPU,
        )
        self._used = [0, 0, 0]
        self._unusable = 0.0
        self.split = 0
        self.overloaded: set[str] = set()
        idle: dict[tuple[int, int, int, str], float] = {}
        for node in self._nodes:
            kind = (node.cpu, node.memory, node.gpu, node.row.model)
            if kind not in idle:
                idle[kind] = self._looked_at(node)
            node.unusable = idle[kind]
            self._unusable += node.unusable

    def take(self, moment: Moment) -> None:
        """It happens. What cannot, such as a second binding, changes nothing."""
        pod = moment.pod
        if moment.what == "created":
            self._waiting.add(pod)
        elif moment.what == "bound" and pod not in self._placed:
            self._waiting.discard(pod)
            self._place(pod, self._nodes[moment.node])
        elif moment.what == "ended" and pod in self._placed:
            self._free(pod)
        elif moment.what == "removed":
            self._waiting.discard(pod)

    def state(self) -> State:
        """As it is now."""
        cpu, memory, gpu = (_share(used, whole) for used, whole in zip(self._used, self._all, strict=True))
        free = self._all[2] - self._used[2]
        return State(
            cpu=cpu,
            memory=memory,
            gpu=gpu,
            fragmented=_share(self._unusable, free),
            fragmented_of_all=_share(self._unusable, self._all[2]),
            bound=len(self._placed),
            waiting=len(self._waiting),
        )

    def _place(self, pod: int, node: _Node) -> None:
        row = self._plan.pods[pod]
        taken, whole = node.devices.take(row.gpus, row.gpu_milli) if row.gpus else ([], True)
        self.split += not whole
        self._placed[pod] = (node, taken)
        self._change(node, (row.cpu_milli, row.memory_mib, row.gpu_total_milli))
        if min(node.cpu, node.memory, node.gpu) < 0:
            self.overloaded.add(node.row.name)

    def _free(self, pod: int) -> None:
        row = self._plan.pods[pod]
        node, taken = self._placed.pop(pod)
        node.devices.give_back(taken)
        self._change(node, (-row.cpu_milli, -row.memory_mib, -row.gpu_total_milli))

    def _change(self, node: _Node, amounts: Sequence[int]) -> None:
        node.cpu, node.memory, node.gpu = (
            free - amount for free, amount in zip((node.cpu, node.memory, node.gpu), amounts, strict=True)
        )
        self._used = [used + amount for used, amount in zip(self._used, amounts, strict=True)]
        before, node.unusable = node.unusable, self._looked_at(node)
        self._unusable += node.unusable - before

    def _looked_at(self, node: _Node) -> float:
        if not node.row.gpus:
            return 0.0
        return self._requests.unusable(node.devices.free, node.cpu, node.memory, node.row.model)


def _share(part: float, whole: float) -> float:
    return max(0.0, part / whole) if whole > 0 else 0.0
