"""Several folds of the same deliveries, which one informer feeds.

The main one tells of changes and of what cannot be read. Those beside it are told before it, so that they are
never behind when it tells of a change; they say nothing themselves.
"""

from collections.abc import Sequence
from typing import NamedTuple

from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change, Effect
from podyard.shell.informer import View


class Beside(NamedTuple):
    """A fold beside the main one."""

    fold: View
    without: tuple[str, ...] = ()
    """Prefixes of subjects that it is not told of."""


class Folds:
    """A view to an informer."""

    def __init__(self, main: View, *beside: Beside) -> None:
        self._main = main
        self._beside = beside

    @property
    def position(self) -> int:
        """Everything up to this CLUSTER sequence is in the views."""
        return self._main.position

    def begin_listing(self) -> None:
        """A listing begins."""
        for one in self._beside:
            one.fold.begin_listing()
        self._main.begin_listing()

    def end_listing(self, position: int) -> list[Change]:
        """The listing is complete."""
        for one in self._beside:
            one.fold.end_listing(position)
        return self._main.end_listing(position)

    def apply(self, delivery: Delivery) -> list[Change]:
        """Fold one delivery."""
        for fold, without in self._beside:
            if not without or not delivery.subject.startswith(without):
                fold.apply(delivery)
        return self._main.apply(delivery)

    def advance(self, position: int) -> None:
        """The stream moved on."""
        for one in self._beside:
            one.fold.advance(position)
        self._main.advance(position)

    def take_effects(self) -> Sequence[Effect]:
        """What the main fold asks for. All see the same faults: its words are enough."""
        for one in self._beside:
            one.fold.take_effects()
        return self._main.take_effects()
