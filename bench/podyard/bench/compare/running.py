"""All runs of a comparison, one after the other: row by row, the sides in turn. What has a result file is not
run again."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from podyard.bench.compare import podyard_run, reference_run, run_files, workloads
from podyard.bench.compare.elsewhere import Besides, Elsewhere
from podyard.bench.compare.figures import Run
from podyard.bench.compare.outcome import Outcome, RunError
from podyard.bench.compare.reference_run import Programs
from podyard.bench.compare.rows import Row
from podyard.bench.compare.sides import PACED, REFERENCE, Side
from podyard.bench.machine import Commit, Machine
from podyard.objects.times import rfc3339

WORKLOADS: Final = "workloads"
"""Folder among the results: the files that both sides read."""


class Step(NamedTuple):
    """One run, made or to be made."""

    row: Row
    pair: int
    side: Side

    @property
    def key(self) -> str:
        """Tells it from others, as `basic/1-podyard`."""
        return key(self.row, self.pair, self.side)


class Place(NamedTuple):
    """Where and with what it is run."""

    results: Path
    released: Path
    """Folder of the reference's workloads."""
    programs: Programs
    machine: Machine
    commit: Commit


class Failure(NamedTuple):
    """A run that was not measured."""

    step: Step
    reason: str


def key(row: Row, pair: int, side: Side) -> str:
    """Of a step. Pure."""
    return f"{row.name}/{pair}-{side.name}"


def steps(rows: Sequence[Row], pairs: int, sides: Sequence[Side]) -> list[Step]:
    """All runs in their order: A B A B A B, row by row. Pure."""
    return [Step(row, pair, side) for row in rows for pair in range(1, pairs + 1) for side in sides]


def found(results: Path, wanted: Sequence[Step]) -> dict[str, Run]:
    """Runs that have their result file.

    :raises CliError: one is damaged
    """
    there: dict[str, Run] = {}
    for step in wanted:
        run = run_files.read(run_files.place(results, step.row, step.side.name, step.pair), step.row)
        if run is not None:
            there[step.key] = run
    return there


def play(
    place: Place, wanted: Sequence[Step], there: dict[str, Run], before: Callable[[Step, int], None]
) -> Iterator[Run | Failure]:
    """Make the runs that are missing; each is kept as soon as it is made.

    :param there: runs that are there; those that are made are added
    :param before: is told which run comes next, and the how manieth of all it is
    """
    for number, step in enumerate(wanted, start=1):
        if step.key in there:
            continue
        before(step, number)
        try:
            run = _one(place, step, there)
        except (RunError, workloads.WorkloadError) as error:
            yield Failure(step, str(error))
            continue
        run_files.write(run_files.place(place.results, step.row, step.side.name, step.pair), run)
        there[step.key] = run
        yield run


def _one(place: Place, step: Step, there: dict[str, Run]) -> Run:
    row, pair, side = step
    prepared = workloads.prepare(place.released, place.results / WORKLOADS, row)
    log = run_files.place(place.results, row, side.name, pair).with_suffix(".log")
    started, load, besides = time.time(), os.getloadavg()[0], Besides()
    if side == REFERENCE:
        outcome = reference_run.run(place.programs, place.released, prepared, row, log)
    else:
        reference = there.get(key(row, pair, REFERENCE))
        rate = (reference.figures.pods_per_second or reference.figures.whole_rate) if reference else None
        if (row.churns or side == PACED) and rate is None:
            why = "is created at the rate of the reference's" if side == PACED else "changes objects by the clock"
            raise RunError(
                f"{row.full_name} {why}: Podyard's run needs the rate of the reference's, and pair {pair} has none"
            )
        outcome = podyard_run.run(prepared.configuration, row, side, log, reference_rate=rate)
    return _run(place, step, outcome, rfc3339(started), load, besides.elsewhere())


def _run(place: Place, step: Step, outcome: Outcome, started: str, load: float, elsewhere: Elsewhere) -> Run:
    known = {"nats-server": place.machine.nats_server, "python": place.machine.python}
    return Run(
        row=step.row.name,
        side=step.side.name,
        pair=step.pair,
        workload=step.row.full_name,
        parameters=dict(step.row.more),
        started=started,
        load=load,
        others_cores=elsewhere.others,
        stolen_cores=elsewhere.stolen,
        machine=place.machine,
        versions=outcome.versions if step.side == REFERENCE else known | outcome.versions,
        commit=place.commit,
        figures=outcome.figures,
        notes=outcome.notes,
        said=outcome.said,
    )
