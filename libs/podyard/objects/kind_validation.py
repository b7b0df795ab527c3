"""Which objects are allowed, by kind: metadata of all, and the kinds besides pods and workloads.

Sources: apimachinery/pkg/api/validation/objectmeta.go; pkg/apis/core, policy, scheduling, storage:
validation.go. Paths are those of the document.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from podyard.objects.affinity_validation import check_label_selector, check_node_terms, check_taints
from podyard.objects.core import Node, PersistentVolume, PersistentVolumeClaim, Service
from podyard.objects.faults import Faults
from podyard.objects.kinds import Kind
from podyard.objects.limit_ranges import check_limit_range
from podyard.objects.meta import ObjectMeta
from podyard.objects.names import (
    check_annotations,
    check_labels,
    label_fault,
    path_segment_fault,
    qualified_fault,
    subdomain_fault,
)
from podyard.objects.pod_validation import check_pod
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.priority import HIGHEST_USER_PRIORITY, SYSTEM_CLASSES, SYSTEM_PREFIX
from podyard.objects.quotas import check_resource_quota
from podyard.objects.resource_validation import check_amounts, check_number_of_resources
from podyard.objects.runtime_classes import check_runtime_class
from podyard.objects.scheduling import PriorityClass
from podyard.objects.storage import StorageClass
from podyard.objects.workload_validation import WORKLOADS, check_count

_LABEL_NAMED: Final = frozenset(("namespaces", "services"))
"""Resources whose names are DNS labels; those of all others are subdomains."""
_PATH_NAMED: Final = frozenset(
    (
        *("certificatesigningrequests", "clusterrolebindings", "clusterroles", "events", "ipaddresses"),
        *("rolebindings", "roles"),
    )
)
"""Resources whose names are any segment of a path. Source: Kubernetes v1.36.2, pkg/apis/rbac/validation
(ValidateRBACName), pkg/apis/certificates/validation, pkg/apis/networking/validation; of events
apiserver/pkg/registry/rest/create.go, BeforeCreate."""
_STANDARD_FINALIZERS: Final = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
"""Source: pkg/apis/core/helper/helpers.go."""
_ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_RECLAIM: Final = ("Retain", "Delete", "Recycle")


def check_metadata(faults: Faults, kind: Kind, meta: ObjectMeta) -> None:
    """Name, labels, annotations and owners."""
    name_fault = _name_fault(kind.resource)
    with faults.below("metadata"):
        if not meta.name:
            faults.required("name", "name or generateName is required")
        elif fault := name_fault(meta.name):
            faults.invalid("name", meta.name, fault)
        if meta.generate_name and (fault := name_fault(_as_whole_name(meta.generate_name))):
            faults.invalid("generateName", meta.generate_name, fault)
        if meta.namespace and (fault := label_fault(meta.namespace)):
            faults.invalid("namespace", meta.namespace, fault)
        if meta.labels:
            check_labels(faults, meta.labels, "labels")
        if meta.annotations:
            check_annotations(faults, meta.annotations, "annotations")
        if meta.owner_references:
            _check_owners(faults, meta)
        if meta.finalizers:
            _check_finalizers(faults, meta.finalizers, custom=kind.custom)


def _check_finalizers(faults: Faults, names: tuple[str, ...], *, custom: bool) -> None:
    """Source: ValidateFinalizers; pkg/apis/core/validation/validation.go, validateKubeFinalizerName."""
    for name in names:
        if fault := qualified_fault(name):
            faults.invalid("finalizers", name, fault)
    if {"orphan", "foregroundDeletion"} <= set(names):
        given = json.dumps(names, separators=(",", ":"))
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        faults.add("finalizers", "FieldValueInvalid", f"Invalid value: {given}: {detail}")
    for at, name in enumerate(names):
        if not custom and "/" not in name and name not in _STANDARD_FINALIZERS:
            faults.invalid(
                f"finalizers[{at}]", name, "name is neither a standard finalizer name nor is it fully qualified"
            )


def _name_fault(resource: str) -> Callable[[str], str]:
    if resource in _LABEL_NAMED:
        return label_fault
    return path_segment_fault if resource in _PATH_NAMED else subdomain_fault


def _as_whole_name(prefix: str) -> str:
    """The beginning of a name may end in a dash. Source: apimachinery/pkg/api/validation/generic.go,
    maskTrailingDash."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _check_owners(faults: Faults, meta: ObjectMeta) -> None:
    """Source: ValidateOwnerReferences."""
    for at, owner in enumerate(meta.owner_references):
        for field, value in (
            ("apiVersion", owner.api_version),
            ("kind", owner.kind),
            ("name", owner.name),
            ("uid", owner.uid),
        ):
            if not value:
                faults.invalid(f"ownerReferences[{at}].{field}", value, f"{field} must not be empty")
    if sum(owner.controller for owner in meta.owner_references) > 1:
        faults.invalid("ownerReferences", "", "Only one reference can have Controller set to true")


def check_kind(faults: Faults, resource: str, view: Any) -> None:
    """Check what is particular to the kind; kinds without rules pass."""
    checker = _CHECKERS.get(resource)
    if checker is not None:
        checker(faults, view)


def _check_node(faults: Faults, node: Node) -> None:
    with faults.below("spec"):
        check_taints(faults, node.spec.taints)
    with faults.below("status"):
        check_amounts(faults, "capacity", node.status.capacity)
        check_amounts(faults, "allocatable", node.status.allocatable)
        check_number_of_resources(faults, "allocatable", node.status.capacity, node.status.allocatable)


def _check_service(faults: Faults, service: Service) -> None:
    check_labels(faults, service.spec.selector, "spec.selector")
    for at, port in enumerate(service.spec.ports):
        if not 1 <= port.port <= 65535:
            faults.invalid(f"spec.ports[{at}].port", port.port, "must be between 1 and 65535, inclusive")


def _check_modes(faults: Faults, modes: tuple[str, ...]) -> None:
    if not modes:
        faults.required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        faults.one_of("spec.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        faults.forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _check_volume(faults: Faults, volume: PersistentVolume) -> None:
    spec = volume.spec
    _check_modes(faults, spec.access_modes)
    if "storage" not in spec.capacity:
        faults.required("spec.capacity", 'the resource "storage" must be set')
    check_amounts(faults, "spec.capacity", spec.capacity)
    faults.one_of("spec.persistentVolumeReclaimPolicy", spec.persistent_volume_reclaim_policy, _RECLAIM)
    affinity = spec.node_affinity
    if affinity is not None and affinity.required is not None:
        check_node_terms(faults, affinity.required.node_selector_terms, "spec.nodeAffinity.required.nodeSelectorTerms")


def _check_claim(faults: Faults, claim: PersistentVolumeClaim) -> None:
    spec = claim.spec
    _check_modes(faults, spec.access_modes)
    if "storage" not in spec.resources.requests:
        faults.required("spec.resources[storage]")
    check_amounts(faults, "spec.resources.requests", spec.resources.requests)
    if spec.selector is not None:
        with faults.below("spec.selector"):
            check_label_selector(faults, spec.selector)


def _check_storage_class(faults: Faults, storage_class: StorageClass) -> None:
    if not storage_class.provisioner:
        faults.required("provisioner")
    faults.one_of("reclaimPolicy", storage_class.reclaim_policy or "", ("Delete", "Retain"))
    faults.one_of("volumeBindingMode", storage_class.volume_binding_mode or "", ("Immediate", "WaitForFirstConsumer"))


def _check_priority_class(faults: Faults, priority_class: PriorityClass) -> None:
    """Source: ValidatePriorityClass."""
    name, value = priority_class.metadata.name, priority_class.value
    if name.startswith(SYSTEM_PREFIX):
        system = SYSTEM_CLASSES.get(name)
        if system is None or system.value != value or priority_class.global_default:
            detail = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only"
            faults.forbidden("metadata.name", detail)
    elif value > HIGHEST_USER_PRIORITY:
        faults.forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
    policies = ("PreemptLowerPriority", "Never")
    faults.one_of("preemptionPolicy", priority_class.preemption_policy or "", policies)


def _check_budget(faults: Faults, budget: PodDisruptionBudget) -> None:
    """Source: ValidatePodDisruptionBudgetSpec."""
    spec = budget.spec
    with faults.below("spec"):
        if spec.min_available is not None and spec.max_unavailable is not None:
            faults.invalid(
                "", f"minAvailable {spec.min_available}", "minAvailable and maxUnavailable cannot be both set"
            )
        check_count(faults, "minAvailable", spec.min_available)
        check_count(faults, "maxUnavailable", spec.max_unavailable)
        policies = ("IfHealthyBudget", "AlwaysAllow")
        faults.one_of("unhealthyPodEvictionPolicy", spec.unhealthy_pod_eviction_policy or "", policies)
        if spec.selector is not None:
            with faults.below("selector"):
                check_label_selector(faults, spec.selector)


_CHECKERS: Final[Mapping[str, Callable[[Faults, Any], None]]] = {
    "pods": check_pod,
    "nodes": _check_node,
    "services": _check_service,
    "persistentvolumes": _check_volume,
    "persistentvolumeclaims": _check_claim,
    "storageclasses": _check_storage_class,
    "priorityclasses": _check_priority_class,
    "poddisruptionbudgets": _check_budget,
    "limitranges": check_limit_range,
    "resourcequotas": check_resource_quota,
    "runtimeclasses": check_runtime_class,
    **WORKLOADS,
}
