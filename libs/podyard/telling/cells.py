"""Cells of each kind of object in kubectl's tables. Source: pkg/printers/internalversion/printers.go.

Pure: callers pass the typed object, joined with what others know of it, and `now` in seconds since 1970.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from podyard.objects import quantity
from podyard.objects.apps import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from podyard.objects.batch import CronJob, Job, end_of
from podyard.objects.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    Service,
)
from podyard.objects.meta import LabelSelector, is_true
from podyard.objects.pod import PodTemplateSpec
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.quotas import ResourceQuota
from podyard.objects.resource import ResourceClaim, ResourceSlice
from podyard.objects.scheduling import PriorityClass
from podyard.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from podyard.objects.times import age, duration, seconds_of
from podyard.telling import node_room
from podyard.telling.node_room import TakenNode
from podyard.telling.pod_cells import NONE, pod_ready, pod_restarts, pod_status

Cells = tuple[str, ...]

_UNSET: Final = "<unset>"
_ROLE: Final = "node-role.kubernetes.io/"
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _age(item: Any, now: float) -> str:
    return age(item.metadata.creation_timestamp, now)


def only_age(item: Any, now: float) -> Cells:
    return (_age(item, now),)


def _joined(items: Iterable[object]) -> str:
    return ",".join(map(str, items)) or NONE


def of_pod(pod: Pod, now: float) -> Cells:
    narrow = (pod_ready(pod), pod_status(pod), pod_restarts(pod, now), _age(pod, now))
    addresses = pod.status.pod_ips
    ip = pod.status.pod_ip or (addresses[0].ip if addresses else "")
    return (*narrow, ip or NONE, pod.spec.node_name or NONE, pod.status.nominated_node_name or NONE, NONE)


def node_status(node: Node) -> str:
    """The STATUS column of nodes."""
    ready = next((item for item in node.status.conditions if item.type == "Ready"), None)
    status = "Unknown" if ready is None else "Ready" if ready.status == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if node.spec.unschedulable else status


def of_node(taken: TakenNode, now: float) -> Cells:
    node = taken.node
    roles = {label.removeprefix(_ROLE) for label in node.metadata.labels if label.startswith(_ROLE)} - {""}
    if role := node.metadata.labels.get("kubernetes.io/role"):
        roles.add(role)
    info = node.status.node_info
    addresses = {item.type: item.address for item in reversed(node.status.addresses)}
    return (
        node_status(node),
        _joined(sorted(roles)),
        _age(node, now),
        info.kubelet_version,
        *node_room.room_cells(taken),
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


def of_deployment(item: Deployment, now: float) -> Cells:
    status = item.status
    ready = f"{status.ready_replicas}/{_wanted(item.spec.replicas)}"
    narrow = (ready, str(status.updated_replicas), str(status.available_replicas), _age(item, now))
    return (*narrow, *_template(item.spec.template), selector_text(item.spec.selector))


def of_replica_set(item: ReplicaSet, now: float) -> Cells:
    counts = (_wanted(item.spec.replicas), item.status.replicas, item.status.ready_replicas)
    return (*map(str, counts), _age(item, now), *_template(item.spec.template), selector_text(item.spec.selector))


def of_controller(item: ReplicationController, now: float) -> Cells:
    counts = (_wanted(item.spec.replicas), item.status.replicas, item.status.ready_replicas)
    template = _template(item.spec.template) if item.spec.template is not None else (NONE, NONE)
    return (*map(str, counts), _age(item, now), *template, _map_text(item.spec.selector))


def of_stateful_set(item: StatefulSet, now: float) -> Cells:
    ready = f"{item.status.ready_replicas}/{_wanted(item.spec.replicas)}"
    return (ready, _age(item, now), *_template(item.spec.template))


def of_daemon_set(item: DaemonSet, now: float) -> Cells:
    status, template = item.status, item.spec.template
    counts = (
        *(status.desired_number_scheduled, status.current_number_scheduled, status.number_ready),
        *(status.updated_number_scheduled, status.number_available),
    )
    narrow = (*map(str, counts), _map_text(template.spec.node_selector), _age(item, now))
    return (*narrow, *_template(template), selector_text(item.spec.selector))


def of_revision(item: ControllerRevision, now: float) -> Cells:
    owner = item.metadata.controller
    if owner is None:
        return NONE, str(item.revision), _age(item, now)
    group = owner.api_version.rpartition("/")[0]
    kind = f"{owner.kind.lower()}.{group}" if group else owner.kind.lower()
    return f"{kind}/{owner.name}", str(item.revision), _age(item, now)


def of_cron_job(item: CronJob, now: float) -> Cells:
    spec, status, job = item.spec, item.status, item.spec.job_template.spec
    last = age(status.last_schedule_time, now) if status.last_schedule_time else NONE
    suspended = _UNSET if spec.suspend is None else str(spec.suspend)
    narrow = (spec.schedule, spec.time_zone or NONE, suspended, str(len(status.active)), last, _age(item, now))
    return (*narrow, *_template(job.template), selector_text(job.selector))


def of_job(job: Job, now: float) -> Cells:
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
    if ended := end_of(job):
        return ended
    if job.metadata.deletion_timestamp is not None:
        return "Terminating"
    for state in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(job.status.conditions, state):
            return state
    return "Running"


def _modes(modes: tuple[str, ...]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes)


def _amount(text: str | None) -> str:
    return str(quantity.parse(text)) if text else ""


def of_claim(claim: PersistentVolumeClaim, now: float) -> Cells:
    spec, status = claim.spec, claim.status
    phase = "Terminating" if claim.metadata.deletion_timestamp is not None else status.phase
    bound = bool(spec.volume_name)
    capacity = _amount(status.capacity.get("storage")) if bound else ""
    modes = _modes(status.access_modes) if bound else ""
    narrow = (phase, spec.volume_name, capacity, modes, spec.storage_class_name or "", _UNSET, _age(claim, now))
    return (*narrow, spec.volume_mode or _UNSET)


def of_volume(volume: PersistentVolume, now: float) -> Cells:
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


def of_budget(item: PodDisruptionBudget, now: float) -> Cells:
    least, most = item.spec.min_available, item.spec.max_unavailable
    shown = ("N/A" if least is None else str(least), "N/A" if most is None else str(most))
    return (*shown, str(item.status.disruptions_allowed), _age(item, now))


def of_quota(item: ResourceQuota, now: float) -> Cells:
    """Source: printResourceQuota."""
    hard, used = item.status.hard, item.status.used
    shown = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in shown.items() if name.startswith("limits.")]
    requests = [text for name, text in shown.items() if not name.startswith("limits.")]
    return ", ".join(requests), ", ".join(limits), _age(item, now)


def of_priority_class(item: PriorityClass, now: float) -> Cells:
    globally = "true" if item.global_default else "false"
    return str(item.value), globally, _age(item, now), item.preemption_policy or "PreemptLowerPriority"


def of_namespace(item: Namespace, now: float) -> Cells:
    return item.status.phase, _age(item, now)


def of_service(item: Service, now: float) -> Cells:
    spec = item.spec
    ports = (f"{port.port}:{port.node_port}" if port.node_port else str(port.port) for port in spec.ports)
    listed = _joined(f"{port}/{spec.ports[at].protocol or 'TCP'}" for at, port in enumerate(ports))
    narrow = (spec.type or "ClusterIP", spec.cluster_ip or NONE, _joined(spec.external_ips), listed, _age(item, now))
    return (*narrow, _map_text(spec.selector))


def of_storage_class(item: StorageClass, now: float) -> Cells:
    grows = "true" if item.allow_volume_expansion else "false"
    policies = (item.reclaim_policy or "Delete", item.volume_binding_mode or "Immediate")
    return (item.provisioner, *policies, grows, _age(item, now))


def _truth(value: bool | None) -> str:
    return _UNSET if value is None else "true" if value else "false"


def of_csi_node(item: CSINode, now: float) -> Cells:
    return str(len(item.spec.drivers)), _age(item, now)


def of_csi_driver(item: CSIDriver, now: float) -> Cells:
    return _truth(item.spec.attach_required), _truth(item.spec.storage_capacity), _age(item, now)


def of_csi_capacity(item: CSIStorageCapacity, now: float) -> Cells:
    return item.storage_class_name, _amount(item.capacity), _age(item, now)


def of_attachment(item: VolumeAttachment, now: float) -> Cells:
    spec = item.spec
    volume = spec.source.persistent_volume_name or ""
    return spec.attacher, volume, spec.node_name, _truth(item.status.attached), _age(item, now)


def of_resource_claim(item: ResourceClaim, now: float) -> Cells:
    """Source: resourceClaimState."""
    states = ["deleted"] if item.metadata.deletion_timestamp is not None else []
    if item.status.allocation is None:
        states += [] if states else ["pending"]
    else:
        states += ["allocated", "reserved"] if item.status.reserved_for else ["allocated"]
    return ",".join(states), _age(item, now)


def of_resource_slice(item: ResourceSlice, now: float) -> Cells:
    return item.spec.node_name or _UNSET, item.spec.driver, item.spec.pool.name, _age(item, now)
