"""Nominations that this scheduler decided: they count at once, until the queue's fact says so too.

Without them the next pod would take the room that victims are about to free.
"""

from collections.abc import Mapping

from podyard.cluster.changes import Change
from podyard.cluster.keys import NamespacedName
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.proto import subjects
from podyard.proto.facts import Nomination


class OwnNominations:
    """Lays own decisions over the facts in `nominated`.

    Invariant: an own decision ends with the next change of the pod's fact, its binding, its end, or its
    session (docs/rules.md, nomination-ends-with-its-reason; docs/rules.md, gone-pod-leaves-no-nomination).
    """

    def __init__(self, nominated: Nominations) -> None:
        self.nominated = nominated
        self._own: dict[str, tuple[NamespacedName, str]] = {}
        """By uid: the pod's key, and its node, empty if the nomination ended."""

    def __len__(self) -> int:
        """Decisions that are no facts yet."""
        return len(self._own)

    def decide(self, pod: PodView, node: str) -> None:
        """Nominate the pod to `node`; an empty one ends its nomination."""
        if pod.uid in self._own or pod.nominated_node != node:
            self._own[pod.uid] = (pod.key, node)
            self.nominated.follow(pod.uid, _nominated(pod, node))

    def joined(self, pod: PodView) -> PodView:
        """The pod with its nomination as this scheduler knows it."""
        own = self._own.get(pod.uid) if self._own else None
        return pod if own is None else _nominated(pod, own[1])

    def apply(self, change: Change) -> None:
        """Follow one change of the view."""
        own = self._own.get(change.uid) if self._own and change.resource == subjects.PODS else None
        if own is None:
            self.nominated.apply(change)
            return
        new: PodView | None = change.new
        if new is None or _is_over(change.old, new, own[1]):
            del self._own[change.uid]
            self.nominated.follow(change.uid, new)
        else:
            self.nominated.follow(change.uid, _nominated(new, own[1]))

    def forget(self, pods: Mapping[NamespacedName, PodView]) -> None:
        """The queue never heard of what was decided: the facts alone count."""
        own, self._own = self._own, {}
        for uid, (key, _) in own.items():
            pod = pods.get(key)
            self.nominated.follow(uid, pod if pod is not None and pod.uid == uid else None)


def _is_over(old: PodView | None, new: PodView, node: str) -> bool:
    """Whether a change ends an own decision about the pod."""
    if new.bound is not None or new.released or new.gone:
        return True
    if old is not None and (old.nomination != new.nomination or old.nominated_node != new.nominated_node):
        return True
    return new.nominated_node == node


def _nominated(pod: PodView, node: str) -> PodView:
    fact = Nomination(namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node, priority=pod.priority)
    return PodView(pod.stored, pod.key, pod.uid, pod.sequence, pod.bound, pod.release, pod.status, fact, pod.gone)
