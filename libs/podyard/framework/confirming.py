"""Reserve and Permit: the last words about a chosen node, on which the pod is assumed by now.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunReservePluginsReserve, RunPermitPlugins).
"""

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status


def reserve(profile: Profile, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status | None:
    """Ask all in order; what ends the attempt, `None` if nothing does."""
    for plugin in profile.reserve:
        try:
            status = plugin.reserve(state, pod, cluster, node_name)
        except Exception as fault:  # the boundary to plugins
            status = statuses.error(str(PluginError.wrapping(plugin.name, "Reserve", fault)))
        if not status.ok:
            return status.by(plugin.name)
    return None


def permit(
    profile: Profile, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str
) -> tuple[Status | None, dict[str, float]]:
    """Ask all in order.

    :return: what ends the attempt, `None` if nothing does; then who wants to wait, with time-outs in seconds
    """
    waits: dict[str, float] = {}
    for plugin in profile.permit:
        try:
            answer = plugin.permit(state, pod, cluster, node_name)
        except Exception as fault:  # the boundary to plugins
            return statuses.error(str(PluginError.wrapping(plugin.name, "Permit", fault))).by(plugin.name), {}
        if answer.status.code == Code.WAIT:
            waits[plugin.name] = answer.timeout_s
        elif not answer.status.ok:
            return answer.status.by(plugin.name), {}
    return None, waits


def unreserve(profile: Profile, state: CycleState | None, pod: PodInfo, cluster: Snapshot, node_name: str) -> list[str]:
    """Reserve is undone, in reverse order, by all plugins: the pod does not get the node after all.

    :return: what plugins raised, in words; the others are asked all the same
    """
    failures: list[str] = []
    for plugin in reversed(profile.reserve):
        try:
            plugin.unreserve(state or CycleState(), pod, cluster, node_name)
        except Exception as fault:  # the boundary to plugins
            failures.append(str(PluginError.wrapping(plugin.name, "Unreserve", fault)))
    return failures
