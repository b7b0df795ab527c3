"""Suite `registry`: which plugin listens to which cluster event, and how events match. Each key of the file
is a case.

`featureGates` and `specialLabels` say how the reference was set up and what it calls things that are no
cluster events: not compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from podyard.framework import event_registry, events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import ClusterEvent, Registration
from podyard.framework.profile import POINTS, Profile
from podyard.proto import actions
from podyard.proto.actions import ActionType
from tests.conformance import profiles
from tests.conformance.cases import Case, FileError, read_document
from tests.conformance.differences import Difference, between

TOLD: Final = frozenset({"featureGates", "specialLabels"})

RESOURCES: Final = {
    "Pod": events.POD,
    "assignedPod": events.ASSIGNED_POD,
    "unschedulablePod": events.UNSCHEDULABLE_POD,
    "Node": events.NODE,
    "PersistentVolume": events.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": events.PERSISTENT_VOLUME_CLAIM,
    "CSINode": events.CSI_NODE,
    "CSIDriver": events.CSI_DRIVER,
    "VolumeAttachment": events.VOLUME_ATTACHMENT,
    "CSIStorageCapacity": events.CSI_STORAGE_CAPACITY,
    "StorageClass": events.STORAGE_CLASS,
    "ResourceClaim": events.RESOURCE_CLAIM,
    "ResourceSlice": events.RESOURCE_SLICE,
    "DeviceClass": events.DEVICE_CLASS,
    "PodGroup": events.POD_GROUP,
    "WildCard": events.WILDCARD,
}
"""The reference's names of resources, and what Podyard calls them in events."""

NAMED: Final = {
    "AssignedPodAdd": events.ASSIGNED_POD_ADD,
    "AssignedPodUpdate": events.ASSIGNED_POD_UPDATE,
    "AssignedPodDelete": events.ASSIGNED_POD_DELETE,
    "UnscheduledPodAdd": events.UNSCHEDULED_POD_ADD,
    "UnscheduledPodUpdate": events.UNSCHEDULED_POD_UPDATE,
    "UnscheduledPodDelete": events.UNSCHEDULED_POD_DELETE,
    "UnschedulableTimeout": events.UNSCHEDULABLE_TIMEOUT,
    "ForceActivate": events.FORCE_ACTIVATE,
}


def read(path: Path) -> Sequence[Case]:
    """The file's keys, each with what is asked of Podyard: for tables their questions without the answers.

    :raises FileError: if it cannot be read, or holds a key that this suite does not know
    """
    cases = [case for case in read_document(path) if case.id not in TOLD]
    unknown = [case.id for case in cases if case.id not in ANSWERS]
    if unknown:
        raise FileError(path, f"unknown keys: {', '.join(unknown)}")
    return [msgspec.structs.replace(case, input={"what": case.id, "asked": _asked(case)}) for case in cases]


def _asked(case: Case) -> Any:
    match case.id:
        case "matchTable":
            return [{"registered": row["registered"], "incoming": row["incoming"]} for row in case.expected]
        case "incomingEventMatches":
            return [row["incoming"] for row in case.expected]
        case "metricEventLabels" | "singleBitLabels":
            return case.expected
        case _:
            return []


def check(given: dict[str, Any], expected: Any) -> None:
    """All was looked at by `read`."""


def run(given: dict[str, Any]) -> Any:
    """What Podyard has under this key, in the form of the file."""
    return ANSWERS[given["what"]](given["asked"])


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Row by row; the order of the rows of maps does not count."""
    return between(_keyed(expected), _keyed(got))


def _keyed(value: Any) -> Any:
    """A list of rows as a map by what the row is about; everything else as it is."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    return {_row_key(row): row for row in value}


def _row_key(row: Mapping[str, Any]) -> str:
    for key in ("name", "const", "event", "incoming"):
        if key in row:
            about = (row[key], row["registered"]) if "registered" in row else row[key]
            return about if isinstance(about, str) else msgspec.json.encode(about).decode()
    return f"{row['resource']} {row['value']}"


def _registry() -> EventRegistry:
    return EventRegistry.of_profile(_profile())


def _profile() -> Profile:
    return profiles.configured(None).profiles[0]


def _event(event: ClusterEvent) -> dict[str, Any]:
    return {"resource": event.resource, "value": int(event.action), "label": event.label}


def _registration(registration: Registration) -> dict[str, Any]:
    resource, action, _ = registration.event
    return {
        "resource": resource,
        "actions": list(actions.names(action)),
        "value": int(action),
        "hasHint": registration.hint is not None,
    }


def _bits(asked: Any) -> Any:
    return [{"name": name, "value": int(bit)} for name, bit in actions.NAMES.items()]


def _composites(asked: Any) -> Any:
    named = {"None": ActionType.NONE, **actions.COMPOSITES}
    return {name: {"bits": list(actions.names(bits)), "value": int(bits)} for name, bits in named.items()}


def _resources(asked: Any) -> Any:
    return [{"const": name, "value": value} for name, value in RESOURCES.items()]


def _named_events(asked: Any) -> Any:
    return [
        {
            "name": name,
            "event": _event(event),
            "actions": list(actions.names(event.action)),
            "wildcard": event.is_wildcard,
        }
        for name, event in NAMED.items()
    ]


def _labels(asked: Sequence[str]) -> Any:
    """Of the labels asked for, those that some event of Podyard has."""
    everything = {events.UNSCHEDULABLE_TIMEOUT.label, events.FORCE_ACTIVATE.label}
    for resource in RESOURCES.values():
        everything |= {ClusterEvent(resource, action).label for action in (*actions.NAMES.values(), ActionType.UPDATE)}
    return [label for label in asked if label in everything]


def _defaults(asked: Any) -> Any:
    return [_registration(registration) for registration in event_registry.registrations_of(object())]


def _plugins(asked: Any) -> Any:
    """What the plugins register themselves, without the rule about taints."""
    registry = _registry()
    return {
        plugin.name: {
            "events": [_registration(registration) for registration in _own(plugin, registry)],
            "registersDefaultEvents": not isinstance(plugin, event_registry.RegistersEvents),
        }
        for plugin in _profile().plugins
        if plugin.name in registry.plugins
    }


def _own(plugin: Any, registry: EventRegistry) -> Sequence[Registration]:
    own = plugin.events_to_register() if isinstance(plugin, event_registry.RegistersEvents) else ()
    return own or registry.plugins[plugin.name]


def _silent(asked: Any) -> Any:
    registered = _registry().plugins
    return sorted(plugin.name for plugin in _profile().plugins if not registered.get(plugin.name))


def _points(asked: Any) -> Any:
    profile = _profile()
    found = {_camel(point): [{"name": plugin.name} for plugin in getattr(profile, point)] for point in POINTS}
    found["queueSort"] = [{"name": profile.queue_sort.name}]
    found["score"] = [{"name": entry.plugin.name, "weight": entry.weight} for entry in profile.score]
    return found


def _camel(point: str) -> str:
    first, *rest = point.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _event_to_plugins(asked: Any) -> Any:
    return [
        {
            "event": _event(ClusterEvent(resource, ActionType(value))),
            "actions": list(actions.names(ActionType(value))),
            "plugins": list(plugins),
        }
        for (resource, value), plugins in _registry().event_to_plugins().items()
    ]


def _union(asked: Any) -> Any:
    return {
        resource: {"actions": list(actions.names(bits)), "value": int(bits)}
        for resource, bits in _registry().actions_by_resource().items()
    }


def _incoming(asked: Sequence[Mapping[str, Any]]) -> Any:
    registry = _registry()
    rows: list[dict[str, Any]] = []
    for row in asked:
        event = ClusterEvent(row["resource"], ActionType(row["value"]))
        plugins = sorted(registry.listeners(event))
        rows.append({"incoming": _event(event), "interested": registry.is_interested(event), "plugins": plugins})
    return rows


def _matches(asked: Sequence[Mapping[str, Any]]) -> Any:
    return [row | {"match": events.match(_pair(row["registered"]), _pair(row["incoming"]))} for row in asked]


def _pair(pair: Sequence[Any]) -> ClusterEvent:
    resource, value = pair
    return ClusterEvent(resource, ActionType(value))


ANSWERS: Final = {
    "actionBits": _bits,
    "actionComposites": _composites,
    "resources": _resources,
    "namedEvents": _named_events,
    "singleBitLabels": _labels,
    "metricEventLabels": _labels,
    "defaultEventsForPluginsWithoutExtension": _defaults,
    "plugins": _plugins,
    "pluginsWithoutEvents": _silent,
    "effectivePlugins": _points,
    "eventToPlugins": _event_to_plugins,
    "unionedGVKs": _union,
    "incomingEventMatches": _incoming,
    "matchTable": _matches,
}
"""By key of the file."""
