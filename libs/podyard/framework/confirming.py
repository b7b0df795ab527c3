"""Reserve and Permit: the last words about a chosen node, on which the pod is assumed by now.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunReservePluginsReserve,
RunPermitPlugins).
"""

from podyard.framework import answers
from podyard.framework.cycle_state import CycleState
from podyard.framework.plugin_times import SUCCESS
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status


def reserve(profile: Profile, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status | None:
    """Ask all in order; what ends the attempt, `None` if nothing does."""
    timing = cluster.timing
    for plugin in profile.reserve:
        started = 0.0 if timing is None else timing.watch()
        try:
            status = answers.status(plugin.reserve(state, pod, cluster, node_name))
        except Exception as fault:  # the boundary to plugins
            return cluster.failed(PluginError.wrapping(plugin.name, "Reserve", fault))
        if timing is not None:
            timing.note(plugin.name, "Reserve", status.code.label, started)
        if not status.ok:
            return _ended(plugin.name, "Reserve", status, cluster)
    return None


def permit(
    profile: Profile, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str
) -> tuple[Status | None, dict[str, float]]:
    """Ask all in order.

    :return: what ends the attempt, `None` if nothing does; then who wants to wait, with time-outs in seconds
    """
    waits: dict[str, float] = {}
    timing = cluster.timing
    for plugin in profile.permit:
        started = 0.0 if timing is None else timing.watch()
        try:
            answer = answers.permit(plugin.permit(state, pod, cluster, node_name))
        except Exception as fault:  # the boundary to plugins
            return cluster.failed(PluginError.wrapping(plugin.name, "Permit", fault)), {}
        if timing is not None:
            timing.note(plugin.name, "Permit", answer.status.code.label, started)
        if answer.status.code == Code.WAIT:
            waits[plugin.name] = answer.timeout_s
        elif not answer.status.ok:
            return _ended(plugin.name, "Permit", answer.status, cluster), {}
    return None, waits


def _ended(plugin: str, point: str, status: Status, cluster: Snapshot) -> Status:
    """A plugin's last word, under its name; one that is no rejection is a fault of the plugin."""
    if not status.rejected:
        cluster.faults.note(PluginError(plugin, point, status.message or f"answered {status.code.label}"))
    return status.by(plugin)


def unreserve(profile: Profile, state: CycleState | None, pod: PodInfo, cluster: Snapshot, node_name: str) -> list[str]:
    """Reserve is undone, in reverse order, by all plugins: the pod does not get the node after all.

    :return: what plugins raised, in words; the others are asked all the same
    """
    failures: list[str] = []
    timing = cluster.timing
    for plugin in reversed(profile.reserve):
        started = 0.0 if timing is None else timing.watch()
        try:
            plugin.unreserve(state or CycleState(), pod, cluster, node_name)
            if timing is not None:
                timing.note(plugin.name, "Unreserve", SUCCESS, started)
        except Exception as fault:  # the boundary to plugins
            failures.append(cluster.failed(PluginError.wrapping(plugin.name, "Unreserve", fault)).message)
    return failures
