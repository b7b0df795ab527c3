"""Which parked pods a node could hold at all: the sizes of all of them as columns, compared with a node's at
once."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from podyard.objects import pod_requests, quantity
from podyard.objects.core import Node

FIRST_CAPACITY: Final = 64
MOST_COLUMNS: Final = 64
"""Resources with a column, 8 bytes a size each. What a pod wants of others is left to the hint."""
Amounts = tuple[tuple[str, int], ...]
"""A pod's size, as `hint_signature` has it: resources and amounts above 0."""


class RoomIndex:
    """Sizes of parked pods. A pod that is larger than the whole node, or wants nothing of what grew, would be
    answered Skip.

    :param ignored: whether a resource is not looked at
    :param by_devices: whether devices may stand for a resource that the node does not list
    """

    def __init__(self, ignored: Callable[[str], bool], by_devices: Callable[[str], bool]) -> None:
        self._ignored = ignored
        self._by_devices = by_devices
        self._slot_of: dict[Hashable, int] = {}
        self._sizes: list[Hashable] = [None] * FIRST_CAPACITY
        self._free = list(range(FIRST_CAPACITY - 1, -1, -1))
        self._taken: NDArray[np.bool_] = np.zeros(FIRST_CAPACITY, dtype=np.bool_)
        self._unjudged: NDArray[np.bool_] = np.zeros(FIRST_CAPACITY, dtype=np.bool_)
        """Sizes that want something without a column: of that nothing is known here."""
        self._columns: dict[str, NDArray[np.int64]] = {}
        self._sizes_with: dict[str, int] = {}
        """How many sizes want a resource that has a column."""

    def add(self, signature: Hashable) -> None:
        """The first pod of this size was parked."""
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self._slot_of[signature] = slot
        self._sizes[slot] = signature
        self._taken[slot] = True
        for resource, amount in _amounts(signature):
            column = self._column(resource)
            if column is None:
                self._unjudged[slot] = True
            else:
                column[slot] = amount
                self._sizes_with[resource] += 1

    def remove(self, signature: Hashable) -> None:
        """The last one is not parked any more."""
        slot = self._slot_of.pop(signature)
        self._sizes[slot] = None
        self._taken[slot] = self._unjudged[slot] = False
        for resource, _ in _amounts(signature):
            column = self._columns.get(resource)
            if column is not None and column[slot]:
                column[slot] = 0
                self._sizes_with[resource] -= 1
                if not self._sizes_with[resource]:
                    del self._sizes_with[resource], self._columns[resource]
        self._free.append(slot)

    def candidates(self, old: object | None, new: object | None) -> Iterable[Hashable] | None:
        """Sizes that the whole node could hold, and that want something of which it has more than before, or
        that devices may be."""
        if not isinstance(new, Node) or not isinstance(old, Node | None):
            return None
        room = _room(new)
        lent = [resource for resource in self._columns if not room.get(resource) and self._by_devices(resource)]
        mask = self._taken.copy()
        for resource, column in self._columns.items():
            if resource not in lent and not self._ignored(resource):
                mask &= column <= room.get(resource, 0)
        if old is not None:
            had = _room(old)
            grown = [*lent, *(resource for resource, amount in room.items() if amount > had.get(resource, 0))]
            if pod_requests.PODS not in grown:
                wants = self._unjudged.copy()
                for resource in grown:
                    column = self._columns.get(resource)
                    if column is not None:
                        wants |= column > 0
                mask &= wants
        return [self._sizes[slot] for slot in mask.nonzero()[0].tolist()]

    def _column(self, resource: str) -> NDArray[np.int64] | None:
        """Its column, a new one if there may be one more."""
        column = self._columns.get(resource)
        if column is None and len(self._columns) < MOST_COLUMNS:
            column = self._columns[resource] = np.zeros(len(self._taken), dtype=np.int64)
            self._sizes_with[resource] = 0
        return column

    def _grow(self) -> None:
        old = len(self._taken)
        self._sizes += [None] * old
        self._taken = np.concatenate((self._taken, np.zeros(old, dtype=np.bool_)))
        self._unjudged = np.concatenate((self._unjudged, np.zeros(old, dtype=np.bool_)))
        for resource, column in self._columns.items():
            self._columns[resource] = np.concatenate((column, np.zeros(old, dtype=np.int64)))
        self._free.extend(range(2 * old - 1, old - 1, -1))


def _amounts(signature: Any) -> Amounts:
    """A size's resources; of a pod that could not be read nothing is known, so that any node may be large
    enough."""
    return cast("Amounts", signature) if isinstance(signature, tuple) else ()


def _room(node: Node) -> dict[str, int]:
    """All that the node has: cpu in milli-CPU, all else in whole units."""
    return {
        resource: quantity.milli(text) if resource == pod_requests.CPU else quantity.value(text)
        for resource, text in node.status.allocatable.items()
    }
