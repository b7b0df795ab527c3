"""The agent as a service: one term whenever the lease is had."""

from podyard.node_agent.in_force import in_force
from podyard.node_agent.instruments import Instruments
from podyard.node_agent.settings import NodeAgentSettings, check
from podyard.node_agent.term import MakeLink, Term
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.boundary import Boundary
from podyard.shell.event_recorder import Recorder
from podyard.shell.leading import Leading


async def main(service: Service[NodeAgentSettings]) -> None:
    """Lead whenever the lease is ours."""
    settings = service.settings
    configs = settings.configs()
    for unused in settings.unused():
        service.log.warning("a setting of eviction has no effect", field=unused.field, reason=unused.reason)
    instruments, boundary, events = Instruments(service.metrics), Boundary(service), Recorder(service)
    host = _host(service) if settings.host_node else None
    lease = service.lease(settings.lease(), settings.lease_times(), take_over=settings.take_over)
    leading = Leading(lease, service.health, service.metrics, pause=boundary.pause, service=service.name)
    first = iter((settings.take_over,))  # what people say at the start counts for the start

    async def term(epoch: int) -> None:
        del epoch
        await Term(service, configs, instruments, boundary, events, host, take_over=next(first, False)).run()

    await leading.run(term)


def _host(service: Service[NodeAgentSettings]) -> MakeLink:
    """Loaded where it is needed: what reads a host takes 1 MB, and few agents have one.

    :raises SettingsError: if it cannot be read as the settings say
    """
    from podyard.node_agent import host_link

    opened = host_link.opened(service)
    return lambda tell, settled: host_link.HostLink(service, opened, tell, settled)


SERVICE = ServiceDefinition(
    name="node_agent",
    settings_type=NodeAgentSettings,
    main=main,
    check=check,
    in_force=in_force,
    description="Plays the nodes: pods start, run and end, nodes report, pods are evicted under pressure.",
)
