"""Suite `policy`: DeschedulerPolicy documents, decoded, checked, completed and built."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from podyard.descheduler.core import building, durations, loading, registry
from podyard.descheduler.core.errors import PolicyError
from podyard.descheduler.core.plugins import default_evictor
from podyard.descheduler.core.policy import Policy, Profile
from podyard.descheduler.core.state import CycleState
from podyard.objects import decoding
from podyard.objects.scheduling import PriorityClass
from tests.conformance import shapes
from tests.conformance.differences import Difference, between

SETS: Final = ("presort", "sort", "deschedule", "balance", "filter", "preevictionfilter")
_UNKNOWN: Final = re.compile(r'unknown field "(?:.*\.)?([^".]+)"')


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The text, and what the cluster has of priority classes."""

    policy: str
    priority_classes: list[dict[str, Any]] = []


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the reference got."""

    ok: bool
    stage: Literal["decode", "validate", "default", "build"] | None
    errors: list[str]
    normalized: dict[str, Any] | None


class Expected(Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True):
    acceptable: list[Outcome] = []


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """How far Podyard gets, in the form of `expected`."""
    case = msgspec.convert(given, Given)
    plugins = registry.by_name()
    classes = {one["metadata"]["name"]: _priority_class(one) for one in case.priority_classes}
    policy = None
    try:
        policy = loading.load(case.policy, plugins, classes)
        building.build(policy, plugins, CycleState(nodes=(), pods=()), 0.0)
    except PolicyError as error:
        normalized = None if policy is None else spelled(policy)
        return {"ok": False, "stage": error.stage, "errors": list(error.errors), "normalized": normalized}
    return {"ok": True, "stage": None, "errors": [], "normalized": spelled(policy)}


def _priority_class(manifest: dict[str, Any]) -> PriorityClass:
    return decoding.decode_as(PriorityClass, msgspec.json.encode(manifest))


def spelled(policy: Policy) -> dict[str, Any]:
    """A completed policy as the data spells it."""
    document: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(policy, profiles=()))
    document["profiles"] = [_profile(one) for one in policy.profiles]
    if "metricsCollector" in document:
        document["metricsCollector"] = {"enabled": False, **document["metricsCollector"]}
    return document


def _profile(profile: Profile) -> dict[str, Any]:
    written: dict[str, Any] = msgspec.to_builtins(profile.plugins)
    sets: dict[str, Any] = {name: {"enabled": [], "disabled": [], **written.get(name, {})} for name in SETS}
    configs = [
        {"name": one.name, "args": _args(one.name, msgspec.to_builtins(one.args, enc_hook=durations.encode))}
        for one in profile.plugin_config
    ]
    return {"name": profile.name, "pluginConfig": configs, "plugins": sets}


def _args(plugin: str, args: dict[str, Any]) -> dict[str, Any]:
    """Empty lists are left out. Some parts of the evictor's arguments are written even if there is nothing in
    them."""
    args = {name: value for name, value in args.items() if value not in ([], ())}
    if plugin != default_evictor.NAME:
        return args
    threshold = {"priorityThreshold": {"name": "", **args["priorityThreshold"]}} if "priorityThreshold" in args else {}
    found: dict[str, Any] = {"podProtections": {}, **args, **threshold}
    pvc: dict[str, Any] = found["podProtections"].get("config", {}).get("PodsWithPVC", {})
    for one in pvc.get("protectedStorageClasses", ()):
        one.setdefault("name", "")
    return found


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """The stage and what it has to tell; one of `acceptable` will do."""
    ways = [list(_compare(one, got)) for one in expected.get("acceptable") or [expected]]
    yield from min(ways, key=len)


def _compare(expected: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Difference]:
    if expected["stage"] != got["stage"]:
        shown = f"{got['stage']}: {got['errors']}" if got["errors"] else "ok"
        yield Difference(("stage",), expected["stage"] or "ok", shown, f"stage {expected['stage']}")
        return
    yield from between(expected["normalized"], got["normalized"], ("normalized",))
    theirs, ours = expected["errors"], got["errors"]
    if expected["stage"] == "decode":
        theirs, ours = ([field for text in texts for field in _UNKNOWN.findall(text)] for texts in (theirs, ours))
    yield from between(theirs, ours, ("errors",))
