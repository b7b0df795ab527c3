"""Tables as `kubectl get` prints them: headers and cells of each kind. Source: pkg/printers/internalversion/printers.go.

Pure: callers pass the typed object, joined with what others know of it, and `now` in seconds since 1970.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from podyard.objects import quantity
from podyard.objects.apps import Deployment, ReplicaSet, StatefulSet
from podyard.objects.batch import Job
from podyard.objects.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    Service,
)
from podyard.objects.kinds import Kind, Object
from podyard.objects.meta import Condition, LabelSelector, ObjectMeta
from podyard.objects.pod import PodTemplateSpec
from podyard.objects.pod_printing import NONE, pod_ready, pod_restarts, pod_status
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.resource import ResourceClaim, ResourceSlice
from podyard.objects.scheduling import PriorityClass
from podyard.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from podyard.objects.times import age, duration, seconds_of

Cells = tuple[str, ...]

_UNSET: Final = "<unset>"
_ROLE: Final = "node-role.kubernetes.io/"
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


class Columns(NamedTuple):
    """The table of one kind: headers after NAME, and those that only `-o wide` shows; `cells` gives all of them."""

    headers: Cells
    wide: Cells
    cells: Callable[[Any, float], Cells]


def headers(kind: Kind, *, wide: bool = False, namespace: bool = False) -> Cells:
    """Headers of the kind's table; `namespace` puts NAMESPACE first, as for all namespaces."""
    columns = _COLUMNS.get(kind.resource, _GENERIC)
    shown = ("NAME", *columns.headers, *(columns.wide if wide else ()))
    return ("NAMESPACE", *shown) if namespace else shown


def row(kind: Kind, item: Object, now: float, *, wide: bool = False, namespace: bool = False) -> Cells:
    """Cells of one object, as many as `headers` with the same choices. `now`: seconds since 1970, UTC."""
    columns = _COLUMNS.get(kind.resource, _GENERIC)
    cells = columns.cells(item, now)
    shown = (_name(kind, item.metadata), *(cells if wide else cells[: len(columns.headers)]))
    return (item.metadata.namespace, *shown) if namespace else shown


def _name(kind: Kind, meta: ObjectMeta) -> str:
    default = kind.resource == "storageclasses" and meta.annotations.get(_DEFAULT_CLASS) == "true"
    return f"{meta.name} (default)" if default else meta.name


def _age(item: Any, now: float) -> str:
    return age(item.metadata.creation_timestamp, now)


def _only_age(item: Any, now: float) -> Cells:
    return (_age(item, now),)


def _joined(items: Iterable[object]) -> str:
    return ",".join(map(str, items)) or NONE


def _held(conditions: tuple[Condition, ...], type_: str) -> bool:
    return any(item.type == type_ and item.status == "True" for item in conditions)


def _pod(pod: Pod, now: float) -> Cells:
    narrow = (pod_ready(pod), pod_status(pod), pod_restarts(pod, now), _age(pod, now))
    addresses = pod.status.pod_ips
    ip = pod.status.pod_ip or (addresses[0].ip if addresses else "")
    return (*narrow, ip or NONE, pod.spec.node_name or NONE, pod.status.nominated_node_name or NONE, NONE)


def _node(node: Node, now: float) -> Cells:
    ready = next((item for item in node.status.conditions if item.type == "Ready"), None)
    status = "Unknown" if ready is None else "Ready" if ready.status == "True" else "NotReady"
    if node.spec.unschedulable:
        status += ",SchedulingDisabled"
    roles = {label.removeprefix(_ROLE) for label in node.metadata.labels if label.startswith(_ROLE)} - {""}
    if role := node.metadata.labels.get("kubernetes.io/role"):
        roles.add(role)
    info = node.status.node_info
    addresses = {item.type: item.address for item in reversed(node.status.addresses)}
    return (
        status,
        _joined(sorted(roles)),
        _age(node, now),
        info.kubelet_version,
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.os_image or "<unknown>",
        info.kernel_version or "<unknown>",
        info.container_runtime_version or "<unknown>",
    )


def _template(template: PodTemplateSpec) -> Cells:
    containers = template.spec.containers
    return _joined(item.name for item in containers), _joined(item.image for item in containers)


def selector_text(selector: LabelSelector | None) -> str:
    """A label selector in one line, e.g. `app=web,tier in (a,b),!old`; `<none>` if it is absent or empty.

    Source: metav1.FormatLabelSelector.
    """
    if selector is None:
        return NONE
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for item in selector.match_expressions:
        values = f"({','.join(sorted(item.values))})"
        words = {"In": f"{item.key} in {values}", "NotIn": f"{item.key} notin {values}", "Exists": item.key}
        parts.append(words.get(item.operator, f"!{item.key}"))
    return _joined(sorted(parts))


def _map_text(labels: Mapping[str, str]) -> str:
    return _joined(f"{key}={value}" for key, value in sorted(labels.items()))


def _wanted(replicas: int | None) -> int:
    return 1 if replicas is None else replicas


def _deployment(item: Deployment, now: float) -> Cells:
    status = item.status
    ready = f"{status.ready_replicas}/{_wanted(item.spec.replicas)}"
    narrow = (ready, str(status.updated_replicas), str(status.available_replicas), _age(item, now))
    return (*narrow, *_template(item.spec.template), selector_text(item.spec.selector))


def _replica_set(item: ReplicaSet, now: float) -> Cells:
    counts = (_wanted(item.spec.replicas), item.status.replicas, item.status.ready_replicas)
    return (*map(str, counts), _age(item, now), *_template(item.spec.template), selector_text(item.spec.selector))


def _controller(item: ReplicationController, now: float) -> Cells:
    counts = (_wanted(item.spec.replicas), item.status.replicas, item.status.ready_replicas)
    template = _template(item.spec.template) if item.spec.template is not None else (NONE, NONE)
    return (*map(str, counts), _age(item, now), *template, _map_text(item.spec.selector))


def _stateful_set(item: StatefulSet, now: float) -> Cells:
    ready = f"{item.status.ready_replicas}/{_wanted(item.spec.replicas)}"
    return (ready, _age(item, now), *_template(item.spec.template))


def _job(job: Job, now: float) -> Cells:
    spec, status = job.spec, job.status
    if spec.completions is not None:
        completions = f"{status.succeeded}/{spec.completions}"
    else:
        several = f" of {spec.parallelism}" if (spec.parallelism or 0) > 1 else ""
        completions = f"{status.succeeded}/1{several}"
    took = ""
    if status.start_time:
        try:
            end = seconds_of(status.completion_time) if status.completion_time else now
            took = duration(end - seconds_of(status.start_time))
        except ValueError:
            took = "<invalid>"
    narrow = (_job_status(job), completions, took, _age(job, now))
    return (*narrow, *_template(spec.template), selector_text(spec.selector))


def _job_status(job: Job) -> str:
    for ended in ("Complete", "Failed"):
        if _held(job.status.conditions, ended):
            return ended
    if job.metadata.deletion_timestamp is not None:
        return "Terminating"
    for state in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _held(job.status.conditions, state):
            return state
    return "Running"


def _modes(modes: tuple[str, ...]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes)


def _amount(text: str | None) -> str:
    return str(quantity.parse(text)) if text else ""


def _claim(claim: PersistentVolumeClaim, now: float) -> Cells:
    spec, status = claim.spec, claim.status
    phase = "Terminating" if claim.metadata.deletion_timestamp is not None else status.phase
    bound = bool(spec.volume_name)
    capacity = _amount(status.capacity.get("storage")) if bound else ""
    modes = _modes(status.access_modes) if bound else ""
    narrow = (phase, spec.volume_name, capacity, modes, spec.storage_class_name or "", _UNSET, _age(claim, now))
    return (*narrow, spec.volume_mode or _UNSET)


def _volume(volume: PersistentVolume, now: float) -> Cells:
    spec = volume.spec
    phase = "Terminating" if volume.metadata.deletion_timestamp is not None else volume.status.phase
    owner = spec.claim_ref
    return (
        _amount(spec.capacity.get("storage")),
        _modes(spec.access_modes),
        spec.persistent_volume_reclaim_policy,
        phase,
        f"{owner.namespace}/{owner.name}" if owner is not None else "",
        spec.storage_class_name,
        spec.volume_attributes_class_name or _UNSET,
        volume.status.reason,
        _age(volume, now),
        spec.volume_mode or _UNSET,
    )


def _budget(item: PodDisruptionBudget, now: float) -> Cells:
    least, most = item.spec.min_available, item.spec.max_unavailable
    shown = ("N/A" if least is None else str(least), "N/A" if most is None else str(most))
    return (*shown, str(item.status.disruptions_allowed), _age(item, now))


def _priority_class(item: PriorityClass, now: float) -> Cells:
    globally = "true" if item.global_default else "false"
    return str(item.value), globally, _age(item, now), item.preemption_policy or "PreemptLowerPriority"


def _namespace(item: Namespace, now: float) -> Cells:
    return item.status.phase, _age(item, now)


def _service(item: Service, now: float) -> Cells:
    spec = item.spec
    ports = (f"{port.port}:{port.node_port}" if port.node_port else str(port.port) for port in spec.ports)
    listed = _joined(f"{port}/{spec.ports[at].protocol or 'TCP'}" for at, port in enumerate(ports))
    narrow = (spec.type or "ClusterIP", spec.cluster_ip or NONE, _joined(spec.external_ips), listed, _age(item, now))
    return (*narrow, _map_text(spec.selector))


def _storage_class(item: StorageClass, now: float) -> Cells:
    grows = "true" if item.allow_volume_expansion else "false"
    policies = (item.reclaim_policy or "Delete", item.volume_binding_mode or "Immediate")
    return (item.provisioner, *policies, grows, _age(item, now))


def _truth(value: bool | None) -> str:
    return _UNSET if value is None else "true" if value else "false"


def _csi_node(item: CSINode, now: float) -> Cells:
    return str(len(item.spec.drivers)), _age(item, now)


def _csi_driver(item: CSIDriver, now: float) -> Cells:
    return _truth(item.spec.attach_required), _truth(item.spec.storage_capacity), _age(item, now)


def _csi_capacity(item: CSIStorageCapacity, now: float) -> Cells:
    return item.storage_class_name, _amount(item.capacity), _age(item, now)


def _attachment(item: VolumeAttachment, now: float) -> Cells:
    spec = item.spec
    volume = spec.source.persistent_volume_name or ""
    return spec.attacher, volume, spec.node_name, _truth(item.status.attached), _age(item, now)


def _resource_claim(item: ResourceClaim, now: float) -> Cells:
    """Source: resourceClaimState."""
    states = ["deleted"] if item.metadata.deletion_timestamp is not None else []
    if item.status.allocation is None:
        states += [] if states else ["pending"]
    else:
        states += ["allocated", "reserved"] if item.status.reserved_for else ["allocated"]
    return ",".join(states), _age(item, now)


def _resource_slice(item: ResourceSlice, now: float) -> Cells:
    return item.spec.node_name or _UNSET, item.spec.driver, item.spec.pool.name, _age(item, now)


_TEMPLATE_HEADERS: Final = ("CONTAINERS", "IMAGES")
_NODE_HEADERS: Final = ("INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME")
_VOLUME_HEADERS: Final = (
    *("CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS"),
    *("VOLUMEATTRIBUTESCLASS", "REASON", "AGE"),
)
_CLAIM_HEADERS: Final = ("STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS", "AGE")
_REPLICAS_HEADERS: Final = ("DESIRED", "CURRENT", "READY", "AGE")
_CLASS_HEADERS: Final = ("PROVISIONER", "RECLAIMPOLICY", "VOLUMEBINDINGMODE", "ALLOWVOLUMEEXPANSION", "AGE")

_GENERIC: Final = Columns(("AGE",), (), _only_age)
_COLUMNS: Final[Mapping[str, Columns]] = {
    "pods": Columns(("READY", "STATUS", "RESTARTS", "AGE"), ("IP", "NODE", "NOMINATED NODE", "READINESS GATES"), _pod),
    "nodes": Columns(("STATUS", "ROLES", "AGE", "VERSION"), _NODE_HEADERS, _node),
    "namespaces": Columns(("STATUS", "AGE"), (), _namespace),
    "services": Columns(("TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"), ("SELECTOR",), _service),
    "deployments": Columns(("READY", "UP-TO-DATE", "AVAILABLE", "AGE"), (*_TEMPLATE_HEADERS, "SELECTOR"), _deployment),
    "replicasets": Columns(_REPLICAS_HEADERS, (*_TEMPLATE_HEADERS, "SELECTOR"), _replica_set),
    "replicationcontrollers": Columns(_REPLICAS_HEADERS, (*_TEMPLATE_HEADERS, "SELECTOR"), _controller),
    "statefulsets": Columns(("READY", "AGE"), _TEMPLATE_HEADERS, _stateful_set),
    "jobs": Columns(("STATUS", "COMPLETIONS", "DURATION", "AGE"), (*_TEMPLATE_HEADERS, "SELECTOR"), _job),
    "persistentvolumeclaims": Columns(_CLAIM_HEADERS, ("VOLUMEMODE",), _claim),
    "persistentvolumes": Columns(_VOLUME_HEADERS, ("VOLUMEMODE",), _volume),
    "poddisruptionbudgets": Columns(("MIN AVAILABLE", "MAX UNAVAILABLE", "ALLOWED DISRUPTIONS", "AGE"), (), _budget),
    "priorityclasses": Columns(("VALUE", "GLOBAL-DEFAULT", "AGE", "PREEMPTIONPOLICY"), (), _priority_class),
    "storageclasses": Columns(_CLASS_HEADERS, (), _storage_class),
    "csinodes": Columns(("DRIVERS", "AGE"), (), _csi_node),
    "csidrivers": Columns(("ATTACHREQUIRED", "STORAGECAPACITY", "AGE"), (), _csi_driver),
    "csistoragecapacities": Columns(("STORAGECLASS", "CAPACITY", "AGE"), (), _csi_capacity),
    "volumeattachments": Columns(("ATTACHER", "PV", "NODE", "ATTACHED", "AGE"), (), _attachment),
    "resourceclaims": Columns(("STATE", "AGE"), (), _resource_claim),
    "resourceslices": Columns(("NODE", "DRIVER", "POOL", "AGE"), (), _resource_slice),
}
