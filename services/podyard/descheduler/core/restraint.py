"""Whom a cycle leaves alone by what became of earlier moves. With `plan: obey` it is obeyed, else only told
(docs/rules.md, who-came-back-is-left-alone).

- a workload whose moved pods came back is left alone for a pause, which doubles with each one in a row
- a workload whose last moved pod is not running yet is not moved
- a pod is not moved back to where another plugin took it from
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from podyard.cluster.view import ClusterView
from podyard.descheduler.core import moves
from podyard.descheduler.core.moves import OPEN, OPEN_S, Moves
from podyard.objects import go_syntax, kinds, times
from podyard.objects.apps import ReplicaSet
from podyard.objects.errors import UnknownKindError
from podyard.objects.meta import ObjectMeta
from podyard.objects.pod import Pod
from podyard.proto.moves import MoveRecord

LABEL: Final = "podyard.io/descheduler-pause"
"""Of a pod, its controller, or that one's: how long they are left alone after a move that came back, as Go
writes durations; 0 lifts the pause. The first of them that has it counts."""
FIRST_PAUSE_S: Final = 600.0
LONGEST_PAUSE_S: Final = 24 * 3600.0
MOST_DOUBLINGS: Final = 16
"""Of the first pause: many more than lead to the longest."""
UNKNOWN_S: Final = 3600.0
"""How long something is waited for in a pod's place where nobody can say whether it will come: where its
controller is no ReplicaSet."""


_Key: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name of a workload."""


class _Pause(NamedTuple):
    """What the label says."""

    seconds: float | None = None
    """None: nothing."""
    fault: str = ""


class Restraint:
    """As of the beginning of a cycle: what the cycle itself moves plays no part."""

    def __init__(self, known: Moves, view: ClusterView, now: float) -> None:
        self._view = view
        self._now = now
        self._moved: dict[_Key, list[MoveRecord]] = {}
        self._brought: dict[str, MoveRecord] = {}
        """Moves by the uid of the pod that came."""
        self._awaited: dict[_Key, MoveRecord | None] = {}
        """What has still to come or to start in the place of a pod of a workload; None: nothing."""
        self._living: Counter[str] | None = None
        """Pods by their controller's uid, once they have been counted."""
        for one in known.made():
            self._moved.setdefault((one.namespace, one.kind, one.name), []).append(one)
            if one.to_uid:
                self._brought[one.to_uid] = one

    def why_not(self, pod: Pod) -> str:
        """Why the pod is left alone, wherever it would go; empty: it is not."""
        workload = moves.workload_of(pod, self._view)
        key = (pod.metadata.namespace, workload.kind, workload.name)
        moved = self._moved.get(key, ())
        if not moved or not workload.owner_uid:
            return ""
        if key not in self._awaited:
            self._awaited[key] = next((one for one in reversed(moved) if self._is_awaited(one)), None)
        waited_for = self._awaited[key]
        if waited_for is not None:
            return f"what comes in the place of {waited_for.pod}, which was moved before, is not running yet"
        return self._paused(pod, moved)

    def why_not_to(self, pod: Pod, plugin: str, node: str) -> str:
        """Why it is not moved to this node; empty: it may be.

        :param plugin: that wants it to go
        """
        before = self._brought.get(pod.metadata.uid)
        if before is None or before.from_node != node or before.plugin == plugin:
            return ""
        return f"it would undo the move of {before.profile}/{before.plugin}, which took it from {node}"

    # ---- inside --------------------------------------------------------------------------------------------

    def _is_awaited(self, move: MoveRecord) -> bool:
        if move.outcome not in OPEN or move.at <= self._now - OPEN_S:
            return False
        if move.to_uid:
            return move.to_uid in self._view.pods_by_uid
        made_by: ReplicaSet | None = self._view.objects("replicasets").get((move.namespace, move.owner))
        if made_by is None or made_by.metadata.uid != move.owner_uid:
            return move.at > self._now - UNKNOWN_S
        wanted = 1 if made_by.spec.replicas is None else made_by.spec.replicas
        return self._count(move.owner_uid) < wanted

    def _count(self, owner_uid: str) -> int:
        """Pods of a controller that have neither ended nor been asked to."""
        if self._living is None:
            living = (one for one in self._view.pods.values() if not one.deleting and not one.ended)
            owners = (one.stored.metadata.controller for one in living)
            self._living = Counter(owner.uid for owner in owners if owner is not None)
        return self._living[owner_uid]

    def _paused(self, pod: Pod, moved: Sequence[MoveRecord]) -> str:
        back = _back_in_a_row(moved)
        if not back:
            return ""
        said = self._said(pod)
        if said.fault:
            return said.fault
        pause_s = said.seconds
        if pause_s is None:
            pause_s = min(FIRST_PAUSE_S * 2 ** min(len(back) - 1, MOST_DOUBLINGS), LONGEST_PAUSE_S)
        until = back[-1].known_at + pause_s
        if self._now >= until:
            return ""
        which = "its last moved pod" if len(back) == 1 else f"the last {len(back)} moved pods of its workload"
        return f"it is left alone until {times.rfc3339(until)}: {which} came back to where it was taken from"

    def _said(self, pod: Pod) -> _Pause:
        for metadata in self._labelled(pod):
            text = metadata.labels.get(LABEL)
            if text is not None:
                return _read(text)
        return _Pause()

    def _labelled(self, pod: Pod) -> Iterator[ObjectMeta]:
        """The pod's metadata, its controller's, and that one's."""
        metadata: ObjectMeta | None = pod.metadata
        for _ in range(3):
            if metadata is None:
                return
            yield metadata
            owner, namespace = metadata.controller, metadata.namespace
            if owner is None:
                return
            found: Any = self._view.objects(_resource(owner.api_version, owner.kind)).get((namespace, owner.name))
            metadata = None if found is None else found.metadata


def _back_in_a_row(moved: Sequence[MoveRecord]) -> list[MoveRecord]:
    """The last moves of a workload, as far as they came back: to the node, or by another plugin to the one
    before."""
    found: list[MoveRecord] = []
    for one in reversed(moved):
        if one.outcome in OPEN:
            continue
        if one.outcome != "back" and not one.undoes:
            break
        found.append(one)
    return found[::-1]


def _read(text: str) -> _Pause:
    try:
        seconds = go_syntax.parse_duration(text)
    except ValueError as error:
        return _Pause(fault=f"nobody can say how long it is left alone: label {LABEL}: {error}")
    if seconds < 0:
        return _Pause(fault=f"nobody can say how long it is left alone: label {LABEL}: {text} is less than nothing")
    return _Pause(seconds)


def _resource(api_version: str, kind: str) -> str:
    try:
        return kinds.kind_for(api_version, kind).resource
    except UnknownKindError:
        return ""
