"""Why a commit's compare-and-set failed, when it was not the fence.

The server names no subject, only the failing one's sequence; so all that the batch guards is read, and
compared with what it expects.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from podyard.binder.core import node_takes_pod
from podyard.binder.core.batch import Batch
from podyard.binder.core.effects import Stored, Write
from podyard.binder.core.node_takes_pod import Accepted
from podyard.binder.core.pending import Pending
from podyard.proto import subjects
from podyard.proto.binder_api import BindAnswer
from podyard.proto.placement import BoundPod


class Findings(NamedTuple):
    """What is in the way of a batch."""

    answers: Sequence[tuple[Pending, BindAnswer]] = ()
    """Decisions that can never be written as they are."""
    bound_elsewhere: frozenset[str] = frozenset()
    """Uids of the batch that have a binding already: dropped from it."""
    stale: bool = False
    """A binding to be released, or a tombstone, is at another version than was read."""

    @property
    def explains(self) -> bool:
        """Whether the batch without it may succeed; if not, what was read is old."""
        return bool(self.answers or self.bound_elsewhere or self.stale)


NO_FINDINGS: Final = Findings()


def find(batch: Batch, stored: Mapping[str, Stored]) -> Findings:
    """Compare a refused batch with what its subjects hold."""
    answers: list[tuple[Pending, BindAnswer]] = []
    for pending, accepted in (*batch.accepted, *batch.waiting):
        answer = _why_not_written(pending, accepted, batch, stored)
        if answer is not None:
            answers.append((pending, answer))
    elsewhere = frozenset(bound.uid for bound in batch.bound if _subject(bound) in stored)
    rewritten = [*(ready.write for ready in batch.releases), *batch.expiries]
    return Findings(answers, elsewhere, any(_moved_on(write, stored) for write in rewritten))


def _why_not_written(
    pending: Pending, accepted: Accepted, batch: Batch, stored: Mapping[str, Stored]
) -> BindAnswer | None:
    bound = accepted.bound
    found = stored.get(_subject(bound))
    if found is not None:
        placement = found.placement
        node, attempt = (placement.node, placement.attempt) if placement is not None else ("", "?")
        return node_takes_pod.bound_before(pending.decision, node, attempt)
    for subject, expected in batch.object_writes(accepted).items():
        there = stored.get(subject)
        if (there.sequence if there is not None else 0) != expected:
            reason = f"{subject} has changed meanwhile"
            return BindAnswer(
                attempt=bound.attempt, uid=bound.uid, result="conflict", cause="PreBind", reasons=(reason,)
            )
    return None


def _subject(bound: BoundPod) -> str:
    return subjects.binding(bound.namespace, bound.name, bound.uid)


def _moved_on(write: Write, stored: Mapping[str, Stored]) -> bool:
    found = stored.get(write.subject)
    return found is None or found.sequence != write.expect
