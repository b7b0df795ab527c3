"""Switches off what prevents violations, one mechanism at a time, in the process of one run: the checker must see each.

Each names what the checker is to say. Some bring more trouble, or switch off what is only an optimisation: then it must say
nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from podyard.binder import service as binder_service
from podyard.binder.core import fence, judge
from podyard.binder.core import world as binder_world
from podyard.binder.core.batch import Batch
from podyard.binder.core.effects import Write
from podyard.bus import Lease
from podyard.cluster.informer import Followed
from podyard.framework import row_judge
from podyard.framework.events import ASSIGNED_POD_DELETE
from podyard.proto import codec, streams, subjects
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.placement import CommitRecord
from podyard.queue.core import restart
from podyard.queue.core.scheduling_queue import SchedulingQueue
from podyard.scheduler.bind_link import BindLink
from tests.simulation.simulation import Simulation

Patch = Callable[[Simulation], None]


class Sabotage(NamedTuple):
    """`says` are words of the violations that must come; empty: none may come."""

    patch: Patch
    says: tuple[str, ...]


class _Unguarded(NamedTuple):
    """A write without compare-and-set, where the code expects a `Write`."""

    subject: str
    payload: bytes
    expect: Any
    ttl_s: int | None = None


def _lease_always_held(simulation: Simulation) -> None:
    """Everybody leads at once: both binders, both queues."""

    async def lead(self: Lease, main: Callable[[int], Any]) -> None:
        while True:
            self.epoch += 1
            await main(self.epoch)
            return

    binder_service.Lease = lambda *arguments: _with(Lease(*arguments), lead)  # type: ignore[attr-defined,assignment]


def _with(lease: Lease, lead: Callable[..., Any]) -> Lease:
    lease.lead = lambda main: lead(lease, main)  # type: ignore[method-assign]
    return lease


def _fence_unguarded(simulation: Simulation) -> None:
    """The fence is written whatever it holds; the lease is off too, so that there are two who write."""
    _lease_always_held(simulation)
    guarded = fence.FenceKeeper._write

    def write(self: Any, batch_id: str, n: int) -> Any:
        made = guarded(self, batch_id, n)
        return _Unguarded(made.subject, made.payload, None)

    fence.FenceKeeper._write = write  # type: ignore[method-assign]
    _unguard("placement.commits.")


def _kill_all(simulation: Simulation, service: str) -> None:
    """All processes of a service are killed again and again, besides the seed's own faults."""
    for process in simulation.processes:
        if process.service == service:
            for at_s in (12.0, 24.0, 36.0):
                simulation.clock.later(at_s, process.kill)


def _unguard(prefix: str) -> None:
    """The binder makes subjects that begin so, whatever they hold already."""
    guarded = Batch.writes

    def writes(self: Any, *arguments: Any) -> list[Any]:
        return [
            _Unguarded(one.subject, one.payload, None, one.ttl_s)
            if one.expect == 0 and one.subject.startswith(prefix)
            else one
            for one in guarded(self, *arguments)
        ]

    Batch.writes = writes  # type: ignore[method-assign]


def _judges_nothing(simulation: Simulation) -> None:
    """What schedulers decide is bound, unless the pod is bound already."""
    row_judge.RowJudge.passes = lambda *_: judge.framework_judge.statuses.SUCCESS  # type: ignore[method-assign]
    judge.shortages = lambda *_: []  # type: ignore[assignment]
    judge.taken_ports = lambda *_: []  # type: ignore[assignment]


def _judges_nothing_of_ports(simulation: Simulation) -> None:
    """The same, where most pods want a host port."""
    simulation.world.sharing_ports = 0.6
    _judges_nothing(simulation)


def _decides_twice(simulation: Simulation) -> None:
    """Schedulers send each decision once more, as an attempt of another session, after it was answered."""
    asks = BindLink._ask

    async def ask(self: BindLink, request: BindRequest) -> BindReply:
        reply = await asks(self, request)
        decisions = tuple(replace(one, attempt=f"again-{one.attempt}") for one in request.decisions)
        again = codec.encode(replace(request, session=f"again-{request.session}", decisions=decisions))
        self._bus.send(subjects.BINDER_BIND, again)
        return reply

    BindLink._ask = ask  # type: ignore[method-assign]


def _binds_again(simulation: Simulation) -> None:
    """Neither is looked whether the pod is bound already, nor must its binding's subject be empty."""
    _decides_twice(simulation)
    judge._settled_before = lambda *_: None
    _unguard("placement.bindings.")


def _takes_over_without_listing(simulation: Simulation) -> None:
    """A new binder knows the objects, and of placements only what comes."""
    before = binder_service.followed

    def followed(*arguments: Any, **options: Any) -> Followed:
        found = before(*arguments, **options)
        return Followed(tuple(one for one in found.listed if one != subjects.ALL_BINDINGS), found.followed)

    binder_service.followed = followed
    _kill_all(simulation, "binder")


def _keeps_room(simulation: Simulation) -> None:
    """The binder's table does not give back the room of what is released."""
    binder_world.World.free = lambda self, uid: None  # type: ignore[method-assign]
    follow = binder_world.World._follow_pod

    def deaf(self: Any, change: Any) -> None:
        if change.release is None:
            follow(self, change)

    binder_world.World._follow_pod = deaf  # type: ignore[method-assign]


def _sleeps_through_releases(simulation: Simulation) -> None:
    """The queue wakes nobody when room comes free, nor when it lists again."""
    move_all = SchedulingQueue.move_all

    def deaf(self: Any, incoming: Any, *arguments: Any, **options: Any) -> Any:
        if incoming.event == ASSIGNED_POD_DELETE:
            return None
        return move_all(self, incoming, *arguments, **options)

    SchedulingQueue.move_all = deaf  # type: ignore[method-assign]
    SchedulingQueue.retry_all = lambda *_: None  # type: ignore[method-assign]


def _new_leader_forgets(simulation: Simulation) -> None:
    """A new leader of the queue takes only pods that come after it."""
    restart.fill = lambda *_: 0  # type: ignore[assignment]
    _kill_all(simulation, "queue")


def _hides_releases(simulation: Simulation) -> None:
    """Commit records do not say what was released."""
    guarded = Batch.writes

    def writes(self: Any, *arguments: Any) -> Sequence[Write]:
        return [_without_releases(one) for one in guarded(self, *arguments)]

    Batch.writes = writes  # type: ignore[method-assign]


def _without_releases(write: Write) -> Write:
    if not write.subject.startswith("placement.commits."):
        return write
    record = codec.decode(CommitRecord, write.payload)
    kept = CommitRecord(
        n=record.n,
        epoch=record.epoch,
        batch=record.batch,
        bindings=record.bindings,
        position=record.position,
        at=record.at,
    )
    return Write(write.subject, codec.encode(kept), write.expect, write.ttl_s)


def _makes_leases_again(simulation: Simulation) -> None:
    """The stream of leases is lost when its sequences, and with them the epochs, have grown: they begin anew."""
    _kill_all(simulation, "queue")
    simulation.clock.later(40.0, lambda: simulation.server.remake(streams.LEASES.name))


SABOTAGES: dict[str, Sabotage] = {
    "lease": Sabotage(_lease_always_held, ()),
    "leases": Sabotage(_makes_leases_again, ()),
    "fence": Sabotage(_fence_unguarded, ("writes after",)),
    "judgement": Sabotage(_judges_nothing, ("overload", "anti-affinity", "spread")),
    "judgement of ports": Sabotage(_judges_nothing_of_ports, ("host port",)),
    "decisions once": Sabotage(_decides_twice, ()),
    "binding once": Sabotage(_binds_again, ("which was bound before",)),
    "listing at take-over": Sabotage(_takes_over_without_listing, ("overload",)),
    "room given back": Sabotage(_keeps_room, ("not the sum",)),
    "wake-up by releases": Sabotage(_sleeps_through_releases, ("missed wake-up",)),
    "new leader's pods": Sabotage(_new_leader_forgets, ("is lost",)),
    "releases in records": Sabotage(_hides_releases, ("has no record of it",)),
}
