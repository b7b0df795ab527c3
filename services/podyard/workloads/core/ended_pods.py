"""How many ended pods are kept, and which go when there are more.

Evicted ones go first, then the oldest, of equal age by name
(docs/rules.md, ended-pods-are-kept-up-to-a-number).

Source: kubernetes v1.36.2, pkg/controller/podgc/gc_controller.go (gcTerminated,
byEvictionAndCreationTimestamp).
"""

from typing import Final

from podyard.cluster.changes import Change
from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.proto import subjects
from podyard.workloads.core import pods as pod_facts

THRESHOLD: Final = 12_500
"""Source: --terminated-pod-gc-threshold."""
PERIOD_S: Final = 20.0
"""How soon the next ones go. Source: gcCheckPeriod."""
EVICTED: Final = "Evicted"


class EndedPods:
    """Index of ended pods whose objects live. Owned by the core; kept by `follow`."""

    def __init__(self, threshold: int) -> None:
        """
        :param threshold: how many are kept; 0: all
        """
        self._threshold = threshold
        self._pods: dict[str, PodView] = {}
        self._surplus: set[str] = set()
        self._next_at = 0.0

    def follow(self, change: Change) -> None:
        """One pod changed."""
        new: PodView | None = change.new
        if new is not None and not new.gone and new.ended:
            self._pods[change.uid] = new
        elif self._pods.pop(change.uid, None) is not None:
            self._surplus.discard(change.uid)

    def __contains__(self, uid: object) -> bool:
        """Whether the pod goes, since there are too many."""
        return uid in self._surplus

    @property
    def due(self) -> float | None:
        """When the next ones are chosen; None: there are not too many."""
        return self._next_at if self._threshold and len(self._pods) > self._threshold else None

    def choose(self, now: float) -> list[ObjectKey]:
        """Those that are too many."""
        self._next_at = now + PERIOD_S
        going = sorted(self._pods.values(), key=_turn)[: len(self._pods) - self._threshold]
        self._surplus = {pod.uid for pod in going}
        return [ObjectKey(subjects.PODS, *pod.key) for pod in going]


def _turn(pod: PodView) -> tuple[bool, float, str, str]:
    evicted = pod.status is not None and pod.status.phase == pod_facts.FAILED and pod.status.reason == EVICTED
    return not evicted, pod_facts.created_at(pod), pod.name, pod.namespace
