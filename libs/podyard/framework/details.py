"""What stands in the way of a pod on the node that is nearest to taking it, with numbers and names: for
people, after an attempt that found no node.

Of the nodes that one plugin rejects for one reason that one is nearest which lacks least. Of all nodes it is
one of those that pass most plugins of Filter, and lacks least among them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from podyard.cluster.pods import PodView
from podyard.framework import answers, grouping, optional_hooks
from podyard.framework.cycle_state import CycleState
from podyard.framework.grouping import Rejector
from podyard.framework.interfaces import Detail, Plugin, Rows
from podyard.framework.layers import Layer
from podyard.framework.pod_info import PodInfo
from podyard.framework.row_judge import PASSES
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status, told
from podyard.proto.decisions import Rejection

MOST_REASONS: Final = 8
"""Reasons of one attempt that are looked into, those of most nodes; semi-arbitrary."""
MOST_LOOKED_AT: Final = 32
"""Nodes, or pods of one node, that a plugin looks at one by one for one detail; semi-arbitrary."""
LONGEST: Final = 400
"""Characters of a detail: a few lines."""

Key: TypeAlias = tuple[str, str, bool]
"""Plugin, reason, and whether preemption cannot help."""

MOST_NAMED: Final = 3
"""Names in one list."""

NO_ROWS: Final[Rows] = np.zeros(0, dtype=np.intp)


class Found(NamedTuple):
    """Where a plugin's reason is nearest to be none."""

    node: str
    text: str
    lack: float
    passed: int
    """How far the node gets among the plugins of Filter."""
    lacks: str = ""
    """Of an amount: how much more would have to be free there."""


class Details(NamedTuple):
    """Of one failed attempt."""

    by_reason: Mapping[Key, Found]

    @property
    def nearest(self) -> str:
        """The node that is nearest to taking the pod; empty: PreFilter left none to look at."""
        nodes = [found for found in self.by_reason.values() if found.node]
        return min(nodes, key=lambda one: (-one.passed, one.lack, one.node)).node if nodes else ""

    def joined(self, rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
        """The rejections with what was found about them."""
        return tuple([self._with(one) for one in rejections])

    def _with(self, rejection: Rejection) -> Rejection:
        found = self.by_reason.get((rejection.plugin, rejection.reason, rejection.unresolvable))
        if found is None:
            return rejection
        return msgspec.structs.replace(rejection, nearest=found.node, detail=found.text, lacks=found.lacks)


NOTHING_SAID: Final = Detail("")


def of_filters(layers: Sequence[Layer], state: CycleState, pod: PodInfo, cluster: Snapshot) -> dict[Key, Found]:
    """What each plugin says of the nodes that it is the first to reject."""
    found: dict[Key, Found] = {}
    for layer, status, rows in _most(layers, state, cluster):
        for reason in status.reasons:
            key = layer.name, reason, status.code == Code.UNRESOLVABLE
            detail = of_plugin(layer.plugin, state, pod, cluster, rows, reason)
            row = int(rows[0]) if detail.row is None else detail.row
            one = Found(cluster.nodes.names[row], detail.text, detail.lack, layer.number, detail.lacks)
            if key not in found or one.lack < found[key].lack:
                found[key] = one
    return found


def _most(layers: Sequence[Layer], state: CycleState, cluster: Snapshot) -> Iterator[tuple[Layer, Status, Rows]]:
    """The groups of most nodes by layer and status, with their rows by name."""
    order = cluster.nodes.order
    groups: list[tuple[Layer, Status, Rows]] = []
    for layer in layers:
        if layer.groups:
            rejected = order.rows[order.arranged(layer.rejected()).nonzero()[0]]
            groups += [(layer, layer.status(code, state), rows) for code, rows in layer.split(rejected)]
    yield from sorted(groups, key=lambda one: -len(one[2]))[:MOST_REASONS]


def of_plugin(plugin: Plugin, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail:
    """What a plugin says of its reason. One that raises is noted, and says nothing."""
    hook = optional_hooks.detail(plugin)
    if hook is None:
        return NOTHING_SAID
    try:
        found = hook(state, pod, cluster, rows, reason)
        return NOTHING_SAID if found is None else _checked(answers.of_type(found, Detail), rows)
    except Exception as fault:  # the boundary to plugins: what is for people ends no attempt
        cluster.faults.note(PluginError.wrapping(plugin.name, "detail", fault))
        return NOTHING_SAID


def _checked(found: Detail, rows: Rows) -> Detail:
    """
    :raises NonsenseError: if it is about none of the nodes, or nothing to compare by
    """
    text, lack = told(answers.of_type(found.text, str)), float(found.lack)
    lacks = told(answers.of_type(found.lacks, str))
    if found.row is not None and found.row not in rows:
        raise answers.NonsenseError(f"tells of row {found.row}, which it does not reject for this reason")
    if not lack >= 0:
        raise answers.NonsenseError(f"answered a lack of {lack}; 0 or more is one")
    return Detail(_cut(text), found.row, lack, _cut(lacks))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def of_rivals(
    layers: Sequence[Layer],
    contested: Mapping[int, Rejector],
    rivals: Mapping[int, Sequence[PodView]],
    state: CycleState,
    cluster: Snapshot,
) -> dict[Key, Found]:
    """Nodes on which pods count that are nominated to them, or for which room is kept there."""
    found: dict[Key, Found] = {}
    for row, rejector in list(contested.items())[:MOST_REASONS]:
        if rejector[0] == PASSES:
            continue
        status, node = grouping.status_of(layers, rejector, state), cluster.nodes.names[row]
        names = [f"{pod.namespace}/{pod.name}" for pod in rivals.get(row, ())]
        text = f"judged as with {listed(names)}, whose room is kept there"
        found |= {
            (status.plugin, reason, status.code == Code.UNRESOLVABLE): Found(node, text, 0.0, rejector[0])
            for reason in status.reasons
        }
    return found


def of_pre_filter(
    plugin: Plugin, absent: Status, state: CycleState, pod: PodInfo, cluster: Snapshot
) -> dict[Key, Found]:
    """What the plugin says that rejected the pod before any node was looked at."""
    told_of = {reason: of_plugin(plugin, state, pod, cluster, NO_ROWS, reason) for reason in absent.reasons}
    firm = absent.code == Code.UNRESOLVABLE
    return {(absent.plugin, reason, firm): Found("", detail.text, detail.lack, 0) for reason, detail in told_of.items()}


def of_names(plugin: str, absent: Status, names: Collection[str], cluster: Snapshot) -> dict[Key, Found]:
    """Why nodes were not looked at: PreFilter names others.

    :param plugin: as in the rejection
    """
    missing = [name for name in sorted(names) if name not in cluster.nodes.row_of]
    text = f"only {listed(sorted(names))} may take the pod" if names else "no node is named by all of them"
    if missing:
        text += f", and there is no node {listed(missing, 'or')}"
    firm = absent.code == Code.UNRESOLVABLE
    return {(plugin, reason, firm): Found("", text, 0.0, 0) for reason in absent.reasons}


def listed(names: Sequence[str], last: str = "and") -> str:
    """`a, b and c`; of many the first, and how many more."""
    shown = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else list(names)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}"
