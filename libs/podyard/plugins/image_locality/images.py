"""Which nodes have which images.

Source: kube-scheduler v1.36.2, pkg/scheduler/backend/cache/cache.go (addNodeImageStates,
removeNodeImageStates).
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from podyard.objects.node import ContainerImage, Node


class ImageState:
    """One image by one of its names: how large, and in which rows."""

    __slots__ = ("_listed", "rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        """As the first node said that had it, while any node has it."""
        self.rows: set[int] = set()
        self._listed: NDArray[np.intp] | None = None

    def add(self, row: int) -> None:
        """A node has it."""
        self.rows.add(row)
        self._listed = None

    def discard(self, row: int) -> None:
        """A node does not have it."""
        self.rows.discard(row)
        self._listed = None

    @property
    def listed(self) -> NDArray[np.intp]:
        """The rows, in no order; made at the first use after a change."""
        if self._listed is None:
            self._listed = np.fromiter(self.rows, np.intp, len(self.rows))
        return self._listed

    def points(self, nodes_total: int) -> int:
        """The image's size, scaled by the share of nodes that have it. Source: image_locality.go,
        scaledImageScore."""
        return int(float(self.size_bytes) * (float(len(self.rows)) / float(nodes_total)))


class ImageStates:
    """The images of all nodes by name: a column of the node table.

    Invariant: `states` has exactly the names that a live row has.
    """

    __slots__ = ("_by_row", "states")

    def __init__(self) -> None:
        self.states: dict[str, ImageState] = {}
        self._by_row: dict[int, tuple[ContainerImage, ...]] = {}

    def set(self, row: int, node: Node) -> None:
        """Read the images of `node`."""
        images = node.status.images
        if images == self._by_row.get(row, ()):
            self._resize(images)
            return
        self.clear(row)
        for image in images:
            for name in image.names:
                state = self.states.get(name)
                if state is None:
                    state = self.states[name] = ImageState(image.size_bytes)
                state.add(row)
        if images:
            self._by_row[row] = images

    def _resize(self, images: Sequence[ContainerImage]) -> None:
        """The reference forgets a node's images and reads them again at every update: what only that node has
        gets its size."""
        for image in reversed(images):
            for name in image.names:
                state = self.states[name]
                if len(state.rows) == 1:
                    state.size_bytes = image.size_bytes

    def clear(self, row: int) -> None:
        """There is no node in this row."""
        for name in _names(self._by_row.pop(row, ())):
            state = self.states[name]
            state.discard(row)
            if not state.rows:
                del self.states[name]

    def grow(self, capacity: int) -> None:
        """More rows need no room here."""


def _names(images: Iterable[ContainerImage]) -> set[str]:
    return {name for image in images for name in image.names}
