"""Keys by which an index finds label selectors that mean a pod, or pods that a selector means.

A pod carries every part of its labels: each pair, each label, and the empty part. A selector wants parts of
which each pod that it matches carries at least one. So pods and selectors that have no part in common have
nothing to do with each other.
"""

from collections.abc import Mapping
from typing import TypeAlias

from podyard.objects import selectors
from podyard.objects.selectors import Selector

Part: TypeAlias = tuple[str, ...]
"""(label, value), (label,), or (): what every pod carries."""


def carried(labels: Mapping[str, str]) -> list[Part]:
    """All parts of a pod's labels."""
    return [(), *[(label,) for label in labels], *labels.items()]


def wanted(selector: Selector) -> list[Part]:
    """Parts of which every pod that the selector matches carries at least one; none if it matches nothing."""
    if selector.nothing:
        return []
    found: list[Part] = [()]
    for requirement in selector.requirements:
        if requirement.operator == selectors.IN:
            pairs: list[Part] = [(requirement.key, value) for value in requirement.values]
            if len(found[0]) < 2 or len(pairs) < len(found):
                found = pairs
        elif requirement.operator == selectors.EXISTS and not found[0]:
            found = [(requirement.key,)]
    return found
