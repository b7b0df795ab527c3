"""Reading a `signals` step: what a node, its pods, their containers and volumes use.

    signals:
      node: node-1
      memory.available: 200Mi of 8Gi        # what is left, of what there is
      nodefs.available: {ramp: 1Gi of 100Gi, over: 30s}
      cpu: 3500m                            # of the node; else what its pods use
      pods:
        default/web: 1Gi                    # memory
        default/db:
          cpu: 500m
          memory: {leak: 10Mi, from: 1Gi, to: 6Gi}      # 10Mi a second
          processes: {spike: 500, for: 10s}
          containers: {main: {disk: 2Gi}}
          volumes: {cache: {disk: {replay: {0s: 1Gi, 20s: 3Gi}}, inodes: 1000}}
      images: 2Gi                           # that no container uses; also {disk: 2Gi, inodes: 3000}
      singleImages:                         # each goes as a whole, and not before its age
        app:v1: {disk: 1Gi, inodes: 900, pulled: 10m, used: 5m}         # so long ago; without `used`: never
        app:v2: 1Gi                         # just pulled
      deadContainers: 100Mi
      failing: {kill: no runtime}           # layout, reading, containers, images, kill

An amount is a constant, or one of `{constant: A}`, `{ramp: A, over: T}`, `{leak: A, from: A, to: A}`,
`{spike: A, for: T}`, `{replay: {T: A, ...}}`.
"""

import re
from pathlib import Path
from typing import Any, Final, NamedTuple, cast, get_args

import msgspec

from podyard.cli.options import DEFAULT_NAMESPACE
from podyard.cli.scenario import actions, model, shapes
from podyard.cli.scenario.faults import Faults, mapping
from podyard.node_agent.core.eviction.signals import ALL as SIGNALS
from podyard.objects import quantity
from podyard.objects.errors import ObjectError
from podyard.proto.message import INT64_MAX
from podyard.proto.signals import (
    FIELDS,
    MOST_POINTS,
    AskedOfNode,
    ContainerUsage,
    Course,
    Failing,
    NodeSignals,
    PodUsage,
    SignalValue,
    Unused,
    UnusedImage,
    UsedResource,
    VolumeUsage,
)

_LEVEL: Final = re.compile(r"(\S+)\s+of\s+(\S+)")
_SHAPES: Final[dict[str, tuple[str, ...]]] = {
    "constant": (), "ramp": ("over",), "leak": ("from", "to"), "spike": ("for",), "replay": ()
}  # fmt: skip
"""With what else each has; `of` besides, for a signal."""
_PARTS: Final = ("cpu", "memory", "disk", "inodes")
_IN_VOLUME: Final = ("disk", "inodes")


class _Of(NamedTuple):
    """Whose an amount is."""

    resource: UsedResource = "memory"
    signal: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    volume: str = ""


class _Step:
    """One step; gathers courses and faults."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.courses: list[Course] = []

    def amount(self, value: Any, path: str, of: _Of) -> int:
        """A constant; of a shape a course is kept, and the amount is 0."""
        if not isinstance(value, dict):
            return self.whole(value, path, of.resource)
        points, _ = self.shape(cast("dict[str, Any]", value), path, of.resource)
        if points:
            self.courses.append(Course(**of._asdict(), points=points))
        return 0

    def level(self, value: Any, path: str, name: str) -> SignalValue | None:
        """What is left of what there is; of a shape a course is kept, and nothing is returned."""
        if isinstance(value, dict):
            points, capacity = self.shape(cast("dict[str, Any]", value), path, "memory")
            if points:
                self.courses.append(Course(signal=name, capacity=capacity, points=points))
            return None
        found = _LEVEL.fullmatch(str(value).strip())
        if found is None:
            self.faults.add(path, f"{value!r}: expected AVAILABLE of CAPACITY, for example 200Mi of 8Gi")
            return None
        available, capacity = (self.whole(text, path, "memory") for text in found.groups())
        return SignalValue(available=available, capacity=capacity)

    def shape(self, fields: dict[str, Any], path: str, resource: UsedResource) -> tuple[shapes.Points, int]:
        """Points, and the capacity if it says one; no points if it is none."""
        named = [name for name in _SHAPES if name in fields]
        if len(named) != 1:
            self.faults.add(path, f"must have exactly one of {', '.join(_SHAPES)}")
            return (), 0
        (kind,) = named
        actions.reject_unknown(fields, (kind, *_SHAPES[kind], "of"), path, self.faults)
        missing = [name for name in _SHAPES[kind] if name not in fields and name != "from"]
        for name in missing:
            self.faults.add(f"{path}.{name}", f"a {kind} must say it")
        if missing:
            return (), 0
        value, capacity = fields[kind], self.whole(fields.get("of", 0), f"{path}.of", resource)
        found = _LEVEL.fullmatch(str(value).strip())
        if found is not None:
            value, capacity = found[1], self.whole(found[2], f"{path}.{kind}", resource)
        if kind == "replay":
            return self._replayed(value, f"{path}.replay", resource), capacity
        amount = self.whole(value, f"{path}.{kind}", resource)
        match kind:
            case "ramp":
                return shapes.ramp(amount, actions.duration(fields["over"], f"{path}.over", self.faults)), capacity
            case "spike":
                return shapes.spike(amount, actions.duration(fields["for"], f"{path}.for", self.faults)), capacity
            case "leak":
                if amount < 1:
                    self.faults.add(f"{path}.leak", f"{value!r}: must be more than nothing a second")
                    return (), 0
                begin, end = (self.whole(fields.get(key, 0), f"{path}.{key}", resource) for key in ("from", "to"))
                return shapes.leak(begin, amount, end), capacity
            case _:
                return shapes.constant(amount), capacity

    def _replayed(self, value: Any, path: str, resource: UsedResource) -> shapes.Points:
        series = [
            (actions.duration(after, f"{path}.{after}", self.faults), self.whole(amount, f"{path}.{after}", resource))
            for after, amount in mapping(value, path, self.faults).items()
        ]
        if not 1 <= len(series) <= MOST_POINTS:
            self.faults.add(path, f"has {len(series)} points, must have 1 to {MOST_POINTS}")
            return ()
        if series != sorted(series, key=lambda one: one[0]):
            self.faults.add(path, "must be in order of time")
            return ()
        return shapes.replayed(series)

    def whole(self, text: Any, path: str, resource: UsedResource) -> int:
        """A quantity as a whole number: of cpu nanocores."""
        try:
            amount = quantity.nano(str(text)) if resource == "cpu" else quantity.value(str(text))
        except ObjectError as error:
            self.faults.add(path, error.detail)
            return 0
        if not 0 <= amount <= INT64_MAX:
            self.faults.add(path, f"{text!r} must be from 0 to {INT64_MAX}")
            return 0
        return amount

    def amounts(self, fields: dict[str, Any], of: _Of, path: str) -> dict[str, int]:
        """By field of the message."""
        return {
            field: self.amount(fields[name], f"{path}.{name}", of._replace(resource=name))
            for name, field in FIELDS.items()
            if name in fields
        }

    def pod(self, key: str, value: Any, path: str) -> PodUsage:
        """What one pod uses: its memory, or a mapping."""
        namespace, _, name = key.rpartition("/")
        of = _Of(namespace=namespace or DEFAULT_NAMESPACE, pod=name)
        fields = _fields(value, "memory")
        actions.reject_unknown(fields, (*FIELDS, "containers", "volumes"), path, self.faults)
        containers = mapping(fields.get("containers", {}), f"{path}.containers", self.faults)
        volumes = mapping(fields.get("volumes", {}), f"{path}.volumes", self.faults)
        return PodUsage(
            namespace=of.namespace,
            name=name,
            containers=tuple(
                ContainerUsage(
                    name=str(one),
                    **self._part(used, of._replace(container=str(one)), _PARTS, f"{path}.containers.{one}"),
                )
                for one, used in containers.items()
            ),
            volumes=tuple(
                VolumeUsage(
                    name=str(one),
                    **self._part(used, of._replace(volume=str(one)), _IN_VOLUME, f"{path}.volumes.{one}"),
                )
                for one, used in volumes.items()
            ),
            **self.amounts(fields, of, path),
        )

    def _part(self, value: Any, of: _Of, known: tuple[str, ...], path: str) -> dict[str, int]:
        fields = mapping(value, path, self.faults)
        actions.reject_unknown(fields, known, path, self.faults)
        return self.amounts({name: one for name, one in fields.items() if name in known}, of, path)

    def unused(self, value: Any, path: str) -> Unused:
        """What can be collected: bytes, or a mapping."""
        fields = _fields(value, "disk")
        actions.reject_unknown(fields, _IN_VOLUME, path, self.faults)
        return Unused(
            disk_bytes=self.whole(fields.get("disk", 0), f"{path}.disk", "disk"),
            inodes=self.whole(fields.get("inodes", 0), f"{path}.inodes", "inodes"),
        )

    def image(self, name: str, value: Any, path: str) -> UnusedImage:
        """One image: its size, or a mapping."""
        fields = _fields(value, "disk")
        actions.reject_unknown(fields, (*_IN_VOLUME, "pulled", "used"), path, self.faults)
        used = fields.get("used")
        return UnusedImage(
            name=name,
            disk_bytes=self.whole(fields.get("disk", 0), f"{path}.disk", "disk"),
            inodes=self.whole(fields.get("inodes", 0), f"{path}.inodes", "inodes"),
            pulled_s=actions.duration(fields.get("pulled", 0), f"{path}.pulled", self.faults),
            used_s=None if used is None else actions.duration(used, f"{path}.used", self.faults),
        )

    def failing(self, value: Any, path: str) -> tuple[Failing, ...]:
        """What the node cannot do when its eviction manager asks."""
        found: list[Failing] = []
        for what, why in mapping(value, path, self.faults).items():
            try:
                found.append(msgspec.convert({"what": what, "why": why}, Failing))
            except msgspec.ValidationError as error:
                expected = f"expected WHAT: WHY, and of WHAT one of {', '.join(get_args(AskedOfNode))}"
                self.faults.add(f"{path}.{what}", f"{error}; {expected}")
        return tuple(found)


def signals(value: Any, path: str, faults: Faults, directory: Path) -> model.Signals:
    """As this module's docstring shows; with `for` it is measured again and again, `every` so often."""
    del directory
    fields = mapping(value, path, faults)
    known = ("node", "cpu", "pods", "images", "singleImages", "deadContainers", "failing", "every", "for", *SIGNALS)
    actions.reject_unknown(fields, known, path, faults)
    if not isinstance(fields.get("node"), str):
        faults.add(f"{path}.node", "must be a node's name")
    step = _Step(faults)
    levels = {name: step.level(fields[name], f"{path}.{name}", name) for name in SIGNALS if name in fields}
    pods = mapping(fields.get("pods", {}), f"{path}.pods", faults)
    images = mapping(fields.get("singleImages", {}), f"{path}.singleImages", faults)
    cpu = step.amount(fields["cpu"], f"{path}.cpu", _Of(resource="cpu")) if "cpu" in fields else None
    used = tuple(step.pod(str(pod), one, f"{path}.pods.{pod}") for pod, one in pods.items())
    for_s = actions.duration(fields.get("for", 0), f"{path}.for", faults)
    if for_s and step.courses:
        faults.add(f"{path}.for", "an amount that changes goes on by itself: leave `for` and `every` out")
    said = NodeSignals(
        node=str(fields.get("node", "")),
        signals={name: level for name, level in levels.items() if level is not None},
        cpu_nanocores=cpu,
        pods=used,
        courses=tuple(step.courses),
        images=step.unused(fields.get("images", 0), f"{path}.images"),
        single_images=tuple(step.image(str(name), one, f"{path}.singleImages.{name}") for name, one in images.items()),
        dead_containers=step.unused(fields.get("deadContainers", 0), f"{path}.deadContainers"),
        failing=step.failing(fields.get("failing", {}), f"{path}.failing"),
        standing=not for_s,
    )
    every_s = actions.duration(fields.get("every", 1), f"{path}.every", faults) or 1.0
    return model.Signals(said=said, every_s=every_s, for_s=for_s)


def _fields(value: Any, name: str) -> dict[str, Any]:
    """A mapping of amounts; an amount alone is that of `name`."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {name: value}
    return {name: fields} if any(shape in fields for shape in _SHAPES) else fields
