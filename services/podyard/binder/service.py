"""The binder as a service: one term whenever the lease is had."""

import itertools

import anyio

from podyard.binder.debug import Shown
from podyard.binder.instruments import Instruments
from podyard.binder.reading import followed
from podyard.binder.settings import BinderSettings
from podyard.binder.term import Term
from podyard.configuration import files, in_force
from podyard.extenders import clients_of, described
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.boundary import Boundary
from podyard.shell.debugging import debugging_of
from podyard.shell.leading import Leading

PAUSE_S = 0.2
"""After being deposed: whoever did it gets its chance at the lease first."""


async def main(service: Service[BinderSettings]) -> None:
    """Lead whenever the lease is ours."""
    configuration = files.of(service.process)
    binding = [one for one in configuration.extenders if one.bind_verb]
    binding_extender = next(iter(described(binding)), None)
    instruments, boundary = Instruments(service.metrics), Boundary(service)
    settings = files.leading(service.settings, configuration, service.process)
    lease = service.lease(times=settings.lease_times())
    leading = Leading(lease, service.health, service.metrics, pause=boundary.pause, pause_s=PAUSE_S)
    numbers = itertools.count(1)
    subjects = followed(files.profiles(configuration, service.process), extenders=bool(configuration.extenders))
    shown = Shown(subjects)

    async def lead(epoch: int) -> None:
        profiles = files.profiles(configuration, service.process)
        term = Term(
            service,
            profiles,
            subjects,
            instruments,
            boundary,
            leading,
            shown,
            next(numbers),
            clients=clients,
            binding_extender=binding_extender,
        )
        await term.run(epoch)

    async with clients_of(binding) as clients, anyio.create_task_group() as tasks:
        tasks.start_soon(debugging_of(service, shown, boundary.aside).run)
        await leading.run(lead)


SERVICE = ServiceDefinition(
    name="binder",
    settings_type=BinderSettings,
    main=main,
    check=files.check_leader,
    in_force=in_force.of_leader,
    description="Judges decisions once more, in one order, and commits bindings in atomic batches",
)
