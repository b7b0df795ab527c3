"""What the API server fills in where a document says nothing, by kind. In place; what is set is never
changed.

Sources: pkg/apis/core/v1/defaults.go, pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go,
pkg/apis/policy/v1/defaults.go, pkg/apis/storage/v1/defaults.go, pkg/apis/resource/v1/defaults.go,
pkg/registry/batch/job/strategy.go. Documents have the right types here. Pods have a module of their own.
"""

from collections.abc import Callable, Mapping
from typing import Final

from podyard.objects.documents import Document, child, fill, mapping, mappings
from podyard.objects.limit_ranges import fill_limit_range
from podyard.objects.pod_defaults import fill_pod, fill_pod_spec
from podyard.objects.priority import PREEMPT_LOWER_PRIORITY
from podyard.objects.quotas import fill_resource_quota

JOB_BACKOFF_LIMIT: Final = 6
"""Failed pods before a job fails."""
DEPLOYMENT_DEADLINE_S: Final = 600
"""Seconds without progress before a change counts as stuck."""
_INT32_MAX: Final = 2**31 - 1
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_JOB_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAME_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")


def fill_defaults(resource: str, document: Document) -> None:
    """Fill in what a document of that resource leaves out; its name and uid are set already.

    Kinds without defaults, and custom ones, stay as they are.
    """
    filler = _FILLERS.get(resource)
    if filler is not None:
        filler(document)


def fill_decoded(resource: str, document: Document) -> None:
    """Fill in those defaults alone that the API server fills in as it reads a request: who sends the document
    counts as who set them. What is put in later nobody has set.

    Source: apiserver v0.36.2, pkg/endpoints/handlers/create.go: the field manager comes between the two.
    """
    filler = _DECODED.get(resource) or _FILLERS.get(resource)
    if filler is not None:
        filler(document)


def _fill_node(document: Document) -> None:
    """Allocatable comes from capacity where it is missing; the name is a label only if the kubelet set it.

    Source: SetDefaults_NodeStatus.
    """
    status = child(document, "status")
    capacity = mapping(status, "capacity")
    if capacity:
        fill(child(status, "allocatable"), **capacity)


def _fill_namespace(document: Document) -> None:
    """Source: SetDefaults_Namespace, namespace strategy."""
    _label_namespace(document)
    fill(child(document, "status"), phase="Active")


def _label_namespace(document: Document) -> None:
    metadata = child(document, "metadata")
    child(metadata, "labels")[_NAMESPACE_LABEL] = metadata.get("name", "")


def _fill_service(document: Document) -> None:
    spec = child(document, "spec")
    fill(spec, type="ClusterIP", sessionAffinity="None")
    for port in mappings(spec, "ports"):
        fill(port, protocol="TCP", targetPort=port.get("port"))


def _fill_claim(document: Document) -> None:
    fill(child(document, "spec"), volumeMode="Filesystem")
    fill(child(document, "status"), phase="Pending")


def _fill_volume(document: Document) -> None:
    fill(child(document, "spec"), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")
    fill(child(document, "status"), phase="Pending")


def _fill_template(spec: Document) -> None:
    fill_pod_spec(child(child(spec, "template"), "spec"))


def _fill_replication_controller(document: Document) -> None:
    spec = child(document, "spec")
    labels = mapping(spec, "template", "metadata", "labels")
    if labels:
        fill(spec, selector=dict(labels))
        fill(child(document, "metadata"), labels=dict(labels))
    fill(spec, replicas=1)
    _fill_template(spec)


def _fill_replica_set(document: Document) -> None:
    spec = child(document, "spec")
    fill(spec, replicas=1)
    _fill_template(spec)


def _fill_deployment(document: Document) -> None:
    spec = child(document, "spec")
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=DEPLOYMENT_DEADLINE_S)
    strategy = child(spec, "strategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _fill_template(spec)


def _fill_stateful_set(document: Document) -> None:
    spec = child(document, "spec")
    fill(spec, replicas=1, podManagementPolicy="OrderedReady", revisionHistoryLimit=10)
    strategy = child(spec, "updateStrategy")
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        child(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        fill(strategy["rollingUpdate"], partition=0)
    fill(child(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    for claim in mappings(spec, "volumeClaimTemplates"):
        _fill_claim(claim)
    _fill_template(spec)


def _fill_daemon_set(document: Document) -> None:
    spec = child(document, "spec")
    fill(spec, revisionHistoryLimit=10)
    strategy = child(spec, "updateStrategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    _fill_template(spec)


def _fill_cron_job(document: Document) -> None:
    """The job itself gets its defaults as one when it is made; its pods have theirs here already."""
    spec = child(document, "spec")
    fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    _fill_template(child(child(spec, "jobTemplate"), "spec"))


def _fill_job(document: Document) -> None:
    """Also gives the job its selector and the pods their labels, unless `manualSelector`. Source:
    generateSelector."""
    _fill_job_spec(document)
    spec = child(document, "spec")
    if spec.get("manualSelector") is not True:
        _select_job_pods(document, spec)


def _fill_job_spec(document: Document) -> None:
    spec = child(document, "spec")
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    limit = _INT32_MAX if "backoffLimitPerIndex" in spec else JOB_BACKOFF_LIMIT
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    fill(spec, parallelism=1, backoffLimit=limit, completionMode="NonIndexed", suspend=False)
    fill(spec, podReplacementPolicy=replacement)
    labels = mapping(spec, "template", "metadata", "labels")
    if labels and not mapping(document, "metadata", "labels"):
        child(document, "metadata")["labels"] = dict(labels)
    fill_pod_spec(child(child(spec, "template"), "spec"))


def _select_job_pods(document: Document, spec: Document) -> None:
    metadata = child(document, "metadata")
    template_labels = child(child(child(spec, "template"), "metadata"), "labels")
    uid = metadata.get("uid", "")
    fill(template_labels, **dict.fromkeys(_JOB_UID_LABELS, uid))
    fill(template_labels, **dict.fromkeys(_JOB_NAME_LABELS, metadata.get("name", "")))
    selector = child(child(spec, "selector"), "matchLabels")
    fill(selector, **{_JOB_UID_LABELS[0]: uid})


def _fill_budget(document: Document) -> None:
    child(document, "spec")
    child(document, "status")


def _fill_priority_class(document: Document) -> None:
    fill(document, preemptionPolicy=PREEMPT_LOWER_PRIORITY, value=0)


def _fill_storage_class(document: Document) -> None:
    fill(document, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _fill_csi_driver(document: Document) -> None:
    fill(child(document, "spec"), attachRequired=True, storageCapacity=False, fsGroupPolicy="ReadWriteOnceWithFSType")


def _fill_resource_claim(document: Document) -> None:
    for request in mappings(mapping(document, "spec", "devices"), "requests"):
        for exact in (mapping(request, "exactly"), *mappings(request, "firstAvailable")):
            if not exact:
                continue
            fill(exact, allocationMode="ExactCount")
            if exact["allocationMode"] == "ExactCount":
                fill(exact, count=1)


_FILLERS: Final[Mapping[str, Callable[[Document], None]]] = {
    "pods": fill_pod,
    "nodes": _fill_node,
    "namespaces": _fill_namespace,
    "services": _fill_service,
    "persistentvolumes": _fill_volume,
    "persistentvolumeclaims": _fill_claim,
    "replicationcontrollers": _fill_replication_controller,
    "limitranges": fill_limit_range,
    "resourcequotas": fill_resource_quota,
    "replicasets": _fill_replica_set,
    "deployments": _fill_deployment,
    "statefulsets": _fill_stateful_set,
    "daemonsets": _fill_daemon_set,
    "jobs": _fill_job,
    "cronjobs": _fill_cron_job,
    "poddisruptionbudgets": _fill_budget,
    "priorityclasses": _fill_priority_class,
    "storageclasses": _fill_storage_class,
    "csidrivers": _fill_csi_driver,
    "resourceclaims": _fill_resource_claim,
}

_DECODED: Final[Mapping[str, Callable[[Document], None]]] = {
    "jobs": _fill_job_spec,
    "namespaces": _label_namespace,
    "pods": lambda document: fill_pod_spec(child(document, "spec")),
}
"""Of kinds of which more is filled in later."""
