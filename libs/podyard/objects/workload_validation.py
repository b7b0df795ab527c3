"""Which workloads are allowed: what has a pod template, and what makes jobs.

Sources: kubernetes v1.36.2, pkg/apis/apps, batch, core: validation.go; util/parsers/parsers.go
(ParseCronScheduleWithPanicRecovery). Paths are those of the document.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from podyard.objects import cron
from podyard.objects.affinity_validation import check_label_selector
from podyard.objects.apps import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    ReplicaSet,
    RollingUpdateDaemonSet,
    RollingUpdateStatefulSet,
    StatefulSet,
)
from podyard.objects.batch import CronJob, Job, JobSpec
from podyard.objects.core import ReplicationController
from podyard.objects.errors import SelectorError
from podyard.objects.faults import Faults
from podyard.objects.meta import LabelSelector
from podyard.objects.names import check_labels, label_fault
from podyard.objects.pod import PodTemplateSpec
from podyard.objects.pod_validation import check_pod_spec
from podyard.objects.selectors import compile_labels

LONGEST_CRON_JOB: Final = 52
"""Characters of a CronJob's name: its jobs are called `<name>-<minute>`, with 63 at most."""
_PERCENT: Final = re.compile(r"[0-9]{1,18}%")
"""As many digits as a 64-bit number surely has. Source: k8s.io/apimachinery/pkg/util/intstr,
getIntOrPercentValueSafely (Atoi)."""
_STRATEGIES: Final = ("RollingUpdate", "OnDelete")


def check_count(faults: Faults, field: str, count: int | str | None) -> None:
    """A number of pods, or a percentage of them. Source: ValidatePositiveIntOrPercent,
    IsNotMoreThan100Percent."""
    if isinstance(count, str):
        if not _PERCENT.fullmatch(count):
            faults.invalid(field, count, "must be an integer or percentage (e.g '5%')")
        elif int(count[:-1]) > 100:
            faults.invalid(field, count, "must not be greater than 100%")
    else:
        faults.not_negative(field, count)


def _check_template(faults: Faults, template: PodTemplateSpec, restart: tuple[str, ...]) -> None:
    with faults.below("spec.template"):
        check_labels(faults, template.metadata.labels, "metadata.labels")
        with faults.below("spec"):
            check_pod_spec(faults, template.spec)
            if template.spec.restart_policy not in restart:
                faults.unsupported("restartPolicy", template.spec.restart_policy, restart)


def _check_selector(faults: Faults, selector: LabelSelector | None, template: PodTemplateSpec) -> None:
    if selector is None:
        faults.required("spec.selector")
        return
    if not selector.match_labels and not selector.match_expressions:
        faults.invalid("spec.selector", "{}", "empty selector is invalid for deployment, replica set and stateful set")
    with faults.below("spec.selector"):
        check_label_selector(faults, selector)
    try:
        matches = compile_labels(selector).matches(template.metadata.labels)
    except SelectorError:
        return
    if not matches:
        labels = dict(sorted(template.metadata.labels.items()))
        faults.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _check_replicated(faults: Faults, workload: ReplicaSet | Deployment | StatefulSet) -> None:
    faults.not_negative("spec.replicas", workload.spec.replicas)
    _check_running(faults, workload)


def _check_running(faults: Faults, workload: ReplicaSet | Deployment | StatefulSet | DaemonSet) -> None:
    """Of pods that run for ever."""
    spec = workload.spec
    faults.not_negative("spec.minReadySeconds", spec.min_ready_seconds)
    _check_selector(faults, spec.selector, spec.template)
    _check_template(faults, spec.template, ("Always",))
    if spec.template.spec.active_deadline_seconds is not None:
        faults.forbidden(
            "spec.template.spec.activeDeadlineSeconds",
            f"activeDeadlineSeconds in {type(workload).__name__} is not Supported",
        )


def _check_deployment(faults: Faults, deployment: Deployment) -> None:
    _check_replicated(faults, deployment)
    strategy = deployment.spec.strategy
    with faults.below("spec.strategy"):
        faults.one_of("type", strategy.type, ("RollingUpdate", "Recreate"))
        rolling = strategy.rolling_update
        if rolling is not None and strategy.type == "Recreate":
            faults.forbidden("rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
        if rolling is not None:
            check_count(faults, "rollingUpdate.maxUnavailable", rolling.max_unavailable)
            if isinstance(rolling.max_surge, int):
                faults.not_negative("rollingUpdate.maxSurge", rolling.max_surge)
            elif rolling.max_surge is not None and not _PERCENT.fullmatch(rolling.max_surge):
                faults.invalid(
                    "rollingUpdate.maxSurge", rolling.max_surge, "must be an integer or percentage (e.g '5%')"
                )
            if str(rolling.max_surge).rstrip("%") == "0" and str(rolling.max_unavailable).rstrip("%") == "0":
                detail = "may not be 0 when `maxSurge` is 0"
                faults.invalid("rollingUpdate.maxUnavailable", rolling.max_unavailable, detail)


def _check_controller(faults: Faults, controller: ReplicationController) -> None:
    spec = controller.spec
    faults.not_negative("spec.replicas", spec.replicas)
    if not spec.selector:
        faults.required("spec.selector")
    if spec.template is None:
        faults.required("spec.template")
        return
    if not spec.selector.items() <= spec.template.metadata.labels.items():
        faults.invalid("spec.template.metadata.labels", "", "`selector` does not match template `labels`")
    _check_template(faults, spec.template, ("Always",))


def _check_job(faults: Faults, job: Job) -> None:
    """Source: pkg/apis/batch/validation, ValidateJobSpec."""
    with faults.below("spec"):
        _check_job_spec(faults, job.spec)
    _check_selector(faults, job.spec.selector, job.spec.template)
    _check_template(faults, job.spec.template, ("OnFailure", "Never"))


def _check_job_spec(faults: Faults, spec: JobSpec) -> None:
    """Of a job, and of one that is to be made."""
    numbers = {
        "parallelism": spec.parallelism,
        "completions": spec.completions,
        "activeDeadlineSeconds": spec.active_deadline_seconds,
        "backoffLimit": spec.backoff_limit,
        "backoffLimitPerIndex": spec.backoff_limit_per_index,
        "ttlSecondsAfterFinished": spec.ttl_seconds_after_finished,
    }
    for field, number in numbers.items():
        faults.not_negative(field, number)
    faults.one_of("completionMode", spec.completion_mode or "", ("NonIndexed", "Indexed"))
    if spec.completion_mode == "Indexed" and spec.completions is None:
        faults.required("completions", "when completion mode is Indexed")
    faults.one_of("podReplacementPolicy", spec.pod_replacement_policy or "", ("Failed", "TerminatingOrFailed"))


def _check_stateful_set(faults: Faults, stateful: StatefulSet) -> None:
    """Source: ValidateStatefulSetSpec."""
    _check_replicated(faults, stateful)
    spec, strategy = stateful.spec, stateful.spec.update_strategy
    with faults.below("spec"):
        policies = ("OrderedReady", "Parallel")
        if spec.pod_management_policy not in policies:
            detail = f"must be '{policies[0]}' or '{policies[1]}'"
            faults.invalid("podManagementPolicy", spec.pod_management_policy, detail)
        faults.not_negative("ordinals.start", spec.ordinals.start)
        faults.not_negative("revisionHistoryLimit", spec.revision_history_limit)
        retention = spec.persistent_volume_claim_retention_policy
        with faults.below("persistentVolumeClaimRetentionPolicy"):
            faults.one_of("whenDeleted", retention.when_deleted, ("Retain", "Delete"))
            faults.one_of("whenScaled", retention.when_scaled, ("Retain", "Delete"))
        if spec.service_name and (fault := label_fault(spec.service_name)):
            faults.invalid("serviceName", spec.service_name, fault)
        if strategy.type not in _STRATEGIES:
            faults.invalid("updateStrategy", strategy.type, "must be 'RollingUpdate' or 'OnDelete'")
        if strategy.rolling_update is not None:
            if strategy.type == "OnDelete":
                faults.invalid("updateStrategy.rollingUpdate", "{}", "only allowed for updateStrategy 'RollingUpdate'")
            with faults.below("updateStrategy.rollingUpdate"):
                _check_partition(faults, strategy.rolling_update)


def _check_partition(faults: Faults, rolling: RollingUpdateStatefulSet) -> None:
    faults.not_negative("partition", rolling.partition)
    check_count(faults, "maxUnavailable", rolling.max_unavailable)
    if _is_zero(rolling.max_unavailable):
        faults.invalid("maxUnavailable", rolling.max_unavailable, "cannot be 0")


def _check_daemon_set(faults: Faults, daemon_set: DaemonSet) -> None:
    """Source: ValidateDaemonSetSpec."""
    _check_running(faults, daemon_set)
    strategy = daemon_set.spec.update_strategy
    with faults.below("spec"):
        faults.not_negative("revisionHistoryLimit", daemon_set.spec.revision_history_limit)
        faults.one_of("updateStrategy", strategy.type, _STRATEGIES)
        if strategy.type == "RollingUpdate" and strategy.rolling_update is not None:
            with faults.below("updateStrategy.rollingUpdate"):
                _check_daemon_update(faults, strategy.rolling_update)


def _check_daemon_update(faults: Faults, rolling: RollingUpdateDaemonSet) -> None:
    """Exactly one of both is not 0. Source: ValidateRollingUpdateDaemonSet."""
    check_count(faults, "maxUnavailable", rolling.max_unavailable)
    check_count(faults, "maxSurge", rolling.max_surge)
    unavailable, surge = not _is_zero(rolling.max_unavailable), not _is_zero(rolling.max_surge)
    if unavailable and surge:
        faults.invalid("maxSurge", rolling.max_surge, "may not be set when maxUnavailable is non-zero")
    elif not unavailable and not surge:
        faults.required("maxUnavailable", "cannot be 0 when maxSurge is 0")


def _is_zero(count: int | str | None) -> bool:
    """Whether a number or percentage is set, and 0."""
    return count is not None and str(count).rstrip("%").strip("0") == ""


def _check_revision(faults: Faults, revision: ControllerRevision) -> None:
    faults.not_negative("revision", revision.revision)


def _check_cron_job(faults: Faults, cron_job: CronJob) -> None:
    """Source: validateCronJobSpec, ValidateCronJobCreate."""
    name, spec, job = cron_job.metadata.name, cron_job.spec, cron_job.spec.job_template.spec
    if len(name) > LONGEST_CRON_JOB:
        faults.invalid("metadata.name", name, f"must be no more than {LONGEST_CRON_JOB} characters")
    with faults.below("spec"):
        _check_schedule(faults, spec.schedule, spec.time_zone)
        faults.not_negative("startingDeadlineSeconds", spec.starting_deadline_seconds)
        faults.not_negative("successfulJobsHistoryLimit", spec.successful_jobs_history_limit)
        faults.not_negative("failedJobsHistoryLimit", spec.failed_jobs_history_limit)
        faults.one_of("concurrencyPolicy", spec.concurrency_policy, ("Allow", "Forbid", "Replace"))
        with faults.below("jobTemplate.spec"):
            _check_job_spec(faults, job)
            if job.selector is not None:
                faults.invalid("selector", "{}", "`selector` will be auto-generated")
            if job.manual_selector:
                faults.unsupported("manualSelector", True, ("nil", "false"))
        with faults.below("jobTemplate"):
            _check_template(faults, job.template, ("OnFailure", "Never"))


def _check_schedule(faults: Faults, schedule: str, zone: str | None) -> None:
    if not schedule:
        faults.required("schedule")
    elif "TZ" in schedule:
        faults.invalid("schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    else:
        try:
            cron.parse(schedule)
        except cron.ScheduleError as error:
            faults.invalid("schedule", schedule, str(error))
    if zone is None:
        return
    if not zone:
        faults.invalid("timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        faults.invalid("timeZone", zone, detail)
    else:
        try:
            cron.zone_of(zone)
        except cron.ScheduleError as error:
            faults.invalid("timeZone", zone, str(error))


WORKLOADS: Final[Mapping[str, Callable[[Faults, Any], None]]] = {
    "replicasets": _check_replicated,
    "statefulsets": _check_stateful_set,
    "deployments": _check_deployment,
    "daemonsets": _check_daemon_set,
    "controllerrevisions": _check_revision,
    "replicationcontrollers": _check_controller,
    "jobs": _check_job,
    "cronjobs": _check_cron_job,
}
"""What checks an object of a resource."""
