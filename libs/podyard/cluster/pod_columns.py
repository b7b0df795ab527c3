"""Placed pods as columns, so that a label selector is judged for all of them at once.

One slot a pod, without gaps: the last pod moves into the slot of one that leaves.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_columns import grown
from podyard.memory.latest import Latest
from podyard.objects import selectors
from podyard.objects.selectors import Requirement, Selector

Slots: TypeAlias = NDArray[np.intp] | None
"""Some pods, or `None`: all."""

Cell = TypeVar("Cell", bound=np.generic)

FIRST_PODS: Final = 256
LABEL_KEYS: Final = 48
"""Label keys with a column; the one not asked for the longest time goes first. Each costs 4 bytes a pod and
0.1 µs for a pod that comes."""

ABSENT: Final = 0
"""Id of "the pod has no such label"; ids of values begin with 1."""


class PodSelection(NamedTuple):
    """Which placed pods are meant."""

    selector: Selector
    namespaces: frozenset[str] | None
    """`None`: all namespaces."""
    ending: bool = True
    """Whether pods that somebody has asked to end (deletion timestamp) are meant too."""

    def takes(self, namespace: str, ending: bool, labels: Mapping[str, str]) -> bool:
        """Whether a pod of these properties is one of them."""
        if ending and not self.ending:
            return False
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return self.selector.matches(labels)


class PlacedFacts(NamedTuple):
    """What the columns know of one pod."""

    row: int
    namespace: str
    ending: bool
    labels: Mapping[str, str]


class ValueColumn:
    """One property of all pods as small numbers. Values are not forgotten: a column with many dead ones is
    made again."""

    __slots__ = ("cells", "ids")

    def __init__(self, capacity: int) -> None:
        self.cells: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.ids: dict[str, int] = {}

    def set(self, slot: int, value: str | None) -> None:
        """The property of the pod in `slot`; `None`: it has none."""
        self.cells[slot] = ABSENT if value is None else self.ids.setdefault(value, len(self.ids) + 1)

    def accepted(self, requirement: Requirement) -> NDArray[np.bool_]:
        """By id: whether a pod with that value fulfils a label requirement."""
        table = np.zeros(len(self.ids) + 1, dtype=np.bool_)
        if requirement.operator in (selectors.IN, selectors.NOT_IN):
            table[[self.ids[value] for value in requirement.values if value in self.ids]] = True
            return table if requirement.operator == selectors.IN else ~table
        table[ABSENT] = True
        return table if requirement.operator == selectors.DOES_NOT_EXIST else ~table


class PodColumns:
    """All placed pods.

    Invariant: slots 0 to `count` - 1 are exactly the pods added and not removed, each once.
    """

    def __init__(self) -> None:
        self.count = 0
        self._rows: NDArray[np.intp] = np.zeros(FIRST_PODS, dtype=np.intp)
        self._ending: NDArray[np.bool_] = np.zeros(FIRST_PODS, dtype=np.bool_)
        self._namespaces = ValueColumn(FIRST_PODS)
        self._labels = Latest[str, ValueColumn](LABEL_KEYS)
        self._uids: list[str] = []
        self._facts: list[PlacedFacts] = []
        self._slot_of: dict[str, int] = {}

    def add(self, uid: str, facts: PlacedFacts) -> None:
        """One pod more."""
        slot = self.count
        if slot == len(self._rows):
            self._grow()
        self.count = slot + 1
        self._slot_of[uid] = slot
        self._uids.append(uid)
        self._facts.append(facts)
        self._set(slot, facts)

    def remove(self, uid: str) -> PlacedFacts:
        """One pod less; what was known of it.

        :raises KeyError: if it was never added
        """
        slot = self._slot_of.pop(uid)
        facts = self._facts[slot]
        last_uid, last = self._uids.pop(), self._facts.pop()
        self.count -= 1
        if slot != self.count:
            self._uids[slot], self._facts[slot], self._slot_of[last_uid] = last_uid, last, slot
            self._set(slot, last)
        return facts

    def rows(self, wanted: PodSelection) -> NDArray[np.intp]:
        """The node rows of all pods that are meant, one entry a pod."""
        found: Slots = None
        if wanted.selector.nothing:
            return self._rows[:0]
        for requirement in wanted.selector.requirements:
            column = self._label_column(requirement.key)
            found = self._having(found, column, requirement)
        if wanted.namespaces is not None:
            among = Requirement("", selectors.IN, wanted.namespaces)
            found = self._having(found, self._namespaces, among)
        if not wanted.ending:
            found = self._narrowed(found, ~self._part(self._ending, found))
        return self._part(self._rows, found)

    # ---- inside --------------------------------------------------------------------------------------------

    def _having(self, found: Slots, column: ValueColumn, requirement: Requirement) -> Slots:
        cells = self._part(column.cells, found)
        if requirement.operator == selectors.IN and len(requirement.values) == 1:
            (value,) = requirement.values
            return self._narrowed(found, cells == column.ids.get(value, -1))
        return self._narrowed(found, column.accepted(requirement)[cells])

    def _part(self, column: NDArray[Cell], found: Slots) -> NDArray[Cell]:
        return column[: self.count] if found is None else column[found]

    def _narrowed(self, found: Slots, hits: NDArray[np.bool_]) -> Slots:
        if hits.all():
            return found
        return np.flatnonzero(hits) if found is None else found[hits]

    def _label_column(self, key: str) -> ValueColumn:
        column = self._labels.get(key)
        if column is not None and len(column.ids) <= 2 * self.count + FIRST_PODS:
            self._labels.use(key)
            return column
        column = ValueColumn(len(self._rows))
        for slot, facts in enumerate(self._facts):
            column.set(slot, facts.labels.get(key))
        self._labels.keep(key, column)
        return column

    def _set(self, slot: int, facts: PlacedFacts) -> None:
        self._rows[slot] = facts.row
        self._ending[slot] = facts.ending
        self._namespaces.set(slot, facts.namespace)
        for key, column in self._labels.items():
            column.set(slot, facts.labels.get(key))

    def _grow(self) -> None:
        capacity = 2 * len(self._rows)
        self._rows, self._ending = grown(self._rows, capacity), grown(self._ending, capacity)
        for column in (self._namespaces, *self._labels.values()):
            column.cells = grown(column.cells, capacity)
