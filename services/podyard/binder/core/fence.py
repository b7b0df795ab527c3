"""The fence: who may write placements, and what became of the last write.

Every batch ends with a new version of the fence, a compare-and-set on the version before. So of all batches
that expect one version at most one is ever applied, and one that was not applied when the fence moved never
will be. All rules here follow from that:

    moved by us               -> what we sent before with the old version was not, and never will be, applied
    moved, batch id is ours   -> exactly that send was applied
    not moved                 -> nothing is known (a read may be stale): move it again
    moved by somebody else    -> deposed: write nothing, say nothing
    lower than we know it, says a compare-and-set
                              -> another stream than was listed: all that is known is void, begin anew

Each was found by a model checker: docs/rules.md, fence-settles-unclear-writes;
docs/rules.md, take-over-lists-up-to-its-fence; docs/rules.md, refusals-wait-for-an-own-write.
"""

from enum import Enum
from typing import Final, NamedTuple

from podyard.binder.core.effects import Write
from podyard.proto import codec, subjects
from podyard.proto.placement import Fence


class Standing(Enum):
    """What a look at the stored fence tells."""

    OURS = "one of our sends was applied"
    NOTHING_NEW = "nothing is known: the version we build on, or an older one"
    THEIRS = "somebody else moved it"


class _Sent(NamedTuple):
    epoch: int
    n: int


class FenceKeeper:
    """Our knowledge of the fence. Invariant: everything in `_sent` expects version `sequence`."""

    def __init__(self, holder: str, session: str) -> None:
        """
        :param holder: instance name, for people who look at the fence
        :param session: unique to this process start: batch ids are made of it
        """
        self.epoch = 0
        """Ours, once the fence was taken over; before, the one that we try to get."""
        self.n = 0
        """Number of the last commit."""
        self.sequence = 0
        """CLUSTER sequence of the fence's last version that we know; 0: there is none."""
        self.batch = ""
        """Id of the last send that was applied."""
        self.held = False
        """Whether the last version is ours."""
        self._holder: Final = holder
        self._session: Final = session
        self._sends = 0
        self._sent: dict[str, _Sent] = {}

    def adopt(self, found: Fence | None, sequence: int, lease_epoch: int) -> None:
        """Before taking over: build on the stored version, with an epoch above all before.

        :param lease_epoch: the lease's, which grows with every holder unless the LEASES stream was made again
        """
        if sequence != self.sequence:
            self._sent.clear()
        self.sequence = sequence
        self.n = found.n if found is not None else 0
        self.epoch = max(lease_epoch, (found.epoch if found is not None else 0) + 1)

    def next_id(self) -> str:
        """A batch id that was never used: a used one is refused (NATS error 10176)."""
        self._sends += 1
        return f"{self._session}.{self._sends}"

    def move(self, batch_id: str) -> Write:
        """A fence without decisions: same n, new batch id. It settles whatever was sent before."""
        return self._write(batch_id, self.n)

    def commit(self, batch_id: str) -> Write:
        """The fence of a batch with a commit record: the next n."""
        return self._write(batch_id, self.n + 1)

    def applied(self, batch_id: str, sequence: int) -> None:
        """Send `batch_id` was applied; its fence has `sequence`."""
        sent = self._sent[batch_id]
        self.n, self.sequence, self.batch, self.held = sent.n, sequence, batch_id, True
        self._sent.clear()

    def pass_over(self) -> None:
        """The next number is taken by what no binder wrote: use the one behind it. Readers see a gap, and
        list anew."""
        self.n += 1

    def look(self, found: Fence | None, sequence: int) -> Standing:
        """What a stored fence, as somebody read it (maybe stale), says about our sends."""
        if found is not None and found.batch in self._sent:
            return Standing.OURS
        if found is None or sequence <= self.sequence:
            return Standing.NOTHING_NEW
        return Standing.THEIRS

    def went_back(self, number: int | None) -> bool:
        """Whether a refused move says that the fence has a lower version than we know: no stream that goes on
        can say that.

        :param number: the fence's last sequence as the refusal names it; `None`: it names none
        """
        return number is not None and number < self.sequence

    def _write(self, batch_id: str, n: int) -> Write:
        self._sent[batch_id] = _Sent(self.epoch, n)
        fence = Fence(epoch=self.epoch, n=n, batch=batch_id, holder=self._holder)
        return Write(subjects.FENCE, codec.encode(fence), self.sequence)
