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


class RollingUpdateStatefulSet(View, frozen=True, kw_only=True):
    """Pods below the ordinal `partition` keep the template before; None is 0. `max_unavailable` may be
    missing at once: a number or a percentage such as `25%`."""

    partition: Int64 | None = None
    max_unavailable: Int64 | str | None = None


class StatefulSetUpdateStrategy(View, frozen=True, kw_only=True):
    """Type is RollingUpdate or OnDelete."""

    type: str = ""
    rolling_update: RollingUpdateStatefulSet | None = None


class StatefulSetOrdinals(View, frozen=True, kw_only=True):
    """The number of the first pod."""

    start: Int64 = 0


class ClaimRetentionPolicy(View, frozen=True, kw_only=True):
    """What becomes of claims: Retain or Delete, when the set is deleted and when it is scaled down."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


_NO_STATEFUL_SET_STRATEGY = StatefulSetUpdateStrategy()
_FROM_ZERO = StatefulSetOrdinals()
_RETAIN = ClaimRetentionPolicy()


class StatefulSetSpec(View, frozen=True, kw_only=True):
    """How many pods of which template, each with a name and claims of its own; `replicas` None is 1.

    `pod_management_policy` is OrderedReady or Parallel.
    """

    replicas: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = _NO_TEMPLATE
    service_name: str = ""
    pod_management_policy: str = ""
    volume_claim_templates: tuple[PersistentVolumeClaimTemplate, ...] = ()
    min_ready_seconds: Int64 = 0
    update_strategy: StatefulSetUpdateStrategy = _NO_STATEFUL_SET_STRATEGY
    ordinals: StatefulSetOrdinals = _FROM_ZERO
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy = _RETAIN
    revision_history_limit: Int64 | None = None


class StatefulSetStatus(View, frozen=True, kw_only=True):
    """How many pods there are."""

    observed_generation: Int64 = 0
    replicas: Int64 = 0
    ready_replicas: Int64 = 0
    current_replicas: Int64 = 0
    updated_replicas: Int64 = 0
    available_replicas: Int64 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int64 | None = None


_NO_STATEFUL_SET_SPEC = StatefulSetSpec()
_NO_STATEFUL_SET_STATUS = StatefulSetStatus()


class StatefulSet(View, frozen=True, kw_only=True):
    """Pods with names and claims that stay, in order."""

    metadata: ObjectMeta = _NO_META
    spec: StatefulSetSpec = _NO_STATEFUL_SET_SPEC
    status: StatefulSetStatus = _NO_STATEFUL_SET_STATUS


class RollingUpdateDaemonSet(View, frozen=True, kw_only=True):
    """How many nodes may lack an available pod, or have one too many, during a change: a number or a
    percentage such as `25%`."""

    max_unavailable: Int64 | str | None = None
    max_surge: Int64 | str | None = None


class DaemonSetUpdateStrategy(View, frozen=True, kw_only=True):
    """Type is RollingUpdate or OnDelete."""

    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


_NO_DAEMON_SET_STRATEGY = DaemonSetUpdateStrategy()


class DaemonSetSpec(View, frozen=True, kw_only=True):
    """Which pod each node gets, and how a new template is brought in."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = _NO_TEMPLATE
    update_strategy: DaemonSetUpdateStrategy = _NO_DAEMON_SET_STRATEGY
    min_ready_seconds: Int64 = 0
    revision_history_limit: Int64 | None = None


class DaemonSetStatus(View, frozen=True, kw_only=True):
    """On how many nodes a pod should run, runs, is ready, and runs although it should not."""

    observed_generation: Int64 = 0
    desired_number_scheduled: Int64 = 0
    current_number_scheduled: Int64 = 0
    number_misscheduled: Int64 = 0
    number_ready: Int64 = 0
    updated_number_scheduled: Int64 = 0
    number_available: Int64 = 0
    number_unavailable: Int64 = 0
    collision_count: Int64 | None = None


_NO_DAEMON_SET_SPEC = DaemonSetSpec()
_NO_DAEMON_SET_STATUS = DaemonSetStatus()


class DaemonSet(View, frozen=True, kw_only=True):
    """A pod on each node that takes it."""

    metadata: ObjectMeta = _NO_META
    spec: DaemonSetSpec = _NO_DAEMON_SET_SPEC
    status: DaemonSetStatus = _NO_DAEMON_SET_STATUS


class ControllerRevision(View, frozen=True, kw_only=True):
    """A template that a DaemonSet or StatefulSet has, or had; the template itself is in the document
    alone."""

    metadata: ObjectMeta = _NO_META
    revision: Int64 = 0
