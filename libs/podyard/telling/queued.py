"""What the queue says of one of its pods, in words."""

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
    if pod.nominated_node:
        parts.append(f"nominated to {pod.nominated_node}")
    if pod.session and pod.pool == "inFlight":
        parts.append(f"with {pod.session}")
    if pod.woken_by is not None and pod.pool in ("activeQ", "backoffQ"):
        parts.append(f"woken by {pod.woken_by.event}")
    if message:
        parts.append(message)
    return "; ".join(parts)
