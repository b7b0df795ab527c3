"""What a plugin may answer, checked where it comes in: anything else is as if the plugin had raised.

The checks raise `NonsenseError` and are made within the boundary that names the plugin and the extension
point (`PluginError.wrapping`). They cost next to nothing for answers of the expected type: these are judged
once for every row of every pod.

Source: none; a plugin of kube-scheduler is held to its answers' types by its compiler.
"""

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from podyard.framework.events import HintAnswer, HintResult
from podyard.framework.interfaces import NodeVictims, PermitResult, PostFilterResult, PreBindResult, PreFilterResult
from podyard.framework.status import Code, PluginFault, Status, told
from podyard.proto.decisions import Victim

T = TypeVar("T")

LARGEST: Final = 2**63 - 1
"""Codes and scores are kept in 64 bits."""

MOST_REASONS: Final = 64
"""Reasons of one status that are kept; semi-arbitrary."""


class NonsenseError(PluginFault):
    """A plugin answered what its extension point does not know."""


def of_type(answer: object, kind: type[T]) -> T:
    """The answer itself.

    :raises NonsenseError: if it is of another type
    """
    if not isinstance(answer, kind):
        raise NonsenseError(f"answered {_shown(answer)}, not {_with_article(kind.__name__)}")
    return answer


def status(answer: object) -> Status:
    """A status with reasons that can be sent.

    :raises NonsenseError: if it is none, its code is no code, or its reasons are no text
    """
    if type(answer) is Status and not answer.reasons and not answer.obstacles and type(answer.code) is Code:
        return answer
    found = of_type(answer, Status)
    reasons = found.reasons
    if type(found.code) is not Code or not _is_a(reasons, tuple):
        raise NonsenseError(f"answered a Status with code {_shown(found.code)} and reasons {_shown(reasons)}")
    for reason in reasons:
        if not _is_a(reason, str):
            raise NonsenseError(f"answered a Status whose reason is {_shown(reason)}, not text")
    obstacles = found.obstacles
    if not _is_a(obstacles, tuple) or not all(_is_a(one, str) for one in obstacles):
        raise NonsenseError(f"answered a Status with obstacles {_shown(obstacles)}")
    kept = tuple([told(reason) for reason in reasons[:MOST_REASONS]])
    named = tuple([told(one) for one in obstacles[:MOST_REASONS]])
    if kept == reasons and named == obstacles:
        return found
    return Status(code=found.code, reasons=kept, plugin=found.plugin, obstacles=named)


def pre_filter(answer: object) -> PreFilterResult:
    """:raises NonsenseError: if it is no PreFilterResult, or names nodes by anything but a set of texts"""
    found = of_type(answer, PreFilterResult)
    names = found.node_names
    if names is not None and not _is_a(names, frozenset):
        raise NonsenseError(f"answered node_names {_shown(names)}, not a frozenset of names")
    checked = status(found.status)
    return found if checked is found.status else PreFilterResult(status=checked, node_names=names)


def post_filter(answer: object) -> PostFilterResult:
    """:raises NonsenseError: if it is no PostFilterResult, or what it nominates and whom it would end are not
    named as such"""
    found = of_type(answer, PostFilterResult)
    node, victims = found.nominated_node, found.victims
    if node is not None and not _is_a(node, str):
        raise NonsenseError(f"answered nominated_node {_shown(node)}, not a name")
    if not _is_a(victims, tuple) or not all(_is_a(one, Victim) for one in victims):
        raise NonsenseError(f"answered victims {_shown(victims)}, not a tuple of Victims")
    for one in victims:
        if not all(_is_a(text, str) for text in (one.namespace, one.name, one.uid)) or type(one.priority) is not int:
            raise NonsenseError(f"answered the victim {_shown(one)}")
    return PostFilterResult(status=status(found.status), nominated_node=node, victims=victims)


def hint(answer: object) -> HintResult:
    """:raises NonsenseError: if it is not (Queue or Skip, a reason in words)"""
    found = cast("HintResult", of_type(answer, tuple))
    if len(found) != 2 or type(found[0]) is not HintAnswer or not _is_a(found[1], str):
        raise NonsenseError(f"answered {_shown(found)}, not a HintResult")
    return HintResult(found[0], told(found[1]))


def candidates(answer: object) -> Mapping[str, NodeVictims]:
    """:raises NonsenseError: if a PostFilter's candidates are no mapping of NodeVictims by node"""
    found = cast("Mapping[str, NodeVictims]", of_type(answer, Mapping))
    for node, victims in found.items():
        if not _is_a(node, str) or not _is_a(victims, NodeVictims):
            raise NonsenseError(f"would preempt {_shown(victims)} on {_shown(node)}")
    return found


def permit(answer: object) -> PermitResult:
    """:raises NonsenseError: if it is no PermitResult, or its time-out no number of seconds"""
    found = of_type(answer, PermitResult)
    return PermitResult(status=status(found.status), timeout_s=seconds(found.timeout_s))


def pre_bind(answer: object) -> PreBindResult:
    """:raises NonsenseError: if it is no PreBindResult, its time-out no number of seconds, or its parts no
    tuples"""
    found = of_type(answer, PreBindResult)
    seconds(found.timeout_s)
    for part in (found.writes, found.waits_for):
        of_type(part, tuple)
    checked = status(found.status)
    if checked is found.status:
        return found
    return PreBindResult(status=checked, writes=found.writes, timeout_s=found.timeout_s, waits_for=found.waits_for)


def seconds(answer: object) -> float:
    """:raises NonsenseError: if it is no finite number, or below 0"""
    if not isinstance(answer, int | float) or isinstance(answer, bool) or not 0 <= answer <= LARGEST:
        raise NonsenseError(f"answered a time-out of {_shown(answer)}, not seconds")
    return float(answer)


# ---- numbers by row ----------------------------------------------------------------------------------------


def code(answer: object) -> int:
    """What Filter says of one row, if it is no plain `int` above 0.

    :raises NonsenseError: if it is no whole number from 0 to 2^63-1
    """
    found = whole(answer)
    if found < 0:
        raise NonsenseError(f"answered code {_shown(answer)}; codes are 0 (the node takes the pod) or above")
    return found


def whole(answer: object) -> int:
    """:raises NonsenseError: if it is no whole number of 64 bits"""
    if not _is_a(answer, int | np.integer | np.bool_):
        raise NonsenseError(f"answered {_shown(answer)}, not a whole number")
    found = int(cast("int", answer))
    if not -LARGEST - 1 <= found <= LARGEST:
        raise NonsenseError(f"answered {_shown(answer)}, which has more than 64 bits")
    return found


def by_row(answer: object, count: int) -> NDArray[np.int64]:
    """What Filter, Score or NormalizeScore say of so many rows.

    :raises NonsenseError: if it is no array of so many whole numbers
    """
    if not isinstance(answer, np.ndarray):
        raise NonsenseError(f"answered {_shown(answer)}, not an array")
    found = cast("NDArray[Any]", answer)
    if found.shape != (count,):
        raise NonsenseError(f"answered an array of shape {found.shape} about {count} nodes")
    if found.dtype == np.int64:
        return found
    if found.dtype.kind not in "biu":
        raise NonsenseError(f"answered an array of {found.dtype}, not of whole numbers")
    return found.astype(np.int64)


def rows(answer: Iterable[Any], capacity: int) -> set[int]:
    """Rows of the table.

    :raises NonsenseError: if one is not there
    :raises TypeError: if it cannot be gone through, or one is no whole number
    """
    found = set(map(index, answer))
    if found and not 0 <= min(found) <= max(found) < capacity:
        raise NonsenseError(f"named rows from {min(found)} to {max(found)}; the table has {capacity}")
    return found


def _is_a(answer: object, kind: Any) -> bool:
    """Not a type guard: what the field of an answer is declared to be is what is in doubt."""
    return isinstance(answer, kind)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(answer: object) -> str:
    """Some of it, for people; what plugins make may have no text at all."""
    try:
        return told(repr(answer))[:80] if not isinstance(answer, int) or abs(answer) <= LARGEST else "a huge number"
    except Exception:  # the boundary to plugins: the answer's class is theirs, too
        return f"an object of type {type(answer).__name__}"
