"""What a KubeletConfiguration may say without effect on a virtual node: it is read, validated, and told."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.node_agent.core.eviction import configuration
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.thresholds import PODS

_OWN_OBJECT: Final = "capacity and allocatable of a virtual node are those of its object"
_REGISTERED: Final = ("kubeReserved", "systemReserved")
"""What a host's object is made of."""
_CGROUPS: Final = "virtual nodes have no cgroups"
_REASONS: Final = {
    "kubeReserved": _OWN_OBJECT,
    "systemReserved": _OWN_OBJECT,
    "kubeReservedCgroup": _CGROUPS,
    "systemReservedCgroup": _CGROUPS,
    "cgroupsPerQOS": _CGROUPS,
}
_FIELDS: Final = {one.encode_name: one.name for one in msgspec.structs.fields(KubeletConfiguration)}
_READ: Final = {"apiVersion", "kind", "mergeDefaultEvictionSettings", *_FIELDS}
_OTHER: Final = "no node agent evicts by it; a field that should do so is misspelt"


class Unused(NamedTuple):
    """A field that is set, and why that changes nothing."""

    field: str
    reason: str


def found(document: Mapping[str, Any], *, host: bool = False) -> tuple[Unused, ...]:
    """The fields that have no effect: those that the agent reads if they differ from their defaults, others
    if they are there.

    :param host: whether one of the agent's nodes is its host, which it registers
    :raises ThresholdError: if it is no KubeletConfiguration
    """
    given = configuration.read(document)
    return (*_known(given, host), *_entries(given), *_others(document))


def _known(given: KubeletConfiguration, host: bool) -> Iterator[Unused]:
    default = KubeletConfiguration()
    for field, reason in _REASONS.items():
        if host and field in _REGISTERED:
            continue
        if getattr(given, _FIELDS[field]) != getattr(default, _FIELDS[field]):
            yield Unused(field, reason)


def _entries(given: KubeletConfiguration) -> Iterator[Unused]:
    """Entries of fields that do have an effect."""
    for position, name in enumerate(given.enforce_node_allocatable):
        if name not in (PODS, "none"):
            yield Unused(f"enforceNodeAllocatable[{position}]", _CGROUPS)
    for name in given.eviction_soft_grace_period:
        if name not in given.eviction_soft:
            yield Unused(f"evictionSoftGracePeriod[{name}]", "evictionSoft does not name the signal")
    for name in given.eviction_minimum_reclaim:
        if name not in given.eviction_soft and name not in given.eviction_hard:
            yield Unused(f"evictionMinimumReclaim[{name}]", "no threshold names the signal")


def _others(document: Mapping[str, Any]) -> Iterator[Unused]:
    for field, value in document.items():
        if field not in _READ and value is not None:
            yield Unused(field, _OTHER)
