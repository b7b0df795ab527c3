"""The queue as a table: what is where, since when, until when."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.render import tables, times
from podyard.proto.queue_api import QueuedPodInfo, QueueListReply
from podyard.telling.queued import waits_for

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


def summary(reply: QueueListReply) -> str:
    """One line of counts, the leader and its sessions."""
    known = [f"{pool} {reply.counts.get(pool, 0)}" for pool in POOLS if pool in reply.counts]
    other = [f"{pool} {count}" for pool, count in sorted(reply.counts.items()) if pool not in POOLS]
    leader = f"leader {reply.leader or '?'} (epoch {reply.epoch}), position {reply.position}"
    sessions = ", ".join(f"{name}: {count} in flight" for name, count in sorted(reply.sessions.items()))
    return "\n".join(filter(None, [" · ".join([*known, *other]) or "empty", leader, sessions]))


def rows(pods: Sequence[QueuedPodInfo], now: float) -> list[list[str | Text]]:
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
            waits_for(pod),
        ]
        for pod in pods
    ]


def _until(pod: QueuedPodInfo, now: float) -> str:
    if pod.until is None:
        return ""
    left = pod.until - now
    return f"in {times.duration(left)}" if left > 0 else "now"


def lines(reply: QueueListReply, now: float) -> list[str]:
    """The same as `view`, for pipes."""
    table = tables.plain_lines(HEADERS, rows(reply.pods, now)) if reply.pods else []
    more = [left_out(reply)] if reply.left_out else []
    return [*summary(reply).splitlines(), "", *table, *more] if table or more else summary(reply).splitlines()


def view(reply: QueueListReply, now: float) -> RenderableType:
    """Counts, then the pods."""
    parts: list[RenderableType] = [Text(summary(reply))]
    if reply.pods:
        parts += [Text(""), tables.table(HEADERS, rows(reply.pods, now))]
    if reply.left_out:
        parts.append(Text(left_out(reply), style="dim"))
    return Group(*parts)


def left_out(reply: QueueListReply) -> str:
    """How many pods are not shown, and how to see them."""
    return f"... and {reply.left_out} more: narrow the list (--pool, -n, --name), or raise --limit as far as a message holds"
