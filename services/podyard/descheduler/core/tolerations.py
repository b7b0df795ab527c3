"""Which taints a pod tolerates, as the descheduler sees it: the comparing operators Gt and Lt work, unlike in
the scheduler.

Source: pkg/utils/predicates.go, TolerationsTolerateTaintsWithFilter.
"""

from collections.abc import Callable, Iterable

from podyard.objects import taints
from podyard.objects.affinity import Taint, Toleration
from podyard.objects.selectors import GT, LT, whole_number


def all_tolerated(
    tolerations: Iterable[Toleration], found: Iterable[Taint], considered: Callable[[Taint], bool]
) -> bool:
    """Whether every considered taint is tolerated."""
    listed = tuple(tolerations)
    return all(any(_tolerates(one, taint) for one in listed) for taint in found if considered(taint))


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.operator not in (GT, LT):
        return taints.tolerates(toleration, taint)
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    bound, value = _canonical(toleration.value), _canonical(taint.value)
    if bound is None or value is None:
        return False
    return value > bound if toleration.operator == GT else value < bound


def _canonical(text: str) -> int | None:
    """A whole number as Go prints it: `099` and `+1` are none."""
    number = whole_number(text)
    return number if number is not None and str(number) == text else None
