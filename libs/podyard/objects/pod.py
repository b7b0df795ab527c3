"""Pods. Source: api/core/v1/types.go."""

from typing import Final

import msgspec

from podyard.objects.affinity import Affinity, Toleration, TopologySpreadConstraint
from podyard.objects.containers import Container, ContainerStatus, ResourceRequirements
from podyard.objects.meta import Condition, ObjectMeta, ResourceList, View
from podyard.objects.volumes import Volume
from podyard.proto.message import Int64

ENDED: Final = frozenset({"Succeeded", "Failed"})
"""Phases in which nothing of a pod runs any more."""


class SchedulingGate(View, frozen=True, kw_only=True):
    """A pod is not scheduled before all its gates are gone."""

    name: str


class PodResourceClaim(View, frozen=True, kw_only=True):
    """A claim for devices that the pod uses: an existing one, or one made from a template."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodOs(View, frozen=True, kw_only=True):
    """The operating system a pod is made for: linux or windows."""

    name: str = ""


class PodSpec(View, frozen=True, kw_only=True):
    """What the pod is to be. `priority` None is 0; `termination_grace_period_seconds` in seconds."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: Int64 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    host_network: bool = False
    host_users: bool | None = None
    runtime_class_name: str | None = None
    service_account_name: str = ""
    os: PodOs | None = None


class PodIp(View, frozen=True, kw_only=True):
    """One address of a pod."""

    ip: str = ""


class PodResourceClaimStatus(View, frozen=True, kw_only=True):
    """The claim that was made for a claim of the pod; None: none was needed."""

    name: str
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(View, frozen=True, kw_only=True):
    """Which device request stands for an extended resource of a container."""

    container_name: str
    resource_name: str
    request_name: str


class PodExtendedResourceClaimStatus(View, frozen=True, kw_only=True):
    """The claim that stands for the extended resources of a pod."""

    resource_claim_name: str
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class PodStatus(View, frozen=True, kw_only=True):
    """What is known of the pod. `nominated_node_name` is the node it preempted for."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[PodIp, ...] = msgspec.field(default=(), name="podIPs")
    qos_class: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


_NO_META = ObjectMeta()
_NO_SPEC = PodSpec()
_NO_STATUS = PodStatus()


class Pod(View, frozen=True, kw_only=True):
    """A pod."""

    metadata: ObjectMeta = _NO_META
    spec: PodSpec = _NO_SPEC
    status: PodStatus = _NO_STATUS

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return self.metadata.namespace, self.metadata.name


class PodTemplateSpec(View, frozen=True, kw_only=True):
    """What a workload makes pods from."""

    metadata: ObjectMeta = _NO_META
    spec: PodSpec = _NO_SPEC
