"""The changed object of an event as the kind that a hint expects.

A hint that is handed something else raises; the queue then counts its answer as Queue
(docs/rules.md, failing-hint-means-queue).
"""

from typing import TypeVar

from podyard.objects.core import Pod

T = TypeVar("T")


class UnexpectedObjectError(TypeError):
    """A hint was handed an object of another kind than it registered for, or none at all."""

    def __init__(self, expected: str, got: object) -> None:
        brought = "none" if got is None else f"a {type(got).__name__}"
        super().__init__(f"expected a {expected} before or after the event, got {brought}")


def changed(kind: type[T], old: object | None, new: object | None) -> tuple[T | None, T | None]:
    """The object before and after; at least one of them is there.

    :raises UnexpectedObjectError: if one is of another kind, or both are missing
    """
    if (old is None and new is None) or not isinstance(old, kind | None):
        raise UnexpectedObjectError(kind.__name__, old)
    if not isinstance(new, kind | None):
        raise UnexpectedObjectError(kind.__name__, new)
    return old, new


def present(kind: type[T], old: object | None, new: object | None) -> tuple[T | None, T]:
    """The object before (None: it was added) and after.

    :raises UnexpectedObjectError: if one is of another kind, or there is none after the event
    """
    before, after = changed(kind, old, new)
    if after is None:
        raise UnexpectedObjectError(kind.__name__, None)
    return before, after


def updated(kind: type[T], old: object | None, new: object | None) -> tuple[T, T]:
    """The object before and after an update.

    :raises UnexpectedObjectError: if one is of another kind, or missing
    """
    before, after = present(kind, old, new)
    if before is None:
        raise UnexpectedObjectError(kind.__name__, None)
    return before, after


def gone(kind: type[T], old: object | None, new: object | None) -> T:
    """The object before the event, which ended it.

    :raises UnexpectedObjectError: if one is of another kind, or there was none before the event
    """
    before, _ = changed(kind, old, new)
    if before is None:
        raise UnexpectedObjectError(kind.__name__, None)
    return before


def another(pod: Pod, changed: Pod) -> str:
    """`another pod, default/b`, if `changed` is that and not the parked pod itself; else empty."""
    return "" if changed.metadata.uid == pod.metadata.uid else f"another pod, {'/'.join(changed.key)}"


def place_of(pod: Pod) -> str:
    """The node that a changed pod is on, or is nominated to; empty: neither.

    The end of a nomination is told as the deletion of a pod from its nominated node.

    Source: kube-scheduler v1.36.2, pkg/scheduler/eventhandlers.go (updatePodInSchedulingQueue),
    plugins/interpodaffinity/plugin.go, plugins/podtopologyspread/plugin.go (involvedInTopologySpreading),
    plugins/noderesources/fit.go.
    """
    return pod.spec.node_name or pod.status.nominated_node_name


def on_no_node(before: Pod | None, after: Pod | None) -> bool:
    """Whether a pod, before or after the event, is on no node, nor nominated to one."""
    return (before is not None and not place_of(before)) or (after is not None and not place_of(after))


def left(pod: Pod) -> str:
    """What became of the place of a pod that is gone: `left n1`, or `gave up its nomination to n1`."""
    return f"{'left' if pod.spec.node_name else 'gave up its nomination to'} {place_of(pod)}"
