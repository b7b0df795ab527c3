"""`podyard up`: a whole Podyard on this machine."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus

    from podyard.cli.lab.lab import Lab, LabOptions
    from podyard.cli.render.lab import ServiceRow


def up(
    *,
    nodes: int = 0,
    name: Annotated[str, Parameter(show_default=False)] = "",
    services: Annotated[str, Parameter(show_default=False)] = "",
    data: Annotated[str, Parameter(show_default=False)] = "",
    port: int = -1,
    config: Annotated[str, Parameter(name=["--config", "-c"], show_default=False)] = "",
    scheduler_config: Annotated[str, Parameter(show_default=False)] = "",
    log_level: str = "info",
    security: Annotated[str, Parameter(show_default=False)] = "",
    secure: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run an embedded NATS server and every service, each a process of its own, until Ctrl-C.

    Services that end are started again. Other commands find this lab without flags. Traces go where the
    standard `OTEL_EXPORTER_OTLP_ENDPOINT` says.

    ```
    podyard up --nodes 8
    podyard up --data ~/podyard-data --port 4222
    podyard up --name staging
    podyard up --nodes 8 --scheduler-config scheduler.yaml
    podyard up --secure
    podyard up --services api,queue=2,scheduler=2,binder=2,node_agent
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 podyard up
    ```

    :param nodes: Virtual nodes to create: node-1 ..., 8 CPUs and 16 GiB each, in three zones.
    :param name: By which other commands choose it (`--nats NAME`) where several labs run; default: lab, or
        lab-2 and so on.
    :param services: Which, and how many of each; default: one of each.
    :param data: Directory that keeps the cluster's state and the logs; default: a temporary one, removed at
        the end.
    :param port: Port of NATS; -1 is any free one.
    :param config: Options file for all services.
    :param scheduler_config: KubeSchedulerConfiguration (YAML or JSON) for queue, scheduler, binder
        and descheduler.
    :param log_level: debug, info, warning or error, of the services' logs.
    :param security: Directory of `podyard security init`: TLS, and every process with its own key and
        permissions.
    :param secure: The same with keys of its own, made in the data directory if they are not there yet.
    """
    import os

    import anyio

    from podyard.cli import session
    from podyard.cli.errors import InputError
    from podyard.cli.lab import plan, state
    from podyard.cli.lab.lab import LabOptions

    if not 0 <= nodes <= 10_000:
        raise InputError(f"--nodes {nodes}: must be from 0 to 10000")
    if security and secure:
        raise InputError("--security and --secure were given", "--secure makes a directory, --security names one")
    if log_level not in ("debug", "info", "warning", "error"):
        raise InputError(f"--log-level {log_level}: there are debug, info, warning, error")
    options = LabOptions(
        services=plan.parse(services),
        name=state.chosen_name(name, os.environ),
        data_dir=data,
        port=port,
        config=config,
        scheduler_config=_checked(scheduler_config),
        log_level=log_level,
        announce=True,
        security=security,
        secure=secure,
    )
    try:
        return anyio.run(_up, options, nodes)
    except BaseExceptionGroup as group:
        raise session.first(group) from group


def _checked(scheduler_config: str) -> str:
    """The file, if the services can run by it: better told here once than by three services again and
    again."""
    from podyard.cli import scheduler_configuration

    if scheduler_config:
        scheduler_configuration.check(scheduler_config)
    return scheduler_config


async def _up(options: "LabOptions", nodes: int) -> int:
    import anyio

    from podyard.cli.lab.lab import running_lab

    async with anyio.create_task_group() as tasks:
        stopping = anyio.Event()
        await tasks.start(_until_signal, stopping)
        async with running_lab(options) as lab:
            async with anyio.create_task_group() as shown:
                shown.start_soon(_show, lab, nodes)
                if nodes:
                    shown.start_soon(_create_nodes, lab, nodes)
                await stopping.wait()
                shown.cancel_scope.cancel()
            print("stopping", flush=True)
        tasks.cancel_scope.cancel()
    print("stopped", flush=True)
    return 0


async def _until_signal(stopping: "anyio.Event", *, task_status: "TaskStatus[None]") -> None:
    import os
    import signal
    import sys

    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
        task_status.started()
        async for _number in received:
            if stopping.is_set():
                # the impatient get their terminal back; services end because their standard input closes
                sys.stderr.write("ended at once\n")
                os._exit(130)
            stopping.set()


async def _create_nodes(lab: "Lab", nodes: int) -> None:
    """Apply the virtual nodes once the api answers."""
    import anyio

    from podyard.bus.connection import connect
    from podyard.bus.errors import TemporaryError, Unclear
    from podyard.cli import objects_client
    from podyard.cli.lab.nodes import virtual_node

    documents = [virtual_node(number) for number in range(1, nodes + 1)]
    async with connect(lab.person()) as bus:
        while True:
            try:
                await objects_client.apply(bus, documents, why="podyard up --nodes", who="up")
            except (TemporaryError, Unclear):
                await anyio.sleep(0.2)
            else:
                return


async def _show(lab: "Lab", nodes: int) -> None:
    from podyard.cli.render import console

    screen = console.console()
    if screen.is_terminal:
        await _show_live(lab, nodes)
    else:
        await _show_lines(lab, nodes)


async def _show_live(lab: "Lab", nodes: int) -> None:
    import anyio
    from rich.live import Live

    from podyard.cli.render import console
    from podyard.cli.render import lab as rendered
    from podyard.runtime import clock

    with Live(console=console.console(), auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            hints = (
                rendered.next_steps(nodes) if lab.ready else ["waiting for the services ...", "Ctrl-C ends everything."]
            )
            ran_s = clock.now() - lab.started_at
            live.update(rendered.status(_rows(lab), lab.url, str(lab.directory), ran_s, hints), refresh=True)
            await anyio.sleep(0.25)


async def _show_lines(lab: "Lab", nodes: int) -> None:
    import anyio

    from podyard.cli.render import lab as rendered

    print(f"lab {lab.options.name}   NATS {lab.url}   data {lab.directory}", flush=True)
    shown: dict[str, str] = {}

    def tell() -> None:
        for row in _rows(lab):
            line = rendered.change(row)
            if shown.get(row.instance) != line:
                shown[row.instance] = line
                print(line, flush=True)

    lab.changed = tell
    tell()
    await lab.until_ready()
    print("\n".join(["all services are ready", *rendered.next_steps(nodes)]), flush=True)
    await anyio.sleep_forever()


def _rows(lab: "Lab") -> "list[ServiceRow]":
    from podyard.cli.render.lab import ServiceRow

    return [
        ServiceRow(
            instance=child.instance,
            state=child.state,
            pid=child.pid,
            restarts=child.starts - 1 if child.starts else 0,
            http=child.http,
            reason=child.reason,
        )
        for child in lab.children
    ]
