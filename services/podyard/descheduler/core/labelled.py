"""Pods that are found by their labels without a look at the others: a namespace may have as many selectors as
workloads."""

from collections.abc import Iterable, Iterator, Sequence

from podyard.objects import selectors
from podyard.objects.pod import Pod
from podyard.objects.selectors import Selector


class Labelled:
    """Some pods, in order, as they were when it was made."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = list(pods)
        self._places: dict[tuple[str, str], list[int]] = {}
        for place, pod in enumerate(self._pods):
            for label in pod.metadata.labels.items():
                self._places.setdefault(label, []).append(place)

    def matching(self, selector: Selector) -> Iterator[Pod]:
        """Those that the selector takes."""
        places: Sequence[int] = range(len(self._pods))
        for one in selector.requirements:
            if one.operator == selectors.IN:
                labelled = [place for value in one.values for place in self._places.get((one.key, value), ())]
                if len(labelled) < len(places):
                    places = sorted(labelled)
        found = (self._pods[place] for place in places)
        return (pod for pod in found if selector.matches(pod.metadata.labels))
