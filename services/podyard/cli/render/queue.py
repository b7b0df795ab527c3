"""The queue as a table: what is where, since when, until when."""

from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.render import tables, times
from podyard.proto.queue_api import QueuedPodInfo, QueueListReply
from podyard.telling.queued import nobody_schedules, waits_for, waits_in_short

POOLS: Final = ("activeQ", "backoffQ", "errorBackoffQ", "unschedulable", "gated", "inFlight", "binding")
"""In the order of a pod's way through the queue."""

_STYLES: Final = {
    "activeQ": "green",
    "inFlight": "cyan",
    "binding": "cyan",
    "backoffQ": "yellow",
    "errorBackoffQ": "red",
    "unschedulable": "red",
    "gated": "magenta",
}
HEADERS: Final = ("POOL", "NAMESPACE", "NAME", "PRIORITY", "ATTEMPTS", "SINCE", "UNTIL", "WAITS FOR")


Rows = list[list[str | Text]]

LEAST_REASON: Final = 40
"""Columns for what a pod waits for: a plugin, and its reason in short."""
MOST_OUTSIDE: Final = 5
"""Pods in no pool that are named."""
_NAME: Final = HEADERS.index("NAME")
_AROUND: Final = 4
"""Lines of a live table that are no pods: counts, leader, a blank, headers."""


def summary(reply: QueueListReply, *, all_pools: bool = True) -> str:
    """One line of counts, the leader and its sessions.

    :param all_pools: those without pods too
    """
    counts = {pool: count for pool, count in reply.counts.items() if count or all_pools}
    known = [f"{pool} {counts[pool]}" for pool in POOLS if pool in counts]
    other = [f"{pool} {count}" for pool, count in sorted(counts.items()) if pool not in POOLS]
    leader = f"leader {reply.leader or '?'} (epoch {reply.epoch}), position {reply.position}"
    sessions = ", ".join(f"{name}: {count} in flight" for name, count in sorted(reply.sessions.items()))
    return "\n".join(filter(None, [" · ".join([*known, *other]) or "empty", leader, sessions]))


def rows(pods: Sequence[QueuedPodInfo], now: float, reason: Callable[[QueuedPodInfo], str] = waits_for) -> Rows:
    """A row a pod, in the order given."""
    return [
        [
            Text(pod.pool, style=_STYLES.get(pod.pool, "")),
            pod.namespace,
            pod.name,
            str(pod.priority),
            str(pod.attempts),
            times.duration(now - pod.since) if pod.since else "",
            _until(pod, now),
            reason(pod),
        ]
        for pod in pods
    ]


def _until(pod: QueuedPodInfo, now: float) -> str:
    if pod.until is None:
        return ""
    left = pod.until - now
    return f"in {times.duration(left)}" if left > 0 else "now"


def lines(reply: QueueListReply, now: float) -> list[str]:
    """For pipes: everything."""
    table = tables.plain_lines(HEADERS, rows(reply.pods, now)) if reply.pods else []
    more = [left_out(reply)] if reply.left_out else []
    below = [*table, *more, *outside(reply)]
    return [*summary(reply).splitlines(), "", *below] if below else summary(reply).splitlines()


def outside(reply: QueueListReply, most: int = MOST_OUTSIDE) -> list[str]:
    """The pods that are in no pool, each with whom it waits for.

    :param most: pods to name
    """
    if not reply.outside_total:
        return []
    number = reply.outside_total
    head = (
        "1 pod is in no pool: nobody schedules it"
        if number == 1
        else f"{number:,} pods are in no pool: nobody schedules them"
    )
    shown = reply.outside[:most]
    named = [f"  {pod.namespace}/{pod.name}: {nobody_schedules(pod)}" for pod in shown]
    hidden = number - len(shown)
    return [head, *named, *([f"  ... and {hidden:,} more"] if hidden else [])]


def view(reply: QueueListReply, now: float, width: int, height: int | None = None) -> RenderableType:
    """For a terminal: counts, then of the pods what fits; what all of them have in common may stand above.

    :param width: columns of the terminal
    :param height: its lines, of which no more are taken; None: as many as there are pods
    """
    head = summary(reply, all_pools=False)
    parts: list[RenderableType] = [Text(head)]
    pods, hidden, beyond = reply.pods, reply.left_out, outside(reply)
    if height is not None:
        room = max(height - len(head.splitlines()) - len(beyond) - _AROUND, 1)
        pods, hidden = pods[:room], hidden + len(pods[room:])
    if pods:
        common, table = _table(pods, now, width)
        parts += [Text(common, style="dim"), table]
    if hidden:
        parts.append(Text(_left_out(hidden), style="dim"))
    if beyond:
        parts.append(Text("\n".join(beyond), style="yellow"))
    return Group(*parts)


def _table(pods: Sequence[QueuedPodInfo], now: float, width: int) -> tuple[str, RenderableType]:
    """What the columns that are left out would say of every pod, and the table without them."""
    found = rows(pods, now, waits_in_short)
    same = {header: str(found[0][at]) for at, header in enumerate(HEADERS) if len({str(row[at]) for row in found}) == 1}
    less = ["PRIORITY", "ATTEMPTS", *(header for header in ("UNTIL", "NAMESPACE", "POOL") if header in same)]
    droppable = [HEADERS.index(header) for header in less]
    fitted = tables.fitted(HEADERS, found, width, less=droppable, name=_NAME, least=LEAST_REASON)
    told = [f"{header.lower()} {same[header]}" for header in ("POOL", "NAMESPACE") if header in fitted.left_out]
    return f"all: {', '.join(told)}" if told else "", tables.table(fitted.headers, fitted.rows)


def left_out(reply: QueueListReply) -> str:
    """How many pods are not shown, and how to see them."""
    return _left_out(reply.left_out)


def _left_out(pods: int) -> str:
    return f"... and {pods:,} more: narrow the list (--pool, -n, --name), or raise --limit"
