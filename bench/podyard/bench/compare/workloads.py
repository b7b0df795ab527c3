"""The workloads' files, out of the release's module, where both sides read them.

Both are given the same files. Where a row runs with other parameters than its file has, both get a file of
one workload with those.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import yaml

from podyard.bench.compare.rows import Row

CONFIGURATION: Final = "performance-config.yaml"
PATTERN: Final = "*.yaml"


class WorkloadError(ValueError):
    """The release has no such workload; the text says what it has."""


class Measured(NamedTuple):
    """Pods that count, where the measured part is of several ops."""

    namespaces: frozenset[str]
    """None: of all."""
    labels: Mapping[str, str]

    def has(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of them."""
        there = not self.namespaces or namespace in self.namespaces
        return there and all(labels.get(name) == value for name, value in self.labels.items())


class Prepared(NamedTuple):
    """A row that can be run."""

    configuration: Path
    """File; its templates are found from its folder."""
    measured: Measured | None


def prepare(released: Path, to: Path, row: Row) -> Prepared:
    """The configuration of a row, in a copy of the release's files.

    :param released: the folder of the benchmark in the module
    :param to: folder of the copy; files that are there are written again
    :raises WorkloadError: the release does not have it
    """
    for file in sorted(released.rglob(PATTERN)):
        target = to / file.relative_to(released)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    file = to / row.folder / CONFIGURATION
    if not file.exists():
        raise WorkloadError(f"{released}: there is no {row.folder}/{CONFIGURATION}")
    cases: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    changed, counted = only(cases, row), measured(cases, row)
    if not row.more:
        return Prepared(file, counted)
    written = file.with_name(f"{row.name}.yaml")
    written.write_text(yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")
    return Prepared(written, counted)


def only(cases: Any, row: Row) -> list[dict[str, Any]]:
    """The one case with the one workload, its parameters those of the row. Pure.

    :param cases: of a configuration
    :raises WorkloadError: there is no such case, workload or parameter
    """
    case = _named(cases, row.case, "case")
    workload = _named(case.get("workloads"), row.workload, f"workload of {row.case}")
    params: Mapping[str, Any] = workload.get("params") or {}
    unknown = [name for name in row.more if name not in params]
    if unknown:
        raise WorkloadError(f"{row.full_name} has no parameter {', '.join(unknown)}; it has {', '.join(params)}")
    return [{**case, "workloads": [{**workload, "params": {**params, **row.more}}]}]


def measured(cases: Any, row: Row) -> Measured | None:
    """Which pods count; `None`: those of one op that creates them. Pure.

    :param cases: of a configuration
    :raises WorkloadError: there is no such case
    """
    for op in _named(cases, row.case, "case").get("workloadTemplate") or ():
        if op.get("opcode") == "startCollectingMetrics":
            return Measured(frozenset(op.get("namespaces") or ()), op.get("labelSelector") or {})
    return None


def _named(found: Any, name: str, what: str) -> dict[str, Any]:
    listed = cast("Sequence[Any]", found) if isinstance(found, list) else ()
    mappings = [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]
    named = {str(one.get("name")): one for one in mappings}
    if name not in named:
        raise WorkloadError(f"there is no {what} named {name}; there are {', '.join(named) or 'none'}")
    return named[name]
