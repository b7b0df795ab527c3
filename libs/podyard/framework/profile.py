"""A profile: which plugins take part in which extension point, in which order, with which weight.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (NewFramework, expandMultiPointPlugins).
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

import msgspec

from podyard.framework import interfaces
from podyard.framework.interfaces import (
    Bind,
    Filter,
    NormalizeScore,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
)

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""`schedulerName` of pods that name none, and the name of the default profile."""

P = TypeVar("P")


class ProfileError(ValueError):
    """A profile that cannot be used. `faults` has all of them, in words."""

    def __init__(self, profile: str, faults: Sequence[str]) -> None:
        self.profile = profile
        self.faults = tuple(faults)
        super().__init__(f"profile {profile!r}: " + "; ".join(faults))


class Enabled(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin of a profile. `weight` counts for Score only; 0 means 1, as in the reference."""

    plugin: Plugin
    weight: int = 0


class WeightedScore(msgspec.Struct, frozen=True, kw_only=True):
    """A Score plugin, its weight, and its NormalizeScore if it has one."""

    plugin: Score
    weight: int
    normalizer: NormalizeScore | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Plugins by extension point, each in the order in which they are asked."""

    name: str
    plugins: tuple[Plugin, ...]
    """All, each once."""
    queue_sort: QueueSort
    pre_enqueue: tuple[PreEnqueue, ...] = ()
    pre_filter: tuple[PreFilter, ...] = ()
    filter: tuple[Filter, ...] = ()
    post_filter: tuple[PostFilter, ...] = ()
    pre_score: tuple[PreScore, ...] = ()
    score: tuple[WeightedScore, ...] = ()
    reserve: tuple[Reserve, ...] = ()
    permit: tuple[Permit, ...] = ()
    pre_bind: tuple[PreBind, ...] = ()
    bind: tuple[Bind, ...] = ()
    post_bind: tuple[PostBind, ...] = ()
    digest: str
    """Equal for profiles that decide alike: plugins by point, order, weights and arguments. 16 hexadecimal digits."""


POINTS: Final[dict[str, type[Any]]] = {
    "pre_enqueue": PreEnqueue,
    "pre_filter": PreFilter,
    "filter": Filter,
    "post_filter": PostFilter,
    "pre_score": PreScore,
    "reserve": Reserve,
    "permit": Permit,
    "pre_bind": PreBind,
    "bind": Bind,
    "post_bind": PostBind,
}
"""Extension points with any number of plugins and no weight, by the field of `Profile`."""


def resolve(name: str, enabled: Sequence[Enabled]) -> Profile:
    """A profile in which every plugin takes part in all points that it has methods for, in the given order.

    :raises ProfileError: two plugins of one name, a name missing, no extension point, a bad weight, or not exactly one QueueSort
    """
    plugins = tuple(entry.plugin for entry in enabled)
    sorters = _having(QueueSort, plugins)
    faults = _faults(enabled, sorters)
    if faults:
        raise ProfileError(name, faults)
    points: dict[str, Any] = {point: _having(protocol, plugins) for point, protocol in POINTS.items()}
    score = tuple(_weighted(entry) for entry in enabled if isinstance(entry.plugin, Score))
    return Profile(
        name=name,
        plugins=plugins,
        queue_sort=sorters[0],
        score=score,
        digest=_digest(plugins, sorters[0], points, score),
        **points,
    )


def _having(protocol: type[P], plugins: Sequence[object]) -> tuple[P, ...]:
    return tuple(plugin for plugin in plugins if isinstance(plugin, protocol))


def _weighted(entry: Enabled) -> WeightedScore:
    plugin = cast("Score", entry.plugin)
    return WeightedScore(
        plugin=plugin, weight=entry.weight or 1, normalizer=plugin if isinstance(plugin, NormalizeScore) else None
    )


def _faults(enabled: Sequence[Enabled], sorters: Sequence[QueueSort]) -> list[str]:
    faults: list[str] = []
    seen: set[str] = set()
    protocols = (*POINTS.values(), QueueSort, Score)
    for entry in enabled:
        plugin = cast("object", entry.plugin)
        if not isinstance(plugin, interfaces.Plugin):
            faults.append(f"{type(plugin).__name__} has no name; give the class a `name`")
            continue
        if plugin.name in seen:
            faults.append(f"plugin {plugin.name} is enabled twice")
        seen.add(plugin.name)
        if not any(isinstance(plugin, protocol) for protocol in protocols):
            faults.append(f"plugin {plugin.name} has the methods of no extension point")
        if entry.weight < 0:
            faults.append(f"plugin {plugin.name} has weight {entry.weight}; weights are 1 or more (0 means 1)")
    if len(sorters) != 1:
        names = ", ".join(sorter.name for sorter in sorters) or "none"
        faults.append(f"exactly one QueueSort plugin must be enabled, there are {len(sorters)} ({names})")
    return faults


def _digest(
    plugins: Sequence[Plugin],
    sorter: QueueSort,
    points: dict[str, tuple[Plugin, ...]],
    score: tuple[WeightedScore, ...],
) -> str:
    described = {
        "queue_sort": sorter.name,
        "points": {point: [plugin.name for plugin in found] for point, found in points.items()},
        "score": [(entry.plugin.name, entry.weight) for entry in score],
        "args": {plugin.name: getattr(plugin, "args", None) for plugin in plugins},
    }
    encoded = msgspec.json.encode(described, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]
