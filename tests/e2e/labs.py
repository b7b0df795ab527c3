"""The lab that most end-to-end tests share: all services, all spans sent, profiles for the plugins of tests.

A test gets it empty and leaves it empty (`emptied`): nodes belong to no namespace, so that only one test can
be at work.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from podyard.cli import objects_client
from podyard.cli.demo import theatre
from podyard.objects.admission import ALWAYS_THERE
from podyard.objects.priority import SYSTEM_CLASSES
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from tests.e2e.stage import WITHIN_S, Stand, stand_with
from tests.support.otlp_sink import OtlpSink

ROOT: Final = Path(__file__).parents[2]
"""Where services find the plugins of `examples`."""

HASTY_VOLUMES: Final = "hasty-volumes"
"""A profile that waits 2 seconds for volumes, not 10 minutes."""

GROUPS: Final = "groups"
HASTY_GROUPS: Final = "hasty-groups"
"""Profiles whose pods wait for their group: 10 minutes, 2 seconds."""

POD_GROUP: Final = "examples.plugins.pod_group:PodGroup"
TOPOLOGIES: Final = "topologies"
DATASETS: Final = "datasets"
"""Profiles with a plugin that knows a kind of its own."""

SHORT: Final = {
    "PODYARD_QUEUE_SESSION_TIMEOUT_S": "4",
    "PODYARD_SCHEDULER_HEARTBEAT_S": "1",
    "PODYARD_NODE_AGENT_START_DELAY_S": "0.05",
    "PODYARD_NODE_AGENT_EVICTION_PRESSURE_TRANSITION_PERIOD_S": "1",
    "PODYARD_DESCHEDULER_INTERVAL_S": "1",
}
"""Times that tests only wait for: a dead scheduler's pods go back when its session has ended, the story's
pressure and taint work when agent and descheduler look again."""

NAMESPACES: Final = "namespaces"
BEFORE_PODS: Final = (
    "cronjobs",
    "daemonsets",
    "deployments",
    "jobs",
    "statefulsets",
    "replicasets",
    "replicationcontrollers",
)
"""What would make pods again, owners first."""


def exporting(sink: OtlpSink, **more: str) -> dict[str, str]:
    """The standard variables for a collector that is `sink`."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": sink.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100", **more}


def configuration(**more: Any) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with these fields."""
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **more}


def profile(name: str, *plugins: str, **arguments: Any) -> dict[str, Any]:
    """A profile with these plugins besides the usual ones.

    :param arguments: of the first of them
    """
    enabled = {"multiPoint": {"enabled": [{"name": plugin} for plugin in plugins]}}
    config = [{"name": plugin, "args": arguments} for plugin in plugins[:1] if arguments]
    return {"schedulerName": name, "plugins": enabled, "pluginConfig": config}


def profiles() -> list[dict[str, Any]]:
    """The usual one, and those of tests."""
    volumes = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}
    return [
        {"schedulerName": "default-scheduler"},
        {"schedulerName": HASTY_VOLUMES, "pluginConfig": [volumes]},
        profile(GROUPS, POD_GROUP, waitSeconds=600),
        profile(HASTY_GROUPS, POD_GROUP, waitSeconds=2),
        profile(TOPOLOGIES, "examples.plugins.node_resource_topology:NodeResourceTopologyMatch"),
        profile(DATASETS, "examples.plugins.data_locality:DataLocality"),
    ]


@asynccontextmanager
async def shared(directory: Path, sink: OtlpSink) -> AsyncGenerator[Stand]:
    """The lab; it is the demo's, so that the story can be told in it."""
    file = directory / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration(profiles=profiles())))
    with theatre.options(str(directory)) as planned:
        environment = {**planned.environment, **SHORT, **exporting(sink), "PYTHONPATH": str(ROOT)}
        wanted = msgspec.structs.replace(planned, scheduler_config=str(file), environment=environment)
        async with stand_with(wanted) as here:
            yield here


async def emptied(here: Stand) -> None:
    """Remove whatever is there, in all namespaces, and wait until it has gone and the services are ready.

    :raises NotSeenError: something stays
    :raises CliError: a service is not ready
    """
    view = here.seen.view

    def makers() -> list[ObjectRef]:
        return references((kind, view.objects(kind)) for kind in BEFORE_PODS)

    def pods() -> list[ObjectRef]:
        return references([(subjects.PODS, view.pods)])

    def rest() -> list[ObjectRef]:
        kinds = sorted(view.resources, key=lambda kind: kind == NAMESPACES)
        nodes = [(subjects.NODES, [("", name) for name in view.nodes])]
        return [one for one in references([*nodes, *((kind, view.objects(kind)) for kind in kinds)]) if not _stays(one)]

    await remove(here, makers())
    await remove(here, pods())
    await here.seen.until("the end of all pods", lambda: not view.pods_by_uid, WITHIN_S)
    await remove(here, rest())
    await here.seen.until("the end of all else", lambda: not (pods() or rest()), WITHIN_S)
    await here.lab.until_ready(WITHIN_S)


def _stays(one: ObjectRef) -> bool:
    """Whether every cluster has it: it cannot be deleted, or is made again."""
    return one.name in {NAMESPACES: ALWAYS_THERE, "priorityclasses": SYSTEM_CLASSES}.get(one.resource, ())


def references(found: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> list[ObjectRef]:
    """Kinds with the places of their objects, as the api takes them."""
    return [
        ObjectRef(resource=kind, namespace=namespace, name=name) for kind, keys in found for namespace, name in keys
    ]


async def remove(here: Stand, targets: list[ObjectRef]) -> None:
    """Delete objects, without grace."""
    await objects_client.delete(here.bus, targets, grace_period_s=0, why="the test is over", who="tests")
