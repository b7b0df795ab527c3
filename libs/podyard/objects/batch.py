"""Jobs (`batch/v1`). Source: api/batch/v1/types.go."""

from podyard.objects.meta import Condition, LabelSelector, ObjectMeta, View
from podyard.objects.pod import PodTemplateSpec
from podyard.proto.message import Int64

_NO_META = ObjectMeta()
_NO_TEMPLATE = PodTemplateSpec()


class JobSpec(View, frozen=True, kw_only=True):
    """How many pods must succeed (`completions`; None: one success of any pod) and how many run at once
    (None: 1).

    `completion_mode` is NonIndexed or Indexed; times are in seconds.
    """

    parallelism: Int64 | None = None
    completions: Int64 | None = None
    completion_mode: str | None = None
    backoff_limit: Int64 | None = None
    backoff_limit_per_index: Int64 | None = None
    max_failed_indexes: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    ttl_seconds_after_finished: Int64 | None = None
    selector: LabelSelector | None = None
    manual_selector: bool = False
    suspend: bool = False
    pod_replacement_policy: str | None = None
    template: PodTemplateSpec = _NO_TEMPLATE


class UncountedTerminatedPods(View, frozen=True, kw_only=True):
    """Uids of pods that have ended and are not in the counts yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(View, frozen=True, kw_only=True):
    """How far the job is. Conditions: Complete, Failed, Suspended."""

    active: Int64 = 0
    ready: Int64 | None = None
    succeeded: Int64 = 0
    failed: Int64 = 0
    terminating: Int64 | None = None
    start_time: str | None = None
    completion_time: str | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    conditions: tuple[Condition, ...] = ()


_NO_SPEC = JobSpec()
_NO_STATUS = JobStatus()


class Job(View, frozen=True, kw_only=True):
    """Pods that run to their end."""

    metadata: ObjectMeta = _NO_META
    spec: JobSpec = _NO_SPEC
    status: JobStatus = _NO_STATUS
