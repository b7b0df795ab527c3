"""`podyard bench`: measure throughput and costs on this machine."""

import os
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.cli.bench.basic import BasicResult
    from podyard.cli.bench.cycles import CycleResult

CURVE: Final = (500, 5000, 50_000)
"""Nodes of the clusters for which `bench cycle` shows its costs."""
FEWEST_NODES: Final = 300
SERVICES: Final = "api,queue,scheduler,binder"
READY_WITHIN_S: Final = 30.0

bench = App(name="bench", help="Measure on this machine: throughput of the services, costs of a scheduling cycle.")


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


@bench.command
def cycle(
    *,
    nodes: int = 5000,
    curve: Annotated[bool, Parameter(negative="--no-curve")] = True,
    output: JsonOutputOption = "text",
) -> int:
    """One scheduling cycle, by kind of pod: when nothing is shared with an earlier pod, and when its signature was seen.

    Runs in this process, with the default profile, on a cluster in memory: three zones, two placed pods a node.

    ```
    podyard bench cycle
    podyard bench cycle --nodes 1000 --no-curve
    podyard bench cycle -o json
    ```

    :param nodes: Nodes of the cluster whose costs come first.
    :param curve: Measure clusters of 500, 5,000 and 50,000 nodes too.
    """
    from podyard.cli.errors import InputError
    from podyard.cli.render import bench_cycle, console, plain

    if nodes < FEWEST_NODES:
        raise InputError(f"--nodes must be at least {FEWEST_NODES}: pods that keep apart need a node each")
    result = _cycles(nodes, curve=curve)
    if output == "json":
        print(plain.dump(result, "json"), end="")
    else:
        console.console().print(bench_cycle.report(result))
    return 0


@bench.command(name="all")
def everything(*, output: JsonOutputOption = "text") -> int:
    """All benchmarks, one after the other, as `make bench` runs them."""
    from podyard.cli.render import bench_cycle, console, plain
    from podyard.cli.render.bench import report

    throughput = _measure(5000, 10_000, "")
    cycles = _cycles(5000, curve=True)
    if output == "json":
        print(plain.dump({"basic": throughput, "cycle": cycles}, "json"), end="")
    else:
        out = console.console()
        out.print(report(throughput, [throughput.pods_per_second_average]))
        out.print()
        out.print(bench_cycle.report(cycles))
    return 0


def _cycles(nodes: int, *, curve: bool) -> "CycleResult":
    from rich.console import Console

    from podyard.cli.bench import cycles
    from podyard.cli.errors import CliError
    from podyard.plugins.defaults import default_profile

    sizes = {nodes, *CURVE} if curve else {nodes}
    with Console(stderr=True).status("building a cluster") as status:
        try:
            return cycles.measure(default_profile(), tuple(sizes), nodes, status.update)
        except cycles.UnplacedError as error:
            raise CliError(str(error), "ask for more --nodes") from error


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
