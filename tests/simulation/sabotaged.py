"""What a sabotage is, and pieces that several of them need."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import anyio

from podyard.binder.core.batch import Batch
from podyard.bus import Lease
from podyard.runtime.service import Service
from tests.simulation.simulation import Plan, Simulation

Patch = Callable[[Simulation], None]
Lead: TypeAlias = Callable[[Callable[[int], Awaitable[None]]], Awaitable[None]]


class Sabotage(NamedTuple):
    """One mechanism switched off."""

    patch: Patch
    says: tuple[str, ...]
    """Words of the violations of which one must come; empty: none may come."""
    first: int = 1
    """A seed that shows it."""
    plan: type[Plan] = Plan
    """What is played."""


class Unguarded(NamedTuple):
    """A write without compare-and-set, where the code expects a `Write`."""

    subject: str
    payload: bytes
    expect: Any
    expires: bool = False


def unguard(prefix: str) -> None:
    """The binder writes subjects that begin so whatever they hold."""
    guarded = Batch.writes

    def writes(self: Any, *arguments: Any) -> list[Any]:
        return [
            Unguarded(one.subject, one.payload, None, one.expires) if one.subject.startswith(prefix) else one
            for one in guarded(self, *arguments)
        ]

    Batch.writes = writes  # type: ignore[method-assign]


def kill_all(simulation: Simulation, service: str, times_s: tuple[float, ...] = (12.0, 24.0, 36.0)) -> None:
    """All processes of a service are killed again and again, besides the seed's own faults."""
    for process in simulation.processes:
        if process.service == service:
            for at_s in times_s:
                simulation.clock.later(at_s, process.kill)


def end_all(simulation: Simulation, service: str, times_s: tuple[float, ...] = (12.0, 24.0, 36.0)) -> None:
    """All processes of a service end in order, again and again, besides the seed's own faults."""
    for process in simulation.processes:
        if process.service == service:
            for at_s in times_s:
                simulation.clock.later(at_s, process.end)


def slow(simulation: Simulation, service: str, most_s: float) -> None:
    """Messages of a service take up to so long until the faults are over."""
    for process in simulation.processes:
        if process.service == service:
            network = process.network
            network.slow_s = most_s
            simulation.clock.later(60.0, lambda network=network: setattr(network, "slow_s", 0.0))


def lagging(simulation: Simulation) -> None:
    """Consumers hand out at their heartbeats only, until the faults are over."""
    for number in range(275):
        simulation.clock.later(5.0 + 0.2 * number, simulation.server.stall_consumers)


def lease_always_held(simulation: Simulation) -> None:
    """Both binders lead at once, until the faults are over: the lease is there so that somebody gets his work
    done. Two who take the fence from each other for ever may both be waiting for the position of a decision
    whenever it is theirs.
    """
    candidature = Service.lease

    def lease(self: Service[Any], *arguments: Any, **options: Any) -> Lease:
        made = candidature(self, *arguments, **options)
        if self.name == "binder":
            made.lead = partial(_lead, simulation, made, made.lead)  # type: ignore[method-assign]
        return made

    Service.lease = lease  # type: ignore[method-assign]


async def _lead(simulation: Simulation, lease: Lease, lead: Lead, main: Callable[[int], Awaitable[None]]) -> None:
    left_s = simulation.plan.quiet_from_s - simulation.clock.elapsed
    if left_s <= 0:
        await lead(main)
        return
    lease.epoch += 1
    with anyio.move_on_after(left_s):
        await main(lease.epoch)
