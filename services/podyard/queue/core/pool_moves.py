"""From which pool to which a pod may go. `QueuedPod.enter` is the only writer of a pod's pool, and asks here.

                     given back, activated
               +-------------------------------------+
               v                                     |
    add --> ACTIVE --------- pop -------------> IN_FLIGHT -- a node --> BINDING
             ^ ^ ^                               |     |
             | | |                      rejected |     | error
             | | |                               v     v
             | | +-- event, backoff over - UNSCHEDULABLE  ERROR_BACKOFF
             | |                               |              |
             | |                               | event        |
             | |                               v              |
             | +--------- backoff over ---- BACKOFF           |
             +----------- backoff over -----------------------+

What the drawing leaves out: with nothing in ACTIVE a pop takes from BACKOFF. A pod whose binding does not
come goes where a pod in flight would. One that a PreEnqueue plugin keeps out is GATED in place of ACTIVE,
BACKOFF or ERROR_BACKOFF, until an event opens the gate. From everywhere a pod goes NOWHERE, when it is bound
or deleted.

Source: pkg/scheduler/backend/queue/scheduling_queue.go of kube-scheduler v1.36.2; BINDING is Podyard's own.
"""

from collections.abc import Mapping
from typing import Final

from podyard.proto.pools import Pool

_RETURNS: Final = (Pool.ACTIVE, Pool.BACKOFF, Pool.ERROR_BACKOFF, Pool.UNSCHEDULABLE, Pool.GATED)
"""Where a pod may go whose attempt did not bind it."""

NEXT: Final[Mapping[Pool, frozenset[Pool]]] = {
    Pool.NOWHERE: frozenset((*_RETURNS, Pool.IN_FLIGHT, Pool.BINDING)),
    Pool.ACTIVE: frozenset((Pool.IN_FLIGHT, Pool.NOWHERE)),
    Pool.BACKOFF: frozenset((Pool.ACTIVE, Pool.IN_FLIGHT, Pool.NOWHERE)),
    Pool.ERROR_BACKOFF: frozenset((Pool.ACTIVE, Pool.NOWHERE)),
    Pool.UNSCHEDULABLE: frozenset((*_RETURNS, Pool.NOWHERE)),
    Pool.GATED: frozenset((*_RETURNS, Pool.NOWHERE)),
    Pool.IN_FLIGHT: frozenset((*_RETURNS, Pool.BINDING, Pool.NOWHERE)),
    Pool.BINDING: frozenset((*_RETURNS, Pool.NOWHERE)),
}
"""Pool -> where a pod may go from there."""


class WrongPoolError(Exception):
    """The queue was about to put a pod where it cannot go from where it is: a bug."""

    def __init__(self, uid: str, pool: Pool, wanted: Pool) -> None:
        super().__init__(f"pod {uid} cannot go from {pool or 'nowhere'} to {wanted or 'nowhere'}")
