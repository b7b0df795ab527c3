"""What a binder holds, for people who doubt it: which decisions wait in it, and what it counts on nodes."""

from collections.abc import Iterable, Iterator
from typing import Final

from podyard.binder.core.pending import Pending, State
from podyard.binder.core.world import World
from podyard.cluster.comparing import Books, books
from podyard.cluster.dumping import NodesDump, WaitingDump, WaitingRow, of_table, of_waiting

STATES: Final = {
    State.UNJUDGED: "toBeJudged",
    State.AHEAD: "waitsForPosition",
    State.BINDING: "inBatch",
    State.WRITING: "preBindWrites",
    State.WAITING: "preBindWaits",
    State.ASKED: "extenderAsked",
    State.REFUSED: "refusalWaitsForWrite",
    State.ANSWERED: "answered",
}
"""What people read of where a decision stands."""
ACCEPTED: Final = "accepted here, its binding is not seen yet"


def waiting(decisions: Iterable[Pending], most: int) -> WaitingDump:
    """Decisions without an answer; at most so many are shown."""
    return of_waiting(map(_row, decisions), most)


def nodes(world: World, most: int, most_pods: int) -> NodesDump:
    """The nodes as the binder counts them; at most so many are shown, with so many pods each."""
    position = world.view.position
    return of_table(world.table, world.nominated, _own(world), position=position, most=most, most_pods=most_pods)


def counted(world: World) -> Books:
    """What it counts on nodes."""
    return books(world.table, _own(world), world.unseen_releases)


def _own(world: World) -> dict[str, str]:
    return dict.fromkeys(world.unseen, ACCEPTED)


def _row(pending: Pending) -> WaitingRow:
    decision = pending.decision
    return WaitingRow(
        namespace=decision.namespace,
        name=decision.name,
        uid=decision.uid,
        where=STATES[pending.state],
        attempt=decision.attempt,
        node=decision.node,
        since=pending.received_at,
        until=min(pending.deadlines.values(), default=None),
        why="; ".join(_reasons(pending)),
    )


def _reasons(pending: Pending) -> Iterator[str]:
    if pending.state is State.AHEAD:
        yield f"decided at position {pending.decision.position}"
    if pending.deadlines:
        yield f"{', '.join(sorted(pending.deadlines))} waits"
    if pending.withdrawn:
        yield "withdrawn by its scheduler"
