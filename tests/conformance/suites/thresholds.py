"""Suite `thresholds`: a KubeletConfiguration -> what of it is effective, thresholds, what they reserve."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from podyard.node_agent.core.eviction import configuration, file_systems
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.thresholds import Threshold, ThresholdError
from tests.conformance import kubelet, shapes
from tests.conformance.differences import Difference, between

LAYOUTS = {"single": Layout.SINGLE, "imagefs": Layout.DEDICATED, "split": Layout.SPLIT}


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A configuration, and the capacity of the node that has it."""

    kubelet_configuration: dict[str, Any]
    capacity: dict[str, str] = {}


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What the reference made of it."""

    effective: dict[str, Any]
    error: str | None
    thresholds: list[dict[str, Any]] = []
    container_fs_thresholds: dict[str, Any] = {}
    hard_eviction_reservation: dict[str, str] = {}


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What Podyard makes of a configuration, in the form of `expected`."""
    asked = msgspec.convert(given, Given)
    found = configuration.read(asked.kubelet_configuration)
    told: dict[str, Any] = {"effective": _effective(found), **_reservation(found, asked.capacity)}
    try:
        parsed = found.thresholds()
    except ThresholdError as error:
        return told | {"error": error.faults[0].detail}
    return told | {
        "error": None,
        "thresholds": _sorted(parsed),
        "containerFsThresholds": {
            name: _sorted(one for one in file_systems.derived(parsed, layout) if one.signal.startswith("containerfs."))
            for name, layout in LAYOUTS.items()
        },
    }


def _effective(found: KubeletConfiguration) -> dict[str, Any]:
    """The fields that the data show."""
    return {
        "enforceNodeAllocatable": list(found.enforce_node_allocatable),
        "evictionHard": found.eviction_hard,
        "evictionMaxPodGracePeriod": found.eviction_max_pod_grace_period,
        "evictionPressureTransitionPeriodSeconds": found.eviction_pressure_transition_period,
        "localStorageCapacityIsolation": found.local_storage_capacity_isolation,
    }


def _reservation(found: KubeletConfiguration, capacity: dict[str, str]) -> dict[str, Any]:
    try:
        return {"hardEvictionReservation": found.hard_eviction_reservation(capacity)}
    except ThresholdError:
        return {}


def _sorted(thresholds: Iterable[Threshold]) -> list[dict[str, Any]]:
    shown = [kubelet.threshold(one) | {"operator": "LessThan"} for one in thresholds]
    return sorted(shown, key=lambda one: (one["signal"], one["gracePeriodSeconds"], msgspec.json.encode(one)))


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Everything; thresholds have no order."""
    wanted = dict(expected)
    if "thresholds" in wanted:
        wanted["thresholds"] = _ordered(wanted["thresholds"])
        wanted["containerFsThresholds"] = {
            name: _ordered(found) for name, found in wanted["containerFsThresholds"].items()
        }
    yield from between(wanted, got)


def _ordered(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(shown, key=lambda one: (one["signal"], one["gracePeriodSeconds"], kubelet.as_text(one)))
