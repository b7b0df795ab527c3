"""DataLocality: pods run where their data is.

A pod names its data set with the annotation `data.example.com/dataset`; objects of the custom resource
`datasets.v1.data.example.com` say on which nodes each data set lies:

    apiVersion: data.example.com/v1
    kind: Dataset
    metadata: {name: genomes, namespace: default}
    spec:
      nodes: [node-1, node-3]

Registering the resource is all it takes for its changes to reach the queue: a pod that waits for `genomes`
wakes when that data set gets another node, and not when another data set does.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

from podyard.framework import events
from podyard.framework.cycle_state import CycleState
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.framework.interfaces import PreFilterResult, Rows, Verdicts
from podyard.framework.one_at_a_time import FilterAllNodes
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import SKIP, Status, unschedulable
from podyard.objects.core import Pod
from podyard.objects.kinds import CustomObject
from podyard.plugins.hinted import present
from podyard.proto.actions import ActionType

RESOURCE: Final = "datasets.v1.data.example.com"
ANNOTATION: Final = "data.example.com/dataset"
REASON: Final = "node(s) didn't hold the pod's data set"


class DataLocality(FilterAllNodes):
    """PreFilter: names the nodes that hold the data set."""

    name: ClassVar[str] = "DataLocality"

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.namespace, wanted(pod.pod)

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(ClusterEvent(RESOURCE, ActionType.ADD | ActionType.UPDATE), after_dataset),
            Registration(events.NODE_ADD),
        )

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        return cluster.version(RESOURCE)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        name = wanted(pod.pod)
        if not name:
            return PreFilterResult(status=SKIP)
        dataset = cluster.objects(RESOURCE).get((pod.namespace, name))
        if dataset is None:
            return PreFilterResult(status=unschedulable(f'data set "{name}" not found'))
        return PreFilterResult(node_names=frozenset(nodes_of(dataset)))

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return 0 * rows  # PreFilter has left only the right nodes

    def verdict(self, state: CycleState, code: int) -> Status:
        return unschedulable(REASON)


def wanted(pod: Pod) -> str:
    """Name of the data set that the pod reads, or empty."""
    return pod.metadata.annotations.get(ANNOTATION, "")


def nodes_of(dataset: CustomObject) -> tuple[str, ...]:
    """Nodes that hold it; none if nobody has said so yet."""
    spec: Any = dataset.raw.get("spec") or {}
    return tuple(spec.get("nodes") or ())


def after_dataset(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the pod's own data set is on a node where it was not."""
    before, dataset = present(CustomObject, old, new)
    key = (dataset.metadata.namespace, dataset.metadata.name)
    if key != (pod.metadata.namespace, wanted(pod)):
        return events.skip(f"data set {key[1]} is not what the pod reads")
    arrived = sorted(set(nodes_of(dataset)) - set(nodes_of(before) if before else ()))
    if not arrived:
        return events.skip(f"data set {key[1]} is on no further node")
    return events.queue(f"data set {key[1]} is on {', '.join(arrived)} now")
