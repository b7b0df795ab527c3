"""CronJob: a job for each time of a schedule, and no more of those that have ended than are to be kept.

Of several times that were missed only the last one is made up for
(docs/rules.md, of-missed-times-the-last-is-made-up-for). A job is called after the minute that it is for, so
that it is made once, whoever makes it.

Source: kubernetes v1.36.2, pkg/controller/cronjob/cronjob_controllerv2.go (sync, syncCronJob,
cleanupFinishedJobs), utils.go (mostRecentScheduleTime, getJobFromTemplate2).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.objects import cron, times
from podyard.objects.batch import CronJob, Job, end_of
from podyard.objects.cron import Schedule
from podyard.objects.documents import mapping, mappings
from podyard.proto.operations import Reason
from podyard.workloads.core import documents, templates
from podyard.workloads.core.actions import Create, Delete, Document, Told, Write
from podyard.workloads.core.looking import NOTHING, Looked, Surroundings, status_write

CRON_JOBS: Final = "cronjobs"
JOBS: Final = "jobs"
SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
TOO_MANY: Final = 100
"""So many missed times are more than a controller that was away for a weekend misses."""

SAW_COMPLETED: Final = Reason("SawCompletedJob")
MISSING_JOB: Final = Reason("MissingJob")
UNEXPECTED_JOB: Final = Reason("UnexpectedJob")
INVALID_SCHEDULE: Final = Reason("InvalidSchedule")
MISSED: Final = Reason("MissSchedule")
TOO_MANY_MISSED: Final = Reason("TooManyMissedTimes")
ALREADY_ACTIVE: Final = Reason("JobAlreadyActive")

_MANY_MISSED: Final = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_RUNS_STILL: Final = "Not starting job because prior execution is running and concurrency policy is Forbid"


class Due(NamedTuple):
    """The last time that is past and has no job yet; None: there is none."""

    at: float | None
    missed: int
    """Times since the last job, as an estimate."""


def look(around: Surroundings, key: ObjectKey, cron_job: CronJob, now: float) -> Looked:
    """What there is to be done for a CronJob."""
    document = around.document(key, cron_job.metadata.uid)
    return NOTHING if document is None else _Look(around, key, cron_job, document, now).found()


def due(cron_job: CronJob, schedule: Schedule, now: float, *, within_deadline: bool) -> Due:
    """Which time is due. Source: mostRecentScheduleTime.

    :param within_deadline: leave out what is older than `startingDeadlineSeconds`
    :raises ScheduleError: if the schedule names no time that ever comes
    """
    earliest = _since(cron_job)
    deadline = cron_job.spec.starting_deadline_seconds
    if within_deadline and deadline is not None:
        earliest = max(earliest, now - deadline)
    first = schedule.next(earliest)
    second = None if first is None else schedule.next(first)
    if first is not None and now < first:
        return Due(None, 0)
    if first is not None and second is not None and now < second:
        return Due(first, 0)
    if first is None or second is None or second - first < 1:
        raise cron.ScheduleError("time difference between two schedules is less than 1 second")
    apart = second - first
    missed = int(now - first) // apart + 1
    last: float | None = None
    at = schedule.next(first + (missed - 2) * apart)
    while at is not None and at <= now:
        last = at
        at = schedule.next(at)
    return Due(last, missed)


def _since(cron_job: CronJob) -> float:
    created = times.seconds_or(cron_job.metadata.creation_timestamp, 0.0)
    return times.seconds_or(cron_job.status.last_schedule_time, created)


class _Look:
    """One look. Made, asked for what was found, thrown away."""

    def __init__(self, around: Surroundings, key: ObjectKey, cron_job: CronJob, document: Document, now: float) -> None:
        self._around = around
        self._key = key
        self._cron_job = cron_job
        self._document = document
        self._now = now
        self._jobs: list[Job] = around.ownership.controlled(cron_job.metadata.uid, JOBS)
        self._active = mappings(mapping(document, "status"), "active")
        self._last_schedule = cron_job.status.last_schedule_time
        self._last_success = cron_job.status.last_successful_time
        self._told: list[Told] = []

    def found(self) -> Looked:
        writes: list[Write] = [*self._clean_up()]
        self._count()
        again_at: float | None = None
        if self._cron_job.metadata.deletion_timestamp is None and not self._cron_job.spec.suspend:
            made, again_at = self._start()
            writes += made
        writes += self._status()
        why = f"CronJob {self._cron_job.metadata.name} follows its schedule"
        return Looked(why, writes, again_at=again_at, told=self._told)

    # ---- what has ended ------------------------------------------------------------------------------------

    def _clean_up(self) -> list[Delete]:
        """The oldest of those that have ended go. Source: cleanupFinishedJobs, removeOldestJobs."""
        spec = self._cron_job.spec
        going: list[Delete] = []
        for ended, limit in (
            ("Complete", spec.successful_jobs_history_limit),
            ("Failed", spec.failed_jobs_history_limit),
        ):
            jobs = sorted((job for job in self._jobs if end_of(job) == ended), key=_by_start)
            if limit is not None:
                going += [_delete(job) for job in jobs[: max(0, len(jobs) - limit)]]
        return going

    def _count(self) -> None:
        """Jobs that have ended, or are gone, are active no more."""
        known = {job.metadata.uid: job for job in self._jobs}
        active = {one.get("uid") for one in self._active}
        for job in self._jobs:
            end, name = end_of(job), job.metadata.name
            if not end and job.metadata.uid not in active:
                self._tell(
                    UNEXPECTED_JOB, f"Saw a job that the controller did not create or forgot: {name}", warning=True
                )
            elif end and job.metadata.uid in active:
                self._tell(SAW_COMPLETED, f"Saw completed job: {name}, condition: {end}")
            if end == "Complete":
                self._last_success = _later(self._last_success, job.status.completion_time)
        for one in self._active:
            if one.get("uid") not in known:
                self._tell(MISSING_JOB, f"Active job went missing: {one.get('name', '')}")
        self._active = [one for one in self._active if one.get("uid") in known and not end_of(known[one["uid"]])]

    # ---- what is due ---------------------------------------------------------------------------------------

    def _start(self) -> tuple[Sequence[Write], float | None]:
        """The job of the time that is due, and when to look again."""
        spec = self._cron_job.spec
        try:
            schedule = cron.parse(spec.schedule, spec.time_zone or "")
            found = due(self._cron_job, schedule, self._now, within_deadline=True)
        except cron.ScheduleError as error:
            self._tell(INVALID_SCHEDULE, f"invalid schedule: {spec.schedule} : {error}", warning=True)
            return (), None
        again_at = schedule.next(self._now)
        at = found.at
        if at is None or times.rfc3339(at) == self._last_schedule or self._is_active(at):
            return (), again_at
        if found.missed > TOO_MANY:
            self._tell(TOO_MANY_MISSED, _MANY_MISSED, warning=True)
        if spec.starting_deadline_seconds is not None and at + spec.starting_deadline_seconds < self._now:
            self._tell(MISSED, f"Missed scheduled time to start a job: {_rfc1123(at)}", warning=True)
            return (), again_at
        if spec.concurrency_policy == "Forbid" and self._active:
            self._tell(ALREADY_ACTIVE, _RUNS_STILL)
            return (), again_at
        return self._make(at), again_at

    def _is_active(self, at: float) -> bool:
        return any(one.get("name") == self._name(at) for one in self._active)

    def _name(self, at: float) -> str:
        return f"{self._cron_job.metadata.name}-{int(at) // 60}"

    def _make(self, at: float) -> Sequence[Write]:
        writes: list[Write] = []
        if self._cron_job.spec.concurrency_policy == "Replace":
            running = {one["uid"] for one in self._active}
            writes += [_delete(job) for job in self._jobs if job.metadata.uid in running]
            self._active = []
        namespace = self._cron_job.metadata.namespace
        there: Job | None = self._around.objects(JOBS).get((namespace, self._name(at)))
        if there is None:
            made = self._create(at)
            writes.append(made)
            uid = made.document["metadata"]["uid"]
        elif there not in self._jobs:
            return writes  # somebody else's: it counts as made by whoever did it
        else:
            uid = there.metadata.uid
        self._active.append(
            {"apiVersion": "batch/v1", "kind": "Job", "namespace": namespace, "name": self._name(at), "uid": uid}
        )
        self._last_schedule = times.rfc3339(at)
        return writes

    def _create(self, at: float) -> Create:
        template = documents.copied(self._document["spec"]["jobTemplate"])
        given: Document = template.get("metadata") or {}
        zone = cron.zone_of(self._cron_job.spec.time_zone or "")
        stamp = datetime.fromtimestamp(at, zone).isoformat().replace("+00:00", "Z")
        document: Document = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self._name(at),
                "namespace": self._cron_job.metadata.namespace,
                "labels": given.get("labels") or {},
                "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: stamp},
                "ownerReferences": [templates.controller_reference(self._document)],
            },
            "spec": template["spec"],
        }
        admitted = self._around.maker.admit(document, self._now)
        return Create(ObjectKey(JOBS, admitted["metadata"]["namespace"], admitted["metadata"]["name"]), admitted)

    # ---- what is told --------------------------------------------------------------------------------------

    def _status(self) -> Sequence[Write]:
        wished = {
            "active": self._active,
            "lastScheduleTime": self._last_schedule,
            "lastSuccessfulTime": self._last_success,
        }
        fields = {key: value for key, value in wished.items() if value}
        return status_write(self._key, self._cron_job.metadata.uid, self._document, fields)

    def _tell(self, reason: Reason, message: str, *, warning: bool = False) -> None:
        self._told.append(Told(self._key, reason, message, warning))


def _by_start(job: Job) -> tuple[bool, float, str]:
    """Which goes first: the one that began first; those that never did last. Source: byJobStartTime."""
    return not job.status.start_time, times.seconds_or(job.status.start_time, 0.0), job.metadata.name


def _later(one: str | None, other: str | None) -> str | None:
    return max((at for at in (one, other) if at), key=lambda at: times.seconds_or(at, 0.0), default=None)


def _rfc1123(at: float) -> str:
    return format_datetime(datetime.fromtimestamp(at, UTC))


def _delete(job: Job) -> Delete:
    return Delete(ObjectKey(JOBS, job.metadata.namespace, job.metadata.name), job.metadata.uid)
