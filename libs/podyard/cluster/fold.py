"""How far a fold of the stream has come, and what it asks its shell to do. Pure."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from podyard.cluster.changes import Effect

S = TypeVar("S")


class Fold(Generic[S]):
    """What all folds keep, whatever state `S` they make of the deliveries."""

    def __init__(self) -> None:
        self._listing: S | None = None
        """The state of the listing that is under way."""
        self._effects: list[Effect] = []
        self.position = 0
        """Everything up to this CLUSTER sequence is in the view; 0 before the first listing."""

    def take_effects(self) -> Sequence[Effect]:
        """What the fold asks its shell to do since last asked: dead letters, a new listing."""
        if not self._effects:
            return ()
        effects, self._effects = self._effects, []
        return effects

    def advance(self, position: int) -> None:
        """The stream has moved on to `position` without a message for this reader."""
        if self._listing is None and position > self.position:
            self.position = position
