"""`podyard bench scheduler-perf`: kube-scheduler's own benchmark files, run as they are."""

import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from podyard.bench.commands import measuring
from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.bench.scheduler_perf.config import Case, Step, Workload
    from podyard.bench.scheduler_perf.result import Result
    from podyard.bench.scheduler_perf.stacks import There

STARTED_WITH = ("headline", "1", False, 0.01, "")
"""Options of a stack that is started, as they are unless somebody says them."""


def scheduler_perf(
    file: str,
    /,
    *,
    case: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    list_cases: Annotated[bool, Parameter(name="--list", negative=())] = False,
    services: Literal["headline", "api", "all"] = "headline",
    schedulers: str = "1",
    sync_always: Annotated[bool, Parameter(negative=())] = False,
    equal_churn: float = 0.0,
    pace: float = 0.0,
    tracing: float = 0.01,
    check: Annotated[bool, Parameter(negative="--no-check")] = True,
    save: Annotated[str, Parameter(show_default=False)] = "",
    data: Annotated[str, Parameter(show_default=False)] = "",
    plot: Annotated[str, Parameter(show_default=False)] = "",
    running: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """kube-scheduler's own benchmarks: the files of test/integration/scheduler_perf, as they are.

    The services and a NATS server are started for each case. The benchmark itself writes the objects,
    admitted, as the reference's has no API server that is measured apart.

    ```
    podyard bench scheduler-perf misc/performance-config.yaml --list
    podyard bench scheduler-perf misc/performance-config.yaml --case SchedulingBasic/500Nodes
    podyard bench scheduler-perf affinity/performance-config.yaml --case CASE/WORKLOAD --sync-always -o json
    ```

    :param file: The file with the cases; those that it names are found relative to it.
    :param case: NAME/WORKLOAD; may be repeated.
    :param list_cases: Show what there is, and what cannot be run.
    :param services: `headline`: queue, scheduler and binder. `api`: the api too, by which the benchmark then
        writes. `all`: the others too, whose virtual nodes run the pods.
    :param schedulers: How many pull from the queue. Several numbers with commas, such as 1,2,4, run each case
        with each, and show them beside each other.
    :param sync_always: The NATS server calls fsync before it acknowledges, as etcd does.
    :param equal_churn: Pods a second of another run: churn goes on as often for each pod as it did there. 0:
        by the clock.
    :param pace: Pods that are measured are created at so many a second: how long attempts take where the
        scheduler is not full. 0: as fast as they are stored.
    :param tracing: Share of the traces that services send to a collector, which keeps none; 0: no tracing.
    :param check: Judge what was left, every waiting pod against every node, and every binding that is stored.
    :param save: Directory that gets a file with the result of each case.
    :param data: Directory that keeps the last case's logs and streams; default: a temporary one.
    :param running: Name of a lab that runs here and holds no nodes and no pods: it is used as it is, by its
        api if it has one, and keeps the objects. What a stack is started with is not for it: --services,
        --schedulers, --sync-always, --tracing, --data.
    :param plot: Draw pods a second by the number of schedulers into this file, .svg or .png.
    """
    from msgspec.structs import replace

    from podyard.bench import pictures
    from podyard.bench.render import progress
    from podyard.bench.render import scheduler_perf as shown
    from podyard.bench.scheduler_perf import config
    from podyard.bench.scheduler_perf.running import Run
    from podyard.bench.scheduler_perf.stacks import Options
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    cases = config.read(Path(file))
    if list_cases:
        why_not = _why_not(cases, Path(file).parent, services)
        if output == "json":
            names = [f"{one.name}/{workload.name}" for one in cases for workload in one.workloads]
            print(plain.dump([{"case": name, "refused": why_not.get(name, "")} for name in names], "json"), end="")
        else:
            console.console().print(shown.listed(cases, why_not))
        return 0
    if not case:
        raise InputError("which case? --case NAME/WORKLOAD", "--list shows what there is")
    if equal_churn < 0:
        raise InputError("--equal-churn must be above 0: the pods a second of the run that is to be equalled")
    if pace < 0:
        raise InputError("--pace must be above 0: the pods that are to be created in a second")
    pictures.check(plot)
    numbers = _numbers(schedulers)
    if plot and len(numbers) < 2:
        raise InputError("--plot draws a curve over several numbers of schedulers", "e.g. --schedulers 1,2,4")
    if running and (len(case) > 1 or (services, schedulers, sync_always, tracing, data) != STARTED_WITH):
        raise InputError(
            f"--running {running} runs one case, and goes without --services, --schedulers, --sync-always, --tracing "
            "and --data: the lab is as it is"
        )
    there = _running(running) if running else None
    if there is not None:
        services = "api" if there.by_api else "headline"
    if not 0 <= tracing <= 1:
        raise InputError(f"--tracing {tracing:g}: must be from 0 to 1", "1 is every trace, 0.01 one of a hundred")
    chosen = [config.chosen(cases, name) for name in case]
    plans = [_plan(one, workload, Path(file).parent, services) for one, workload in chosen]
    if save:
        _made(Path(save))
    results: list[Result] = []
    options = Options(
        stack=services,
        synchronous=sync_always,
        equal_churn=equal_churn,
        pace=pace,
        tracing=tracing,
        check=check,
        data=data,
    )
    every = [(one, workload, steps) for (one, workload), steps in zip(chosen, plans, strict=True)]
    for (one, workload, steps), number in product(every, numbers):
        with progress.bar(f"{one.name}/{workload.name}{f', {number} schedulers' if number > 1 else ''}") as bar:
            run = Run(
                Path(file).parent, one, workload, steps, replace(options, schedulers=number), bar.show, running=there
            )
            found = measuring.run(run.measured)
        results += found
        for result in found:
            if save:
                _keep(Path(save), result)
            if output == "text":
                console.console().print(shown.report(result))
                console.console().print()
    if len(numbers) > 1 and output == "text":
        console.console().print(shown.by_schedulers(results))
    if plot:
        with pictures.drawing(Path(plot)):
            from podyard.bench.render import scheduler_perf_curve

            scheduler_perf_curve.draw(results, Path(plot))
        print(f"{plot}: {len(results)} results", file=sys.stderr)
    if output == "json":
        print(plain.dump(results[0] if len(results) == 1 else results, "json"), end="")
    return 1 if any(result.wrong for result in results) else 0


def compare_results(
    *files: str,
    plot: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """Results that `scheduler-perf` kept, beside each other.

    ```
    podyard bench compare-results results/*.json
    podyard bench compare-results before.json after.json --plot throughput.svg
    ```

    :param files: What --save or -o json wrote.
    :param plot: Draw the pods that were bound in each second into this file, .svg or .png.
    """
    from podyard.bench import pictures
    from podyard.bench.render import scheduler_perf as shown
    from podyard.bench.scheduler_perf import kept
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    pictures.check(plot)
    if not files:
        raise InputError("which results? name files that --save wrote")
    results = [(Path(file).stem, result) for file in files for result in kept.read(Path(file))]
    if plot:
        with pictures.drawing(Path(plot)):
            from podyard.bench.render import scheduler_perf_picture

            scheduler_perf_picture.draw(results, Path(plot))
        print(f"{plot}: {len(results)} results", file=sys.stderr)
    elif output == "json":
        print(plain.dump([result for _, result in results], "json"), end="")
    else:
        console.console().print(shown.comparison(results))
    return 0


def _why_not(cases: "tuple[Case, ...]", directory: Path, services: str) -> dict[str, str]:
    from podyard.cli.errors import InputError

    found: dict[str, str] = {}
    for one in cases:
        for workload in one.workloads:
            try:
                _plan(one, workload, directory, services)
            except InputError as error:
                name = f"{one.name}/{workload.name}"
                found[name] = error.message.removeprefix(f"{name}: ")
    return found


def _plan(one: "Case", workload: "Workload", directory: Path, services: str) -> "list[Step]":
    """Its steps, each of which can be done.

    :raises InputError: it cannot be run; says why
    """
    from podyard.bench.scheduler_perf import planning, rehearsing
    from podyard.bench.scheduler_perf.documents import Files
    from podyard.cli.errors import InputError

    steps = planning.plan(one, workload)
    try:
        rehearsing.rehearse(one, steps, Files(directory), by_api=services != "headline")
    except InputError as error:
        raise InputError(f"{one.name}/{workload.name}: {error.message}", error.advice) from error
    return steps


def _running(name: str) -> "There":
    """The lab that runs under a name.

    :raises CliError: there is none, or a service of it is down
    """
    import os

    from podyard.bench.scheduler_perf import stacks
    from podyard.cli import session
    from podyard.cli.errors import InputError

    lab = session.lab(name, os.environ)
    if lab is None:
        raise InputError(f"--running {name}: no lab of this name runs here", "podyard labs lists them")
    return stacks.running(lab, session.settings(name, os.environ))


def _numbers(text: str) -> list[int]:
    """Of schedulers.

    :raises InputError: they are no numbers that make sense
    """
    from podyard.cli.errors import InputError
    from podyard.cli.lab.plan import MOST

    words = [word.strip() for word in text.split(",")]
    numbers = [int(word) for word in words if word.isdecimal() and 1 <= int(word) <= MOST]
    if len(numbers) != len(words) or len(set(numbers)) != len(numbers):
        raise InputError(f"--schedulers {text}: numbers from 1 to {MOST}, each once", "for example 1,2,4,8,16")
    return numbers


def _made(directory: Path) -> None:
    from podyard.cli.errors import InputError

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--save {directory}: {error.strerror or error}") from error


def _keep(directory: Path, result: "Result") -> None:
    from podyard.bench.scheduler_perf import kept
    from podyard.cli.render import plain

    kept.write(directory, result, plain.dump(result, "json"))
