"""Which pods end since their node has a NoExecute taint, and when.

One that does not tolerate every such taint ends at once; one that tolerates all of them ends when the
shortest `tolerationSeconds` of the tolerations that do so are over, counted from when this was first seen,
and never if there are none (docs/rules.md, toleration-is-counted-from-the-first-look).

Source: kubernetes v1.36.2, pkg/controller/tainteviction/taint_eviction.go (processPodOnNode,
getMinTolerationTime), pkg/apis/core/v1/helper (GetMatchingTolerations).
"""

import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from podyard.cluster.changes import Change
from podyard.cluster.disruption import TAINTED
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.objects.affinity import Taint, Toleration
from podyard.objects.taints import NO_EXECUTE, tolerates
from podyard.proto import subjects
from podyard.workloads.core.actions import Delete, Done, Work

MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"
"""Of the condition DisruptionTarget. Source: addConditionAndDeletePod."""
WHY: Final = "its node has a taint NoExecute that it does not tolerate, or no longer"
RETRY_S: Final = 1.0
"""Before pods that could not be deleted are looked at again."""
SPARE: Final = 64
"""Times of timers that are no more, beside as many as there are timers."""
NEVER: Final = float("inf")


class Timer(NamedTuple):
    """When a pod ends."""

    node: str
    key: ObjectKey
    uid: str
    at: float


class News(NamedTuple):
    """For people: a pod's end by its node's taints, or that it need not end any more."""

    key: ObjectKey
    uid: str
    cancelled: bool


class TaintEviction:
    """The pods that have a time to end. Owned by one core."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._timers: dict[str, Timer] = {}
        """By the pod's uid."""
        self._heap: list[tuple[float, int, str]] = []
        """Times and uids of timers, and of some that are no more."""
        self._numbers = itertools.count()
        self._asked: dict[ObjectKey, Sequence[str]] = {}
        """Uids of pods whose deletion is under way, by the owner of their work."""
        self._held: dict[str, int] = {}
        """Uids of pods that were deleted, and the position that the view must reach to show it; 0 while the
        deletion is under way."""
        self._settled: list[tuple[int, int, Sequence[str]]] = []
        """Heap of such positions with their uids, for deletions that are not under way any more."""
        self._again: dict[str, float] = {}
        """Uids of pods that could not be deleted, and when to look at them again."""
        self._news: list[News] = []
        self._spared_until = 0.0
        """Before this no pod of a lost node ends."""

    def __len__(self) -> int:
        """Times that are kept."""
        return len(self._heap)

    def wake_at(self, now: float, poll_s: float) -> float:
        """When something is due.

        :param poll_s: how soon to see whether the view has reached a position
        """
        due = min(self._again.values(), default=NEVER)
        if self._settled:
            due = min(due, now + poll_s)
        return min(due, self._heap[0][0]) if self._heap else due

    def follow(self, changes: Iterable[Change], now: float) -> None:
        """The view changed."""
        for change in changes:
            if change.resource == subjects.NODES:
                self._note_node(change, now)
            elif change.resource == subjects.PODS:
                self._note_pod(change, now)

    def spare(self, until: float) -> None:
        """No pod of a lost node ends before `until`, also of one whose taint comes in the meantime."""
        self._spared_until = until
        for timer in list(self._timers.values()):
            node = self._view.nodes.get(timer.node)
            if timer.at < until and node is not None and node.lost is not None:
                self._set(timer._replace(at=until))

    def listed(self) -> None:
        """The view was listed anew: it shows all that was done, and its positions may be others."""
        self._forget_to(NEVER)

    def due(self, now: float) -> tuple[list[Work], list[News]]:
        """What is to be deleted now, one work a node, and what people are told."""
        self._forget_to(self._view.position)
        for uid in [uid for uid, at in self._again.items() if at <= now]:
            del self._again[uid]
            self._look_at_pods([self._view.pods_by_uid.get(uid)], now)
        found: dict[str, list[Timer]] = {}
        while self._heap and self._heap[0][0] <= now:
            at, _, uid = heapq.heappop(self._heap)
            timer = self._timers.get(uid)
            if timer is not None and timer.at == at:
                del self._timers[uid]
                if timer.key in self._asked:  # a namesake's: it would be taken for the owner's
                    self._again[uid] = now + RETRY_S
                else:
                    found.setdefault(timer.node, []).append(timer)
        self._forget_cancelled()
        works = [self._ask(timers) for timers in found.values()]
        news, self._news = self._news, []
        return works, news

    def _ask(self, timers: Sequence[Timer]) -> Work:
        """The first pod stands for all: no work that is under way has one of its name."""
        owner, uids = timers[0].key, [timer.uid for timer in timers]
        self._asked[owner] = uids
        self._held.update(dict.fromkeys(uids, 0))
        self._news += [News(timer.key, timer.uid, cancelled=False) for timer in timers]
        return Work(owner, WHY, [Delete(timer.key, timer.uid, TAINTED, MESSAGE) for timer in timers])

    def settle(self, done: Done, now: float) -> None:
        """The deletions of a work are settled."""
        uids, position = self._asked.pop(done.owner, ()), max(1, done.position)
        for uid in uids:
            if done.failures:
                del self._held[uid]
                self._again[uid] = now + RETRY_S
            else:
                self._held[uid] = position
        if uids and not done.failures:
            heapq.heappush(self._settled, (position, next(self._numbers), uids))
        self._forget_to(self._view.position)

    # ---- what a change concerns

    def _note_node(self, change: Change, now: float) -> None:
        old, new = change.old, change.new
        if old is None or new is None or no_execute(old) != no_execute(new):
            self._look_at_pods(list(self._view.pods_on(change.key.name).values()), now)

    def _note_pod(self, change: Change, now: float) -> None:
        old, new = change.old, change.new
        if isinstance(old, PodView) and (new is None or old.uid != new.uid):
            self._cancel(old.uid)
        if isinstance(new, PodView):
            self._look_at_pods([new], now)

    def _look_at_pods(self, pods: Iterable[PodView | None], now: float) -> None:
        for pod in pods:
            if pod is None or pod.uid in self._held:
                continue
            node = None if pod.bound is None or pod.deleting else self._view.nodes.get(pod.bound.node)
            taints = () if node is None else no_execute(node)
            if node is None or not taints:
                self._cancel(pod.uid)
            else:
                self._decide(pod, node, taints, now)

    def _decide(self, pod: PodView, node: NodeView, taints: Sequence[Taint], now: float) -> None:
        seconds = tolerated_s(taints, pod.stored.spec.tolerations)
        if seconds == NEVER:
            self._cancel(pod.uid)
        elif seconds is None or pod.uid not in self._timers:
            at = now + (seconds or 0.0)
            if node.lost is not None:
                at = max(at, self._spared_until)
            self._set(Timer(node.name, ObjectKey(subjects.PODS, *pod.key), pod.uid, at))

    def _set(self, timer: Timer) -> None:
        self._timers[timer.uid] = timer
        heapq.heappush(self._heap, (timer.at, next(self._numbers), timer.uid))
        if len(self._heap) > 2 * len(self._timers) + SPARE:
            self._heap = [(one.at, next(self._numbers), one.uid) for one in self._timers.values()]
            heapq.heapify(self._heap)

    def _cancel(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            pod = self._view.pods_by_uid.get(uid)
            if pod is not None and pod.bound is not None and not pod.deleting:
                self._news.append(News(timer.key, uid, cancelled=True))

    def _forget_to(self, reached: float) -> None:
        """The view shows the deletions up to this position."""
        while self._settled and self._settled[0][0] <= reached:
            position, _, uids = heapq.heappop(self._settled)
            for uid in uids:
                if self._held.get(uid) == position:
                    del self._held[uid]

    def _forget_cancelled(self) -> None:
        """The heap begins with a timer that counts."""
        while self._heap:
            at, _, uid = self._heap[0]
            timer = self._timers.get(uid)
            if timer is not None and timer.at == at:
                return
            heapq.heappop(self._heap)


def no_execute(node: NodeView) -> tuple[Taint, ...]:
    """The taints that end pods."""
    return tuple(taint for taint in node.node.spec.taints if taint.effect == NO_EXECUTE)


def tolerated_s(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """For how long all of these are tolerated, in seconds, infinite if for ever; None if one is not at all.

    Of several tolerations the first that tolerates a taint counts.
    """
    shortest = NEVER
    for taint in taints:
        first = next((one for one in tolerations if tolerates(one, taint)), None)
        if first is None:
            return None
        if first.toleration_seconds is not None:
            shortest = min(shortest, float(max(0, first.toleration_seconds)))
    return shortest
