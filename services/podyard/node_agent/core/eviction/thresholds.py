"""The eviction configuration of a KubeletConfiguration, parsed into thresholds.

Source: pkg/kubelet/eviction/helpers.go, ParseThresholdConfig (v1.36.2); data in
tests/conformance/data/thresholds.
"""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec

from podyard.node_agent.core.eviction import amounts, signals
from podyard.objects import go_syntax
from podyard.objects.errors import QuantityError, placed
from podyard.objects.quantity import parse

DEFAULT_HARD: Final[dict[str, str]] = {
    signals.MEMORY_AVAILABLE: "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
"""What holds where nothing is configured (Linux). Source:
pkg/kubelet/apis/config/v1beta1/defaults_linux.go."""

PODS: Final = "pods"
"""Entry of enforceNodeAllocatable that makes allocatableMemory.available follow memory.available."""


_Read = TypeVar("_Read")
_BEYOND_INT64: Final = 2**63


class Fault(NamedTuple):
    """One thing that is wrong with a configuration: where, and the reference's sentence."""

    field: str
    """Path in a KubeletConfiguration, e.g. `evictionHard[memory.available]`."""
    detail: str

    def __str__(self) -> str:
        return placed(self.field, self.detail)


class ThresholdError(ValueError):
    """The eviction configuration cannot be used. `faults`: all that is wrong, in the order in which the
    reference looks; it stops at the first."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("; ".join(map(str, faults)))


class Limit(msgspec.Struct, frozen=True):
    """An absolute amount (canonical quantity) or a fraction of the capacity; exactly one is set."""

    quantity: str = ""
    fraction: float | None = None

    def amount(self, capacity: int) -> amounts.Amount:
        """Bytes or pieces of `capacity`. Fractions are cut to whole ones, as the reference does."""
        return amounts.exact(self.quantity) if self.fraction is None else share_of(capacity, self.fraction)

    def text(self, capacity: int) -> str:
        """The amount as messages print it; fractions in binary units, also of inodes and processes."""
        return self.quantity if self.fraction is None else amounts.binary(share_of(capacity, self.fraction))


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """Pressure begins when what is available falls below `value`, and ends at `value` plus `min_reclaim`."""

    signal: str
    value: Limit
    grace_s: float = 0.0
    """Seconds the pressure must last before a pod goes; 0 = hard: at once."""
    min_reclaim: Limit | None = None

    @property
    def hard(self) -> bool:
        """Whether it acts at once, with a grace period of 1 s for the pod."""
        return self.grace_s == 0

    def met(self, available: int, capacity: int, *, with_reclaim: bool = False) -> bool:
        """Whether `available` is below it; `with_reclaim` asks whether it is still below value plus minimum
        reclaim."""
        bound = self.value.amount(capacity)
        if with_reclaim and self.min_reclaim is not None:
            bound += self.min_reclaim.amount(capacity)
        return available < bound

    def same(self, other: "Threshold") -> bool:
        """Whether both are one threshold: the minimum reclaim does not count, quantities count by their
        amount."""
        if (self.signal, self.grace_s, self.value.fraction) != (other.signal, other.grace_s, other.value.fraction):
            return False
        return self.value.fraction is not None or self.value.amount(0) == other.value.amount(0)


def parse_thresholds(
    *,
    hard: Mapping[str, str] | None = None,
    soft: Mapping[str, str] | None = None,
    soft_grace: Mapping[str, str] | None = None,
    min_reclaim: Mapping[str, str] | None = None,
    enforce_allocatable: tuple[str, ...] = (PODS,),
) -> tuple[Threshold, ...]:
    """The thresholds of a configuration, hard ones first, then soft ones, then those of allocatable memory.

    :param hard: `evictionHard`; None means the defaults, an empty mapping none
    :param soft_grace: `evictionSoftGracePeriod`, Go durations; every soft threshold needs one
    :raises ThresholdError: with all faults
    """
    faults: list[Fault] = []
    hard_limits = each("evictionHard", DEFAULT_HARD if hard is None else hard, _statement, faults)
    soft_limits = each("evictionSoft", soft or {}, _statement, faults)
    graces = each("evictionSoftGracePeriod", soft_grace or {}, _grace, faults)
    reclaims = each("evictionMinimumReclaim", min_reclaim or {}, _reclaim, faults)
    faults += [
        Fault(f"evictionSoft[{name}]", f"grace period must be specified for the soft eviction threshold {name}")
        for name in soft_limits
        if name not in (soft_grace or {})
    ]
    if faults:
        raise ThresholdError(*faults)
    found = [Threshold(signal=name, value=limit, min_reclaim=reclaims.get(name)) for name, limit in hard_limits.items()]
    found += [
        Threshold(signal=name, value=limit, grace_s=graces[name], min_reclaim=reclaims.get(name))
        for name, limit in soft_limits.items()
    ]
    if PODS in enforce_allocatable:
        found += [
            msgspec.structs.replace(threshold, signal=signals.ALLOCATABLE_MEMORY_AVAILABLE)
            for threshold in found
            if threshold.signal == signals.MEMORY_AVAILABLE and threshold.hard
        ]
    return tuple(found)


def each(
    field: str, texts: Mapping[str, str], read: Callable[[str, str], _Read | None], faults: list[Fault]
) -> dict[str, _Read]:
    """What the texts of one field say, by signal; what cannot be read becomes a fault."""
    found: dict[str, _Read] = {}
    for name, text in texts.items():
        try:
            if name not in signals.ALL:
                raise ValueError(f"unsupported eviction signal {name}")
            value = read(name, text)
        except QuantityError as error:
            faults.append(Fault(f"{field}[{name}]", error.detail))
        except ValueError as error:
            faults.append(Fault(f"{field}[{name}]", str(error)))
        else:
            found |= {} if value is None else {name: value}
    return found


def _statement(name: str, text: str) -> Limit | None:
    """The limit; None for the literal texts `0%` and `100%`, which switch the threshold off."""
    if text in ("0%", "100%"):
        return None
    if text.endswith("%"):
        fraction = fraction_of(text)
        if fraction < 0:
            raise ValueError(f"eviction percentage threshold {name} must be >= 0%: {text}")
        if fraction > 1:
            raise ValueError(f"eviction percentage threshold {name} must be <= 100%: {text}")
        return Limit(fraction=fraction)
    quantity = parse(text)
    if quantity.nano <= 0:
        raise ValueError(f"eviction threshold {name} must be positive: {quantity}")
    return Limit(quantity=str(quantity))


def _grace(name: str, text: str) -> float:
    seconds = go_syntax.parse_duration(text)
    if seconds < 0:
        raise ValueError(f"invalid eviction grace period specified: {text}, must be a positive value")
    return seconds


def _reclaim(name: str, text: str) -> Limit:
    if text.endswith("%"):
        fraction = fraction_of(text)
        if fraction <= 0:
            raise ValueError(f"eviction percentage minimum reclaim {name} must be positive: {text}")
        return Limit(fraction=fraction)
    quantity = parse(text)
    if quantity.nano < 0:
        raise ValueError(f"negative eviction minimum reclaim specified for {name}")
    return Limit(quantity=str(quantity))


def fraction_of(text: str) -> float:
    """A percentage as the reference computes it: both the number and the division in 32-bit floats."""
    number = text.rstrip("%")
    value = go_syntax.parse_float(number)
    try:
        if math.isinf(value) and "inf" not in number.lower():
            raise OverflowError(number)
        return _float32(_float32(value) / 100)
    except OverflowError as error:
        raise ValueError(f'strconv.ParseFloat: parsing "{number}": value out of range') from error


def share_of(capacity: int, fraction: float) -> int:
    """A fraction of the capacity, cut to a whole number of 64 bits as the reference's processors cut it.

    `inf%` and `nan%` parse; they, and what is beyond 64 bits, become the smallest number there is.
    """
    share = float(capacity) * fraction
    return int(share) if -_BEYOND_INT64 <= share < _BEYOND_INT64 else -_BEYOND_INT64


def _float32(number: float) -> float:
    return struct.unpack("<f", struct.pack("<f", number))[0]
