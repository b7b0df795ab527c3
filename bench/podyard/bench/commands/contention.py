"""`podyard bench contention`: several schedulers fill a cluster."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from podyard.bench.commands import measuring
from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.bench.contention import ContentionResult
    from podyard.bench.mixed import Load

MOST_SCHEDULERS: Final = 16


def contention(
    *,
    nodes: int = 1000,
    schedulers: int = 3,
    offered: float = 1.02,
    apart: float = 0.2,
    kills: Annotated[bool, Parameter(negative="--no-kills")] = True,
    compare: Annotated[bool, Parameter(negative="--no-compare")] = True,
    seed: int = 1,
    data: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """Several schedulers fill a cluster until nothing fits any more: how many of their decisions conflict,
    and what is left.

    Nodes of 8 to 32 CPUs; pods of 100m to 4 CPUs, all there from the beginning. At the end every unbound pod
    is judged against every node. A scheduler and the leading binder are killed midway; the binder's standby
    takes over when the lease has run out (10 s).

    ```
    podyard bench contention
    podyard bench contention --nodes 200 --schedulers 5 --no-kills --no-compare
    podyard bench contention -o json | jq '.run.conflict_rate'
    ```

    :param nodes: Nodes, created before the clock starts.
    :param schedulers: Schedulers that pull from one queue.
    :param offered: CPU that all pods request together, as a share of the nodes'.
    :param apart: Share of pods with required anti-affinity to their own app's, in groups of 5 to 50.
    :param kills: Kill a scheduler (it is started again) and the leading binder (it is not).
    :param compare: Play the same pods with one scheduler too, without kills.
    :param seed: Another number makes other nodes and pods.
    :param data: Directory that keeps the logs and streams of the run with several schedulers; default: a
        temporary one.
    """
    from podyard.bench import mixed
    from podyard.bench.render import contention as shown_contention
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if not 1 <= schedulers <= MOST_SCHEDULERS:
        raise InputError(f"--schedulers {schedulers}: must be from 1 to {MOST_SCHEDULERS}")
    if nodes < 1 or not 0 < offered <= 2 or not 0 <= apart <= 1:
        raise InputError("--nodes must be at least 1, --offered above 0 and at most 2, --apart from 0 to 1")
    load = mixed.load(nodes, offered=offered, apart=apart, seed=seed)
    found = _measured(load, schedulers, kills, data)
    alone = _measured(load, 1, False, "") if compare else None
    if output == "json":
        print(plain.dump({"run": found, "alone": alone}, "json"), end="")
    else:
        console.console().print(shown_contention.report(found, alone))
    return 0


def _measured(load: "Load", schedulers: int, kills: bool, data: str) -> "ContentionResult":
    return measuring.run(_one, load, schedulers, kills, data)


async def _one(load: "Load", schedulers: int, kills: bool, data: str) -> "ContentionResult":
    from podyard.bench.contention import Contention, services
    from podyard.bench.render import contention as shown_contention
    from podyard.bench.render import progress
    from podyard.bus import BusSettings, connect
    from podyard.cli.lab.lab import LabOptions, running_lab
    from podyard.plugins.defaults import default_profile

    options = LabOptions(services=services(schedulers, kills=kills), data_dir=data)
    with progress.bar("1 scheduler" if schedulers == 1 else f"{schedulers} schedulers") as bar:
        async with running_lab(options) as lab:
            await lab.until_ready(measuring.READY_WITHIN_S)
            async with connect(BusSettings(servers=(lab.url,), name="podyard-bench", service="cli")) as bus:
                tell = partial(shown_contention.show, bar)
                return await Contention(lab, bus, default_profile(), load, kills=kills, tell=tell).run()
