"""The format of the openb data set: two CSV files, one of pods and one of nodes. Nothing that is not known is
accepted, and every fault is told with its place.

Source of the columns: alibaba/clusterdata, cluster-trace-gpu-v2023, README.md.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final, TypeVar

from podyard.bench.replay.rows import WHOLE_GPU, NodeRow, PodRow, Recorded
from podyard.bench.scheduler_perf.config import text_of
from podyard.cli.errors import InputError, listed
from podyard.objects import names

T = TypeVar("T")

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
BETWEEN_MODELS: Final = "|"

LARGEST_BYTES: Final = 64 * 1024**2
"""Of a file; that of the data set's pods has 0.6 MB."""
MOST_NODES: Final = 50_000
MOST_PODS: Final = 500_000
LONGEST_FIELD: Final = 253
MOST_CPU_MILLI: Final = 10_000_000
MOST_MEMORY_MIB: Final = 1 << 30
MOST_GPUS: Final = 64
"""Of a node."""
MOST_SECONDS: Final = 10 * 366 * 24 * 3600
FAULTS_ENOUGH: Final = 100
"""No more are looked for."""
ADVICE: Final = "mend the file; `podyard bench trace --help` says what it must have"


def read(pods: Path, nodes: Path) -> Recorded:
    """A recording.

    :raises InputError: a file cannot be read, or something in it is wrong: what, and where
    """
    found = Recorded(
        nodes_of(str(nodes), text_of(nodes, LARGEST_BYTES)), pods_of(str(pods), text_of(pods, LARGEST_BYTES))
    )
    gpus = max((node.gpus for node in found.nodes), default=0)
    for pod in found.pods:
        if pod.gpus > gpus:
            raise InputError(
                f"{pods}: {pod.name} asks for {pod.gpus} GPUs (num_gpu), and no node of {nodes} has more than {gpus}",
                "are these files of one recording?",
            )
    return found


def nodes_of(source: str, text: str) -> tuple[NodeRow, ...]:
    """The nodes of a file.

    :param source: what errors call it
    :raises InputError: with everything that is wrong with it
    """
    return _rows(source, text, NODE_COLUMNS, MOST_NODES, _node)


def pods_of(source: str, text: str) -> tuple[PodRow, ...]:
    """The pods of a file.

    :param source: what errors call it
    :raises InputError: with everything that is wrong with it
    """
    return _rows(source, text, POD_COLUMNS, MOST_PODS, _pod)


class _Line:
    """The cells of one line, and where to tell what is wrong with them."""

    def __init__(self, source: str, number: int, cells: Mapping[str, str], faults: list[str]) -> None:
        self._place = f"{source}, line {number}"
        self._cells = cells
        self._faults = faults

    def fault(self, column: str, reason: str) -> None:
        self._faults.append(f"{self._place}, column {column}: {self._cells[column]!r} {reason}")

    def text(self, column: str) -> str:
        return self._cells[column]

    def number(self, column: str, most: int, least: int = 0) -> int:
        """A whole number; `least` where there is none."""
        cell = self._cells[column]
        if not (cell.isascii() and cell.isdecimal()):
            self.fault(column, f"is no whole number from {least} to {most}")
            return least
        if not least <= int(cell) <= most:
            self.fault(column, f"is not from {least} to {most}")
            return least
        return int(cell)

    def name(self, column: str) -> str:
        """What an object may be called."""
        cell = self._cells[column]
        if fault := names.subdomain_fault(cell):
            self.fault(column, f"names no object: {fault}")
        return cell

    def label(self, column: str, cell: str) -> str:
        """What a label may have as its value, and not nothing."""
        if fault := names.label_value_fault(cell) or ("" if cell else "it is empty"):
            self.fault(column, f"is no value of a label: {fault}")
        return cell


def _rows(source: str, text: str, columns: Sequence[str], most: int, row_of: Callable[[_Line], T]) -> tuple[T, ...]:
    faults: list[str] = []
    found: list[T] = []
    seen: dict[str, int] = {}
    for number, cells in _lines(source, text, columns, faults):
        if len(found) == most:
            faults.append(f"{source}, line {number}: there are more than {most} rows")
            break
        line = _Line(source, number, cells, faults)
        first = seen.setdefault(cells[columns[0]], number)
        if first != number:
            line.fault(columns[0], f"is the name of line {first} too")
        found.append(row_of(line))
        if len(faults) >= FAULTS_ENOUGH:
            break
    if not faults and not found:
        faults.append(f"{source}: has no row")
    if faults:
        raise InputError(listed(faults), ADVICE)
    return tuple(found)


def _lines(source: str, text: str, columns: Sequence[str], faults: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows behind the header: where each ends, and its cells by column. What is no row is a fault."""
    reader = csv.reader(StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        header = next(reader, list[str]())
        if not _is_header(source, header, columns, faults):
            return
        for cells in reader:
            number = reader.line_num
            if len(cells) != len(header):
                faults.append(f"{source}, line {number}: has {len(cells)} fields, the header has {len(header)} columns")
            elif long := [at for at, cell in enumerate(cells) if len(cell) > LONGEST_FIELD]:
                place, size = header[long[0]], len(cells[long[0]])
                faults.append(
                    f"{source}, line {number}, column {place}: has {size} characters, {LONGEST_FIELD} are allowed"
                )
            else:
                yield number, dict(zip(header, cells, strict=True))
                continue
            if len(faults) >= FAULTS_ENOUGH:
                return
    except csv.Error as error:
        faults.append(f"{source}, line {reader.line_num}: no CSV: {error}")


def _is_header(source: str, header: Sequence[str], columns: Sequence[str], faults: list[str]) -> bool:
    """Whether it has each column once and no other, in any order."""
    place = f"{source}, line 1, column"
    faults += [f"{place} {name}: is missing" for name in columns if name not in header]
    faults += [
        f"{place} {name[:LONGEST_FIELD]!r}: is not known; known are {', '.join(columns)}"
        for name in dict.fromkeys(header)
        if name not in columns
    ]
    faults += [f"{place} {name}: is there twice" for name in columns if header.count(name) > 1]
    return not faults


def _node(line: _Line) -> NodeRow:
    gpus, model = line.number("gpu", MOST_GPUS), line.text("model")
    if gpus:
        line.label("model", model)
    elif model:
        line.fault("model", "is the model of GPUs, and gpu is 0")
    return NodeRow(
        name=line.name("sn"),
        cpu_milli=line.number("cpu_milli", MOST_CPU_MILLI, 1),
        memory_mib=line.number("memory_mib", MOST_MEMORY_MIB, 1),
        gpus=gpus,
        model=model,
    )


def _pod(line: _Line) -> PodRow:
    gpus = line.number("num_gpu", MOST_GPUS)
    created = line.number("creation_time", MOST_SECONDS)
    deleted = line.number("deletion_time", MOST_SECONDS)
    if deleted < created:
        line.fault("deletion_time", f"is before creation_time, {created}")
    if line.text("pod_phase") not in PHASES:
        line.fault("pod_phase", f"is no phase: {', '.join(PHASES)}")
    return PodRow(
        name=line.name("name"),
        cpu_milli=line.number("cpu_milli", MOST_CPU_MILLI),
        memory_mib=line.number("memory_mib", MOST_MEMORY_MIB),
        gpus=gpus,
        gpu_milli=_gpu_milli(line, gpus),
        models=_models(line),
        qos=line.label("qos", line.text("qos")),
        phase=line.text("pod_phase"),
        created=created,
        deleted=deleted,
        scheduled=_scheduled(line, created, deleted),
    )


def _gpu_milli(line: _Line, gpus: int) -> int:
    found = line.number("gpu_milli", WHOLE_GPU)
    if gpus == 0 and found:
        line.fault("gpu_milli", "is a part of a GPU, and num_gpu is 0")
    elif gpus == 1 and not found:
        line.fault("gpu_milli", f"is nothing of the GPU that num_gpu asks for: from 1 to {WHOLE_GPU}")
    elif gpus > 1 and found != WHOLE_GPU:
        line.fault("gpu_milli", f"is a part of each of {gpus} GPUs: several are whole, {WHOLE_GPU}")
    return found


def _models(line: _Line) -> tuple[str, ...]:
    cell = line.text("gpu_spec")
    found = tuple(cell.split(BETWEEN_MODELS)) if cell else ()
    if len(set(found)) < len(found):
        line.fault("gpu_spec", "names a model twice")
    for model in found:
        line.label("gpu_spec", model)
    return found


def _scheduled(line: _Line, created: int, deleted: int) -> int | None:
    if not line.text("scheduled_time"):
        return None
    found = line.number("scheduled_time", MOST_SECONDS)
    if not created <= found <= deleted:
        line.fault("scheduled_time", f"is not between creation_time, {created}, and deletion_time, {deleted}")
    return found
