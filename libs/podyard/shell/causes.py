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


class Listed(Sequence[Change]):
    """The changes that a listing found. It knows which of them whoever goes through it has in hand."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes = changes
        self.in_hand: Change | None = None

    def __len__(self) -> int:
        return len(self._changes)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self._changes[index]

    def __iter__(self) -> Iterator[Change]:
        for change in self._changes:
            self.in_hand = change
            yield change
        self.in_hand = None


def told(changes: Sequence[Change], delivery: Delivery | None) -> Sequence[Change]:
    """Changes as a core is to be told of them.

    :param delivery: what made them; None: a listing
    """
    return changes if delivery is not None else Listed(changes)


def of(changes: Sequence[Change], delivery: Delivery | None, version_of: Callable[[str], int]) -> Cause | None:
    """What a core raised on that was told of changes; None if nobody can say.

    :param changes: as of `told`
    :param delivery: what made them; None: a listing
    :param version_of: CLUSTER sequence of a subject's last version
    """
    if delivery is not None:
        return Cause(delivery)
    if isinstance(changes, Listed) and changes.in_hand is not None:
        return _of_change(changes.in_hand, version_of)
    return None


def _of_change(change: Change, version_of: Callable[[str], int]) -> Cause:
    key = change.key
    subject = subjects.object_(key.resource, key.namespace, key.name)
    return Cause(Delivery(subject, b"", version_of(subject)))


def unknown(told: str) -> Cause:
    """Nobody can say which message it was.

    :param told: what the core was told, e.g. `Tick`
    """
    return Cause(Request(f"({told})", b""))
