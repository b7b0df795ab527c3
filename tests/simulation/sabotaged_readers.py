"""What tells readers that they have missed something, and what they do then, switched off."""

from typing import Any

from podyard.bus import _heads
from podyard.bus.delivery import Delivery
from podyard.bus.feed import Feed
from podyard.cluster.view import ClusterView
from podyard.proto import headers
from podyard.proto.placement import CommitRecord, Fence
from tests.simulation.sabotaged import Sabotage
from tests.simulation.simulation import Simulation

SECOND_NS = 1_000_000_000


def _deaf_to_gaps(simulation: Simulation) -> None:
    """Holes in a consumer's sequence are ignored; one message in ten is lost."""

    def on_message(self: Any, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        if self._over:
            return
        if _heads.status(head) == _heads.CONTROL:
            lines = _heads.parse(head)
            if lines.get(headers.LAST_STREAM, "").isdecimal():
                self._owner.on_heartbeat(int(lines[headers.LAST_STREAM]))
            return
        sequence, _, stored_ns, pending = (int(token) for token in reply.split(".")[5:9])
        self._owner.on_message(Delivery(subject, payload, sequence, stored_ns / SECOND_NS, head=head), pending)

    Feed._on_message = on_message  # type: ignore[method-assign]
    for process in simulation.processes:
        process.network.loss = 0.1
        simulation.clock.later(60.0, lambda network=process.network: setattr(network, "loss", 0.0))


def _deaf_to_numbers(simulation: Simulation) -> None:
    """A missed commit record is not seen by the numbers of fence and records.

    Nothing comes of it: a hole in the consumer's sequence tells the same, sooner (`gaps`).
    """

    def apply_fence(self: Any, tables: Any, fence: Fence) -> None:
        tables.fence = fence

    apply_commit = ClusterView._apply_commit

    def deaf(self: Any, tables: Any, record: CommitRecord, *arguments: Any) -> Any:
        tables.fence = None
        return apply_commit(self, tables, record, *arguments)

    ClusterView._apply_fence = apply_fence  # type: ignore[method-assign]
    ClusterView._apply_commit = deaf  # type: ignore[method-assign]


SABOTAGES: dict[str, Sabotage] = {
    "gaps": Sabotage(_deaf_to_gaps, ("is lost", "still in", "missed wake-up", "against")),
    "numbers of fences": Sabotage(_deaf_to_numbers, ()),
}
