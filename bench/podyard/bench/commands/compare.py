"""`podyard bench compare`: kube-scheduler's own benchmark, with kube-scheduler and with Podyard in turn."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podyard.bench.compare.figures import Run
    from podyard.bench.compare.reference_run import Programs
    from podyard.bench.compare.running import Place, Step
    from podyard.bench.compare.summary import Summary
    from podyard.bench.machine import Commit, Machine


def compare(
    *,
    rows: Annotated[str, Parameter(show_default=False)] = "",
    pairs: int = 3,
    sides: str = "reference,podyard",
    results: Annotated[str, Parameter(show_default=False)] = "",
    as_written: Annotated[bool, Parameter(negative=())] = False,
    measured_only: Annotated[bool, Parameter(negative=())] = False,
    write: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """Podyard beside kube-scheduler, on the workloads of kube-scheduler's own benchmark: pods a second, CPU a
    pod, and their ratio.

    Builds that benchmark and etcd once, with Go. Runs are made row by row, the sides in turn, and each is
    kept in a file: what has been interrupted goes on where it was. Three pairs of all rows take about two
    hours, and want the machine to themselves.

    ```
    podyard bench compare
    podyard bench compare --rows basic,spreading --pairs 1
    podyard bench compare --rows small-basic --pairs 1 --results /tmp/small
    podyard bench compare --write docs/scheduler-perf-results.md
    ```

    :param rows: Workloads, by name and with commas; default: the table of 15. Those named `small-...` show in
        a minute whether all works.
    :param pairs: Runs of each side.
    :param sides: What runs, with commas: `reference`, `podyard`; `podyard-synced`, whose NATS server calls
        fsync before it acknowledges; `podyard-api`, whose pods its api creates; `podyard-all`, the same with
        all services, whose virtual nodes run the pods; `podyard-traced`, which keeps every trace instead of
        one of a hundred; `podyard-paced`, whose pods are created at the rate that the reference reached.
    :param results: Directory of the result files; default: one in the cache of this user, for this commit.
    :param as_written: Run the files as they are, though a run then may be too short for its samples to count.
    :param measured_only: Make no runs: show those that are there.
    :param write: Write what was found as a page, .md, with a plot beside it, .svg.
    """
    from podyard.bench.compare import rows as table
    from podyard.bench.compare import running, summary
    from podyard.bench.compare import sides as forms
    from podyard.bench.programs import kept
    from podyard.bench.render import compare as rendered
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if pairs < 1:
        raise InputError("--pairs must be at least 1")
    if write and Path(write).suffix != ".md":
        raise InputError(f"--write {write}: a page is written as .md")
    try:
        wanted_rows = table.chosen(_names(rows))
        wanted_sides = forms.chosen(_names(sides))
    except (table.UnknownRowError, forms.UnknownSideError) as error:
        raise InputError(str(error)) from error
    if as_written:
        wanted_rows = tuple(row._replace(more=table.NOTHING) for row in wanted_rows)
    machine, commit = _checkout()
    place = Path(results).resolve() if results else kept.folder() / f"compare-{commit.hash or 'unknown'}"
    if as_written:
        place /= "as-written"
    wanted = running.steps(wanted_rows, pairs, wanted_sides)
    there = running.found(place, wanted)
    failed = 0
    if not measured_only and len(there) < len(wanted):
        failed = _play(running.Place(place, *_built(), machine, commit), wanted, there)
    runs = [there[step.key] for step in wanted if step.key in there]
    found = summary.by_row(wanted_rows, _by_row(runs))
    if write:
        _write(found, runs, Path(write))
    if output == "json":
        print(plain.dump({"rows": found, "made_on": rendered.made_on(runs), "results": str(place)}, "json"), end="")
    else:
        console.console().print(rendered.report(found, runs))
    return 1 if failed else 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _checkout() -> "tuple[Machine, Commit]":
    from podyard.bench.machine import commit_of, this_machine

    return this_machine(), commit_of(Path(__file__).parent, Path())


def _built() -> "tuple[Path, Programs]":
    """The folder of workloads, and the programs of the reference."""
    from podyard.bench.compare.reference_run import Programs
    from podyard.bench.programs import kubernetes, scheduler_perf
    from podyard.bench.programs.go_programs import NoProgramError
    from podyard.cli.errors import CliError

    try:
        programs = Programs(scheduler_perf.find(), kubernetes.find(kubernetes.ETCD))
        return scheduler_perf.workloads(), programs
    except NoProgramError as error:
        raise CliError(str(error), "the comparison needs kube-scheduler's benchmark and etcd") from error


def _play(place: "Place", wanted: "Sequence[Step]", there: "dict[str, Run]") -> int:
    """Make what is missing; how many runs failed."""
    import signal
    import time

    from rich.console import Console

    from podyard.bench.compare import running
    from podyard.bench.compare.running import Failure

    failed = 0
    began = time.monotonic()
    out = Console(stderr=True, highlight=False)
    out.print(f"results: {place.results}; {len(there)} of {len(wanted)} runs are there", soft_wrap=True, markup=False)
    # what ends this ends what it has started
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with out.status("") as status:

        def before(step: "Step", number: int) -> None:
            minutes = (time.monotonic() - began) / 60
            status.update(
                f"{step.row.name}, pair {step.pair}: {step.side.title} (run {number} of {len(wanted)}, {minutes:.0f} min so far)"
            )

        for made in running.play(place, wanted, there, before):
            if isinstance(made, Failure):
                failed += 1
                out.print(f"{made.step.key}: failed: {made.reason}", soft_wrap=True, markup=False)
            else:
                out.print(_told(made), soft_wrap=True, markup=False)
    return failed


def _told(run: "Run") -> str:
    figures = run.figures
    rate = figures.whole_rate if figures.short else figures.pods_per_second or 0.0
    return (
        f"{run.row}, pair {run.pair}, {run.side}: {rate:,.0f} pods/s, {figures.cpu_us:,.0f} µs a pod, "
        f"{figures.pods:,} pods in {figures.seconds:.1f} s; load {run.load:.1f} before, "
        f"others kept {run.others_cores:.2f} cores busy"
    )


def _by_row(runs: "Sequence[Run]") -> "dict[str, list[Run]]":
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.row, []).append(run)
    return found


def _write(found: "Sequence[Summary]", runs: "Sequence[Run]", page: Path) -> None:
    """The page, and its picture beside it."""
    from podyard.bench import pictures
    from podyard.bench.render import compare_page
    from podyard.cli.errors import CliError, InputError

    if not any(row.against for row in found):
        raise InputError("no row has runs of both sides: there is nothing to write", "make some: podyard bench compare")
    picture = page.with_suffix(".svg")
    with pictures.drawing(picture):
        from podyard.bench.render import compare_picture

        compare_picture.draw(found, picture)
    try:
        page.write_text(compare_page.page(found, runs, Path(picture.name)), encoding="utf-8")
    except OSError as error:
        raise CliError(f"{page}: cannot be written: {error.strerror or error}", "name another file") from error
    print(f"{page} and {picture}: {len(runs)} runs", file=sys.stderr)
