"""The memory of the descheduler: what was moved, by whom, why, and what came of it. Pure.

What came in a pod's place is found by its owner: of the pods that the same controller made after the eviction
each counts for one move, the oldest for the first.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from podyard.cluster.view import ClusterView
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionResult
from podyard.objects import times
from podyard.objects.apps import ReplicaSet
from podyard.objects.pod import Pod
from podyard.proto.moves import MoveRecord

MOST: Final = 5_000
"""Moves that are remembered; the oldest are forgotten first, as their records are."""
LETTERS: Final = 500
"""Of a reason and a problem: 5,000 moves take no more than some 20 MB."""
OPEN_S: Final = 24 * 3600.0
"""How long after a move something may still come in its place."""
SLACK_S: Final = 1.0
"""Times of creation are whole seconds."""
OPEN: Final = frozenset({"moving", "pending"})
RUNS: Final = frozenset({"Running", "Succeeded"})


class Workload(NamedTuple):
    """Whose pod it is."""

    kind: str
    name: str
    owner: str = ""
    owner_uid: str = ""


class Moves:
    """Of one term, and what earlier ones left."""

    def __init__(self) -> None:
        self._moves: dict[str, MoveRecord] = {}
        """By id, in the order in which they happened."""
        self._by_successor: dict[str, str] = {}
        """The id of the move in whose place a pod came, by its uid."""
        self._refused: dict[tuple[str, str], str] = {}
        """By uid and plugin: why it was refused last."""

    def made(self) -> list[MoveRecord]:
        """Those of pods that went, in the order in which they happened."""
        return sorted((one for one in self._moves.values() if one.outcome != "refused"), key=lambda one: one.at)

    def recall(self, records: Iterable[MoveRecord]) -> None:
        """What is stored, in its order. What is known here already may be stored later."""
        for one in records:
            known = self._moves.get(one.id)
            if known is None or known.known_at < one.known_at:
                self._remember(_cut(one))

    def tried(self, wanted: Eviction, result: EvictionResult, workload: Workload, now: float) -> MoveRecord | None:
        """An eviction was answered: what is to be stored; None if that stands there already."""
        metadata = wanted.pod.metadata
        done = isinstance(result, EvictionDone)
        problem = "" if isinstance(result, EvictionDone) else result.reason[:LETTERS]
        if not done and self._refused.get((metadata.uid, wanted.plugin)) == problem:
            return None
        record = MoveRecord(
            id=f"{metadata.uid}-{int(now * 1000)}",
            namespace=metadata.namespace,
            kind=workload.kind,
            name=workload.name,
            owner=workload.owner,
            owner_uid=workload.owner_uid,
            pod=metadata.name,
            uid=metadata.uid,
            from_node=wanted.pod.spec.node_name,
            at=now,
            profile=wanted.profile,
            plugin=wanted.plugin,
            reason=wanted.reason[:LETTERS],
            planned_node=wanted.planned.node,
            plan_problem=wanted.planned.problem[:LETTERS] if done else "",
            outcome="moving" if done else "refused",
            problem=problem,
            known_at=now,
            trace=result.trace,
        )
        self._remember(record)
        return record

    def seen(self, view: ClusterView, now: float) -> list[MoveRecord]:
        """What a listing says of moves that are not over: those of which more is known now."""
        waiting = [one for one in self._moves.values() if one.outcome in OPEN and one.at > now - OPEN_S]
        made = _made_by({one.owner_uid for one in waiting} - {""}, view)
        found: list[MoveRecord] = []
        for one in waiting:
            come = self._successor(one, made.get(one.owner_uid, ()))
            if come is None:
                continue
            self._by_successor[come.metadata.uid] = one.id
            changed = self._judged(one, come, now)
            if changed != replace(one, known_at=changed.known_at):
                self._remember(changed)
                found.append(changed)
        return found

    def _successor(self, move: MoveRecord, made: Sequence[Pod]) -> Pod | None:
        if move.to_uid:
            return next((pod for pod in made if pod.metadata.uid == move.to_uid), None)
        new = (pod for pod in made if pod.metadata.uid not in self._by_successor and _came_after(pod, move))
        return next(new, None)

    def _judged(self, move: MoveRecord, come: Pod, now: float) -> MoveRecord:
        metadata, node = come.metadata, come.spec.node_name
        known = replace(move, to_pod=metadata.name, to_uid=metadata.uid, to_node=node, known_at=now)
        if not node:
            return replace(known, outcome="pending")
        if come.status.phase not in RUNS:
            return known
        return replace(
            known, outcome="back" if node == move.from_node else "running", undoes=self._undone_by(move, node)
        )

    def _undone_by(self, move: MoveRecord, node: str) -> str:
        """The plugin whose move is undone by one that ends on `node`; empty: none is."""
        before = self._moves.get(self._by_successor.get(move.uid, ""))
        if before is None or before.from_node != node or before.plugin == move.plugin or node == move.from_node:
            return ""
        return f"{before.profile}/{before.plugin}"

    def _remember(self, record: MoveRecord) -> None:
        self._moves[record.id] = record
        if record.to_uid:
            self._by_successor[record.to_uid] = record.id
        if record.outcome == "refused":
            self._refused[record.uid, record.plugin] = record.problem
        while len(self._moves) > MOST:
            oldest = self._moves.pop(next(iter(self._moves)))
            self._by_successor.pop(oldest.to_uid, None)
            self._refused.pop((oldest.uid, oldest.plugin), None)


def _cut(record: MoveRecord) -> MoveRecord:
    reason, problem, told = record.reason[:LETTERS], record.problem[:LETTERS], record.plan_problem[:LETTERS]
    return replace(record, reason=reason, problem=problem, plan_problem=told)


def workload_of(pod: Pod, view: ClusterView) -> Workload:
    """The workload at the top of a pod's owners: the Deployment of its ReplicaSet, its own controller, or
    itself."""
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is None:
        return Workload("Pod", pod.metadata.name)
    found = Workload(owner.kind, owner.name, owner.name, owner.uid)
    if owner.kind != "ReplicaSet":
        return found
    made_by: ReplicaSet | None = view.objects("replicasets").get((pod.metadata.namespace, owner.name))
    above = () if made_by is None else made_by.metadata.owner_references
    top = next((one for one in above if one.controller), None)
    return found if top is None else found._replace(kind=top.kind, name=top.name)


def _made_by(owners: set[str], view: ClusterView) -> dict[str, list[Pod]]:
    """Pods by their controller's uid, the oldest first."""
    found: dict[str, list[Pod]] = {}
    for one in view.pods.values() if owners else ():
        for owner in one.pod.metadata.owner_references:
            if owner.controller and owner.uid in owners:
                found.setdefault(owner.uid, []).append(one.pod)
    for pods in found.values():
        pods.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    return found


def _came_after(pod: Pod, move: MoveRecord) -> bool:
    made_at = times.seconds_or(pod.metadata.creation_timestamp, None)
    return pod.metadata.uid != move.uid and made_at is not None and made_at >= move.at - SLACK_S
