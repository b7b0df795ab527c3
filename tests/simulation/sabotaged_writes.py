"""Mechanisms of the binder's writes, switched off one by one: fence, batch, compare-and-set, tombstones,
take-over, records."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from podyard.binder import service as binder_service
from podyard.binder import writer as binder_writer
from podyard.binder.core import effects, fence, node_takes_pod
from podyard.binder.core import releases as binder_releases
from podyard.binder.core.batch import Batch
from podyard.binder.core.binder import Binder
from podyard.binder.core.effects import Write
from podyard.bus import Bus, Outgoing
from podyard.proto import codec, streams, subjects
from podyard.proto.binder_api import BindRequest
from podyard.proto.placement import CommitRecord
from podyard.shell.asking import Asking
from podyard.shell.informer import Followed
from tests.simulation.sabotaged import Sabotage, Unguarded, kill_all, lease_always_held, slow, unguard
from tests.simulation.simulation import Simulation

# ---- who may write


def _fence_unguarded(simulation: Simulation) -> None:
    """The fence is written whatever it holds; the lease is off too, so that there are two who write."""
    lease_always_held(simulation)
    guarded = fence.FenceKeeper._write

    def write(self: Any, batch_id: str, n: int) -> Any:
        made = guarded(self, batch_id, n)
        return Unguarded(made.subject, made.payload, None)

    fence.FenceKeeper._write = write  # type: ignore[method-assign]
    unguard("placement.commits.")


def _takes_over_without_listing(simulation: Simulation) -> None:
    """A new binder knows the objects, and of placements only what comes."""
    before = binder_service.followed

    def followed(*arguments: Any, **options: Any) -> Followed:
        found = before(*arguments, **options)
        return Followed(tuple(one for one in found.listed if one != subjects.ALL_BINDINGS), found.followed)

    binder_service.followed = followed
    kill_all(simulation, "binder")


# ---- whole or absent


def _batch_not_atomic(simulation: Simulation) -> None:
    """The messages of a batch are published one after the other."""

    async def publish_batch(self: Bus, messages: Sequence[Outgoing], **options: Any) -> Any:
        ack = None
        for message in messages:
            ack = await self.publish(message, timeout_s=options.get("timeout_s"))
        return ack

    binder_writer.Bus.publish_batch = publish_batch  # type: ignore[assignment,method-assign]


def _unclear_is_applied(simulation: Simulation) -> None:
    """A commit without an answer is taken for applied: its decisions are answered."""
    unclear = Binder._on_unclear

    def guess(self: Any, message: effects.Unclear) -> None:
        batch = self._batch
        if batch is not None and batch.id == message.batch_id == self._sending:
            self._batch = None
            self._committed(batch)
        unclear(self, message)

    Binder._on_unclear = guess  # type: ignore[method-assign]
    _loses_commits(simulation)


def _unclear_is_not_applied(simulation: Simulation) -> None:
    """A commit without an answer is taken for not applied: it is judged and sent again at once, the fence is
    not moved before.

    Nothing comes of it: the same fence is expected by both, so only one of them can be applied, and a look at
    what is stored tells which.
    """
    unclear = Binder._on_unclear

    def guess(self: Any, message: effects.Unclear) -> None:
        batch = self._batch
        if batch is not None and batch.id == message.batch_id == self._sending:
            self._sending, self._batch = "", None
            self._judge_again(batch)
        else:
            unclear(self, message)

    Binder._on_unclear = guess  # type: ignore[method-assign]
    _loses_commits(simulation)


def _unclear_is_refused(simulation: Simulation) -> None:
    """The decisions of a commit without an answer are refused, and nobody asks what became of it."""
    unclear = Binder._on_unclear

    def guess(self: Any, message: effects.Unclear) -> None:
        batch = self._batch
        if batch is not None and batch.id == message.batch_id == self._sending:
            for pending, accepted in batch.accepted:
                self.world.drop(accepted.bound.uid)
                answer = node_takes_pod.answer(pending.decision, "conflict", "unclear")
                self._reply(self._intake.answer(pending, answer))
            self._batch = None
        unclear(self, message)

    Binder._on_unclear = guess  # type: ignore[method-assign]
    _loses_commits(simulation)


def _loses_commits(simulation: Simulation) -> None:
    """One batch in five gets no answer: half of these were applied, half never arrived."""
    sends, random = binder_writer.Writer.send, simulation.clock.random

    async def send(self: Any, send: effects.Send) -> Any:
        lost = random.random() if len(send.writes) > 1 and simulation.clock.elapsed > 5.0 else 1.0
        if lost > 0.2:
            return await sends(self, send)
        if lost > 0.1:
            await sends(self, send)
        return effects.Unclear(send.batch_id, "the answer was lost")

    binder_writer.Writer.send = send  # type: ignore[method-assign]


# ---- once


def _decides_twice(simulation: Simulation) -> None:
    """Schedulers send each decision once more, as an attempt of another session, after it was answered."""
    _after_each_answer(lambda asking, request: asking._bus.send(subjects.BINDER_BIND, _again(request)))


def _after_each_answer(then: Callable[[Asking, BindRequest], None]) -> None:
    """Do this whenever a request of a scheduler has the binder's answer."""
    asks = Asking.ask

    async def ask(self: Asking, subject: str, request: Any, *arguments: Any, **options: Any) -> Any:
        reply = await asks(self, subject, request, *arguments, **options)
        if subject == subjects.BINDER_BIND:
            then(self, request)
        return reply

    Asking.ask = ask  # type: ignore[method-assign]


def _again(request: BindRequest) -> bytes:
    decisions = tuple(replace(one, attempt=f"again-{one.attempt}") for one in request.decisions)
    return codec.encode(replace(request, session=f"again-{request.session}", decisions=decisions))


def _binds_again(simulation: Simulation) -> None:
    """Neither is looked whether the pod is bound already, nor must its binding's subject be empty."""
    _decides_twice(simulation)
    node_takes_pod._settled_before = lambda *_: None
    unguard("placement.bindings.")


def _no_tombstones(simulation: Simulation) -> None:
    """A released binding leaves nothing behind. Pods of lost nodes live on for a while, and their decisions
    come again late."""
    simulation.world.collecting_s = (15.0, 25.0)
    settled, writes = node_takes_pod._settled_before, Batch.writes

    def settled_before(decision: Any, world: Any) -> Any:
        placed = world.table.placed(decision.uid)
        return settled(decision, world) if placed is not None and placed.bound is not None else None

    def expiring(self: Any, *arguments: Any) -> list[Write]:
        released = {ready.write.subject for ready in self.releases}
        found = writes(self, *arguments)
        return [replace(one, expires=True) if one.subject in released else one for one in found]

    outgoing = binder_writer._outgoing

    def soon(write: Write) -> Outgoing:
        made = outgoing(write)
        of_binding = write.expires and write.subject.startswith("placement.bindings.")
        return made.but(expires=False, ttl_s=1) if of_binding else made

    def late(asking: Asking, request: BindRequest) -> None:
        for delay_s in (5.0, 10.0, 20.0):
            again = _again(replace(request, session=f"{request.session}-{delay_s}"))
            simulation.clock.later(delay_s, partial(simulation.server.publish, subjects.BINDER_BIND, again))

    node_takes_pod._settled_before = settled_before
    Batch.writes = expiring  # type: ignore[method-assign]
    binder_writer._outgoing = soon
    _after_each_answer(late)


def _late_decisions(simulation: Simulation) -> None:
    """The same trouble with tombstones: nothing comes of it."""
    settled, writes, outgoing = node_takes_pod._settled_before, Batch.writes, binder_writer._outgoing
    _no_tombstones(simulation)
    node_takes_pod._settled_before, Batch.writes = settled, writes  # type: ignore[method-assign]
    binder_writer._outgoing = outgoing


def _volumes_unguarded(simulation: Simulation) -> None:
    """Volumes and claims are written whatever they hold. Strangers take many volumes, and the binders'
    network is slow."""
    simulation.world.strangers = 150
    simulation.world.shares = simulation.world.shares._replace(own_volume=0.4, attached=0.0)
    slow(simulation, "binder", 0.5)
    unguard("cluster.persistentvolume")


# ---- what is told, and when


def _hides_releases(simulation: Simulation) -> None:
    """Commit records do not say what was released."""
    guarded = Batch.writes

    def writes(self: Any, *arguments: Any) -> Sequence[Write]:
        return [_without_releases(one) for one in guarded(self, *arguments)]

    Batch.writes = writes  # type: ignore[method-assign]


def _without_releases(write: Write) -> Write:
    if not write.subject.startswith("placement.commits."):
        return write
    record = replace(codec.decode(CommitRecord, write.payload), releases=())
    return Write(write.subject, codec.encode(record), write.expect, write.expires)


def _skips_numbers(simulation: Simulation) -> None:
    """A number of a commit is left out at each take-over."""
    adopt = fence.FenceKeeper.adopt

    def skip(self: Any, *arguments: Any) -> None:
        adopt(self, *arguments)
        self.n += 1

    fence.FenceKeeper.adopt = skip  # type: ignore[method-assign]
    kill_all(simulation, "binder")


def _keeps_orphans(simulation: Simulation) -> None:
    """Bindings of pods whose object is gone are kept. Many pods are deleted as soon as they are made, while
    binders read late."""
    why = binder_releases.why_release
    binder_releases.why_release = lambda pod, nodes: None if pod.gone else why(pod, nodes)
    slow(simulation, "binder", 0.3)
    world = simulation.world
    make = world.make_pod

    def make_and_delete() -> None:
        make()
        name = next(reversed(world.objects))[1]
        simulation.clock.later(
            simulation.clock.random.uniform(0.0, 0.5), lambda: world.remove(subjects.PODS, "default", name)
        )

    world.make_pod = make_and_delete  # type: ignore[method-assign]


def _makes_leases_again(simulation: Simulation) -> None:
    """The stream of leases is lost when its sequences, and with them the epochs, have grown: they begin
    anew."""
    kill_all(simulation, "queue")
    simulation.clock.later(40.0, lambda: simulation.server.remake(streams.LEASES.name))


SABOTAGES: dict[str, Sabotage] = {
    "lease": Sabotage(lease_always_held, ()),
    "leases": Sabotage(_makes_leases_again, ()),
    "fence": Sabotage(_fence_unguarded, ("writes after",)),
    "listing at take-over": Sabotage(_takes_over_without_listing, ("against",)),
    "whole batches": Sabotage(_batch_not_atomic, ("has no record of it",)),
    "unclear, taken for applied": Sabotage(_unclear_is_applied, ("still in",), 3),
    "unclear, taken for not applied": Sabotage(_unclear_is_not_applied, ()),
    "unclear, refused": Sabotage(_unclear_is_refused, ("is lost", "still in"), 4),
    "decisions once": Sabotage(_decides_twice, ()),
    "binding once": Sabotage(_binds_again, ("which was bound before",)),
    "tombstones": Sabotage(_no_tombstones, ("which was bound before",), 5),
    "late decisions": Sabotage(_late_decisions, ()),
    "volumes' compare-and-set": Sabotage(_volumes_unguarded, ("is bound to two",), 2),
    "releases in records": Sabotage(_hides_releases, ("has no record of it",)),
    "numbers of records": Sabotage(_skips_numbers, ("th",)),
    "orphans": Sabotage(_keeps_orphans, ("and is not there",)),
}
