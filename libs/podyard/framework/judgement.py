"""What Filter says of every node for one pod, kept for pods of equal signature and brought up to date row by row.

Of each node the first plugin in order that rejects it is remembered, with that plugin's code.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.framework import diagnosis, prefilter
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis, RejectedGroup
from podyard.framework.interfaces import Filter
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile
from podyard.framework.row_judge import RowJudge
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.proto.decisions import Rejection

NOT_JUDGED: Final = -1
"""The row is free, or PreFilter left its node out."""
PASSES: Final = 0
"""No plugin rejects the node; number n + 1: filter plugin n does."""

ROWS_ONE_BY_ONE: Final = 12
"""Up to so many changed rows are judged one at a time, which is then cheaper than arrays (measured: 3 µs a row against 40 µs)."""

GroupKey = tuple[int, int]
"""(rejector, code)."""


class Judgement:
    """Filter results of one signature.

    Invariant after `refresh`: for every row, `rejector` and the code are what the plugins would say now; `_groups` holds exactly the
    rejected rows; `feasible_count` counts the rows that pass.
    """

    def __init__(self, profile: Profile, pod: PodInfo, cluster: Snapshot) -> None:
        """Runs PreFilter.

        :raises PluginError: if a PreFilter fails
        """
        self._cluster = cluster
        self._judge = RowJudge(profile, cluster)
        self.state = CycleState()
        self.pre_filtered = prefilter.run(profile.pre_filter, self.state, pod, cluster)
        self._numbered: tuple[tuple[int, Filter], ...] = tuple(
            (number, plugin)
            for number, plugin in enumerate(profile.filter, start=1)
            if plugin.name not in self.state.skip_filter
        )
        self._names = ["", *(plugin.name for plugin in profile.filter)]
        self._whole = any(plugin.scope == "cluster" for _, plugin in self._numbered)
        self._version = -1
        self.rejector: NDArray[np.int16] = np.zeros(0, dtype=np.int16)
        self._codes: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._groups: dict[GroupKey, dict[int, None]] = {}
        self._statuses: dict[GroupKey, Status] = {}
        self._rejections: tuple[Rejection, ...] | None = None
        self.feasible_count = 0

    @property
    def feasible(self) -> NDArray[np.intp]:
        """Rows of the nodes that take the pod, ascending."""
        return np.flatnonzero(self.rejector == PASSES)

    def refresh(self, pod: PodInfo) -> None:
        """Judge again what changed since the last time; everything the first time.

        :param pod: any pod of the signature
        :raises PluginError: if a plugin answers ERROR for a node
        """
        nodes = self._cluster.nodes
        if self._version == nodes.version:
            return
        if self._version < 0 or self._whole or len(self.rejector) != nodes.capacity:
            self._judge_all(pod)
        else:
            changed = nodes.changed_since(self._version)
            if len(changed) > ROWS_ONE_BY_ONE:
                self._judge_rows(pod, np.array(changed, dtype=np.intp))
            else:
                for row in changed:
                    self._judge_row(pod, row)
        self._version = nodes.version
        self._raise_errors()

    def code(self, row: int) -> int:
        """The code with which the row was rejected; 0 if it passes or was not judged."""
        return self._codes.item(row)

    def status(self, row: int) -> Status | None:
        """Why the node is rejected, `None` if it passes; the status of absent nodes if it was not judged."""
        rejector = self.rejector.item(row)
        if rejector == PASSES:
            return None
        return self.pre_filtered.absent if rejector == NOT_JUDGED else self._status((rejector, self._codes.item(row)))

    def rejections(self) -> tuple[Rejection, ...]:
        """For decision records: rejected nodes by plugin and reason. The same object until one of them changes."""
        if self._rejections is None:
            self._rejections = diagnosis.rejections(self._grouped())
        return self._rejections

    def diagnosis(self) -> Diagnosis:
        """Why the pod fits nowhere."""
        found = self.pre_filtered
        return Diagnosis(
            nodes_total=len(self._cluster.nodes),
            groups=tuple(self._grouped()),
            absent=found.absent,
            pre_filter_message="" if found.status.ok else found.status.message,
            plugins=found.narrowed_by,
            codes=self._status_codes(),
            judge=self._judge,
        )

    def _status_codes(self) -> NDArray[np.int8]:
        """By row: code of the node's status, SUCCESS for free rows."""
        absent = self.pre_filtered.absent
        codes = np.where(self._cluster.nodes.live, Code.SUCCESS if absent is None else absent.code, Code.SUCCESS)
        codes[self.rejector == PASSES] = Code.SUCCESS
        for key, rows in self._groups.items():
            codes[list(rows)] = self._status(key).code
        return codes.astype(np.int8)

    # ---- inside --------------------------------------------------------------------------------------------------------------

    def _judge_all(self, pod: PodInfo) -> None:
        capacity = self._cluster.nodes.capacity
        self.rejector = np.full(capacity, NOT_JUDGED, dtype=np.int16)
        self._codes = np.zeros(capacity, dtype=np.int64)
        self._groups = {}
        self._rejections = None
        self.feasible_count = 0
        if self.pre_filtered.status.ok:
            self._judge_rows(pod, self._cluster.nodes.rows())

    def _judge_rows(self, pod: PodInfo, rows: NDArray[np.intp]) -> None:
        nodes = self._cluster.nodes
        names = self.pre_filtered.node_names
        for row in rows[self.rejector[rows] > PASSES].tolist():
            self._leave_group(row)
        self.feasible_count -= int(np.count_nonzero(self.rejector[rows] == PASSES))
        self.rejector[rows] = NOT_JUDGED
        self._codes[rows] = 0
        wanted = nodes.live[rows]
        if names is not None:
            wanted = wanted & np.array([nodes.names[row] in names for row in rows.tolist()], dtype=np.bool_)
        left = rows[wanted] if self.pre_filtered.status.ok else rows[:0]
        for number, plugin in self._numbered:
            if not len(left):
                break
            try:
                codes = plugin.filter(self.state, pod, self._cluster, left)
            except Exception as fault:  # the boundary to plugins: a bug of theirs ends the attempt under their name
                raise PluginError.wrapping(plugin.name, "filter", fault) from fault
            rejected = codes != 0
            if rejected.any():
                self._reject(number, left[rejected], codes[rejected])
                left = left[~rejected]
        self.rejector[left] = PASSES
        self.feasible_count += len(left)

    def _reject(self, number: int, rows: NDArray[np.intp], codes: NDArray[np.int64]) -> None:
        self.rejector[rows] = number
        self._codes[rows] = codes
        self._rejections = None
        for code in np.unique(codes).tolist():
            self._groups.setdefault((number, code), {}).update(dict.fromkeys(rows[codes == code].tolist()))

    def _judge_row(self, pod: PodInfo, row: int) -> None:
        rejector, code = self._first_rejector(pod, row)
        before = self.rejector.item(row)
        if before == rejector and self._codes.item(row) == code:
            return
        if before > PASSES:
            self._leave_group(row)
        self.feasible_count += (rejector == PASSES) - (before == PASSES)
        self.rejector[row] = rejector
        self._codes[row] = code
        if rejector > PASSES:
            self._groups.setdefault((rejector, code), {})[row] = None
            self._rejections = None

    def _first_rejector(self, pod: PodInfo, row: int) -> GroupKey:
        nodes = self._cluster.nodes
        names = self.pre_filtered.node_names
        if (
            not nodes.live[row]
            or not self.pre_filtered.status.ok
            or (names is not None and nodes.names[row] not in names)
        ):
            return NOT_JUDGED, 0
        number = 0
        try:
            for number, plugin in self._numbered:
                code = plugin.filter_one(self.state, pod, self._cluster, row)
                if code:
                    return number, code
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self._names[number], "filter", fault) from fault
        return PASSES, 0

    def _leave_group(self, row: int) -> None:
        key = self.rejector.item(row), self._codes.item(row)
        group = self._groups[key]
        del group[row]
        if not group:
            del self._groups[key]
        self._rejections = None

    def _status(self, key: GroupKey) -> Status:
        found = self._statuses.get(key)
        if found is None:
            number, code = key
            plugin = next(plugin for n, plugin in self._numbered if n == number)
            found = self._statuses[key] = plugin.verdict(self.state, code).by(plugin.name)
        return found

    def _grouped(self) -> Iterable[RejectedGroup]:
        names = self._cluster.nodes.names
        for key, rows in self._groups.items():
            examples = tuple(sorted(names[row] for row in _first(rows, diagnosis.EXAMPLES)))
            yield RejectedGroup(status=self._status(key), nodes=len(rows), examples=examples)

    def _raise_errors(self) -> None:
        """An error for one node is an error of the attempt. Source: schedule_one.go, findNodesThatPassFilters."""
        for key in self._groups:
            status = self._status(key)
            if status.code == Code.ERROR:
                raise PluginError(status.plugin, "filter", status.message)


def _first(rows: Iterable[int], count: int) -> Sequence[int]:
    return [row for row, _ in zip(rows, range(count), strict=False)]
