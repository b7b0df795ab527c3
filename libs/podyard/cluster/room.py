"""How much nodes have of every resource, and what their pods take of it: exact books, and columns made of
them.

The books are one dictionary a row and know no largest number. Filter and Score read columns: int64, one line
a resource, one place a row. A sum beyond int64 stands in its column at the rail, and in the books as it is,
so that what goes again leaves exactly what was before. Amounts are milli-CPU, else bytes or pieces.

Lines of cpu, memory and ephemeral storage are always there. Those of other resources are made when first
asked for, and at most `MOST_LINES` are there at once: many nodes or pods that each bring a resource of their
own cost memory for what they bring, not for what everybody could have.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_columns import grown
from podyard.objects import quantity
from podyard.proto.placement import Usage

CPU: Final = 0
"""Line of milli-CPU."""
MEMORY: Final = 1
"""Line of bytes of memory."""
EPHEMERAL_STORAGE: Final = 2
FIRST_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
PODS: Final = "pods"

MOST_LINES: Final = 131
"""Lines of columns: the first three and 128 others, 16 bytes a row each. One that is missing is made
again."""

RAIL: Final = quantity.INT64_MAX
"""Where a column stands for a sum that is larger."""


class Taken(NamedTuple):
    """What the pods of one row take, at one moment."""

    requests: dict[str, int]
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int


class Room:
    """The room on all rows. Owned by the node table, which says what is on which row.

    Invariants: a cell is what the books of its row say, or the rail on that side; a book has no entry of 0;
    `_kinds` counts the entries of each resource in all books, the first three apart.
    """

    def __init__(self, capacity: int) -> None:
        self.line_of: dict[str, int] = {name: index for index, name in enumerate(FIRST_RESOURCES)}
        """Lines that there are at the moment; `line` makes others."""
        self.allocatable: NDArray[np.int64] = np.zeros((len(FIRST_RESOURCES), capacity), dtype=np.int64)
        """What a node has, 0 or more."""
        self.requested: NDArray[np.int64] = np.zeros((len(FIRST_RESOURCES), capacity), dtype=np.int64)
        self.nonzero: NDArray[np.int64] = np.zeros((2, capacity), dtype=np.int64)
        """What scoring assumes as requested: CPU and MEMORY, with 100m and 200 MiB for containers that
        request none."""
        self._whole: list[dict[str, int]] = [{} for _ in range(capacity)]
        self._taken: list[dict[str, int]] = [{} for _ in range(capacity)]
        self._assumed_cpu = [0] * capacity
        self._assumed_memory = [0] * capacity
        self._kinds: dict[str, int] = {}
        self._free_lines: list[int] = []

    # ---- reading -------------------------------------------------------------------------------------------

    def line(self, resource: str) -> int | None:
        """The resource's line in `allocatable` and `requested`; `None` if no node has it and no pod on a node
        takes it.

        To be used at once: asking for another resource may give its line to that one.
        """
        found = self.line_of.get(resource)
        if found is None and resource in self._kinds:
            found = self._make_line(resource)
        return found

    def whole(self, row: int) -> Mapping[str, int]:
        """All that the node has, without what it has none of."""
        return self._whole[row]

    def taken(self, row: int) -> Taken:
        """What the pods of a row take, exactly; resources of which they take none are left out. To be read at
        once."""
        return Taken(self._taken[row], self._assumed_cpu[row], self._assumed_memory[row])

    def holds(self, row: int, usage: Usage) -> bool:
        """Whether the node has room for one pod more that takes this, whatever the resource."""
        whole, taken = self._whole[row], self._taken[row]
        requests = usage.requests
        return not [
            name for name in requests if requests[name] > 0 and requests[name] > whole.get(name, 0) - taken.get(name, 0)
        ]

    # ---- what changes it -----------------------------------------------------------------------------------

    def set_allocatable(self, row: int, amounts: Mapping[str, str]) -> None:
        """The node has this now. Who has less than nothing has nothing."""
        for name in self._whole[row]:
            self._count(name, -1)
            line = self.line_of.get(name)
            if line is not None:
                self.allocatable[line, row] = 0
        parsed = {
            name: quantity.milli(text) if name == "cpu" else quantity.value(text) for name, text in amounts.items()
        }
        parsed.pop(PODS, None)
        whole = self._whole[row] = {name: amount for name, amount in parsed.items() if amount > 0}
        for name, amount in whole.items():
            self._count(name, 1)
            line = self.line_of.get(name)
            if line is not None:
                self.allocatable[line, row] = amount

    def add(self, row: int, usage: Usage, sign: int) -> None:
        """A pod more takes room on the row; one less with `sign` -1."""
        taken, line_of = self._taken[row], self.line_of
        for name, amount in usage.requests.items():
            if not amount:
                continue
            before = taken.get(name, 0)
            after = taken[name] = before + sign * amount
            line = line_of.get(name)
            if line is not None:
                self.requested[line, row] = after if -RAIL <= after <= RAIL else cell(after)
            if not before or not after:
                self._come_or_gone(taken, name, before, after)
        cpu = self._assumed_cpu[row] = self._assumed_cpu[row] + sign * usage.nonzero_cpu_milli
        memory = self._assumed_memory[row] = self._assumed_memory[row] + sign * usage.nonzero_memory_bytes
        self.nonzero[CPU, row] = min(cpu, RAIL)
        self.nonzero[MEMORY, row] = min(memory, RAIL)

    def copy_taken(self, row: int) -> Taken:
        """What `restore` brings back."""
        return Taken(dict(self._taken[row]), self._assumed_cpu[row], self._assumed_memory[row])

    def restore(self, row: int, before: Taken) -> None:
        """The pods of the row take what they took before."""
        now = self._taken[row]
        for name in [name for name in now if name not in before.requests]:
            self._set_taken(row, name, 0)
        for name, amount in before.requests.items():
            if now.get(name) != amount:
                self._set_taken(row, name, amount)
        self._assumed_cpu[row], self._assumed_memory[row] = before.nonzero_cpu_milli, before.nonzero_memory_bytes
        self.nonzero[CPU, row], self.nonzero[MEMORY, row] = (
            cell(before.nonzero_cpu_milli),
            cell(before.nonzero_memory_bytes),
        )

    def clear(self, row: int) -> None:
        """There is no node in this row any more."""
        for books in (self._whole, self._taken):
            for name in books[row]:
                self._count(name, -1)
            books[row] = {}
        self._assumed_cpu[row] = self._assumed_memory[row] = 0
        self.allocatable[:, row] = 0
        self.requested[:, row] = 0
        self.nonzero[:, row] = 0

    def grow(self, capacity: int) -> None:
        """There are so many rows now; the new ones are empty."""
        more = capacity - len(self._whole)
        for column in ("allocatable", "requested", "nonzero"):
            setattr(self, column, grown(getattr(self, column), capacity))
        self._whole += [{} for _ in range(more)]
        self._taken += [{} for _ in range(more)]
        self._assumed_cpu += [0] * more
        self._assumed_memory += [0] * more

    # ---- inside --------------------------------------------------------------------------------------------

    def _set_taken(self, row: int, name: str, amount: int) -> None:
        taken, line = self._taken[row], self.line_of.get(name)
        before = taken.get(name, 0)
        taken[name] = amount
        if line is not None:
            self.requested[line, row] = cell(amount)
        if not before or not amount:
            self._come_or_gone(taken, name, before, amount)

    def _come_or_gone(self, taken: dict[str, int], name: str, before: int, after: int) -> None:
        """An entry of a book came, or is 0 now and goes."""
        if not after:
            del taken[name]
        if bool(before) != bool(after):
            self._count(name, 1 if after else -1)

    def _count(self, name: str, sign: int) -> None:
        """One entry more or less in all books; the line of a resource that nobody has any more is free."""
        if name in FIRST_RESOURCES:
            return
        count = self._kinds.get(name, 0) + sign
        if count:
            self._kinds[name] = count
            return
        del self._kinds[name]
        line = self.line_of.pop(name, None)
        if line is not None:
            self._free_lines.append(line)

    def _make_line(self, resource: str) -> int:
        """A line with what the books say; the one that was made first goes if there are too many."""
        if not self._free_lines and len(self.line_of) >= MOST_LINES:
            oldest = next(islice(self.line_of, len(FIRST_RESOURCES), None))
            self._free_lines.append(self.line_of.pop(oldest))
        if not self._free_lines:
            self._grow_lines()
        line = self.line_of[resource] = self._free_lines.pop()
        for column, books in ((self.allocatable, self._whole), (self.requested, self._taken)):
            column[line] = 0
            for row, book in enumerate(books):
                if resource in book:
                    column[line, row] = cell(book[resource])
        return line

    def _grow_lines(self) -> None:
        lines, capacity = self.allocatable.shape
        more = np.zeros((min(lines, MOST_LINES - lines), capacity), dtype=np.int64)
        self.allocatable = np.concatenate((self.allocatable, more))
        self.requested = np.concatenate((self.requested, more))
        self._free_lines.extend(range(len(self.allocatable) - 1, lines - 1, -1))


def cell(amount: int) -> int:
    """How a column says an amount: as it is, or the rail on its side."""
    return max(-RAIL, min(RAIL, amount))
