"""Which plugins are asked at which extension point, in which order, with which weight: from what a profile
enables and disables.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (updatePluginList,
expandMultiPointPlugins, getScoreWeights).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

POINTS: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
)
"""Extension points as configuration files call them, in the order in which the reference fills them."""

ALL: Final = "*"
"""In `disabled`: whatever comes from multiPoint."""


class Choice(NamedTuple):
    """An enabled plugin; weight 0 means 1."""

    name: str
    weight: int = 0


class Selection(NamedTuple):
    """What is enabled and disabled at one point."""

    enabled: Sequence[Choice] = ()
    disabled: frozenset[str] = frozenset()


class Expanded(NamedTuple):
    """`points`: plugins by extension point, all points, in calling order. `weights`: of all plugins that
    score."""

    points: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]


class ExpansionError(ValueError):
    """A plugin that cannot be asked as the profile says. `point`: where; `missing`: it does not exist."""

    def __init__(self, point: str, plugin: str, detail: str, *, missing: bool = False) -> None:
        self.point = point
        self.plugin = plugin
        self.missing = missing
        self.detail = detail
        super().__init__(detail)


def expand(
    multi_point: Sequence[Choice],
    specific: Mapping[str, Selection],
    points_of: Callable[[str], frozenset[str] | None],
) -> Expanded:
    """
    :param multi_point: plugins for all points that they extend
    :param specific: what is said of single points; a point left out says nothing
    :param points_of: the points that a plugin extends, `None` if there is no such plugin
    :raises ExpansionError: for the first plugin that does not exist, does not extend its point, or is enabled
        twice
    """
    own = {point: _own(point, specific.get(point, Selection()), points_of) for point in POINTS}
    points = {
        point: _expanded(point, own[point], specific.get(point, Selection()), multi_point, points_of)
        for point in POINTS
    }
    weights: dict[str, int] = {}
    for name, weight in (*specific.get("score", Selection()).enabled, *multi_point):
        if "score" in (points_of(name) or ()):
            weights.setdefault(name, weight or 1)
    return Expanded(points, weights)


def _own(point: str, selection: Selection, points_of: Callable[[str], frozenset[str] | None]) -> tuple[str, ...]:
    """The plugins enabled at this very point."""
    found: list[str] = []
    for name, _ in selection.enabled:
        extends = points_of(name)
        if extends is None:
            raise ExpansionError(point, name, f"there is no plugin {name}", missing=True)
        if point not in extends:
            raise ExpansionError(point, name, f"plugin {name} does not extend {point}, only {_listed(extends)}")
        if name in found:
            raise ExpansionError(point, name, f"plugin {name} is enabled twice")
        found.append(name)
    return tuple(found)


def _expanded(
    point: str,
    own: tuple[str, ...],
    selection: Selection,
    multi_point: Sequence[Choice],
    points_of: Callable[[str], frozenset[str] | None],
) -> tuple[str, ...]:
    """First own plugins that multiPoint has too, then the rest of multiPoint, then the other own ones."""
    if ALL in selection.disabled:
        return own
    overriding: set[str] = set()
    found: list[str] = []
    for name, _ in multi_point:
        extends = points_of(name)
        if extends is None:
            raise ExpansionError("multiPoint", name, f"there is no plugin {name}", missing=True)
        if point not in extends or name in selection.disabled:
            continue
        if name in own:
            overriding.add(name)
        elif name in found:
            raise ExpansionError("multiPoint", name, f"plugin {name} is enabled twice")
        else:
            found.append(name)
    first = [name for name in own if name in overriding]
    return (*first, *found, *(name for name in own if name not in overriding))


def _listed(points: frozenset[str]) -> str:
    return ", ".join(sorted(points)) or "no point at all"
