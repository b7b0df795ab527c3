"""What would have to go from a node for the pod to fit: tried out, node by node.

On a node all pods of lower priority are taken away. If the pod fits then, they come back one by one, most
important first, as long as it still fits; who cannot come back is a victim. Only victims on the node itself
are looked at, and affinity to a victim is lost (docs/rules.md, victims-are-on-the-node).

Source: kube-scheduler v1.36.2, plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode),
pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Final, TypeAlias

import msgspec

from podyard.cluster.node_table import PlacedPod, Trial
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import NodeJudge
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.plugins.default_preemption import importance
from podyard.plugins.default_preemption.budgets import Budgets
from podyard.plugins.default_preemption.choice import Candidate
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

    @cached_property
    def _by_room(self) -> RoomTrial | None:
        """Adds up what has to go from a node; None: for this pod more counts than room."""
        try:
            wanted = self.judge.room_wanted(self.state)
        except PluginError as fault:
            self.cluster.faults.note(fault)
            return None
        return None if wanted is None else RoomTrial(wanted, self.cluster.nodes, self.budgets)

    def on(self, row: int) -> Outcome:
        """The node of this row: its victims, or why there are none."""
        priority = self.pod.priority
        name = self.cluster.nodes.names[row]
        lower = [pod for pod in self.cluster.nodes.pods_on(name).values() if pod.priority < priority]
        if not lower:
            return NO_VICTIMS
        found = self._work_out(row, name, lower)
        if found is not None:
            return found
        with self.cluster.nodes.trial(row) as trial:
            return _NodeTrial(self, row, trial).run(name, lower)

    def _work_out(self, row: int, name: str, lower: list[PlacedPod]) -> Candidate | None:
        """The node with its victims, where adding up is enough; None: the node has to be tried out."""
        by_room = self._by_room
        try:
            if by_room is not None and self.judge.node_alone_takes(self.state, self.pod, row):
                return by_room.on(row, name, lower)
        except PluginError:  # the plugin is asked again where the node is tried out, and its fault is told there
            return None
        return None

    def search(self, rows: Iterable[int], wanted: int) -> "Found":
        """Try nodes in this order until there are candidates enough: one that breaks no budget, and `wanted`
        in all.
        """
        found = Found()
        clean, broken = list[Candidate](), list[Candidate]()
        for row in rows:
            outcome = self.on(row)
            if isinstance(outcome, Status):
                found.statuses[row] = outcome
                continue
            kept = broken if outcome.violations else clean
            if len(kept) < wanted:
                kept.append(outcome)
            if clean and len(clean) + len(broken) >= wanted:
                break
        found.candidates = [*clean, *broken]
        return found


class Found(msgspec.Struct):
    """What a search came to: candidates, those that break no budget first, and why other nodes that were
    tried are none, by row.
    """

    candidates: list[Candidate] = []
    statuses: dict[int, Status] = {}
    without_victims: int = 0
    """Nodes that were not even tried, since nobody there is of lower priority."""

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
