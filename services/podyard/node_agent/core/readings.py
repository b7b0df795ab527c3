"""Synthetic readings: what a node's signals say of a moment, what of that cannot be, and what is made of it
for the eviction manager and for who asks what nodes use.

`Synthetic` is the one source of a virtual node. It is asked what there is (`at`), and told what is to be
collected (`collect`, `collect_images`); what cannot be read comes as `Failed`, with the reason.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from podyard.cluster import usages
from podyard.node_agent.core.eviction import signals as known
from podyard.node_agent.core.eviction.dialogue import Failed
from podyard.node_agent.core.eviction.file_systems import Collector
from podyard.node_agent.core.eviction.requests import of_container
from podyard.node_agent.core.eviction.stats import (
    ContainerStats,
    FsUsage,
    Observation,
    PodStats,
    Summary,
    VolumeStats,
)
from podyard.node_agent.core.images import Collection, ImagePolicy, Images
from podyard.objects.errors import ObjectError
from podyard.objects.pod import Pod
from podyard.objects.quantity import parse
from podyard.proto.signals import (
    FIELDS,
    ContainerUsage,
    Course,
    NodeSignals,
    NodeUsage,
    PodUsage,
    SignalValue,
    Unused,
    UsedResource,
    VolumeUsage,
)

LASTS: Final = 3
"""Looks of an eviction manager after which a measurement is too old to act on."""
CHANGE: Final = 0.05
"""Share of an amount by which it has changed if that is worth telling."""

_OF_CONTAINERS: Final[tuple[UsedResource, ...]] = ("memory", "disk", "inodes")
_MEMORY: Final = "memory.available"
_DISK: Final = "nodefs.available"
_OF_NODE: Final[dict[str, tuple[str, UsedResource]]] = {
    _MEMORY: ("memory", "memory"),
    _DISK: ("ephemeral-storage", "disk"),
}
"""Signals that follow from what pods use: what a node's object calls the resource, and what usage does."""
_ON_DISK: Final = (
    ("nodefs.available", "imagefs.available", "containerfs.available"),
    ("nodefs.inodesFree", "imagefs.inodesFree", "containerfs.inodesFree"),
)
"""Signals of the one file system of a virtual node: of its bytes, and of its inodes."""
_FOR_IMAGES: Final = ("imagefs.available", _DISK)
"""Signals that say what is left for images; the first that there is counts."""
_NOTHING: Final = Unused()


class _Line(NamedTuple):
    """A course whose points are all known."""

    times: tuple[float, ...]
    """UTC seconds."""
    amounts: tuple[int, ...]

    def at(self, now: float) -> int:
        after = bisect_right(self.times, now)
        if after == 0:
            return self.amounts[0]
        if after == len(self.times):
            return self.amounts[-1]
        begun, ended = self.times[after - 1], self.times[after]
        one, other = self.amounts[after - 1], self.amounts[after]
        return one + round((other - one) * (now - begun) / (ended - begun))


class Synthetic:
    """What the latest signals of a node say. State: its courses since they came in, what was collected."""

    def __init__(self, node: str) -> None:
        self.said = NodeSignals(node=node)
        """As they came in, without what nothing is known of."""
        self.observed_at = 0.0
        """UTC seconds, of what is measured once."""
        self.images = Images()
        """Those that nobody uses, as far as they were not collected."""
        self._lines: tuple[tuple[Course, _Line], ...] = ()
        self._dead = _NOTHING
        """What the dead containers freed that were collected."""

    @property
    def idle(self) -> bool:
        """Whether nothing is measured: nothing is used."""
        said = self.said
        return not (said.signals or said.pods or said.courses or said.cpu_nanocores is not None)

    def standing(
        self, pods: Sequence[Pod], capacity: Mapping[str, str], given: Mapping[str, SignalValue], now: float
    ) -> "Synthetic":
        """Another one that stands still as it is now, with some signals as given."""
        made = Synthetic(self.said.node)
        found = self._moment(now, capacity, pods)
        dead = _NOTHING if self._dead is found.dead_containers else found.dead_containers
        made.said = msgspec.structs.replace(found, signals={**found.signals, **given}, dead_containers=dead)
        made.images = self.images.left()
        made.observed_at = now
        return made

    def take(
        self, signals: NodeSignals, pods: Sequence[Pod], capacity: Mapping[str, str], now: float
    ) -> tuple[str, ...]:
        """Signals came in; they replace earlier ones. What they say of what is not there is not kept.

        They count as observed now: the clock of who observed them may be set back, and would hide all that
        comes for so long. The same ones once more are not newer.

        :param pods: the active pods of the node
        :param capacity: quantities by resource, as the node's object says
        :return: what was not kept, and why
        """
        stands = self._moment(now, capacity, None)
        faults: list[str] = []
        kept = _of_what_is_there(signals, {pod.key: pod for pod in pods}, capacity, faults)
        if not signals.at or signals.at != self.said.at:
            self.observed_at = now
        self._lines = tuple((one, _line(one, _amount(stands, one, capacity), now)) for one in kept.courses)
        self.images, self._dead = Images(kept, now), _NOTHING
        self.said = kept
        return tuple(faults)

    def collect(self, what: Collector, policy: ImagePolicy, now: float) -> None:
        """An eviction manager has it collected: what it took is left from now on."""
        if what is Collector.IMAGES:
            self.images.take_unused(policy, now)
        else:
            self._dead = self.said.dead_containers

    def at(
        self, pods: Sequence[Pod], capacity: Mapping[str, str], now: float, lasts_s: float
    ) -> tuple[NodeSignals, float] | Failed:
        """What there is at a moment, and when that was measured.

        :param pods: the active pods of the node
        :param lasts_s: seconds for which a measurement is good
        """
        why = next((one.why for one in self.said.failing if one.what == "reading"), "")
        if why:
            return Failed(why)
        if self.idle:
            return NodeSignals(node=self.said.node), self.observed_at
        observed_at = now if self.said.standing or self.said.courses else self.observed_at
        if now - observed_at > lasts_s:
            return Failed(f"what was measured is older than {lasts_s:g} s")
        found = self._moment(now, capacity, pods)
        why = impossible(found, capacity)
        return Failed(why) if why else (found, observed_at)

    def collect_images(
        self,
        policy: ImagePolicy,
        pods: Sequence[Pod],
        capacity: Mapping[str, str],
        now: float,
        lasts_s: float,
        began: float,
    ) -> Collection:
        """A node's own collection of images; further arguments are those of `at`. Where nobody knows what is
        left only age has images go.

        :param began: UTC seconds, since when its agent looks on
        """
        found = self.at(pods, capacity, now, lasts_s)
        if isinstance(found, Failed):
            return Collection(self.images.take_old(policy, now, began), fault=found.why)
        levels = found[0].signals
        value = next((levels[name] for name in _FOR_IMAGES if name in levels), None)
        if value is None:
            return Collection(self.images.take_old(policy, now, began))
        return self.images.collect(value.available, value.capacity, policy, now, began)

    def _moment(self, now: float, capacity: Mapping[str, str], pods: Sequence[Pod] | None) -> NodeSignals:
        """What is said of a moment, without courses.

        :param pods: those that still use something; None: all that are named
        """
        said = self.said
        alive = None if pods is None else {pod.key for pod in pods}
        named = tuple(one for one in said.pods if alive is None or (one.namespace, one.name) in alive)
        if self._lines:
            said = _played(msgspec.structs.replace(said, pods=named), self._lines, alive, capacity, now)
            named = said.pods
        levels = {**_following(named, capacity), **said.signals} if self._uses_pods else dict(said.signals)
        freed = (
            self.images.freed_bytes + self._dead.disk_bytes,
            self.images.freed_inodes + self._dead.inodes,
        )
        for names, amount in zip(_ON_DISK, freed, strict=True):
            _free(levels, names, amount)
        return msgspec.structs.replace(said, pods=named, signals=levels, courses=())

    @property
    def _uses_pods(self) -> bool:
        return bool(self.said.pods) or any(one.pod for one in self.said.courses)


# ---- what comes in -----------------------------------------------------------------------------------------


def _of_what_is_there(
    signals: NodeSignals, pods: Mapping[tuple[str, str], Pod], capacity: Mapping[str, str], faults: list[str]
) -> NodeSignals:
    levels = {name: value for name, value in signals.signals.items() if name in known.ALL}
    faults += [f"there is no signal {name!r}" for name in signals.signals if name not in known.ALL]
    used: list[PodUsage] = []
    for one in signals.pods:
        pod = pods.get((one.namespace, one.name))
        if pod is None:
            faults.append(_no_pod(one.namespace, one.name))
            continue
        containers = tuple(part for part in one.containers if _has(pod, part.name, "container", faults))
        volumes = tuple(part for part in one.volumes if _has(pod, part.name, "volume", faults))
        used.append(msgspec.structs.replace(one, containers=containers, volumes=volumes))
    courses: list[Course] = []
    for one in signals.courses:
        fault = _course_fault(one, levels, pods, capacity)
        if fault:
            faults.append(fault)
        else:
            courses.append(one)
    return msgspec.structs.replace(signals, signals=levels, pods=tuple(used), courses=tuple(courses))


def _course_fault(
    course: Course, levels: Mapping[str, SignalValue], pods: Mapping[tuple[str, str], Pod], capacity: Mapping[str, str]
) -> str:
    times = [point.after_s for point in course.points]
    if times != sorted(times):
        return f"the points of a course of {_named(course)} are not in order of time"
    if course.signal:
        if course.signal not in known.ALL:
            return f"there is no signal {course.signal!r}"
        if not course.capacity and course.signal not in levels and _there_is(course.signal, capacity) is None:
            return f"nobody has said the capacity of {course.signal}"
        return ""
    if not course.pod:
        return "" if course.resource == "cpu" else f"a course of the node's {course.resource} names no signal"
    pod = pods.get((course.namespace, course.pod))
    if pod is None:
        return _no_pod(course.namespace, course.pod)
    part, kind = (course.container, ContainerUsage) if course.container else (course.volume, VolumeUsage)
    if part and FIELDS[course.resource] not in kind.__struct_fields__:
        return f"{course.resource} of {_named(course)} is not measured"
    found: list[str] = []
    if part:
        _has(pod, part, "container" if course.container else "volume", found)
    return "".join(found)


def _has(pod: Pod, name: str, what: str, faults: list[str]) -> bool:
    parts = pod.spec.containers if what == "container" else pod.spec.volumes
    if any(part.name == name for part in parts):
        return True
    faults.append(f"pod {'/'.join(pod.key)} has no {what} {name!r}")
    return False


def _no_pod(namespace: str, name: str) -> str:
    return f"no pod {namespace}/{name} is on the node"


def _named(course: Course) -> str:
    return course.signal or "/".join(
        filter(None, (course.namespace, course.pod, course.container or course.volume, course.resource))
    )


# ---- a moment ----------------------------------------------------------------------------------------------


def _line(course: Course, stands: int, now: float) -> _Line:
    times, amounts = [now], [stands]
    for point in course.points:
        times.append(now + point.after_s)
        amounts.append(stands if point.amount is None else point.amount)
    return _Line(tuple(times), tuple(amounts))


def _amount(stands: NodeSignals, course: Course, capacity: Mapping[str, str]) -> int:
    """Where an amount stands: as said, else idle."""
    if course.signal:
        value = stands.signals.get(course.signal)
        return value.available if value is not None else _capacity_of(course, stands.signals, capacity)
    if not course.pod:
        return stands.cpu_nanocores or 0
    pod = next((one for one in stands.pods if (one.namespace, one.name) == (course.namespace, course.pod)), None)
    if pod is None:
        return 0
    of: object = pod
    if course.container or course.volume:
        parts = pod.containers if course.container else pod.volumes
        of = next((part for part in parts if part.name == (course.container or course.volume)), None)
    return 0 if of is None else getattr(of, FIELDS[course.resource])


def _played(
    said: NodeSignals,
    lines: Iterable[tuple[Course, _Line]],
    alive: set[tuple[str, str]] | None,
    capacity: Mapping[str, str],
    now: float,
) -> NodeSignals:
    levels, cpu = dict(said.signals), said.cpu_nanocores
    pods = {(one.namespace, one.name): one for one in said.pods}
    for course, line in lines:
        amount, key = line.at(now), (course.namespace, course.pod)
        if course.signal:
            levels[course.signal] = SignalValue(available=amount, capacity=_capacity_of(course, levels, capacity))
        elif not course.pod:
            cpu = amount
        elif alive is None or key in alive:
            pods[key] = _with(pods.get(key) or PodUsage(namespace=key[0], name=key[1]), course, amount)
    return msgspec.structs.replace(said, signals=levels, cpu_nanocores=cpu, pods=tuple(pods.values()))


def _with(pod: PodUsage, course: Course, amount: int) -> PodUsage:
    set_ = {FIELDS[course.resource]: amount}
    if course.container:
        at = {part.name: part for part in pod.containers}
        part = at.get(course.container) or ContainerUsage(name=course.container)
        at[course.container] = msgspec.structs.replace(part, **set_)
        return msgspec.structs.replace(pod, containers=tuple(at.values()))
    if course.volume:
        volumes = {part.name: part for part in pod.volumes}
        volume = volumes.get(course.volume) or VolumeUsage(name=course.volume)
        volumes[course.volume] = msgspec.structs.replace(volume, **set_)
        return msgspec.structs.replace(pod, volumes=tuple(volumes.values()))
    return msgspec.structs.replace(pod, **set_)


def _capacity_of(course: Course, levels: Mapping[str, SignalValue], capacity: Mapping[str, str]) -> int:
    if course.capacity:
        return course.capacity
    if course.signal in levels:
        return levels[course.signal].capacity
    return _there_is(course.signal, capacity) or 0


def _there_is(signal: str, capacity: Mapping[str, str]) -> int | None:
    """How much of a resource the node has, as its object says; None: it does not say."""
    text = capacity.get(_OF_NODE[signal][0]) if signal in _OF_NODE else None
    try:
        return None if text is None else parse(text).value()
    except ObjectError:
        return None


def _following(pods: Iterable[PodUsage], capacity: Mapping[str, str]) -> dict[str, SignalValue]:
    """Signals that nobody gives, as they follow from what pods use. A node that is full has nothing left: its
    pods cannot use more than there is."""
    found: dict[str, SignalValue] = {}
    listed = list(pods)
    for name, (_, resource) in _OF_NODE.items():
        there_is = _there_is(name, capacity)
        if there_is is not None:
            used = sum(pod.in_all(resource) for pod in listed)
            found[name] = SignalValue(available=min(max(there_is - used, 0), there_is), capacity=there_is)
    return found


def _free(levels: dict[str, SignalValue], names: Iterable[str], freed: int) -> None:
    for name in names:
        value = levels.get(name)
        if value is not None and freed:
            levels[name] = SignalValue(available=min(value.available + freed, value.capacity), capacity=value.capacity)


def impossible(found: NodeSignals, capacity: Mapping[str, str]) -> str:
    """The first thing that cannot be; empty if there is none."""
    return next(_impossible(found, capacity), "")


def _impossible(found: NodeSignals, capacity: Mapping[str, str]) -> Iterator[str]:
    for name, value in found.signals.items():
        if value.available < 0 or value.capacity < 0:
            yield f"{name} is impossible: {value.available} of {value.capacity}"
        elif value.available > value.capacity:
            yield f"{name} is impossible: {value.available} left of {value.capacity}"
    if (found.cpu_nanocores or 0) < 0:
        yield f"cpu is impossible: {found.cpu_nanocores} nanocores"
    bounds = {resource: _bound(name, found, capacity) for name, (_, resource) in _OF_NODE.items()}
    for pod in found.pods:
        for part in (pod, *pod.containers, *pod.volumes):
            for resource, field in FIELDS.items():
                amount: int = getattr(part, field, 0)
                bound = bounds.get(resource)
                if amount < 0 or (bound is not None and amount > bound):
                    of = "" if bound is None else f" of {bound}"
                    yield f"{field} of pod {pod.namespace}/{pod.name} is impossible: {amount}{of}"


def _bound(signal: str, found: NodeSignals, capacity: Mapping[str, str]) -> int | None:
    value = found.signals.get(signal)
    return _there_is(signal, capacity) if value is None else value.capacity


# ---- what is made of it ------------------------------------------------------------------------------------


def summary(found: NodeSignals, observed_at: float, pods: Iterable[Pod]) -> Summary:
    """A moment as the eviction manager reads it.

    A pod that is not named is idle: synthetic statistics know every pod. (A pod without statistics would be
    evicted first.)

    :param observed_at: UTC seconds, of all signals
    :param pods: the active pods of the node
    """
    usage = {(one.namespace, one.name): one for one in found.pods}
    return Summary(
        signals={
            name: Observation(available=value.available, capacity=value.capacity, observed_at=observed_at)
            for name, value in found.signals.items()
        },
        pods={pod.metadata.uid: _stats(pod, usage.get(pod.key)) for pod in pods},
    )


def report(found: NodeSignals, at: float) -> NodeUsage:
    """What is published of a moment."""
    cpu, memory = found.cpu_nanocores, found.signals.get(_MEMORY)
    return NodeUsage(
        node=found.node,
        signals=found.signals,
        cpu_nanocores=sum(pod.in_all("cpu") for pod in found.pods) if cpu is None else cpu,
        memory_bytes=sum(pod.in_all("memory") for pod in found.pods)
        if memory is None
        else memory.capacity - memory.available,
        pods=found.pods,
        at=at,
    )


def differ(one: NodeUsage, other: NodeUsage) -> bool:
    """Whether something has changed by 5 % or more, or is there that was not, or not any more."""
    before, after = dict(_amounts(one)), dict(_amounts(other))
    return before.keys() != after.keys() or any(
        abs(amount - before[key]) > CHANGE * max(abs(before[key]), 1) - 1e-9
        for key, amount in after.items()
        if amount != before[key]
    )


def _amounts(usage: NodeUsage) -> Iterator[tuple[tuple[str, ...], int]]:
    yield ("cpu",), usage.cpu_nanocores
    yield ("memory",), usage.memory_bytes
    for name, value in usage.signals.items():
        yield (name,), value.capacity - value.available
        yield (name, "capacity"), value.capacity
    for pod in usage.pods:
        for resource in FIELDS:
            yield (pod.namespace, pod.name, resource), pod.in_all(resource)


def _stats(pod: Pod, usage: PodUsage | None) -> PodStats:
    used = usage if usage is not None else PodUsage(namespace=pod.metadata.namespace, name=pod.metadata.name)
    containers = pod.spec.containers
    weights = [int(of_container(container, "memory")) for container in containers]
    names = [container.name for container in containers]
    memory, disk, inodes = (usages.of_containers(used, what, names, weights) for what in _OF_CONTAINERS)
    return PodStats(
        memory_bytes=used.in_all("memory"),
        processes=used.processes,
        containers=tuple(
            ContainerStats(
                name=container.name,
                memory_bytes=memory[index],
                rootfs=FsUsage(used_bytes=disk[index], inodes=inodes[index]),
                logs=FsUsage(used_bytes=0, inodes=0),
            )
            for index, container in enumerate(containers)
        ),
        volumes=tuple(
            VolumeStats(name=one.name, usage=FsUsage(used_bytes=one.disk_bytes, inodes=one.inodes))
            for one in used.volumes
        ),
        ephemeral_bytes=used.in_all("disk"),
    )
