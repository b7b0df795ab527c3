"""What the queue says of one of its pods, in words."""

import re
from collections.abc import Iterator
from typing import Final

from podyard.proto.queue_api import QueuedPodInfo


def waits_for(pod: QueuedPodInfo) -> str:
    """Why the pod is where it is, in few words."""
    parts: list[str] = []
    if pod.gating_plugin:
        parts.append(f"gate of {pod.gating_plugin}")
    message = pod.message
    if pod.unschedulable_plugins:
        parts.append("rejected by " + ", ".join(pod.unschedulable_plugins) + (f": {message}" if message else ""))
        message = ""
    if pod.pending_plugins:
        parts.append("pending in " + ", ".join(pod.pending_plugins))
    parts += _on_its_way(pod)
    if message:
        parts.append(message)
    return "; ".join(parts)


_NO_NODE_FITS: Final = re.compile(r"(0/\d+) nodes are available: (.+?)\.(?: .*)?", re.DOTALL)
"""What is said of a pod that fits nowhere: the reasons by number of nodes; then what preemption says."""


def in_short(message: str) -> str:
    """A rejection with its reasons first: `3 Insufficient cpu (0/3 nodes)`; other messages as they are."""
    found = _NO_NODE_FITS.fullmatch(message)
    return message if found is None else f"{found[2]} ({found[1]} nodes)"


def waits_in_short(pod: QueuedPodInfo) -> str:
    """The same as `waits_for` with what matters first: it may be cut anywhere."""
    parts = [f"gate of {pod.gating_plugin}"] if pod.gating_plugin else []
    plugins = ", ".join((*pod.unschedulable_plugins, *pod.pending_plugins))
    why = ": ".join(filter(None, [plugins, in_short(pod.message)]))
    return "; ".join([*parts, *([why] if why else []), *_on_its_way(pod)])


def _on_its_way(pod: QueuedPodInfo) -> Iterator[str]:
    """What is under way for the pod, whatever kept it before."""
    if pod.nominated_node:
        yield f"nominated to {pod.nominated_node}"
    if pod.session and pod.pool == "inFlight":
        yield f"with {pod.session}"
    if pod.woken_by is not None and pod.pool in ("activeQ", "backoffQ"):
        yield f"woken by {pod.woken_by.event}"
