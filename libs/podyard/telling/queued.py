"""What the queue says of one of its pods, in words."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from podyard.proto.queue_api import OutsidePod, QueuedPodInfo


def nobody_schedules(pod: OutsidePod) -> str:
    """Why the pod is in no pool, in few words."""
    if pod.node:
        return f"nodeName is {pod.node}, and there is no such node"
    return f"schedulerName is {pod.scheduler}, and no profile has that name"


def waits_for(pod: QueuedPodInfo) -> str:
    """Why the pod is where it is, in few words."""
    parts: list[str] = []
    message = said_once(pod.message)
    if pod.gating_plugin:
        parts.append(f"gate of {pod.gating_plugin}" + (f": {message}" if message else ""))
        message = ""
    rejectors = [plugin for plugin in pod.unschedulable_plugins if plugin != pod.gating_plugin]
    if rejectors:
        parts.append("rejected by " + ", ".join(rejectors) + (f": {message}" if message else ""))
        message = ""
    if pod.pending_plugins:
        parts.append("pending in " + ", ".join(pod.pending_plugins))
    parts += _on_its_way(pod)
    if message:
        parts.append(message)
    return "; ".join(parts)


_NO_NODE_FITS: Final = re.compile(r"(0/\d+) nodes are available: (.+?)\.(?: .*)?", re.DOTALL)
"""What is said of a pod that fits nowhere: the reasons by number of nodes; then what preemption says."""
_NOBODY_ASKED: Final = ". not found"
"""How such a message ends if DynamicResources' PostFilter comes without its PreFilter: it says nothing about
the pod, and reads as if it did. Source: kubernetes v1.36.2, plugins/dynamicresources/dynamicresources.go."""
_GATES: Final = "waiting for scheduling gates: "


def said_once(message: str) -> str:
    """A rejection without an end that is no reason, as in `... "data" not found. not found`."""
    return f"{message.removesuffix(_NOBODY_ASKED)}." if message.endswith(_NOBODY_ASKED) else message


def in_short(message: str) -> str:
    """A rejection with its reasons first: `3 Insufficient cpu (0/3 nodes)`; other messages as they are."""
    found = _NO_NODE_FITS.fullmatch(message)
    return message if found is None else f"{found[2]} ({found[1]} nodes)"


def waits_now(pod: QueuedPodInfo) -> str:
    """As `waits_for`, below a story that has told what preemption said."""
    return waits_for(replace(pod, message=in_short(pod.message)))


def waits_in_short(pod: QueuedPodInfo) -> str:
    """The same as `waits_for` with what matters first: it may be cut anywhere."""
    rejectors = (pod.gating_plugin, *pod.unschedulable_plugins, *pod.pending_plugins)
    plugins = ", ".join(dict.fromkeys(filter(None, rejectors)))
    why = ": ".join(filter(None, [plugins, in_short(pod.message).removeprefix(_GATES)]))
    return "; ".join([*([why] if why else []), *_on_its_way(pod)])


def _on_its_way(pod: QueuedPodInfo) -> Iterator[str]:
    """What is under way for the pod, whatever kept it before."""
    if pod.nominated_node:
        yield f"nominated to {pod.nominated_node}"
    if pod.session and pod.pool == "inFlight":
        yield f"with {pod.session}"
    if pod.woken_by is not None and pod.pool in ("activeQ", "backoffQ"):
        yield f"woken by {pod.woken_by.event}"
