"""What a cycle costs, by kind of the pods of `bench cycle`: Python calls in a first cycle and in a seen one,
and rows that plugins are asked about in a seen one.

A cycle is seen if an equal pod was scheduled before it and assumed, and a first one if its pod shares nothing
with those before it. Calls and rows of seen cycles are counted in cycles of the same pods; not at once, since
counting rows takes calls.
"""

import sys
from collections.abc import Iterable
from itertools import islice
from types import FrameType
from typing import Any, Self

from podyard.bench import cluster
from podyard.bench.cycles import placed_on
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.plugins.defaults import default_profile
from tests.counts import rows

NODES = 500
WARM = 10
"""Pods of a kind before the first that counts."""
COUNTED = 60
"""Pods of a kind that count, for calls and again for rows: twenty turns of the three zones."""
COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Calls in Python 3.11, none from 3.12 on: never counted."""


def count() -> dict[str, float]:
    """Means over the counted cycles, by kind."""
    profile, table = default_profile(), cluster.table(NODES)
    cycle = Cycle(profile, Snapshot(table))
    seen = {name: found for kind in cluster.KINDS for name, found in _seen(profile, cycle, table, kind).items()}
    return seen | {f"first_calls.{kind}": _first(profile, kind) for kind in cluster.KINDS}


def _first(profile: Profile, kind: str) -> float:
    table = cluster.table(NODES)
    cycle = Cycle(profile, Snapshot(table))
    pods = cluster.different(kind, WARM + COUNTED)
    for pod in islice(pods, WARM):
        _assume(table, pod, cycle.run(pod), kind)
    return _calls(cycle, table, kind, pods) / COUNTED


def _seen(profile: Profile, cycle: Cycle, table: NodeTable, kind: str) -> dict[str, float]:
    pods = cluster.alike(kind, WARM + 2 * COUNTED)
    for pod in islice(pods, WARM):
        _assume(table, pod, cycle.run(pod), kind)
    calls = _calls(cycle, table, kind, islice(pods, COUNTED))
    asked: list[int] = []
    with rows.counted(profile, asked.append):
        for pod in pods:
            _assume(table, pod, cycle.run(pod), kind)
    return {f"calls.{kind}": calls / COUNTED, f"rows_again.{kind}": sum(asked) / COUNTED}


def _calls(cycle: Cycle, table: NodeTable, kind: str, pods: Iterable[PodView]) -> int:
    """Of all cycles of these pods, which are assumed one after the other."""
    calls = 0
    for pod in pods:
        with Calls() as made:
            result = cycle.run(pod)
        calls += made.count
        _assume(table, pod, result, kind)
    return calls


def _assume(table: NodeTable, pod: PodView, result: CycleResult, kind: str) -> None:
    if not result.node:
        raise RuntimeError(f"a pod of kind {kind} found no node of {NODES}: {result.message}; more NODES are needed")
    table.place(placed_on(pod, result.node))


class Calls:
    """Counts calls of Python functions while the block runs; those of functions written in C are not
    counted."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name not in COMPREHENSIONS and frame.f_code is not _LEAVING:
            self.count += 1


_LEAVING = Calls.__exit__.__code__
"""The call that ends the counting is not one of what is counted."""
