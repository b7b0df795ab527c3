"""`podyard bench`: measure throughput and costs on this machine."""

from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from podyard.bench.commands import measuring
from podyard.bench.commands.compare import compare
from podyard.bench.commands.contention import contention
from podyard.bench.commands.growth import growth
from podyard.bench.commands.history import history
from podyard.bench.commands.scheduler_perf import compare_results, scheduler_perf
from podyard.bench.commands.trace import trace
from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from podyard.bench.agent import AgentResult
    from podyard.bench.basic import BasicResult
    from podyard.bench.cycles import CycleResult
    from podyard.bench.events import CoreResult
    from podyard.bench.kube import KubeResult
    from podyard.bench.storm import StormResult

CURVE: Final = (500, 5000, 50_000)
"""Nodes of the clusters for which `bench cycle` shows its costs."""
FEWEST_NODES: Final = 300
FEWEST_PARKED: Final = 2000
SERVICES: Final = "api,queue,scheduler,binder"
STORM_SERVICES: Final = "api,queue"
"""The benchmark itself plays the scheduler."""
BESIDE: Final = "api,kube_api,queue,scheduler,binder"
KUBE_SERVICES: Final = "kube_api"
AGENT_SERVICES: Final = "api"
"""The benchmark itself starts the agent, once there is something to play."""
FEWEST_SECONDS: Final = 10.0

bench = App(
    name="bench",
    help="Measure on this machine: throughput of the services, costs of cycles, events, an agent, the Kubernetes API; "
    "conflicts, growth; kube-scheduler's own benchmarks; a recorded workload.",
)
bench.command(compare)
bench.command(contention)
bench.command(growth)
bench.command(history)
bench.command(scheduler_perf)
bench.command(compare_results)
bench.command(trace)


@bench.command
def basic(
    *,
    nodes: int = 5000,
    pods: int = 10_000,
    runs: int = 1,
    kube_api: Annotated[bool, Parameter(negative=())] = False,
    data: str = "",
    output: JsonOutputOption = "text",
) -> int:
    """Plain pods on plain nodes: from the first create to the last durable commit.

    ```
    podyard bench basic
    podyard bench basic --nodes 500 --pods 2000 --runs 3
    podyard bench basic --kube-api
    podyard bench basic -o json
    ```

    :param nodes: Nodes, created before the clock starts.
    :param pods: Pods to create and bind.
    :param runs: Runs, each with services and a server of its own; the figures are the median run's.
    :param kube_api: The Kubernetes API runs beside them, and follows.
    :param data: Directory that keeps the last run's logs and streams; default: a temporary one.
    """
    from podyard.bench.render.basic import report
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if nodes < 1 or pods < 1 or runs < 1:
        raise InputError("--nodes, --pods and --runs must be at least 1")
    if pods > nodes * 110:
        raise InputError(f"{nodes} nodes take {nodes * 110} pods (110 each), not {pods}", "ask for more --nodes")
    results = _by_rate([_measure(nodes, pods, data, BESIDE if kube_api else SERVICES) for _ in range(runs)])
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
    """One scheduling cycle, by kind of pod: when nothing is shared with an earlier pod, and when its
    signature was seen.

    Runs in this process, with the default profile, on a cluster in memory: three zones, two placed pods a
    node.

    ```
    podyard bench cycle
    podyard bench cycle --nodes 1000 --no-curve
    podyard bench cycle -o json
    ```

    :param nodes: Nodes of the cluster whose costs come first.
    :param curve: Measure clusters of 500, 5,000 and 50,000 nodes too.
    """
    from podyard.bench.render import cycle as shown_cycle
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if nodes < FEWEST_NODES:
        raise InputError(f"--nodes must be at least {FEWEST_NODES}: pods that keep apart need a node each")
    result = _cycles(nodes, curve=curve)
    if output == "json":
        print(plain.dump(result, "json"), end="")
    else:
        console.console().print(shown_cycle.report(result))
    return 0


@bench.command
def deschedule(
    *,
    nodes: int = 5000,
    pods: int = 50_000,
    full: Annotated[bool, Parameter(negative=())] = False,
    output: JsonOutputOption = "text",
) -> int:
    """One cycle of the descheduler with all plugins, nodeFit on: each plugin's share.

    Runs in this process, on a cluster in memory that has drifted. Evictions are answered at once, as in a dry
    run.

    ```
    podyard bench deschedule
    podyard bench deschedule --nodes 500 --pods 5000 --full
    podyard bench deschedule -o json
    ```

    :param nodes: Nodes of three zones and a hundred racks.
    :param pods: Placed pods, 20 of each workload.
    :param full: Hardly a node has room for one more of its pods.
    """
    from rich.console import Console

    from podyard.bench import deschedule as measured
    from podyard.bench.render import deschedule as shown_deschedule
    from podyard.cli.errors import CliError, InputError
    from podyard.cli.render import console, plain

    if nodes < measured.FEWEST_NODES or pods < 1:
        raise InputError(f"--nodes must be at least {measured.FEWEST_NODES} and --pods at least 1")
    with Console(stderr=True).status("building a cluster") as status:
        try:
            result = measured.measure(nodes, pods, status.update, full=full)
        except measured.IncompleteError as error:
            raise CliError(str(error), "the figures would be of something else: please report it") from error
    if output == "json":
        print(plain.dump(result, "json"), end="")
    else:
        console.console().print(shown_deschedule.report(result))
    return 0


@bench.command
def agent(*, nodes: int = 5000, pods: int = 50_000, seconds: float = 30.0, output: JsonOutputOption = "text") -> int:
    """One node agent that plays many nodes: its memory and CPU, idle and with nodes under pressure.

    Stores the cluster on an embedded NATS server, then starts the agent. No other service decides anything.

    ```
    podyard bench agent
    podyard bench agent --nodes 500 --pods 5000 --seconds 15
    podyard bench agent -o json
    ```

    :param nodes: Nodes that it plays; 100 of them run low on memory in the end.
    :param pods: Pods, as many on every node.
    :param seconds: How long it is watched, idle and again under pressure; an interval of an eviction manager
        (10 s) at the least.
    """
    from rich.console import Console

    from podyard.bench.render import agent as shown_agent
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if nodes < 1 or pods < nodes or seconds < FEWEST_SECONDS:
        raise InputError(
            f"--nodes must be at least 1, --pods one for each node, and --seconds at least {FEWEST_SECONDS:g}"
        )
    with Console(stderr=True).status("starting a server") as status:
        result = measuring.run(_one_agent, nodes, pods, seconds, status.update)
    if output == "json":
        print(plain.dump(result, "json"), end="")
    else:
        console.console().print(shown_agent.report(result))
    return 0


@bench.command
def kube(
    *,
    pods: int = 5000,
    many: int = 50_000,
    watchers: int = 100,
    changes: int = 500,
    seconds: float = 20.0,
    output: JsonOutputOption = "text",
) -> int:
    """What the Kubernetes API costs: lists over HTTPS, watchers of all pods while they change, pages of a
    large list.

    Stores the cluster on an embedded NATS server; of the services `kube_api` alone runs.

    ```
    podyard bench kube
    podyard bench kube --pods 500 --many 2000 --watchers 10 --seconds 10
    podyard bench kube -o json
    ```

    :param pods: Pods that are listed whole and watched.
    :param many: Pods that are listed page by page, those included.
    :param watchers: Watches of all pods, each on a connection of its own.
    :param changes: Changes of pods a second.
    :param seconds: How long pods change.
    """
    from rich.console import Console

    from podyard.bench.render import kube as shown_kube
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if pods < 1 or many < pods or watchers < 1 or changes < 1 or seconds <= 0:
        raise InputError("--pods, --watchers, --changes and --seconds must be above 0, and --many at least --pods")
    with Console(stderr=True).status("starting a server") as status:
        result = measuring.run(_one_kube, (pods, many), (watchers, changes, seconds), status.update)
    if output == "json":
        print(plain.dump(result, "json"), end="")
    else:
        console.console().print(shown_kube.report(result))
    return 0


@bench.command
def events(*, pods: int = 10_000, updates: int = 1000, output: JsonOutputOption = "text") -> int:
    """What a cluster event costs a queue full of parked pods, by kind of event, and how long pops take in a
    storm of node updates.

    The costs are those of the queue's core, in this process; the storm goes through services and an embedded
    NATS server.

    ```
    podyard bench events
    podyard bench events --pods 2000 --updates 200
    podyard bench events -o json
    ```

    :param pods: Parked pods, of many shapes.
    :param updates: Node updates a second during the storm.
    """
    from podyard.bench.render import events as shown_events
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if pods < FEWEST_PARKED or updates < 1:
        raise InputError(f"--pods must be at least {FEWEST_PARKED} and --updates at least 1")
    core, storm = _events(pods, updates)
    if output == "json":
        print(plain.dump(_event_figures(core, storm), "json"), end="")
    else:
        console.console().print(shown_events.report(core, storm))
    return 0


@bench.command(name="all")
def everything(
    *,
    runs: int = 3,
    history: Annotated[str, Parameter(show_default=False)] = "",
    counts: Annotated[str, Parameter(show_default=False, allow_leading_hyphen=True)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """All benchmarks, one after the other, as `make bench` runs them; what they find is added to the history.

    ```
    podyard bench all
    podyard bench all --runs 5 --history /tmp/performance.json
    python -m tests.counts --json | podyard bench all --counts -
    ```

    :param runs: Runs of `bench basic`, whose medians are kept.
    :param history: File that the entry is added to; default: docs/performance.json of the checkout that this
        program is run from.
    :param counts: File of counts to keep with the entry, or `-` for standard input; default: none are kept.
    """
    from podyard.bench.keeping import Keeping
    from podyard.bench.render import cycle as shown_cycle
    from podyard.bench.render import events as shown_events
    from podyard.bench.render.basic import report
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if runs < 1:
        raise InputError("--runs must be at least 1")
    keeping = Keeping(history, counts)
    throughput = _by_rate([_measure(5000, 10_000, "", SERVICES) for _ in range(runs)])
    cycles = _cycles(5000, curve=True)
    core, storm = _events(10_000, 1000)
    median = throughput[len(throughput) // 2]
    if output == "json":
        print(plain.dump({"basic": median, "cycle": cycles, "events": _event_figures(core, storm)}, "json"), end="")
    else:
        out = console.console()
        out.print(report(median, [result.pods_per_second_average for result in throughput]))
        out.print()
        out.print(shown_cycle.report(cycles))
        out.print()
        out.print(shown_events.report(core, storm))
    keeping.keep(throughput, cycles, core, storm)
    return 0


def _by_rate(results: "list[BasicResult]") -> "list[BasicResult]":
    """Slowest first."""
    return sorted(results, key=lambda result: result.pods_per_second_average)


def _cycles(nodes: int, *, curve: bool) -> "CycleResult":
    from rich.console import Console

    from podyard.bench import cycles
    from podyard.cli.errors import CliError
    from podyard.plugins.defaults import default_profile

    sizes = {nodes, *CURVE} if curve else {nodes}
    with Console(stderr=True).status("building a cluster") as status:
        try:
            return cycles.measure(default_profile(), tuple(sizes), nodes, status.update)
        except cycles.UnplacedError as error:
            raise CliError(str(error), "ask for more --nodes") from error


def _events(pods: int, updates: int) -> "tuple[CoreResult, StormResult]":
    from rich.console import Console

    from podyard.bench import events as measured
    from podyard.cli.errors import CliError
    from podyard.plugins.defaults import default_profile

    with Console(stderr=True).status("building a queue") as status:
        try:
            core = measured.measure(default_profile(), pods, status.update)
        except measured.UnexpectedMovesError as error:
            raise CliError(str(error), "the figures would be of something else: please report it") from error
        status.update("a storm of node updates, through services")
        return core, measuring.run(_one_storm, pods, updates)


def _event_figures(core: "CoreResult", storm: "StormResult") -> dict[str, Any]:
    """The figures with goals first."""
    return {
        "none_us": core.none_us,
        "one_us": core.one_us,
        "storm_pop_p99_ms": storm.storm_pop_p99_ms,
        "all_ms": core.all_ms,
        "core": core,
        "storm": storm,
    }


async def _one_agent(nodes: int, pods: int, seconds: float, progress: "Callable[[str], None]") -> "AgentResult":
    from podyard.bench import agent as measured
    from podyard.bus import BusSettings, connect
    from podyard.cli.lab import plan
    from podyard.cli.lab.lab import LabOptions, running_lab

    async with running_lab(LabOptions(services=plan.parse(AGENT_SERVICES))) as lab:
        await lab.until_ready(measuring.READY_WITHIN_S)
        async with connect(BusSettings(servers=(lab.url,), name="podyard-bench", service="cli")) as bus:
            return await measured.measure(bus, lab.url, nodes, pods, seconds, progress)


async def _one_kube(
    sizes: tuple[int, int], load: tuple[int, int, float], progress: "Callable[[str], None]"
) -> "KubeResult":
    from pathlib import Path

    from podyard.bench import kube as measured
    from podyard.bus import BusSettings, connect
    from podyard.cli.lab import plan
    from podyard.cli.lab.lab import LabOptions, running_lab

    async with running_lab(LabOptions(services=plan.parse(KUBE_SERVICES))) as lab:
        await lab.until_ready(measuring.READY_WITHIN_S)
        async with connect(BusSettings(servers=(lab.url,), name="podyard-bench", service="cli")) as bus:
            pid = lab.child(KUBE_SERVICES).pid
            return await measured.measure(bus, Path(lab.kube.kubeconfig), pid, sizes, load, progress)


async def _one_storm(pods: int, updates: int) -> "StormResult":
    from podyard.bench import meters
    from podyard.bench.storm import Storm
    from podyard.bus import BusSettings, connect
    from podyard.cli.lab import plan
    from podyard.cli.lab.lab import LabOptions, running_lab
    from podyard.plugins.defaults import default_profile

    async with running_lab(LabOptions(services=plan.parse(STORM_SERVICES))) as lab:
        await lab.until_ready(measuring.READY_WITHIN_S)
        async with connect(BusSettings(servers=(lab.url,), name="podyard-bench", service="cli")) as bus:
            return await Storm(bus, default_profile(), meters.processes(lab)).run(pods, updates)


def _measure(nodes: int, pods: int, data: str, services: str) -> "BasicResult":
    return measuring.run(_one, nodes, pods, data, services)


async def _one(nodes: int, pods: int, data: str, services: str) -> "BasicResult":
    from podyard.bench import basic as measured
    from podyard.bench import meters
    from podyard.bus import BusSettings, connect
    from podyard.cli.lab import plan
    from podyard.cli.lab.lab import LabOptions, running_lab
    from podyard.runtime import ports

    monitor = ports.free_port()
    options = LabOptions(
        services=plan.parse(services),
        data_dir=data,
        server_settings={"http": f"127.0.0.1:{monitor}"},
    )
    async with running_lab(options) as lab:
        await lab.until_ready(measuring.READY_WITHIN_S)
        async with connect(BusSettings(servers=(lab.url,), name="podyard-bench", service="cli")) as bus:
            return await measured.run(bus, meters.processes(lab), monitor, nodes, pods)
