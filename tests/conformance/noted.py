"""Plugins that pass everything through and keep what was said."""

from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.interfaces import PostFilter, PostFilterResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status


class NotedPostFilter:
    """A PostFilter plugin of a profile; `said` are its statuses."""

    def __init__(self, plugin: PostFilter) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.said: list[Status] = []

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis) -> PostFilterResult:
        """As the plugin answers."""
        answer = self.plugin.post_filter(state, pod, cluster, diagnosis)
        self.said.append(answer.status)
        return answer
