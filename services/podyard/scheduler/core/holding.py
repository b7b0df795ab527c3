"""What a scheduler holds, for people who doubt it: which pods wait in it, and what it counts on nodes."""

from collections.abc import Iterator
from typing import Final

from podyard.cluster.comparing import Books, books
from podyard.cluster.dumping import NodesDump, WaitingDump, WaitingRow, of_table, of_waiting
from podyard.proto.binder_api import POSITION_WAIT_S
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core.assumptions import Assumption, Phase
from podyard.scheduler.core.backlog import Backlog
from podyard.scheduler.core.placing import Placing
from podyard.scheduler.core.settling import Settling

PHASES: Final = {
    Phase.AT_PERMIT: "atPermit",
    Phase.ASKED: "binderAsked",
    Phase.WAITING: "waitsInBinder",
    Phase.ASKED_AGAIN: "binderAskedAgain",
    Phase.SEEN: "bindingSeen",
    Phase.BOUND: "bound",
}
"""What people read of a decision's phase."""


def waiting(backlog: Backlog, settling: Settling, placing: Placing, asking: PoppedPod | None, most: int) -> WaitingDump:
    """Pods that were popped and are not settled.

    :param asking: the one whose extenders are asked
    :param most: that are shown
    """
    return of_waiting(_waiting(backlog, settling, placing, asking), most)


def nodes(placing: Placing, position: int, most: int, most_pods: int) -> NodesDump:
    """The nodes as the scheduler counts them.

    :param most: that are shown
    :param most_pods: of each
    """
    nominated = placing.nominations.nominated
    return of_table(placing.table, nominated, assumed(placing), position=position, most=most, most_pods=most_pods)


def counted(placing: Placing) -> Books:
    """What it counts on nodes."""
    return books(placing.table, assumed(placing))


def assumed(placing: Placing) -> dict[str, str]:
    """Why pods are counted that the view may not bind, by uid."""
    return {one.popped.uid: f"assumed, {PHASES[one.phase]}" for one in placing.assumptions}


def _waiting(backlog: Backlog, settling: Settling, placing: Placing, asking: PoppedPod | None) -> Iterator[WaitingRow]:
    if asking is not None:
        yield _row(asking, "extendersAsked")
    for successor in settling.successors:
        yield _row(successor, "toBeTried", why="popped again; its older attempt is settled")
    for retry in settling.retries:
        why = f"{retry.why}; waits for position {retry.position}"
        yield _row(retry.popped, "toBeDecidedAgain", until=retry.due_at, why=why)
    for assumption in placing.assumptions:
        yield _decided(assumption, placing)
    for batch in backlog:
        since, why = batch.due_at - POSITION_WAIT_S, f"was handed out at position {batch.position}"
        for popped in batch.pods:
            yield _row(popped, "toBeTried", since=since, until=batch.due_at, why=why)


def _decided(one: Assumption, placing: Placing) -> WaitingRow:
    waits_for = ", ".join(placing.permits.pending(one.popped.uid))
    return _row(
        one.popped,
        PHASES[one.phase],
        node=one.decision.node,
        since=one.span.end,
        until=placing.permits.until(one.popped.uid),
        why=f"waits for {waits_for}" if waits_for else "withdrawn" if one.withdrawn else "",
    )


def _row(
    popped: PoppedPod,
    where: str,
    *,
    node: str = "",
    since: float | None = None,
    until: float | None = None,
    why: str = "",
) -> WaitingRow:
    return WaitingRow(
        namespace=popped.namespace,
        name=popped.name,
        uid=popped.uid,
        where=where,
        attempt=popped.attempt,
        node=node,
        since=since,
        until=until,
        why=why,
    )
