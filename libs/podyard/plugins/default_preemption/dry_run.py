"""What would have to go from a node for the pod to fit: tried out, node by node.

On a node all pods of lower priority are taken away. If the pod fits then, they come back one by one, most
important first, as long as it still fits; who cannot come back is a victim. Only victims on the node itself
are looked at, and affinity to a victim is lost (docs/rules.md, victims-are-on-the-node).

Source: kube-scheduler v1.36.2, plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode),
pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, Self, TypeAlias, cast

import msgspec
import numpy as np

from podyard.cluster.node_table import PlacedPod, Trial
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import NodeJudge
from podyard.framework.interfaces import Rows
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.plugins.default_preemption import choice, importance
from podyard.plugins.default_preemption.budgets import Budgets
from podyard.plugins.default_preemption.choice import Candidate, Costs
from podyard.plugins.default_preemption.room_trial import RoomTrial

NO_VICTIMS: Final = statuses.unresolvable("No preemption victims found for incoming pod")
NOBODY_TO_GO: Final = 'expected at least one victim pod on node "{node}"'

Outcome: TypeAlias = Candidate | Status
"""A candidate, or why preemption does not help there."""


class DryRun(msgspec.Struct, dict=True):
    """Preemption for one pod, tried out; changes nothing that lasts.

    :ivar state: what PreFilter wrote for the pod
    """

    judge: NodeJudge
    state: CycleState
    pod: PodInfo
    cluster: Snapshot
    budgets: Budgets

    def on(self, row: int) -> Outcome:
        """The node of this row, tried out: its victims, or why there are none."""
        priority = self.pod.priority
        name = self.cluster.nodes.names[row]
        lower = [pod for pod in self.cluster.nodes.pods_on(name).values() if pod.priority < priority]
        if not lower:
            return NO_VICTIMS
        with self.cluster.nodes.trial(row) as trial:
            return _NodeTrial(self, row, trial).run(name, lower)

    def search(self, rows: Rows, wanted: int) -> "Found":
        """Look at nodes in this order until there are candidates enough: one that breaks no budget, and
        `wanted` in all.

        :param rows: of nodes with pods of lower priority
        """
        found = None if self._by_room is None else self._add_up(self._by_room, rows, wanted)
        return self._try_out(rows, wanted) if found is None else found

    @cached_property
    def _by_room(self) -> RoomTrial | None:
        """Adds up what has to go from a node; `None`: for this pod more counts than room."""
        try:
            wanted = self.judge.room_wanted(self.state)
        except PluginError as fault:
            self.cluster.faults.note(fault)
            return None
        return None if wanted is None else RoomTrial(wanted, self.pod.priority, self.cluster.nodes, self.budgets)

    def _add_up(self, by_room: RoomTrial, rows: Rows, wanted: int) -> "Found | None":
        """The search by sums; nodes where others are to have room are tried out. `None`: all have to be tried
        out, to say why there is no candidate or what is the matter with a plugin."""
        try:
            take = self.judge.nodes_alone_take(self.state, self.pod, rows)
        except PluginError:  # the plugin is asked again where nodes are tried out, and its fault is told there
            return None
        contested = list(self.cluster.rivals.by_row(self.pod))
        tried: dict[int, Candidate] = {}
        costs = choice.no_costs(len(rows))
        enough, places, looked_at = False, rows[:0], 0
        while not enough and looked_at < len(rows):
            start, looked_at = looked_at, min(len(rows), looked_at + max(wanted, 1))
            alone = start + take[start:looked_at].nonzero()[0]
            costs[alone] = by_room.costs(rows[alone])
            for at in alone[np.isin(rows[alone], contested)].tolist():
                row = rows.item(at)
                outcome = self.on(row)
                costs[at] = choice.NO_COST if isinstance(outcome, Status) else choice.cost(outcome)
                if not isinstance(outcome, Status):
                    tried[row] = outcome
            enough, places = choice.enough(costs[:looked_at], wanted)
        if not len(places):
            return None
        found: list[int] = rows[places].tolist()
        return Found(costs[places], lambda at: cast("Candidate", tried.get(found[at]) or by_room.on(found[at])))

    def _try_out(self, rows: Rows, wanted: int) -> "Found":
        """The search with all plugins."""
        clean, broken = list[Candidate](), list[Candidate]()
        refused: dict[int, Status] = {}
        for row in rows.tolist():
            outcome = self.on(row)
            if isinstance(outcome, Status):
                refused[row] = outcome
                continue
            kept = broken if outcome.violations else clean
            if len(kept) < wanted:
                kept.append(outcome)
            if clean and len(clean) + len(broken) >= wanted:
                break
        return Found.of([*clean, *broken], refused)


class Found(msgspec.Struct):
    """What a search came to: candidates, those that break no budget first, and why other nodes that were
    tried are none, by row.
    """

    costs: Costs
    """One row a candidate."""
    candidate: Callable[[int], Candidate]
    """By its place in `costs`."""
    statuses: dict[int, Status] = {}
    without_victims: int = 0
    """Nodes that were not even tried, since nobody there is of lower priority."""

    @classmethod
    def of(cls, candidates: Sequence[Candidate], statuses: dict[int, Status]) -> Self:
        """Candidates that are worked out already."""
        return cls(choice.costs(candidates), candidates.__getitem__, statuses)

    @property
    def candidates(self) -> list[Candidate]:
        """All of them, in order."""
        return [self.candidate(at) for at in range(len(self.costs))]

    @property
    def errors(self) -> list[str]:
        """Plugins' faults, each once."""
        failed = (status.message for status in self.statuses.values() if status.code == Code.ERROR)
        return list(dict.fromkeys(failed))


class _TrialFailed(Exception):
    """A plugin's state could not be brought up to the trial."""

    def __init__(self, status: Status) -> None:
        self.status = status
        super().__init__(status.message)


class _NodeTrial:
    """One node, with a state and a table row that may be changed."""

    def __init__(self, run: DryRun, row: int, trial: Trial) -> None:
        self._run = run
        self._row = row
        self._trial = trial
        self._state = run.state.clone()

    def run(self, name: str, lower: list[PlacedPod]) -> Outcome:
        try:
            for pod in lower:
                self._remove(pod)
            status = self._run.judge.passes(self._state, self._run.pod, self._row)
            if not status.ok:
                return status
            return self._spare(name, importance.most_important_first(lower))
        except PluginError as fault:
            return statuses.error(str(fault)).by(fault.plugin)
        except _TrialFailed as failed:
            return failed.status

    def _spare(self, name: str, lower: list[PlacedPod]) -> Outcome:
        """Bring back whom the pod leaves room for: first those that would break a budget."""
        split = self._run.budgets.split(lower)
        victims = {pod.uid for pod in split.violating if not self._comes_back(pod)}
        violating = frozenset(victims)
        victims.update(pod.uid for pod in split.others if not self._comes_back(pod))
        if not victims:
            return statuses.error(NOBODY_TO_GO.format(node=name))
        doomed = tuple(pod for pod in lower if pod.uid in victims)
        return Candidate(node=name, victims=doomed, violations=len(violating), violating=violating)

    def _comes_back(self, pod: PlacedPod) -> bool:
        """Put the pod back on the node if the preemptor fits beside it; whether it was.

        :raises PluginError: if a plugin fails
        :raises _TrialFailed: if a plugin cannot follow the trial
        """
        run = self._run
        self._trial.add(pod)
        self._told(run.judge.add_pod(self._state, run.pod, pod, self._row))
        if run.judge.takes(self._state, run.pod, self._row):
            return True
        self._remove(pod)
        return False

    def _remove(self, pod: PlacedPod) -> None:
        self._trial.remove(pod.uid)
        self._told(self._run.judge.remove_pod(self._state, self._run.pod, pod, self._row))

    def _told(self, status: Status) -> None:
        if not status.ok:
            raise _TrialFailed(status)
