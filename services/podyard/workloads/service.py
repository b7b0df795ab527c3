"""Workloads as a service: stands for election, reigns when elected."""

from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.boundary import Boundary
from podyard.workloads.instruments import Instruments
from podyard.workloads.reign import VIEW_CHECK, Reign
from podyard.workloads.settings import WorkloadsSettings


async def main(service: Service[WorkloadsSettings]) -> None:
    """Lead whenever the lease is ours."""
    instruments = Instruments(service.metrics)
    boundary = Boundary(service)
    lease = service.lease(ttl_s=service.settings.lease_ttl_s)

    async def lead(epoch: int) -> None:
        try:
            await Reign(service, instruments, boundary).run(epoch)
        finally:
            service.health.set_ready(VIEW_CHECK, True, "stands by: another one leads")

    service.health.set_ready(VIEW_CHECK, True, "stands by: another one leads")
    while True:
        await lease.lead(lead)
        await boundary.pause()


SERVICE = ServiceDefinition(
    name="workloads",
    settings_type=WorkloadsSettings,
    main=main,
    description="Makes and removes pods for ReplicaSets, Deployments and Jobs, keeps budgets' status, removes what has ended",
)
