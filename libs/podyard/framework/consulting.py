"""What HTTP extenders make of a cycle's results: fewer feasible nodes, further reasons, further points.

Source: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go (findNodesThatFitPod, prioritizeNodes,
selectHost).
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np

from podyard.cluster.node_table import NodeTable
from podyard.framework import diagnosis
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis, RejectedGroup
from podyard.framework.extenders import REJECTOR
from podyard.framework.interfaces import Rows
from podyard.framework.layers import Mask
from podyard.framework.scoring import Scoreboard
from podyard.framework.status import Code, Status
from podyard.proto.decisions import NodeScore


class FewerNodes:
    """The feasible nodes that extenders left, to be scored for one pod."""

    def __init__(self, state: CycleState, nodes: NodeTable, names: Collection[str]) -> None:
        """
        :param state: a clone that only this pod uses
        :param names: what is left
        """
        self.state = state
        self.feasible: Rows = np.array(sorted(nodes.row_of[name] for name in names), dtype=np.intp)
        self.mask: Mask = np.zeros(nodes.capacity, dtype=np.bool_)
        self.mask[self.feasible] = True

    def take_moved(self) -> set[int] | None:
        """All of them: they are scored once."""
        return None


def rejected_too(
    found: Diagnosis, nodes: NodeTable, feasible: Rows, left: Collection[str], reasons: Mapping[str, Status]
) -> Diagnosis:
    """The diagnosis with what extenders rejected.

    A node that they left out without a reason is not counted in the message, and preemption does not help
    there.

    :param feasible: rows that the Filter plugins pass
    :param left: nodes that extenders left
    :param reasons: what they said of others, by name
    """
    codes = found.codes.copy()
    codes[feasible] = Code.UNRESOLVABLE
    groups: dict[Status, list[str]] = {}
    for name, status in sorted(reasons.items()):
        row = nodes.row_of.get(name)
        if row is not None:
            codes[row] = status.code
            groups.setdefault(status, []).append(name)
    for name in left:
        codes[nodes.row_of[name]] = Code.SUCCESS
    more = tuple(
        RejectedGroup(status=status, nodes=len(names), examples=tuple(names[: diagnosis.EXAMPLES]))
        for status, names in groups.items()
    )
    plugins = found.plugins if len(left) == len(feasible) else found.plugins | {REJECTOR}
    return msgspec.structs.replace(found, groups=(*found.groups, *more), codes=codes, plugins=plugins)


def ranking(
    scoreboard: Scoreboard, rows: Sequence[int], points: Mapping[str, Mapping[str, int]], nodes: NodeTable
) -> list[NodeScore]:
    """Nodes with the points of plugins and extenders: best first, equal ones by name.

    :param rows: the feasible ones, all of which the scoreboard knows
    :param points: by node and extender
    """
    found: list[NodeScore] = []
    for row in rows:
        node = nodes.names[row]
        plugins = {**scoreboard.points(row), **points.get(node, {})}
        found.append(NodeScore(node=node, total=sum(plugins.values()), plugins=plugins))
    return sorted(found, key=lambda score: (-score.total, score.node))
