"""Where a workload runs: on a stack that is started for it, or on one that runs."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import psutil

from podyard.bench import collector, meters
from podyard.bus import BusSettings
from podyard.cli import services
from podyard.cli.errors import CliError, InputError
from podyard.cli.lab import plan
from podyard.cli.lab.lab import LabOptions, running_lab
from podyard.cli.lab.plan import Planned
from podyard.cli.lab.state import LabState
from podyard.runtime import ports

READY_WITHIN_S: Final = 30.0
API: Final = "api"
Stack: TypeAlias = Literal["headline", "api", "all"]
STACKS: Final[dict[Stack, tuple[str, ...]]] = {
    "headline": ("queue", "scheduler", "binder"),
    "api": ("api", "queue", "scheduler", "binder"),
    "all": services.NAMES,
}
"""Services by stack; in all but the first objects are written by the api."""
RUNNING: Final = "running"
"""A result's stack, of one that was not started for it."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How workloads are run."""

    stack: Stack = "headline"
    schedulers: int = 1
    synchronous: bool = False
    """The NATS server calls fsync before it acknowledges."""
    equal_churn: float = 0.0
    """Pods a second of the run whose churn for each pod is to be equalled; 0: churn goes by the clock."""
    pace: float = 0.0
    """Pods that are measured are created at so many a second; 0: as fast as they are stored."""
    check: bool = True
    tracing: float = collector.USUAL
    """Share of the traces that are kept, from 0 to 1."""
    data: str = ""


class There(NamedTuple):
    """A stack that is ready."""

    name: str
    """`headline`, `api`, `all` or `running`."""
    bus: BusSettings
    processes: dict[str, int]
    """Their ids, NATS server and client among them."""
    places: tuple[str, ...]
    """Where services serve HTTP."""
    instances: tuple[str, ...]
    by_api: bool
    """Whether objects are written by its api."""
    monitor_port: int | None = None
    """Of the NATS server; None: it counts for nobody."""


def processes(stack: Stack, schedulers: int) -> tuple[Planned, ...]:
    """What is started. Pure.

    :raises InputError: for a number of schedulers that makes no sense
    """
    words = (f"{name}={schedulers}" if name == "scheduler" else name for name in STACKS[stack])
    return plan.parse(",".join(words))


@asynccontextmanager
async def started(options: Options, scheduler_config: str) -> AsyncGenerator[There]:
    """A stack of its own.

    :raises CliError: it does not get ready
    """
    monitor = ports.free_port()
    synchronous: dict[str, Any] = {"jetstream": {"sync_interval": "always"}} if options.synchronous else {}
    async with AsyncExitStack() as ends:
        endpoint = await ends.enter_async_context(collector.collecting()) if options.tracing else ""
        wanted = LabOptions(
            services=processes(options.stack, options.schedulers),
            data_dir=options.data,
            scheduler_config=scheduler_config,
            server_settings={"http": f"127.0.0.1:{monitor}", **synchronous},
            # memory is measured, which a process must allow
            environment={"PODYARD_CORE_DUMPS": "true", **collector.environment(options.tracing, endpoint)},
        )
        lab = await ends.enter_async_context(running_lab(wanted))
        await lab.until_ready(READY_WITHIN_S)
        yield There(
            name=options.stack,
            bus=BusSettings(servers=(lab.url,), name="podyard-bench", service="cli"),
            processes=meters.processes(lab),
            places=tuple(child.http for child in lab.children),
            instances=tuple(child.instance for child in lab.children),
            by_api=options.stack != "headline",
            monitor_port=monitor,
        )


def running(lab: LabState, bus: BusSettings) -> There:
    """A lab that runs on this machine, as it is.

    :raises CliError: one of its services does not run
    """
    down = [instance for instance, service in lab.services.items() if not service.pid]
    if down:
        raise CliError(f"lab {lab.name}: {', '.join(down)} does not run", "see its log: podyard labs")
    pids = {instance: service.pid for instance, service in lab.services.items()}
    by_api = any(instance.startswith(f"{API}-") for instance in pids)
    return There(
        name=RUNNING,
        bus=bus,
        processes=meters.named(pids) | {meters.SERVER: _server(lab)} | meters.itself(),
        places=tuple(service.http for service in lab.services.values()),
        instances=tuple(pids),
        by_api=by_api,
    )


def _server(lab: LabState) -> int:
    """Process id of its NATS server."""
    try:
        children = psutil.Process(lab.pid).children()
        found = [child.pid for child in children if child.name() == meters.SERVER]
    except psutil.Error as error:
        raise CliError(f"lab {lab.name}: its processes cannot be looked at: {error}") from error
    if len(found) != 1:
        raise InputError(f"lab {lab.name} has no NATS server of its own", "name one that `podyard up` has started")
    return found[0]
