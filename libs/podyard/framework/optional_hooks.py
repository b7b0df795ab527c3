"""What a plugin has besides the methods of its extension points. Each is declared as a Protocol in
`interfaces`; `plugins.signatures` holds names and shapes to that when a plugin is loaded.

They are looked up by name: isinstance with a Protocol takes 12 µs a plugin, too long for what is made for
each signature of pods. A profile keeps those that a cycle asks for by plugin.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeAlias

from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import Detail, Rows
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot

Token: TypeAlias = Callable[[PodInfo, Snapshot], Hashable]
Pattern: TypeAlias = Callable[[CycleState, Snapshot], Hashable]
Detailing: TypeAlias = Callable[[CycleState, PodInfo, Snapshot, Rows, str], Detail | None]
RoomWanted: TypeAlias = Callable[[CycleState], Sequence[tuple[str, int]]]
PreFlight: TypeAlias = Callable[[PodInfo], bool]
Touched: TypeAlias = Callable[[CycleState, PodInfo, Snapshot], Iterable[int] | None]


def filter_token(plugin: object) -> Token | None:
    """What differs when its PreFilter or Filter may answer something else: of `FilterToken`, or the table's
    version for one that looks at other rows; `None`: only the pod's signature and the row count."""
    return _token(plugin, "filter_token")


def score_token(plugin: object) -> Token | None:
    """The same of `ScoreToken`, for PreScore and Score."""
    return _token(plugin, "score_token")


def _token(plugin: object, name: str) -> Token | None:
    token: Token | None = getattr(plugin, name, None)
    return _table_version if token is None and looks_at_other_rows(plugin) else token


def _table_version(pod: PodInfo, cluster: Snapshot) -> int:
    return cluster.nodes.version


def looks_at_other_rows(plugin: object) -> bool:
    """Whether its scope is `cluster`. A plugin of PreFilter or PreScore alone has none."""
    return getattr(plugin, "scope", "row") == "cluster"


def filter_touched(plugin: object) -> Touched | None:
    """Of `FilterTouched`."""
    return getattr(plugin, "filter_touched", None)


def filter_pattern(plugin: object) -> Pattern | None:
    """Of `FilterPattern`."""
    return getattr(plugin, "filter_pattern", None)


def room_wanted(plugin: object) -> RoomWanted | None:
    """Of `LooksAtRoom`."""
    return getattr(plugin, "room_wanted", None)


def pre_bind_pre_flight(plugin: object) -> PreFlight | None:
    """Of `PreBindPreFlight`."""
    return getattr(plugin, "pre_bind_pre_flight", None)


def detail(plugin: object) -> Detailing | None:
    """Of `Detailed`."""
    return getattr(plugin, "detail", None)


def reads_template(plugin: object) -> bool:
    """Whether it is a `ReadsTemplate`."""
    return getattr(plugin, "reads_template", False)


def signs_few_templates(plugin: object) -> bool:
    """Whether it is a `SignsFewTemplates`."""
    return getattr(plugin, "signs_few_templates", False)


def by_extremes(normalizer: object) -> bool:
    """Whether it is a `NormalizesByExtremes`."""
    return getattr(normalizer, "by_extremes", False)
