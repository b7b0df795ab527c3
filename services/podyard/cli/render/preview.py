"""Whom a node would evict, as text: thresholds, what would be collected, who would go in which order, who is
spared."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from podyard.cli.render import tables, times
from podyard.proto.agents_api import PreviewedPod, PreviewedThreshold, PreviewReply

THRESHOLDS: Final = ("THRESHOLD", "LEFT", "OF", "STATE")
PODS: Final = ("", "POD", "WHEN", "PRIO", "USED", "REQUEST", "BY")
SPARED: Final = ("SPARED", "WHY")
BY: Final = "BY: what puts a pod before the next; USED, REQUEST: of what is to be relieved"
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_STATES: Final = {"notObserved": "not observed", "notMet": "not met", "acts": "acts"}
_BY: Final = {"noUsage": "no usage", "limit": "its limit"}
_IN_PIECES: Final = ("inodesFree", "pid.")


def lines(reply: PreviewReply) -> list[str]:
    """A line each; tables as wide as their cells."""
    found = [f"{reply.node}: {', '.join(reply.conditions) or 'no pressure'}"]
    found += _block(tables.plain_lines(THRESHOLDS, [_threshold(one, reply.at) for one in reply.thresholds]))
    if reply.collections:
        found += _block([f"would collect {one.what}, for {one.resource}" for one in reply.collections])
    number = 0
    for signal, pods in groupby(reply.pods, key=lambda pod: pod.signal):
        rows = [_pod(number + at, pod, reply.at) for at, pod in enumerate(pods, 1)]
        number += len(rows)
        found += _block([f"would go for {signal}, in this order while nothing gets better:"])
        found += tables.plain_lines(PODS, rows)
    found += list(_rest(reply))
    if reply.spared:
        rows = [[f"{pod.namespace}/{pod.name}", pod.why] for pod in reply.spared]
        found += _block(tables.plain_lines(SPARED, rows))
    return found


def _rest(reply: PreviewReply) -> Iterator[str]:
    if reply.left_out:
        yield f"... and {reply.left_out} more: raise --limit"
    if any(pod.by not in ("limit", "hurried") for pod in reply.pods):
        yield BY
    if not reply.pods and not reply.faults:
        yield from ("", "no pod would go")
    if reply.faults:
        yield from ("", *(f"the round fails: {fault}" for fault in reply.faults))


def _block(written: list[str]) -> list[str]:
    return ["", *written]


def _threshold(one: PreviewedThreshold, at: float) -> list[str]:
    held = f", held until {one.min_reclaim} more" if one.min_reclaim else ""
    left, of = (
        ("", "") if one.available is None else (amount(one.signal, one.available), amount(one.signal, one.capacity))
    )
    return [f"{one.signal}<{one.value}", left, of, f"{_state(one, at)}{held}"]


def _state(one: PreviewedThreshold, at: float) -> str:
    if one.state == "waits":
        return f"soft, waits {times.duration(one.until - at)} more"
    state = _STATES[one.state]
    return f"soft ({times.duration(one.grace_s)}), {state}" if one.grace_s else state


def _pod(number: int, pod: PreviewedPod, at: float) -> list[str]:
    return [
        str(number),
        f"{pod.namespace}/{pod.name}",
        "now" if pod.at <= at else f"in {times.duration(pod.at - at)}",
        str(pod.priority),
        "" if pod.used is None else amount(pod.signal, pod.used),
        "" if pod.request is None else amount(pod.signal, pod.request),
        _BY.get(pod.by, pod.by),
    ]


def amount(signal: str, value: int | None) -> str:
    """Bytes in the largest binary unit of which there is one, to a tenth; inodes and processes as they
    are."""
    if value is None:
        return ""
    if any(part in signal for part in _IN_PIECES):
        return str(value)
    size, unit = float(value), 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + _UNITS[unit]
