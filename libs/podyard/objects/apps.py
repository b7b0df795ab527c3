"""The kinds of `apps/v1` that workloads runs and plugins look at. Source: api/apps/v1/types.go."""

from podyard.objects.meta import Condition, LabelSelector, ObjectMeta, View
from podyard.objects.pod import PodTemplateSpec
from podyard.objects.volumes import PersistentVolumeClaimTemplate
from podyard.proto.message import Int64

_NO_META = ObjectMeta()
_NO_TEMPLATE = PodTemplateSpec()


class ReplicaSetSpec(View, frozen=True, kw_only=True):
    """How many pods of which template; `replicas` None is 1."""

    replicas: Int64 | None = None
    min_ready_seconds: Int64 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = _NO_TEMPLATE


class ReplicaSetStatus(View, frozen=True, kw_only=True):
    """How many pods there are."""

    replicas: Int64 = 0
    fully_labeled_replicas: Int64 = 0
    ready_replicas: Int64 = 0
    available_replicas: Int64 = 0
    terminating_replicas: Int64 | None = None
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


_NO_REPLICA_SET_SPEC = ReplicaSetSpec()
_NO_REPLICA_SET_STATUS = ReplicaSetStatus()


class ReplicaSet(View, frozen=True, kw_only=True):
    """A set of equal pods."""

    metadata: ObjectMeta = _NO_META
    spec: ReplicaSetSpec = _NO_REPLICA_SET_SPEC
    status: ReplicaSetStatus = _NO_REPLICA_SET_STATUS


class RollingUpdateDeployment(View, frozen=True, kw_only=True):
    """How many pods may be missing or too many during a change: a number or a percentage such as `25%`."""

    max_unavailable: Int64 | str | None = None
    max_surge: Int64 | str | None = None


class DeploymentStrategy(View, frozen=True, kw_only=True):
    """Type is RollingUpdate or Recreate."""

    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


_NO_STRATEGY = DeploymentStrategy()


class DeploymentSpec(View, frozen=True, kw_only=True):
    """How many pods of which template, and how a new template is brought in; `replicas` None is 1."""

    replicas: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = _NO_TEMPLATE
    strategy: DeploymentStrategy = _NO_STRATEGY
    min_ready_seconds: Int64 = 0
    revision_history_limit: Int64 | None = None
    paused: bool = False
    progress_deadline_seconds: Int64 | None = None


class DeploymentStatus(View, frozen=True, kw_only=True):
    """How far a change is."""

    observed_generation: Int64 = 0
    replicas: Int64 = 0
    updated_replicas: Int64 = 0
    ready_replicas: Int64 = 0
    available_replicas: Int64 = 0
    unavailable_replicas: Int64 = 0
    terminating_replicas: Int64 | None = None
    conditions: tuple[Condition, ...] = ()
    collision_count: Int64 | None = None


_NO_DEPLOYMENT_SPEC = DeploymentSpec()
_NO_DEPLOYMENT_STATUS = DeploymentStatus()


class Deployment(View, frozen=True, kw_only=True):
    """Pods that are replaced step by step when their template changes."""

    metadata: ObjectMeta = _NO_META
    spec: DeploymentSpec = _NO_DEPLOYMENT_SPEC
    status: DeploymentStatus = _NO_DEPLOYMENT_STATUS


class StatefulSetSpec(View, frozen=True, kw_only=True):
    """How many pods of which template, each with a name and claims of its own; `replicas` None is 1."""

    replicas: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = _NO_TEMPLATE
    service_name: str = ""
    pod_management_policy: str = ""
    volume_claim_templates: tuple[PersistentVolumeClaimTemplate, ...] = ()
    min_ready_seconds: Int64 = 0


class StatefulSetStatus(View, frozen=True, kw_only=True):
    """How many pods there are."""

    observed_generation: Int64 = 0
    replicas: Int64 = 0
    ready_replicas: Int64 = 0
    current_replicas: Int64 = 0
    updated_replicas: Int64 = 0
    available_replicas: Int64 = 0


_NO_STATEFUL_SET_SPEC = StatefulSetSpec()
_NO_STATEFUL_SET_STATUS = StatefulSetStatus()


class StatefulSet(View, frozen=True, kw_only=True):
    """To scheduling, a set of pods that belong together."""

    metadata: ObjectMeta = _NO_META
    spec: StatefulSetSpec = _NO_STATEFUL_SET_SPEC
    status: StatefulSetStatus = _NO_STATEFUL_SET_STATUS
