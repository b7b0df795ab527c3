"""Pods that are to have room on a node, though none counts as there yet: who else is judged there has to fit
both with them and without.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (addGENominatedPods).
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from podyard.cluster.node_table import NodeTable
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.framework.pod_info import PodInfo

RivalsByRow: TypeAlias = Mapping[int, list[PodView]]

NO_RIVALS: Final[RivalsByRow] = {}

MOST_PRIORITIES: Final = 16
"""For how many priorities the rivals on all rows are kept."""


class Rivals:
    """Those for whom room is kept on a node, whatever their priority; and those of equal or higher priority
    that are nominated to it and not placed anywhere yet.

    The rivals on all rows are kept until a pod is nominated, placed or has room kept for it, or that ends, or
    a node comes or goes.
    """

    __slots__ = ("_by_priority", "_known_at", "_nodes", "_nominated")

    def __init__(self, nodes: NodeTable, nominated: Nominations) -> None:
        self._nodes = nodes
        self._nominated = nominated
        self._known_at: Any = None
        self._by_priority: dict[int, RivalsByRow] = {}

    def __bool__(self) -> bool:
        """Whether anybody is to have room anywhere."""
        return bool(self._nominated.uids or self._nodes.kept_uids)

    def on(self, pod: PodInfo, row: int) -> list[PodView]:
        """Those of `pod` on the node of this row, in order of arrival."""
        return self._on(self._nodes.names[row], pod.priority, pod.uid)

    def by_row(self, pod: PodInfo) -> RivalsByRow:
        """Those of `pod` on every node that has any, by row. Not to be changed; the same object until
        something changes, but for a pod that is a rival of others itself."""
        nodes, nominated = self._nodes, self._nominated
        if not self:
            return NO_RIVALS
        now = (
            nominated.version,
            nodes.kept_version,
            nodes.topology_version,
            nominated.uids & nodes.all_placed.keys(),
        )
        if now != self._known_at or len(self._by_priority) > MOST_PRIORITIES:
            self._known_at = now
            self._by_priority.clear()
        found = self._by_priority.get(pod.priority)
        if found is None:
            found = self._by_priority[pod.priority] = self._everywhere(pod.priority)
        own = self._own_rows(pod.uid)
        if own.isdisjoint(found):
            return found
        others = {row: self.on(pod, row) for row in own}
        return {row: rivals for row, mates in found.items() if (rivals := others.get(row, mates))}

    def _everywhere(self, priority: int) -> RivalsByRow:
        nodes = self._nodes
        names = dict.fromkeys((*self._nominated.nodes(), *nodes.nodes_that_keep_room))
        found = {row: self._on(name, priority) for name in names if (row := nodes.row_of.get(name)) is not None}
        return {row: rivals for row, rivals in found.items() if rivals}

    def _on(self, node_name: str, priority: int, but: str = "") -> list[PodView]:
        nodes = self._nodes
        kept = nodes.kept_on(node_name)
        rivals = [rival for rival in kept.values() if rival.uid != but] if kept else []
        if self._nominated:
            rivals += [
                rival
                for rival in self._nominated.on(node_name).values()
                if rival.priority >= priority
                and rival.uid != but
                and nodes.placed(rival.uid) is None
                and nodes.kept(rival.uid) is None
            ]
        return rivals

    def _own_rows(self, uid: str) -> set[int]:
        """Rows on which the pod itself is one of those who are to have room."""
        kept = self._nodes.kept(uid)
        names = (self._nominated.node_of(uid), "" if kept is None or kept.bound is None else kept.bound.node)
        return {row for name in names if (row := self._nodes.row_of.get(name)) is not None}
