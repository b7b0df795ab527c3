"""The eviction configuration of a KubeletConfiguration, parsed into thresholds.

Source: pkg/kubelet/eviction/helpers.go, ParseThresholdConfig (v1.36.2); data in
tests/conformance/data/thresholds.
"""

import struct
from collections.abc import Mapping
from typing import Final

import msgspec

from podyard.node_agent.core.eviction import amounts, signals
from podyard.objects import go_syntax
from podyard.objects.errors import QuantityError
from podyard.objects.quantity import Quantity, parse

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


class ThresholdError(ValueError):
    """The eviction configuration does not parse. The sentence is the reference's."""


class Limit(msgspec.Struct, frozen=True):
    """An absolute amount (canonical quantity) or a fraction of the capacity; exactly one is set."""

    quantity: str = ""
    fraction: float | None = None

    def amount(self, capacity: int) -> amounts.Amount:
        """Bytes or pieces of `capacity`. Fractions are cut to whole ones, as the reference does."""
        return amounts.exact(self.quantity) if self.fraction is None else int(float(capacity) * self.fraction)

    def text(self, capacity: int) -> str:
        """The amount as messages print it; fractions in binary units, also of inodes and processes."""
        return self.quantity if self.fraction is None else amounts.binary(int(float(capacity) * self.fraction))


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
    :raises ThresholdError: for the first fault
    """
    hard_limits = _statements(DEFAULT_HARD if hard is None else hard)
    soft_limits = _statements(soft or {})
    graces = {_signal(name): _grace(name, text) for name, text in (soft_grace or {}).items()}
    reclaims = {_signal(name): _reclaim(name, text) for name, text in (min_reclaim or {}).items()}
    for name in soft_limits:
        if name not in graces:
            raise ThresholdError(f"grace period must be specified for the soft eviction threshold {name}")
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


def _statements(statements: Mapping[str, str]) -> dict[str, Limit]:
    limits = {_signal(name): _statement(name, text) for name, text in statements.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}


def _signal(name: str) -> str:
    if name not in signals.ALL:
        raise ThresholdError(f"unsupported eviction signal {name}")
    return name


def _statement(name: str, text: str) -> Limit | None:
    """The limit; None for the literal texts `0%` and `100%`, which switch the threshold off."""
    if text in ("0%", "100%"):
        return None
    if text.endswith("%"):
        fraction = _fraction(text)
        if fraction < 0:
            raise ThresholdError(f"eviction percentage threshold {name} must be >= 0%: {text}")
        if fraction > 1:
            raise ThresholdError(f"eviction percentage threshold {name} must be <= 100%: {text}")
        return Limit(fraction=fraction)
    quantity = _quantity(text)
    if quantity.nano <= 0:
        raise ThresholdError(f"eviction threshold {name} must be positive: {quantity}")
    return Limit(quantity=str(quantity))


def _grace(name: str, text: str) -> float:
    try:
        seconds = go_syntax.parse_duration(text)
    except ValueError as error:
        raise ThresholdError(str(error)) from error
    if seconds < 0:
        raise ThresholdError(f"invalid eviction grace period specified: {text}, must be a positive value")
    return seconds


def _reclaim(name: str, text: str) -> Limit:
    if text.endswith("%"):
        fraction = _fraction(text)
        if fraction <= 0:
            raise ThresholdError(f"eviction percentage minimum reclaim {name} must be positive: {text}")
        return Limit(fraction=fraction)
    quantity = _quantity(text)
    if quantity.nano < 0:
        raise ThresholdError(f"negative eviction minimum reclaim specified for {name}")
    return Limit(quantity=str(quantity))


def _quantity(text: str) -> Quantity:
    try:
        return parse(text)
    except QuantityError as error:
        raise ThresholdError(error.detail) from error


def _fraction(text: str) -> float:
    """A percentage as the reference computes it: both the number and the division in 32-bit floats."""
    number = text.rstrip("%")
    try:
        return _float32(_float32(go_syntax.parse_float(number)) / 100)
    except OverflowError as error:
        raise ThresholdError(f'strconv.ParseFloat: parsing "{number}": value out of range') from error
    except ValueError as error:
        raise ThresholdError(str(error)) from error


def _float32(number: float) -> float:
    return struct.unpack("<f", struct.pack("<f", number))[0]
