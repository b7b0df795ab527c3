"""`podyard bench`: measure throughput on this machine."""

import os
from typing import TYPE_CHECKING, Final

from cyclopts import App

from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.cli.bench.basic import BasicResult

SERVICES: Final = "api,queue,scheduler,binder"
READY_WITHIN_S: Final = 30.0

bench = App(name="bench", help="Measure throughput on this machine: services as processes, an embedded NATS server.")


@bench.command
def basic(
    *, nodes: int = 5000, pods: int = 10_000, runs: int = 1, data: str = "", output: JsonOutputOption = "text"
) -> int:
    """Plain pods on plain nodes: from the first create to the last durable commit.

    ```
    podyard bench basic
    podyard bench basic --nodes 500 --pods 2000 --runs 3
    podyard bench basic -o json
    ```

    :param nodes: Nodes, created before the clock starts.
    :param pods: Pods to create and bind.
    :param runs: Runs, each with services and a server of its own; the figures are the median run's.
    :param data: Directory that keeps the last run's logs and streams; default: a temporary one.
    """
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain
    from podyard.cli.render.bench import report

    if nodes < 1 or pods < 1 or runs < 1:
        raise InputError("--nodes, --pods and --runs must be at least 1")
    if pods > nodes * 110:
        raise InputError(f"{nodes} nodes take {nodes * 110} pods (110 each), not {pods}", "ask for more --nodes")
    results = [_measure(nodes, pods, data) for _ in range(runs)]
    results.sort(key=lambda result: result.pods_per_second_average)
    median = results[len(results) // 2]
    if output == "json":
        print(plain.dump(median, "json"), end="")
    else:
        console.console().print(report(median, [result.pods_per_second_average for result in results]))
    return 0


def _measure(nodes: int, pods: int, data: str) -> "BasicResult":
    import anyio

    from podyard.cli import session
    from podyard.cli.bench.basic import StalledError
    from podyard.cli.bench.load import LoadError
    from podyard.cli.errors import CliError

    try:
        return anyio.run(_one, nodes, pods, data, backend_options={"use_uvloop": True})
    except BaseExceptionGroup as group:
        cause = session.first(group)
        if isinstance(cause, StalledError | LoadError):
            raise CliError(str(cause), "see the services' logs: run it again with --data DIR") from group
        raise cause from group


async def _one(nodes: int, pods: int, data: str) -> "BasicResult":
    from podyard.bus import BusSettings, connect
    from podyard.cli.bench import basic as measured
    from podyard.cli.bench import meters
    from podyard.cli.lab import plan
    from podyard.cli.lab.lab import LabOptions, running_lab

    monitor = meters.free_port()
    options = LabOptions(
        services=plan.parse(SERVICES),
        data_dir=data,
        server_settings={"http": f"127.0.0.1:{monitor}"},
    )
    async with running_lab(options) as lab:
        await lab.until_ready(READY_WITHIN_S)
        pids = {child.service: child.pid for child in lab.children} | {
            "nats-server": lab.server.pid,
            "client": os.getpid(),
        }
        async with connect(BusSettings(servers=(lab.url,), name="podyard-bench", service="cli")) as bus:
            return await measured.run(bus, pids, monitor, nodes, pods)
