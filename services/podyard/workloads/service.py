"""Workloads as a service: one term whenever the lease is had."""

from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.boundary import Boundary
from podyard.shell.event_recorder import Recorder
from podyard.shell.leading import Leading
from podyard.workloads.instruments import Instruments
from podyard.workloads.settings import WorkloadsSettings, check, in_force
from podyard.workloads.term import Term


async def main(service: Service[WorkloadsSettings]) -> None:
    """Lead whenever the lease is ours."""
    instruments, boundary, events = Instruments(service.metrics), Boundary(service), Recorder(service)
    lease = service.lease(times=service.settings.lease_times())
    leading = Leading(lease, service.health, service.metrics, pause=boundary.pause)
    await leading.run(lambda epoch: Term(service, instruments, boundary, events).run())


SERVICE = ServiceDefinition(
    name="workloads",
    settings_type=WorkloadsSettings,
    main=main,
    check=check,
    in_force=in_force,
    description="Makes and removes pods for ReplicaSets, Deployments and Jobs, keeps budgets' status, removes what has ended",
)
