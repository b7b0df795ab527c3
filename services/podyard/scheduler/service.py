"""The scheduler as a service."""

from podyard.configuration import files, in_force
from podyard.extenders import clients_of
from podyard.runtime import sessions
from podyard.runtime.service import Service, ServiceDefinition
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.settings import SchedulerSettings
from podyard.scheduler.term import Term
from podyard.shell.boundary import Boundary
from podyard.shell.event_recorder import Recorder


async def main(service: Service[SchedulerSettings]) -> None:
    """Schedule for ever, with another core after one that raised."""
    configuration = files.of(service.process)
    for unused in configuration.unused():
        service.log.warning(
            "a setting of the scheduler configuration has no effect", field=unused.field, reason=unused.reason
        )
    instruments, boundary, events = Instruments(service.metrics, service.spans), Boundary(service), Recorder(service)
    session = service.session
    async with clients_of(configuration.extenders) as clients:
        while True:
            profiles = files.profiles(configuration, service.process)
            await Term(service, configuration, profiles, instruments, boundary, session, clients, events).run()
            await boundary.pause()
            session = sessions.begin(service.instance)


SERVICE = ServiceDefinition(
    name="scheduler",
    settings_type=SchedulerSettings,
    main=main,
    check=files.check,
    in_force=in_force.of,
    description="Finds a node for every pod that the queue hands out, and has the binder bind it",
)
