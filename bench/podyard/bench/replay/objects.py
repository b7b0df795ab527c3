"""Nodes and pods of a recording as Kubernetes has them. Pure.

Labels and resource have the names that Alibaba's GPU sharing gives them, as the scheduler simulator that was
published with the data set has them.
"""

from typing import Any, Final, TypeAlias

from podyard.bench.replay.rows import WHOLE_GPU, NodeRow, PodRow

Document: TypeAlias = dict[str, Any]

NAMESPACE: Final = "default"
GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
"""Extended resource: thousandths of GPUs. kube-scheduler counts them by node, not by device."""
GPU_MODEL: Final = "alibabacloud.com/gpu-card-model"
QOS: Final = "alibabacloud.com/qosClass"
HOST: Final = "kubernetes.io/hostname"
PODS_A_NODE: Final = 1000
"""The recording knows of no such bound, and a node that says none takes no pod."""


def node(row: NodeRow) -> Document:
    """A node."""
    size = {"cpu": f"{row.cpu_milli}m", "memory": f"{row.memory_mib}Mi", "pods": str(PODS_A_NODE)}
    labels = {HOST: row.name}
    if row.gpus:
        size[GPU_MILLI] = str(row.gpus * WHOLE_GPU)
        labels[GPU_MODEL] = row.model
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": row.name, "labels": labels},
        "status": {"capacity": size, "allocatable": dict(size)},
    }


def pod(row: PodRow) -> Document:
    """A pod."""
    requests = {"cpu": f"{row.cpu_milli}m", "memory": f"{row.memory_mib}Mi"}
    resources: Document = {"requests": requests}
    if row.gpus:
        # an extended resource is not overcommitted: its limit is its request
        requests[GPU_MILLI] = str(row.gpu_total_milli)
        resources["limits"] = {GPU_MILLI: requests[GPU_MILLI]}
    spec: Document = {
        "containers": [{"name": "main", "image": "recorded", "resources": resources}],
        # no kubelet runs: who is deleted is gone
        "terminationGracePeriodSeconds": 0,
    }
    if row.models:
        wanted = {"key": GPU_MODEL, "operator": "In", "values": list(row.models)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": row.name, "namespace": NAMESPACE, "labels": {QOS: row.qos}},
        "spec": spec,
    }
