"""What `get pods` says of a pod. Source: pkg/printers/internalversion/printers.go, printPod."""

from podyard.objects.containers import ContainerStatus
from podyard.objects.meta import is_true
from podyard.objects.pod import ENDED, Pod
from podyard.objects.pod_requests import is_sidecar
from podyard.objects.times import age

NONE = "<none>"


def pod_status(pod: Pod) -> str:
    """The STATUS column: the phase, or the more telling reason of a container, an init container or a
    deletion."""
    status = pod.status
    reason = status.reason or status.phase or "Unknown"
    if pod.spec.scheduling_gates and status.phase in ("", "Pending"):
        reason = "SchedulingGated"
    starting = _init_reason(pod)
    reason = starting or reason
    # a sidecar that was ended with its pod is no reason to call that one starting
    if status.container_statuses and (not starting or is_true(status.conditions, "Initialized")):
        reason = _container_reason(pod, reason)
    if pod.metadata.deletion_timestamp is not None and status.phase not in ENDED:
        return "Unknown" if status.reason == "NodeLost" else "Terminating"
    return reason


def _init_reason(pod: Pod) -> str:
    """Why the pod is still starting; empty if it is not."""
    sidecars = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    total = len(pod.spec.init_containers)
    for done, status in enumerate(pod.status.init_container_statuses):
        terminated, waiting = status.state.terminated, status.state.waiting
        if terminated is not None and terminated.exit_code == 0:
            continue
        if status.name in sidecars and status.started:
            continue
        if terminated is not None:
            code = f"Signal:{terminated.signal}" if terminated.signal else f"ExitCode:{terminated.exit_code}"
            return f"Init:{terminated.reason or code}"
        if waiting is not None and waiting.reason and waiting.reason != "PodInitializing":
            return f"Init:{waiting.reason}"
        return f"Init:{done}/{total}"
    return ""


def _container_reason(pod: Pod, reason: str) -> str:
    running = False
    for status in reversed(pod.status.container_statuses):
        terminated, waiting = status.state.terminated, status.state.waiting
        if waiting is not None and waiting.reason:
            reason = waiting.reason
        elif terminated is not None:
            code = f"Signal:{terminated.signal}" if terminated.signal else f"ExitCode:{terminated.exit_code}"
            reason = terminated.reason or code
        elif status.ready and status.state.running is not None:
            running = True
    if reason == "Completed" and running:
        return "Running" if is_true(pod.status.conditions, "Ready") else "NotReady"
    return reason


def pod_ready(pod: Pod) -> str:
    """The READY column, `ready/all` containers, sidecars included.

    Where nobody reports containers, the pod's Ready condition speaks for all of them.
    """
    sidecars = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    total = len(pod.spec.containers) + len(sidecars)
    if not pod.status.container_statuses:
        return f"{total if pod.status.phase == 'Running' and is_true(pod.status.conditions, 'Ready') else 0}/{total}"
    ready = sum(status.ready and status.state.running is not None for status in pod.status.container_statuses)
    ready += sum(
        bool(status.ready and status.started)
        for status in pod.status.init_container_statuses
        if status.name in sidecars
    )
    return f"{ready}/{total}"


def pod_restarts(pod: Pod, now: float) -> str:
    """The RESTARTS column: how often containers were started again, and how long ago the last one was."""
    statuses: tuple[ContainerStatus, ...] = pod.status.container_statuses
    total = sum(status.restart_count for status in statuses)
    ends = [status.last_state.terminated.finished_at for status in statuses if status.last_state.terminated is not None]
    last = max((end for end in ends if end), default=None)
    return f"{total} ({age(last, now)} ago)" if total and last else str(total)
