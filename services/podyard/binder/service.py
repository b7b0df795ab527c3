"""The binder as a service: stands for election, reigns when elected, stands again."""

import gc
import itertools

import anyio

from podyard.binder.instruments import Instruments
from podyard.binder.reign import LEADS_CHECK, Reign
from podyard.binder.settings import BinderSettings
from podyard.cluster.informer import Followed, base_subjects
from podyard.configuration import files
from podyard.extenders import clients_of, described
from podyard.framework.event_registry import followed_by
from podyard.framework.profile import Profile
from podyard.proto import subjects
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.boundary import Boundary

COLLECT_EVERY = (100_000, 50, 50)
"""Thresholds of the garbage collector. What the binder keeps it keeps for long, and little of it is cyclic: with Python's own thresholds
(700, 10, 10) collections cost a third of the CPU time per pod."""

STANDS_BY = "stands by: another binder leads"
PAUSE_S = 0.2
"""After being deposed: whoever did it gets its chance at the lease first."""


def followed(profiles: dict[str, Profile], *, extenders: bool = False) -> Followed:
    """What queue and scheduler follow, and what agents say about pods: it ends bindings."""
    resources = followed_by(profiles.values(), extenders=extenders)
    return base_subjects(*(subjects.objects(resource) for resource in resources), subjects.ALL_POD_STATUS)


async def main(service: Service[BinderSettings]) -> None:
    """Lead whenever the lease is ours."""
    gc.set_threshold(*COLLECT_EVERY)
    configuration = files.of(service.process)
    binding = [one for one in configuration.extenders if one.bind_verb]
    binding_extender = next(iter(described(binding)), None)
    instruments = Instruments(service.metrics, service.spans)
    boundary = Boundary(service)
    lease = service.lease(ttl_s=service.settings.lease_ttl_s)
    numbers = itertools.count(1)

    async def lead(epoch: int) -> None:
        profiles = files.profiles(configuration, service.process)
        reign = Reign(
            service,
            profiles,
            followed(profiles, extenders=bool(configuration.extenders)),
            instruments,
            boundary,
            next(numbers),
            clients=clients,
            binding_extender=binding_extender,
        )
        try:
            await reign.run(epoch)
        finally:  # what it said last, cut off from the cluster perhaps, is not so for who stands by
            service.health.set_ready(LEADS_CHECK, True, STANDS_BY)

    async with clients_of(binding) as clients:
        service.health.set_ready(LEADS_CHECK, True, STANDS_BY)
        while True:
            await lease.lead(lead)
            await anyio.sleep(PAUSE_S)
            await boundary.pause()


SERVICE = ServiceDefinition(
    name="binder",
    settings_type=BinderSettings,
    main=main,
    check=files.check,
    description="Judges decisions once more, in one order, and commits bindings in atomic batches",
)
