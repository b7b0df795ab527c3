"""The anti-affinity of pods, as the descheduler sees it: required terms, and the pods that each keeps away.

Source: pkg/utils/predicates.go, CheckPodsWithAntiAffinityExist (v0.36.0).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from podyard.descheduler.core.labelled import Labelled
from podyard.descheduler.core.state import CycleState
from podyard.memory.kept import Kept
from podyard.objects import selectors
from podyard.objects.pod import ENDED, Pod
from podyard.objects.selectors import Selector

KEPT_BYTES: Final = 64 * 1024 * 1024
"""Of places by term."""
PLACE_BYTES: Final = 128
"""What a node takes in the places of a term."""


class Repelling(NamedTuple):
    """One term of a pod's anti-affinity: the pods that it keeps away. Terms of different pods are often the
    same."""

    topology_key: str
    namespaces: tuple[str, ...]
    selector: Selector

    def takes(self, pod: Pod) -> bool:
        """Whether the pod is one of those, wherever it is."""
        return pod.metadata.namespace in self.namespaces and self.selector.matches(pod.metadata.labels)


def repelling(pod: Pod) -> Iterator[Repelling]:
    """The required terms of its anti-affinity, in order, each about the pod's own namespace if it names none.
    Preferences, namespace selectors and matchLabelKeys are not looked at.

    :raises SelectorError: at a term that makes no sense, after those before it
    """
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return
    for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
        namespaces = tuple(dict.fromkeys(term.namespaces)) or (pod.metadata.namespace,)
        yield Repelling(term.topology_key, namespaces, selectors.compile_labels(term.label_selector))


class _Near:
    """How many pods that a term keeps away are on which node, as of so many that have gone by namespace."""

    __slots__ = ("on_node", "seen")

    def __init__(self) -> None:
        self.on_node: Counter[str] = Counter()
        self.seen: dict[str, int] = {}


class Repelled:
    """The pods of a state that terms keep away. Kept up with what the cycle evicts."""

    def __init__(self, state: CycleState) -> None:
        self._state = state
        self._labelled: dict[str, tuple[Labelled, int]] = {}
        """By namespace, with how many had gone when it was made."""
        self._near = Kept[Repelling, _Near](KEPT_BYTES, fewest=1)

    def nodes(self, term: Repelling, pod: Pod) -> Iterator[str]:
        """Nodes with a pod that has not ended, that this term of `pod` keeps away, and that is called
        otherwise: pods of the same name never conflict."""
        namesakes: Counter[str] = Counter()
        for namespace in term.namespaces:
            other = self._state.pods.get((namespace, pod.metadata.name))
            if other is not None and other.status.phase not in ENDED and term.takes(other):
                namesakes[other.spec.node_name] += 1
        return (node for node, count in self._places(term).items() if count > namesakes[node])

    def _places(self, term: Repelling) -> Counter[str]:
        found = self._near.get(term)
        if found is None:
            found = _Near()
            for namespace in term.namespaces:
                pods, found.seen[namespace] = self._in(namespace)
                for pod in pods.matching(term.selector):
                    found.on_node[pod.spec.node_name] += 1
            self._near.keep(term, found, PLACE_BYTES * len(found.on_node))
        else:
            self._near.use(term)
        for namespace, seen in found.seen.items():
            gone = self._state.gone(namespace)
            for pod in gone[seen:]:
                if pod.status.phase not in ENDED and term.selector.matches(pod.metadata.labels):
                    found.on_node[pod.spec.node_name] -= 1
            found.seen[namespace] = len(gone)
        return found.on_node

    def _in(self, namespace: str) -> tuple[Labelled, int]:
        found = self._labelled.get(namespace)
        if found is None:
            pods = (pod for pod in self._state.pods_in(namespace) if pod.status.phase not in ENDED)
            found = self._labelled[namespace] = Labelled(pods), len(self._state.gone(namespace))
        return found
