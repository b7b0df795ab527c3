"""BusyNodes: pods labelled `latency: low` go only to nodes that run fewer than 20 pods."""

from podyard.framework.events import NODE_ADD, POD, ClusterEvent, Registration
from podyard.framework.one_at_a_time import FilterAllNodes
from podyard.framework.status import unschedulable
from podyard.proto.actions import ActionType


class BusyNodes(FilterAllNodes):
    name = "BusyNodes"

    def signature(self, pod):
        return pod.labels.get("latency")

    def events_to_register(self):
        return [Registration(ClusterEvent(POD, ActionType.DELETE)), Registration(NODE_ADD)]

    def filter(self, state, pod, cluster, rows):
        if pod.labels.get("latency") != "low":
            return 0 * rows
        return 1 * (cluster.nodes.pod_count[rows] >= 20)

    def verdict(self, state, code):
        return unschedulable("node(s) ran too many pods for low latency")
