"""A profile: which plugins take part in which extension point, in which order, with which weight.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (NewFramework,
expandMultiPointPlugins).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from podyard.framework import interfaces, optional_hooks
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
    PreFilterExtensions,
    PreScore,
    QueueSort,
    Reserve,
    Score,
)
from podyard.framework.optional_hooks import PreFlight, RoomWanted, Token, Touched

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


class FilterToken(NamedTuple):
    """A plugin that may judge a row otherwise though the row does not change."""

    name: str
    token: Token


class ScoreToken(NamedTuple):
    """A plugin that may score a row otherwise though the row does not change."""

    name: str
    pre_score: PreScore | None
    token: Token
    by_feasible: bool
    """Also when other rows become feasible."""


class PreBinding(NamedTuple):
    """A PreBind plugin, and what it has to do it for: `None` if it does not say."""

    plugin: PreBind
    pre_flight: PreFlight | None


class Profile(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Plugins by extension point, each in the order in which they are asked.

    What plugins have besides is looked up once a profile: a cycle needs it for each signature of pods.
    """

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
    """Equal for profiles that decide alike: plugins by point, order, weights and arguments. 16 hexadecimal
    digits."""

    @cached_property
    def filter_tokens(self) -> tuple[FilterToken, ...]:
        """Of the plugins of PreFilter and Filter, each once."""
        plugins = {plugin.name: plugin for plugin in (*self.pre_filter, *self.filter)}
        tokens = ((name, optional_hooks.filter_token(plugin)) for name, plugin in plugins.items())
        return tuple(FilterToken(name, token) for name, token in tokens if token is not None)

    @cached_property
    def filter_touched(self) -> Mapping[str, Touched]:
        """Of those Filter plugins that have it, by name."""
        found = ((plugin.name, optional_hooks.filter_touched(plugin)) for plugin in self.filter)
        return {name: touched for name, touched in found if touched is not None}

    @cached_property
    def node_filters(self) -> tuple[Filter, ...]:
        """Those of `filter` to which what is on a node is nothing."""
        return tuple(plugin for plugin in self.filter if plugin.scope == "node")

    @cached_property
    def room_wanted(self) -> Mapping[str, RoomWanted]:
        """Of those Filter plugins to which only room counts, by name."""
        found = ((plugin.name, optional_hooks.room_wanted(plugin)) for plugin in self.filter)
        return {name: wanted for name, wanted in found if wanted is not None}

    @cached_property
    def pre_filter_extensions(self) -> tuple[PreFilterExtensions, ...]:
        """Those of `pre_filter` that are told of pods more and less."""
        return tuple(plugin for plugin in self.pre_filter if isinstance(plugin, PreFilterExtensions))

    @cached_property
    def score_tokens(self) -> tuple[ScoreToken, ...]:
        """Of the plugins of PreScore and Score, each once."""
        pre_scores = {plugin.name: plugin for plugin in self.pre_score}
        plugins: dict[str, Plugin] = {**pre_scores, **{entry.plugin.name: entry.plugin for entry in self.score}}
        tokens = ((name, plugin, optional_hooks.score_token(plugin)) for name, plugin in plugins.items())
        return tuple(
            ScoreToken(name, pre_scores.get(name), token, optional_hooks.looks_at_other_rows(plugin))
            for name, plugin, token in tokens
            if token is not None
        )

    @cached_property
    def pre_binding(self) -> tuple[PreBinding, ...]:
        """`pre_bind`, each with what it says beforehand."""
        return tuple(PreBinding(plugin, optional_hooks.pre_bind_pre_flight(plugin)) for plugin in self.pre_bind)


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


FIELDS: Final = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "queue_sort",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}
"""Extension points as configuration files call them, and their fields of `Profile`."""

PROTOCOLS: Final[dict[str, type[Any]]] = {**POINTS, "queue_sort": QueueSort, "score": Score}
"""What a plugin must be to take part in a point, by the field of `Profile`."""


def assemble(
    name: str,
    plugins: Iterable[Plugin],
    points: Mapping[str, Sequence[Plugin]],
    *,
    weights: Mapping[str, int],
    arguments: Mapping[str, Any],
) -> Profile:
    """A profile of which every extension point is given.

    :param plugins: in the order in which the profile is to list them; those that are at no point are left out
    :param points: plugins by extension point (as files call it), in calling order; a point left out has none
    :param weights: of Score plugins by name; 1 for those left out
    :param arguments: of plugins by name, plain values or Structs, for the digest
    :raises ProfileError: a plugin without the methods of its point, two plugins of one name, or not exactly
        one QueueSort
    """
    found = {field: tuple(points.get(point, ())) for point, field in FIELDS.items()}
    used = {id(plugin) for at_point in found.values() for plugin in at_point}
    taking_part = tuple(plugin for plugin in plugins if id(plugin) in used)
    faults = [*_strangers(found), *_namesakes(taking_part), *_sorter_faults(found["queue_sort"])]
    if faults:
        raise ProfileError(name, faults)
    sorter = cast("QueueSort", found.pop("queue_sort")[0])
    score = tuple(
        _weighted(Enabled(plugin=plugin, weight=weights.get(plugin.name, 1))) for plugin in found.pop("score")
    )
    many: dict[str, Any] = dict(found)
    digest = _digest({plugin.name: arguments.get(plugin.name) for plugin in taking_part}, sorter, many, score)
    return Profile(name=name, plugins=taking_part, queue_sort=sorter, score=score, digest=digest, **many)


def _strangers(found: Mapping[str, tuple[Plugin, ...]]) -> list[str]:
    return [
        f"plugin {plugin.name} lacks the methods of {field}"
        for field, plugins in found.items()
        for plugin in plugins
        if not isinstance(plugin, PROTOCOLS[field])
    ]


def _namesakes(plugins: Sequence[Plugin]) -> list[str]:
    names = [plugin.name for plugin in plugins]
    return [f"two plugins are called {name}" for name in sorted(set(names)) if names.count(name) > 1]


def resolve(name: str, enabled: Sequence[Enabled]) -> Profile:
    """A profile in which every plugin takes part in all points that it has methods for, in the given order.

    :raises ProfileError: two plugins of one name, a name missing, no extension point, a bad weight, or not
        exactly one QueueSort
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
        digest=_digest({plugin.name: getattr(plugin, "args", None) for plugin in plugins}, sorters[0], points, score),
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
    return faults + _sorter_faults(sorters)


def _sorter_faults(sorters: Sequence[Plugin]) -> list[str]:
    if len(sorters) == 1:
        return []
    names = ", ".join(sorter.name for sorter in sorters) or "none"
    return [f"exactly one QueueSort plugin must be enabled, there are {len(sorters)} ({names})"]


def _digest(
    arguments: Mapping[str, Any],
    sorter: QueueSort,
    points: dict[str, tuple[Plugin, ...]],
    score: tuple[WeightedScore, ...],
) -> str:
    described = {
        "queue_sort": sorter.name,
        "points": {point: [plugin.name for plugin in found] for point, found in points.items()},
        "score": [(entry.plugin.name, entry.weight) for entry in score],
        "args": arguments,
    }
    encoded = msgspec.json.encode(described, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]
