"""The fields of a KubeletConfiguration by which a kubelet evicts: read, defaulted, validated.

Other fields are none of the eviction manager's business; `unused` tells of them. Sources (v1.36.2):
pkg/kubelet/apis/config/v1beta1/defaults.go, pkg/kubelet/apis/config/validation/validation.go,
cmd/kubelet/app/server.go (loadConfigFile, parseResourceList).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from podyard.node_agent.core.eviction import allocatable, amounts, signals, thresholds
from podyard.node_agent.core.eviction.thresholds import PODS, Fault, Threshold, ThresholdError, parse_thresholds
from podyard.objects import go_syntax, yaml_reader
from podyard.objects.documents import is_mapping
from podyard.objects.errors import QuantityError
from podyard.objects.quantity import parse
from podyard.objects.yaml_reader import YamlError

API_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
KIND: Final = "KubeletConfiguration"

_T = TypeVar("_T")
_INT32: Final = range(-(2**31), 2**31)
_PERCENT: Final = range(101)
_RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_NONE: Final = "none"
_RESERVATIONS: Final = {"system-reserved": "systemReserved", "kube-reserved": "kubeReserved"}
"""Fields by what they are called among enforcements and flags."""
_ENFORCEMENTS: Final = (
    '"pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"'
)


class KubeletConfiguration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is effective: defaults are filled in. Times in seconds."""

    eviction_hard: dict[str, str] = msgspec.field(default_factory=lambda: dict(thresholds.DEFAULT_HARD))
    eviction_soft: dict[str, str] = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_minimum_reclaim: dict[str, str] = {}
    eviction_pressure_transition_period: float = 300.0
    eviction_max_pod_grace_period: int = 0
    enforce_node_allocatable: tuple[str, ...] = (PODS,)
    local_storage_capacity_isolation: bool = True
    kube_reserved: dict[str, str] = {}
    system_reserved: dict[str, str] = {}
    kube_reserved_cgroup: str = ""
    system_reserved_cgroup: str = ""
    cgroups_per_qos: bool = msgspec.field(default=True, name="cgroupsPerQOS")
    max_pods: int = 110
    image_gc_high_threshold_percent: int = msgspec.field(default=85, name="imageGCHighThresholdPercent")
    image_gc_low_threshold_percent: int = msgspec.field(default=80, name="imageGCLowThresholdPercent")
    image_minimum_gc_age: float = msgspec.field(default=120.0, name="imageMinimumGCAge")
    """An image is not collected before it is that old."""
    image_maximum_gc_age: float = msgspec.field(default=0.0, name="imageMaximumGCAge")
    """An image that was not used for so long is collected without need; 0: never."""

    def thresholds(self) -> tuple[Threshold, ...]:
        """The thresholds, those of containerfs as the user gave them.

        :raises ThresholdError: with all faults
        """
        return parse_thresholds(
            hard=self.eviction_hard,
            soft=self.eviction_soft,
            soft_grace=self.eviction_soft_grace_period,
            min_reclaim=self.eviction_minimum_reclaim,
            enforce_allocatable=self.enforce_node_allocatable,
        )

    def hard_eviction_reservation(self, capacity: Mapping[str, str]) -> dict[str, str]:
        """What the hard thresholds take off a node's allocatable: memory and ephemeral storage, as canonical
        quantities.

        Source: pkg/kubelet/cm/helpers.go, hardEvictionReservation.

        :param capacity: quantities by resource; one that is missing counts as 0
        :raises ThresholdError: if `evictionHard` does not parse; other fields are not looked at
        """
        sources = {signals.MEMORY_AVAILABLE: signals.MEMORY, "nodefs.available": signals.EPHEMERAL_STORAGE}
        parsed = parse_thresholds(hard=self.eviction_hard, enforce_allocatable=())
        return {
            resource: one.value.text(parse(capacity.get(resource, "0")).value())
            for one in parsed
            if (resource := sources.get(one.signal)) is not None
        }

    def capacity(self, there_is: Mapping[str, str]) -> dict[str, str]:
        """The capacity of a node that its agent registers: what the host has, and `maxPods`.

        :param there_is: quantities by resource; `ephemeral-storage` only if local storage is isolated
        """
        return {**there_is, "pods": str(self.max_pods)}

    def allocatable(self, capacity: Mapping[str, str]) -> dict[str, str]:
        """What of a capacity is for pods, where the agent registers the node.

        :raises ThresholdError: with each resource of which more is reserved than there is; or if
            `evictionHard` does not parse
        """
        reserved = (self.system_reserved, self.kube_reserved, self.hard_eviction_reservation(capacity))
        faults = tuple(allocatable.faults(capacity, reserved))
        if faults:
            raise ThresholdError(*faults)
        return allocatable.left(capacity, reserved)


def document(text: str) -> Mapping[str, Any]:
    """What a file says, YAML or JSON. The kubelet reads the first document and passes over all others.

    :raises ThresholdError: if it cannot be read, or is not one mapping
    """
    try:
        contents = [one.content for one in yaml_reader.read(text) if one.content is not None]
    except YamlError as error:
        raise ThresholdError(Fault(f"line {error.line}", error.detail)) from error
    first = contents[0] if contents else None
    if not is_mapping(first):
        raise ThresholdError(Fault("", f"is no {KIND}"))
    if len(contents) > 1:
        raise ThresholdError(Fault("", f"has {len(contents)} documents: give each {KIND} a file of its own"))
    return first


def valid(found: KubeletConfiguration) -> KubeletConfiguration:
    """The configuration, if a kubelet would start with it.

    :raises ThresholdError: with all faults
    """
    told = faults(found)
    if told:
        raise ThresholdError(*told)
    return found


def read(document: Mapping[str, Any]) -> KubeletConfiguration:
    """A KubeletConfiguration as the kubelet loads it: decoded, then defaulted; values are not validated.

    :param document: the file's content; null means absent
    :raises ThresholdError: if it is none: another kind, or fields of another type, all of them
    """
    reader = _Reader({name: value for name, value in document.items() if value is not None})
    reader.kind()
    hard = reader.texts("evictionHard")
    merge = reader.of("mergeDefaultEvictionSettings", bool, False)
    found = KubeletConfiguration(
        eviction_hard=_effective_hard(hard, merge),
        eviction_soft=reader.texts("evictionSoft") or {},
        eviction_soft_grace_period=reader.texts("evictionSoftGracePeriod") or {},
        eviction_minimum_reclaim=reader.texts("evictionMinimumReclaim") or {},
        eviction_pressure_transition_period=reader.seconds("evictionPressureTransitionPeriod") or 300.0,
        eviction_max_pod_grace_period=reader.int32("evictionMaxPodGracePeriod", 0),
        enforce_node_allocatable=tuple(reader.list("enforceNodeAllocatable", [PODS])),
        local_storage_capacity_isolation=reader.of("localStorageCapacityIsolation", bool, True),
        kube_reserved=reader.texts("kubeReserved") or {},
        system_reserved=reader.texts("systemReserved") or {},
        kube_reserved_cgroup=reader.of("kubeReservedCgroup", str, ""),
        system_reserved_cgroup=reader.of("systemReservedCgroup", str, ""),
        cgroups_per_qos=reader.of("cgroupsPerQOS", bool, True),
        max_pods=reader.int32("maxPods", 0) or 110,
        image_gc_high_threshold_percent=reader.int32("imageGCHighThresholdPercent", 85),
        image_gc_low_threshold_percent=reader.int32("imageGCLowThresholdPercent", 80),
        image_minimum_gc_age=reader.seconds("imageMinimumGCAge") or 120.0,
        image_maximum_gc_age=reader.seconds("imageMaximumGCAge"),
    )
    if reader.faults:
        raise ThresholdError(*reader.faults)
    return found


def written(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with all fields of `KubeletConfiguration`; others as they are.

    :raises ThresholdError: as `read`
    """
    return complete(read(document), document)


def complete(found: KubeletConfiguration, document: Mapping[str, Any]) -> dict[str, Any]:
    """A document that says all of it.

    :param document: what else there is to say
    """
    fields = {one.encode_name: getattr(found, one.name) for one in msgspec.structs.fields(found)}
    completed = {name: go_syntax.duration_text(one) if isinstance(one, float) else one for name, one in fields.items()}
    return {"apiVersion": API_VERSION, "kind": KIND, **msgspec.to_builtins(completed), **_others(document, fields)}


def _others(document: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in fields and value is not None}


def faults(found: KubeletConfiguration) -> list[Fault]:
    """All values that are not allowed, in the kubelet's words: those that it finds before it looks at
    thresholds, then reservations, then thresholds."""
    told = [*_validated(found), *_reservations(found)]
    try:
        found.thresholds()
    except ThresholdError as error:
        told += error.faults
    return told


def _effective_hard(given: dict[str, str] | None, merge: bool) -> dict[str, str]:
    """Absent is not empty: without the field the defaults hold, with an empty one nothing does."""
    if given is None:
        return dict(thresholds.DEFAULT_HARD)
    return thresholds.DEFAULT_HARD | given if merge else given


class _Reader:
    """Fields of a document by name; what has another type is told, and counts as absent."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.faults: list[Fault] = []

    def kind(self) -> None:
        """Tell if it is no KubeletConfiguration."""
        for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            found = self._document.get(field)
            if found != wanted:
                self.faults.append(Fault(field, f"must be {wanted}, is {'missing' if found is None else found}"))

    def of(self, field: str, type_: type[_T], default: _T) -> _T:
        """A field of a type; `default` if it is absent."""
        if field not in self._document:
            return default
        try:
            return msgspec.convert(self._document[field], type_, strict=True)
        except msgspec.ValidationError as error:
            self.faults.append(Fault(field, str(error)))
            return default

    def int32(self, field: str, default: int) -> int:
        """A whole number of 32 bits."""
        found = self.of(field, int, default)
        if found in _INT32:
            return found
        self.faults.append(Fault(field, f"{found} is no number of 32 bits"))
        return default

    def list(self, field: str, default: list[str]) -> list[str]:
        """A list of texts."""
        return self.of(field, list[str], default)

    def texts(self, field: str) -> dict[str, str] | None:
        """A mapping of texts; None if it is absent. Each entry of another type is told by its name."""
        if field not in self._document:
            return None
        given = self.of(field, dict[str, Any], {})
        self.faults += [
            Fault(f"{field}[{name}]", f'must be text, as in "10%" or "1Gi", is {msgspec.json.encode(value).decode()}')
            for name, value in given.items()
            if not isinstance(value, str)
        ]
        return {name: value for name, value in given.items() if isinstance(value, str)}

    def seconds(self, field: str) -> float:
        """A Go duration; 0 if it is absent."""
        text = self.of(field, str, "0")
        try:
            return go_syntax.parse_duration(text)
        except ValueError as error:
            self.faults.append(Fault(field, str(error)))
            return 0.0


def _validated(found: KubeletConfiguration) -> Iterator[Fault]:
    high, low = found.image_gc_high_threshold_percent, found.image_gc_low_threshold_percent
    if high not in _PERCENT:
        flag = "imageGCHighThresholdPercent (--image-gc-high-threshold)"
        yield _invalid("imageGCHighThresholdPercent", f"{flag} {high} must be between 0 and 100, inclusive")
    flag = "imageGCLowThresholdPercent (--image-gc-low-threshold)"
    if low not in _PERCENT:
        yield _invalid("imageGCLowThresholdPercent", f"{flag} {low} must be between 0 and 100, inclusive")
    if low >= high:
        told = f"{flag} {low} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) {high}"
        yield _invalid("imageGCLowThresholdPercent", told)
    youngest, oldest = found.image_minimum_gc_age, found.image_maximum_gc_age
    shown = go_syntax.duration_text(youngest), go_syntax.duration_text(oldest)
    if youngest < 0:
        yield _invalid("imageMinimumGCAge", f"imageMinimumGCAge {shown[0]} must not be negative")
    if oldest < 0:
        yield _invalid("imageMaximumGCAge", f"imageMaximumGCAge {shown[1]} must not be negative")
    if 0 < oldest <= youngest:
        told = f"imageMaximumGCAge {shown[1]} must be greater than imageMinimumGCAge {shown[0]}"
        yield _invalid("imageMaximumGCAge", told)
    if found.max_pods < 0:
        yield _invalid("maxPods", f"maxPods (--max-pods) {found.max_pods} must not be a negative number")
    yield from _enforcements(found)


def _enforcements(found: KubeletConfiguration) -> Iterator[Fault]:
    """Which parts of the node keep to allocatable."""
    field, given = "enforceNodeAllocatable", found.enforce_node_allocatable
    flag = f"{field} (--enforce-node-allocatable)"
    for plain in _RESERVATIONS:
        both = (f"{plain}-compressible", plain)
        if set(both) <= set(given):
            yield _invalid(field, f'both "{both[0]}" and "{both[1]}" cannot be specified together in {flag}')
    for position, name in enumerate(given):
        if name in given[:position]:
            yield _invalid(f"{field}[{position}]", f'duplicated enforcements "{name}" in {flag}')
        else:
            yield from (_invalid(f"{field}[{position}]", told) for told in _enforcement_faults(found, name, flag))


def _enforcement_faults(found: KubeletConfiguration, name: str, flag: str) -> Iterator[str]:
    if name == _NONE:
        if len(found.enforce_node_allocatable) > 1:
            yield f'{flag} may not contain additional enforcements when "{_NONE}" is specified'
        return
    reservation = name.removesuffix("-compressible")
    if name != PODS and reservation not in _RESERVATIONS:
        yield f'option "{name}" specified for {flag}. Valid options are {_ENFORCEMENTS}'
        return
    if name != PODS:
        field = _RESERVATIONS[reservation]
        cgroup = found.kube_reserved_cgroup if field == "kubeReserved" else found.system_reserved_cgroup
        if not cgroup:
            either = f'"{reservation}" or "{reservation}-compressible"'
            yield f"{field}Cgroup (--{reservation}-cgroup) must be specified when {either} included in {flag}"
    if not found.cgroups_per_qos:
        yield f'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "{name}" contained in {flag}'


def _reservations(found: KubeletConfiguration) -> Iterator[Fault]:
    for flag, quantities in (("kube-reserved", found.kube_reserved), ("system-reserved", found.system_reserved)):
        for name, text in quantities.items():
            told = _reservation_fault(name, text)
            if told:
                yield Fault(f"{_RESERVATIONS[flag]}[{name}]", f"--{flag} value failed to parse: {told}")


def _reservation_fault(name: str, text: str) -> str:
    if name not in _RESERVABLE:
        return f'cannot reserve "{name}" resource'
    try:
        negative = amounts.exact(text) < 0
    except QuantityError as error:
        return f'failed to parse quantity "{text}" for "{name}" resource: {error.detail}'
    return f'resource quantity for "{name}" cannot be negative: {text}' if negative else ""


def _invalid(field: str, told: str) -> Fault:
    return Fault(field, f"invalid configuration: {told}")
