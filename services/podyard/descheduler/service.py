"""The descheduler as a service: one term whenever the lease is had."""

from typing import Final

import anyio

from podyard.descheduler import making
from podyard.descheduler.core import queries
from podyard.descheduler.settings import DeschedulerSettings
from podyard.descheduler.term import Term
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.leading import Leading


async def main(service: Service[DeschedulerSettings]) -> None:
    """Lead whenever the lease is ours. Returns after one cycle if so set."""
    made = await making.parts(service)
    for setting, reason in service.settings.unused(asks_prometheus=queries.provider(made.policy) is not None):
        service.log.warning("a setting has no effect", setting=setting, reason=reason)
    with anyio.CancelScope() as work:
        lease = service.lease(times=service.settings.lease_times())
        leading = Leading(lease, service.health, service.metrics, pause=made.boundary.pause)
        await leading.run(lambda epoch: Term(*made, work.cancel).run())


SERVICE: Final = ServiceDefinition(
    name="descheduler",
    settings_type=DeschedulerSettings,
    main=main,
    check=making.check,
    in_force=making.in_force,
    description="Evicts pods that would be placed elsewhere today, as a DeschedulerPolicy says.",
)
