"""What one Filter plugin said of every row, kept for pods of one signature.

A layer is asked only for rows that all layers before it pass. What it was not asked, or what changed since,
is stale: it is asked when such a row gets to it. So a layer that changes its mind about thousands of rows
leaves the answers of the others as they are.
"""

from collections.abc import Hashable, Iterable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.framework import answers, optional_hooks, row_judge
from podyard.framework.answers import LARGEST
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import RejectedGroup
from podyard.framework.interfaces import Filter, Rows, Verdicts
from podyard.framework.plugin_times import SUCCESS, UNSCHEDULABLE
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginError, Status
from podyard.memory.latest import Latest

Mask: TypeAlias = NDArray[np.bool_]
"""By row."""

FEW_CODES: Final = 256
"""Codes below it are counted in an array, else they are sorted (measured: 20 µs against 115 µs for 2,500
rows)."""


MOST_PATTERNS: Final = 8
"""Situations whose answers a layer remembers: three zones that fill up in turn make three to six."""

MIXED: Final = -1
NO_CODES: Final[Verdicts] = np.zeros(0, dtype=np.int64)


class Answer:
    """What a plugin said of all rows that got to it, in a situation that comes back (a zone that is full,
    another that is full)."""

    __slots__ = ("codes", "groups", "only", "passes", "rows")

    def __init__(self, rows: Rows, passes: Mask, only: int, codes: Verdicts) -> None:
        self.rows = rows
        """The very array it was asked for: another one may have other rows."""
        self.passes = passes
        self.only = only
        self.codes = codes
        self.groups: list[RejectedGroup] | None = None


class Layer:
    """One plugin's codes.

    Invariant: of a row that is not stale, `passes` and `code` are what the plugin would say now.
    """

    __slots__ = (
        "_answer", "_codes", "_fresh", "_pattern_of", "_patterns", "_rows", "_statuses", "by_node", "groups", "name", "number",
        "only", "passes", "plugin", "reached", "stale",
    )  # fmt: skip

    def __init__(self, number: int, plugin: Filter, capacity: int) -> None:
        """
        :param number: place among the profile's Filter plugins, from 1
        :param capacity: rows of the table
        """
        self.number = number
        self.plugin = plugin
        self.name = plugin.name
        self.only = 0
        """The code of all rows that the plugin rejects, as far as is known: most plugins have one. 0: it
        rejects none; MIXED: several."""
        self._codes: Verdicts = NO_CODES
        """By row, while MIXED."""
        self.passes: Mask = np.zeros(capacity, dtype=np.bool_)
        self._fresh = True
        """All is stale, whatever `stale` says."""
        self.stale: Mask = np.ones(capacity, dtype=np.bool_)
        self.reached: Mask = np.zeros(capacity, dtype=np.bool_)
        """Rows that all layers before pass."""
        self._rows: Rows | None = None
        """The same, ascending; `None`: not known."""
        self.groups: list[RejectedGroup] | None = None
        """What `grouping` made of the rejected rows, until they change."""
        self._statuses: dict[int, Status] = {}
        self.by_node = plugin.scope == "node"
        """What is placed on a row does not count."""
        self._pattern_of = optional_hooks.filter_pattern(plugin)
        self._patterns: Latest[Hashable, Answer] = Latest(MOST_PATTERNS)
        self._answer: Answer | None = None
        """The remembered answer that holds as long as no row is judged by itself."""

    def forget(self) -> None:
        """All answers are stale, and codes may mean something else."""
        self._fresh = True
        self.only = 0
        self.groups = None
        self._statuses = {}

    def rejected(self) -> Mask:
        """Rows that this layer is the first to reject."""
        return np.greater(self.reached, self.passes)

    def pass_on(
        self, reached: Mask, rows: Rows | None, state: CycleState, pod: PodInfo, cluster: Snapshot
    ) -> tuple[Mask, Rows | None]:
        """Judge those of `reached` that are stale; returns which of `reached` pass.

        :param rows: the same as `reached`, ascending, if that is known; so is what is returned
        :raises PluginError: if the plugin fails
        """
        self.reached = reached
        self.groups = None
        if self._fresh:
            self._fresh = False
            self._rows = reached.nonzero()[0] if rows is None else rows
            np.logical_not(reached, out=self.stale)
            if not len(self._rows) or self._ask_all(self._rows, state, pod, cluster):
                return reached.copy(), self._rows
            return np.logical_and(reached, self.passes), None
        self._rows, self._answer = rows, None
        asked = np.logical_and(reached, self.stale)
        if asked.any():
            self._ask_some(asked.nonzero()[0], state, pod, cluster)
            np.logical_xor(self.stale, asked, out=self.stale)
        return np.logical_and(reached, self.passes), None

    def rows(self) -> Rows:
        """Rows that all layers before pass, ascending."""
        if self._rows is None:
            self._rows = self.reached.nonzero()[0]
        return self._rows

    def pass_one(
        self, row: int, reached: bool, same_node: bool, state: CycleState, pod: PodInfo, cluster: Snapshot
    ) -> bool:
        """The same for one row that changed. The plugin's exceptions are the caller's.

        :param same_node: what changed is at most what is placed there
        """
        before = self.reached.item(row)
        if same_node and self.by_node and before and reached and not self.stale.item(row):
            return self.passes.item(row)
        self._answer = None
        if before and not self.passes.item(row):
            self.groups = None
        if before != reached:
            self.reached[row] = reached
            self._rows = None
        if not reached:
            self.stale[row] = True
            return False
        timing = cluster.timing
        if timing is None:
            code = self.plugin.filter_one(state, pod, cluster, row)
        else:
            started = timing.watch()
            code = self.plugin.filter_one(state, pod, cluster, row)
            timing.note(self.name, "Filter", UNSCHEDULABLE if code else SUCCESS, started)
        if type(code) is not int or not 0 <= code <= LARGEST:
            code = answers.code(code)
        self.stale[row] = False
        self.passes[row] = not code
        if not code:
            return True
        self.groups = None
        if self.only == 0:
            self.only = code
        elif self.only != code:
            self._by_row()[row] = code
        return False

    def reach(self, row: int, reached: bool) -> None:
        """All layers before pass the row now, or do not; what this one says of it is stale."""
        self.stale[row] = True
        if self.reached.item(row) != reached:
            self.reached[row] = reached
            self._rows = None

    def status(self, code: int, state: CycleState) -> Status:
        """What a code means, under the plugin's name.

        :raises PluginError: if the plugin cannot say
        """
        found = self._statuses.get(code)
        if found is None:
            found = self._statuses[code] = row_judge.verdict(self.plugin, state, code)
        return found

    def split(self, rows: Rows) -> Iterable[tuple[int, Rows]]:
        """Rows that this layer rejects by code, in ascending order of codes; the order of rows stays."""
        if self.only != MIXED:
            return [(self.only, rows)]
        codes = self._codes.take(rows)
        distinct = np.bincount(codes).nonzero()[0] if codes.max() < FEW_CODES else np.unique(codes)
        found: list[int] = distinct.tolist()
        return [(code, rows if len(found) == 1 else rows[codes == code]) for code in found]

    def code(self, row: int) -> int:
        """The code with which the plugin rejects a row."""
        return self._codes.item(row) if self.only == MIXED else self.only

    def set_groups(self, groups: list[RejectedGroup]) -> None:
        """What `grouping` made of the rejected rows."""
        self.groups = groups
        if self._answer is not None:
            self._answer.groups = groups

    def _ask_all(self, rows: Rows, state: CycleState, pod: PodInfo, cluster: Snapshot) -> bool:
        """All rows that are reached, at least one; returns whether all pass."""
        if self._pattern_of is None:
            return self._judge_all(rows, state, pod, cluster)
        try:
            pattern = self._pattern_of(state, cluster)
            hash(pattern)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(
                self.name, "filter", fault
            ) from fault  # a part of Filter: the words are the reference's
        known = self._patterns.get(pattern)
        if known is not None and known.rows is rows and len(known.passes) == len(self.passes):
            self._patterns.use(pattern)
            self._answer, self.groups = known, known.groups
            self.passes, self.only = known.passes.copy(), known.only
            self._codes = known.codes.copy() if known.only == MIXED else NO_CODES
            return not known.only
        all_pass = self._judge_all(rows, state, pod, cluster)
        self._answer = Answer(
            rows, self.passes.copy(), self.only, self._codes.copy() if self.only == MIXED else NO_CODES
        )
        self._patterns.keep(pattern, self._answer)
        return all_pass

    def _judge_all(self, rows: Rows, state: CycleState, pod: PodInfo, cluster: Snapshot) -> bool:
        codes = row_judge.ask(self.plugin, rows, state, pod, cluster)
        highest = int(codes.max())
        if not highest:
            self.passes.fill(True)
            return True
        passes = codes == 0
        self.passes[rows] = passes
        self._note(rows, codes, highest, len(rows) - int(np.count_nonzero(passes)))
        return False

    def _ask_some(self, rows: Rows, state: CycleState, pod: PodInfo, cluster: Snapshot) -> None:
        codes = row_judge.ask(self.plugin, rows, state, pod, cluster)
        passes = codes == 0
        self.passes[rows] = passes
        highest = int(codes.max())
        if highest:
            self._note(rows, codes, highest, len(rows) - int(np.count_nonzero(passes)))

    def _note(self, rows: Rows, codes: Verdicts, highest: int, rejected: int) -> None:
        if self.only in (0, highest) and int(codes.sum()) == highest * rejected:
            self.only = highest
        else:
            self._by_row()[rows] = codes

    def _by_row(self) -> Verdicts:
        if self.only != MIXED:
            self._codes = np.full(len(self.passes), self.only, dtype=np.int64)
            self.only = MIXED
        return self._codes
