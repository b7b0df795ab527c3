"""Who leads: stands for election, runs one term after the other, and stands by in between.

What a service is while it leads is its term: an async callable that is given the epoch of the lease. It is
cancelled when the lease is lost, and may return before, for another one to lead.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

import anyio
import prometheus_client

from podyard.bus.lease import Lease
from podyard.runtime.health import Health
from podyard.telemetry.reference_metrics import GaugeFamily

CHECK: Final = "leader"
STANDS_BY: Final = "stands by: another one leads"
WATCHDOG: Final = "leaderElection"
"""A watch of life, named and timed as in the reference (client-go tools/leaderelection/healthzadaptor.go,
v0.36.2): a term that goes on without a lease is a fault that only a new start ends."""
WATCHDOG_S: Final = 20.0
"""How long a term may go on after its lease has ended. Source: Kubernetes
cmd/kube-scheduler/app/options/options.go, v1.36.2."""


class Leading:
    """Of one process. Owned by its event loop."""

    def __init__(
        self,
        lease: Lease,
        health: Health,
        registry: prometheus_client.CollectorRegistry,
        *,
        pause: Callable[[], Awaitable[None]],
        pause_s: float = 0.0,
        service: str = "",
    ) -> None:
        """
        :param pause: awaited after a term that returned: the boundary's, which knows how many cores have
            raised
        :param pause_s: seconds before it: others get their chance at the lease first
        :param service: names Podyard's metric; by default the lease does, whose name may be longer. The
            reference's has it as a label (component-base v0.36.2, metrics/prometheus/clientgo/leaderelection)
        """
        self._lease = lease
        self._health = health
        self._pause = pause
        self._pause_s = pause_s
        self._acts = False
        health.watch(WATCHDOG, self._overdue)
        self._gauge = prometheus_client.Gauge(
            f"podyard_{service or lease.service}_leading", "1 while this process leads", registry=registry
        )
        self._key = (lease.service,)
        GaugeFamily(
            registry, "leader_election_master_status", "1 while this process has the lease of this name", ["name"]
        ).show(lambda: {self._key: self._acts})

    async def run(self, term: Callable[[int], Awaitable[None]]) -> NoReturn:
        """Run `term(epoch)` whenever the lease is ours, for ever."""

        async def lead(epoch: int) -> None:
            self.says(True, f"leads, epoch {epoch}")
            self._acts = True
            try:
                await term(epoch)
            finally:  # what it said last is not so for who stands by
                self._acts = False
                self._stand_by()

        self._stand_by()
        while True:
            await self._lease.lead(lead)
            await anyio.sleep(self._pause_s)
            await self._pause()

    def says(self, leads: bool, reason: str) -> None:
        """A term may say that it does not lead yet, and later that it does; one that says nothing leads.

        :param reason: for people, on `/readyz`
        """
        self._health.set_ready(CHECK, leads, reason)
        self._gauge.set(1 if leads else 0)

    def _overdue(self) -> str:
        overdue_s = self._lease.overdue_s() if self._acts else 0.0
        return f"still leads {overdue_s:.0f} s after its lease ended" if overdue_s > WATCHDOG_S else ""

    def _stand_by(self) -> None:
        self._health.set_ready(CHECK, True, STANDS_BY)
        self._gauge.set(0)
