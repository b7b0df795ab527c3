"""What a core was told when it raised: which stored message, which request."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, overload

from podyard.bus.delivery import Delivery
from podyard.bus.requests import Request
from podyard.cluster.changes import Change
from podyard.proto import subjects


class Cause(NamedTuple):
    """A message that a core raised on."""

    message: Delivery | Request
    """What becomes the dead letter. Found by a listing its payload is empty: it lies in the stream."""
    ids: tuple[str, ...] = ()
    """Of what was asked for by it (attempts, pods): these are refused for a while."""

    @property
    def name(self) -> str:
        """`cluster.pods.default.web@17`, or a request's subject with what was asked for."""
        if isinstance(self.message, Delivery):
            return f"{self.message.subject}@{self.message.sequence}"
        return " ".join((self.message.subject, *self.ids[:1])) + (
            f" and {len(self.ids) - 1} more" if self.ids[1:] else ""
        )


class Told(Sequence[Change]):
    """Changes as a core is told of them. They know which change whoever goes through them has in hand."""

    def __init__(self, changes: Sequence[Change], made_by: Sequence[Delivery] = ()) -> None:
        """:param made_by: for each change the delivery that made it; none: a listing found them"""
        self._changes = changes
        self._made_by = made_by
        self._in_hand = -1
        """Place of the change; -1: none is."""

    def __len__(self) -> int:
        return len(self._changes)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self._changes[index]

    def __iter__(self) -> Iterator[Change]:
        for at, change in enumerate(self._changes):
            self._in_hand = at
            yield change
        self._in_hand = -1

    def cause(self, version_of: Callable[[str], int]) -> Cause | None:
        """What a core raised on that was told of these; None if nobody can say.

        :param version_of: CLUSTER sequence of a subject's last version
        """
        if self._in_hand >= 0:
            at = self._in_hand
            return Cause(self._made_by[at]) if self._made_by else _of_change(self._changes[at], version_of)
        if self._made_by and self._made_by[0] is self._made_by[-1]:  # one delivery made them all
            return Cause(self._made_by[0])
        return None


def of(changes: Sequence[Change], version_of: Callable[[str], int]) -> Cause | None:
    """What a core raised on that was told of changes; None if nobody can say.

    :param version_of: CLUSTER sequence of a subject's last version
    """
    return changes.cause(version_of) if isinstance(changes, Told) else None


def _of_change(change: Change, version_of: Callable[[str], int]) -> Cause:
    key = change.key
    subject = subjects.object_(key.resource, key.namespace, key.name)
    return Cause(Delivery(subject, b"", version_of(subject)))


def unknown(told: str) -> Cause:
    """Nobody can say which message it was.

    :param told: what the core was told, e.g. `Tick`
    """
    return Cause(Request(f"({told})", b""))
