"""Jobs and CronJobs (`batch/v1`). Source: api/batch/v1/types.go."""

from podyard.objects.meta import Condition, LabelSelector, ObjectMeta, ObjectReference, View, is_true
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


def end_of(job: Job) -> str:
    """Complete or Failed; empty while it goes on. Source: kubernetes v1.36.2, pkg/controller/job/utils.go
    (FinishedCondition)."""
    return next((end for end in ("Complete", "Failed") if is_true(job.status.conditions, end)), "")


class JobTemplateSpec(View, frozen=True, kw_only=True):
    """What a CronJob makes jobs from."""

    metadata: ObjectMeta = _NO_META
    spec: JobSpec = _NO_SPEC


_NO_JOB = JobTemplateSpec()


class CronJobSpec(View, frozen=True, kw_only=True):
    """When which job is made.

    `concurrency_policy` is Allow, Forbid or Replace; a time zone is a name such as `Europe/Paris`, None is
    UTC; a history limit of None keeps all jobs that have ended.
    """

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = _NO_JOB
    successful_jobs_history_limit: Int64 | None = None
    failed_jobs_history_limit: Int64 | None = None


class CronJobStatus(View, frozen=True, kw_only=True):
    """Which jobs run, and when one was last due, and last succeeded (RFC 3339)."""

    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


_NO_CRON_SPEC = CronJobSpec()
_NO_CRON_STATUS = CronJobStatus()


class CronJob(View, frozen=True, kw_only=True):
    """Jobs that are made by the clock."""

    metadata: ObjectMeta = _NO_META
    spec: CronJobSpec = _NO_CRON_SPEC
    status: CronJobStatus = _NO_CRON_STATUS
