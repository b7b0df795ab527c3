"""Job: pods that run to their end, counted once each.

A pod of a Job carries a finalizer until it is counted; the count and the removal of the finalizer are written
together. So a pod is counted once, whoever stops in between, also when it is deleted afterwards.

Source: pkg/controller/job/job_controller.go (syncJob, manageJob, trackJobStatusAndRemoveFinalizers),
backoff_utils.go. Of the reference's modes NonIndexed is run; an Indexed job is run as if its pods were alike.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.cluster import finalizing
from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.objects import times
from podyard.objects.batch import Job, end_of
from podyard.proto import subjects
from podyard.proto.operations import Reason
from podyard.workloads.core import documents, scale_down, waits
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.actions import Alter, Document
from podyard.workloads.core.receipts import Receipts

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
FIRST_BACKOFF_S: Final = 10.0
LAST_BACKOFF_S: Final = 600.0
"""Waits after failures since the last success: 10 s, doubling, at most 10 minutes. Source:
DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff, backoff_utils.go (newBackoffRecord)."""

BURST: Final = 500
"""Most pods made or deleted in one step. Source: MaxPodCreateDeletePerSync."""

COUNTED_AT_ONCE: Final = 200
"""Pods that are counted in one batch."""

DEFAULT_BACKOFF_LIMIT: Final = 6

BACKOFF_LIMIT_EXCEEDED: Final = Reason("BackoffLimitExceeded")
DEADLINE_EXCEEDED: Final = Reason("DeadlineExceeded")
FAILURES: Final = (BACKOFF_LIMIT_EXCEEDED, DEADLINE_EXCEEDED)
"""Why Jobs fail: of the condition, and of the event that tells of it."""


class Plan(NamedTuple):
    """What is to be done for one Job: first count, then the rest."""

    tallied: list[Alter]
    """The Job's new counts and its counted pods, to be written together; if there are any, nothing else is
    done."""
    create: int
    """At most `BURST`; what is left comes with the next look, as of `delete`."""
    delete: list[PodView]
    status: Alter | None
    expired: bool
    """Finished for longer than it is to be kept."""
    look_again_at: float | None


class _Tally(NamedTuple):
    """How the pods of a job stand."""

    active: list[PodView]
    succeeded: list[PodView]
    """Not counted yet."""
    failed: list[PodView]
    """Not counted yet."""
    last_failure_at: float
    failures: int
    """Since the last success, as far as pods are there that tell."""


def plan(job: Job, document: Document, owned: Sequence[PodView], receipts: Receipts, now: float) -> Plan:
    """Compare what there is with what is wanted.

    :param document: the Job as it is stored
    :param owned: pods that it controls and whose objects live
    """
    tally = _tally(job, owned, receipts, now)
    finished = _finished(job)
    if tally.succeeded or tally.failed:
        return Plan(_count(job, tally, now), 0, [], None, False, None)
    if finished:
        return _after_the_end(job, tally, now)
    end = _why_it_ends(job, tally, now)
    if end is not None:
        return Plan([], 0, tally.active[:BURST], _status(job, document, tally, now, end), False, None)
    wanted, again_at = _wanted_active(job, tally, now)
    missing = wanted - len(tally.active)
    surplus = scale_down.choose(tally.active, min(-missing, BURST), tally.active, now) if missing < 0 else []
    status = _status(job, document, tally, now, None)
    return Plan([], max(0, min(missing, BURST)), surplus, status, False, _earliest(again_at, _deadline(job)))


def _tally(job: Job, owned: Sequence[PodView], receipts: Receipts, now: float) -> _Tally:
    active = [pod for pod in owned if pod_facts.is_active(pod)]
    uncounted = [pod for pod in owned if FINALIZER in pod.stored.metadata.finalizers]
    succeeded = [pod for pod in uncounted if pod_facts.phase(pod) == pod_facts.SUCCEEDED]
    failed = [pod for pod in uncounted if _has_failed(pod)]
    done = (pod for pod in owned if pod_facts.phase(pod) == pod_facts.SUCCEEDED)
    good = max((pod_facts.ended_at(pod, receipts, now) for pod in done), default=None)
    ends = [pod_facts.ended_at(pod, receipts, now) for pod in owned if _has_failed(pod)]
    counted = job.status.failed if good is None else sum(end > good for end in ends)
    return _Tally(active, succeeded, failed, max(ends, default=0.0), counted)


def _has_failed(pod: PodView) -> bool:
    """It failed, or will never succeed: it is being deleted, or its node is gone. Source: isPodFailed."""
    phase = pod_facts.phase(pod)
    return phase == pod_facts.FAILED or (phase != pod_facts.SUCCEEDED and (pod.deleting or pod.released))


def _finished(job: Job) -> bool:
    return bool(end_of(job))


# ---- counting ----------------------------------------------------------------------------------------------


def _count(job: Job, tally: _Tally, now: float) -> list[Alter]:
    """The counts, and the same pods without their finalizer."""
    succeeded, failed = tally.succeeded[:COUNTED_AT_ONCE], tally.failed[:COUNTED_AT_ONCE]
    active, good, bad = len(tally.active), len(succeeded), len(failed)

    def alter(document: Document) -> Document:
        status = document.setdefault("status", {})
        status["active"] = active
        status["succeeded"] = int(status.get("succeeded", 0)) + good
        status["failed"] = int(status.get("failed", 0)) + bad
        status.setdefault("startTime", times.rfc3339(now))
        return document

    return [Alter(_key(job), job.metadata.uid, alter), *(_counted(pod) for pod in (*succeeded, *failed))]


def _counted(pod: PodView) -> Alter:
    return Alter(ObjectKey(subjects.PODS, pod.namespace, pod.name), pod.uid, finalizing.taking(FINALIZER))


# ---- how many ----------------------------------------------------------------------------------------------


def _wanted_active(job: Job, tally: _Tally, now: float) -> tuple[int, float | None]:
    """How many pods should run now, and when to look again if a failure has to be waited out."""
    spec, active = job.spec, len(tally.active)
    if job.metadata.deletion_timestamp is not None:
        return active, None  # what becomes of its pods is the collector's. Source: syncJob
    if spec.suspend:
        return 0, None
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        wanted = active if job.status.succeeded else parallelism
    else:
        wanted = min(parallelism, max(0, spec.completions - job.status.succeeded))
    if wanted <= active or not tally.failures or not tally.last_failure_at:
        return wanted, None
    free_at = tally.last_failure_at + waits.doubling_s(FIRST_BACKOFF_S, LAST_BACKOFF_S, tally.failures)
    return (wanted, None) if now >= free_at else (active, free_at)


def _why_it_ends(job: Job, tally: _Tally, now: float) -> Document | None:
    """The condition that ends the job, None while it goes on."""
    limit = DEFAULT_BACKOFF_LIMIT if job.spec.backoff_limit is None else job.spec.backoff_limit
    if job.status.failed > limit:
        return _condition("Failed", BACKOFF_LIMIT_EXCEEDED, "Job has reached the specified backoff limit")
    deadline = _deadline(job)
    if deadline is not None and now >= deadline:
        return _condition("Failed", DEADLINE_EXCEEDED, "Job was active longer than specified deadline")
    if job.spec.completions is None:
        complete = job.status.succeeded > 0 and not tally.active
    else:
        complete = job.status.succeeded >= job.spec.completions
    return (
        _condition("Complete", "CompletionsReached", "Reached expected number of succeeded pods") if complete else None
    )


def _deadline(job: Job) -> float | None:
    seconds = job.spec.active_deadline_seconds
    started = times.seconds_or(job.status.start_time, 0.0)
    return started + seconds if seconds is not None and started and not job.spec.suspend else None


def _after_the_end(job: Job, tally: _Tally, now: float) -> Plan:
    """Nothing runs any more; the job itself goes after its time to live."""
    ttl_s = job.spec.ttl_seconds_after_finished
    ended = [found.last_transition_time for found in job.status.conditions if found.type in ("Complete", "Failed")]
    goes_at = None if ttl_s is None else times.seconds_or(ended[0], 0.0) + ttl_s
    expired = goes_at is not None and now >= goes_at
    return Plan([], 0, tally.active[:BURST], None, expired, None if expired else goes_at)


# ---- status ------------------------------------------------------------------------------------------------


def _status(job: Job, document: Document, tally: _Tally, now: float, end: Document | None) -> Alter | None:
    active = 0 if end is not None else len(tally.active)
    ready = 0 if end is not None else sum(1 for pod in tally.active if pod_facts.is_ready(pod))

    def alter(current: Document) -> Document | None:
        before: Document = current.get("status") or {}
        fields = {key: value for key, value in before.items() if key not in ("active", "ready", "conditions")}
        fields.setdefault("startTime", times.rfc3339(now))
        if active:
            fields["active"] = active
        fields["ready"] = ready
        conditions = [] if end is None else [{**end, "type": _BEFORE[end["type"]]}, end]
        if end is not None and end["type"] == "Complete":
            fields["completionTime"] = times.rfc3339(now)
        return current if documents.set_status(current, fields, conditions, now) else None

    return Alter(_key(job), job.metadata.uid, alter) if alter(documents.copied(document)) is not None else None


_BEFORE: Final = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The condition that is there before the one that ends the job, for the same reason. Source:
pkg/controller/job/job_controller.go, syncJob and enactJobFinished."""


def _condition(kind: str, reason: str, message: str) -> Document:
    return {"type": kind, "status": "True", "reason": reason, "message": message}


def _key(job: Job) -> ObjectKey:
    return ObjectKey("jobs", job.metadata.namespace, job.metadata.name)


def _earliest(*moments: float | None) -> float | None:
    return min((at for at in moments if at is not None), default=None)
