"""CronJob: which job is made when, what becomes of those before, what is told."""

from typing import Any

import pytest

from podyard.objects import times
from podyard.objects.batch import CronJob
from podyard.objects.cron import parse
from podyard.workloads.core import cron_jobs
from tests.support.objects import decoded
from tests.unit.workloads.stage import Stage, cron_job

MINUTE = 60
START = 1_800_000_000.0
"""A whole number of five minutes."""


def begin(schedule: str = "*/5 * * * *", **spec: Any) -> Stage:
    stage = Stage()
    stage.apply(cron_job(schedule, **spec))
    stage.settle()
    return stage


def jobs(stage: Stage) -> list[str]:
    return sorted(one["metadata"]["name"] for one in stage.all("jobs"))


def named(*moments: float) -> list[str]:
    return [f"nightly-{int(at) // MINUTE}" for at in moments]


def status(stage: Stage) -> dict[str, Any]:
    return stage.document("cronjobs", "nightly").get("status", {})


def finish(stage: Stage, name: str, condition: str = "Complete") -> None:
    now = times.rfc3339(stage.now)

    def edit(job: dict[str, Any]) -> None:
        job["status"] = {
            "startTime": job["status"].get("startTime", now),
            "completionTime": now,
            "conditions": [{"type": condition, "status": "True", "lastTransitionTime": now}],
        }

    stage.change("jobs", name, edit)
    stage.settle()


def to_minute(stage: Stage, minutes: float) -> None:
    stage.pass_time(START + minutes * MINUTE - stage.now)


def test_a_job_is_made_at_its_minute_and_called_after_it():
    stage = begin()
    assert jobs(stage) == []
    to_minute(stage, 4.9)
    assert jobs(stage) == []
    to_minute(stage, 5)
    assert jobs(stage) == named(START + 5 * MINUTE)
    [job] = stage.all("jobs")
    assert job["metadata"]["annotations"] == {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2027-01-15T08:05:00Z"}
    assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    assert job["spec"]["completions"] == 1
    [active] = status(stage)["active"]
    assert (active["name"], active["uid"]) == (job["metadata"]["name"], job["metadata"]["uid"])
    assert status(stage)["lastScheduleTime"] == "2027-01-15T08:05:00Z"
    assert len(stage.pods()) == 1


def test_the_time_zone_counts_and_is_told():
    stage = begin("5 9 * * *", timeZone="Europe/Paris")
    to_minute(stage, 6)
    [job] = stage.all("jobs")
    assert job["metadata"]["annotations"][cron_jobs.SCHEDULED_AT] == "2027-01-15T09:05:00+01:00"


def test_one_after_another_may_run_at_once():
    stage = begin()
    to_minute(stage, 5)
    to_minute(stage, 10)
    assert jobs(stage) == named(START + 5 * MINUTE, START + 10 * MINUTE)
    assert [one["name"] for one in status(stage)["active"]] == jobs(stage)


def test_forbid_waits_for_the_end_of_the_one_before_and_then_makes_up_for_the_last():
    stage = begin(concurrencyPolicy="Forbid")
    to_minute(stage, 5)
    to_minute(stage, 11)
    assert jobs(stage) == named(START + 5 * MINUTE)
    assert {told.reason for told in stage.told} == {"JobAlreadyActive"}
    finish(stage, jobs(stage)[0])
    assert jobs(stage) == named(START + 5 * MINUTE, START + 10 * MINUTE)


def test_replace_ends_the_one_before():
    stage = begin(concurrencyPolicy="Replace")
    to_minute(stage, 5)
    to_minute(stage, 10)
    assert jobs(stage) == named(START + 10 * MINUTE)
    assert [one["name"] for one in status(stage)["active"]] == jobs(stage)
    assert len(stage.active()) == 1


def test_suspended_it_makes_none_and_then_makes_up_for_the_last():
    stage = begin(suspend=True)
    to_minute(stage, 11)
    assert jobs(stage) == []
    stage.apply(cron_job(suspend=False))
    stage.settle()
    assert jobs(stage) == named(START + 10 * MINUTE)


def test_what_is_too_late_is_left_out():
    stage = begin(suspend=True, startingDeadlineSeconds=30)
    to_minute(stage, 6)
    stage.apply(cron_job(suspend=False, startingDeadlineSeconds=30))
    stage.settle()
    assert jobs(stage) == []
    to_minute(stage, 10)
    assert jobs(stage) == named(START + 10 * MINUTE)


def test_more_than_a_hundred_missed_times_are_told_and_one_is_made_up_for():
    stage = begin("* * * * *", suspend=True)
    to_minute(stage, 101.5)
    stage.apply(cron_job("* * * * *"))
    stage.settle()
    assert jobs(stage) == named(START + 101 * MINUTE)
    assert [told.reason for told in stage.told] == ["TooManyMissedTimes"]


def test_a_job_that_ended_is_active_no_more_and_its_success_is_noted():
    stage = begin()
    to_minute(stage, 5)
    finish(stage, jobs(stage)[0])
    assert "active" not in status(stage)
    assert status(stage)["lastSuccessfulTime"] == times.rfc3339(stage.now - 0.04)
    assert stage.told[-1].message == f"Saw completed job: {jobs(stage)[0]}, condition: Complete"


def test_a_job_that_is_gone_is_active_no_more_and_not_made_again():
    stage = begin()
    to_minute(stage, 5)
    stage.remove("jobs", jobs(stage)[0])
    stage.settle()
    assert (jobs(stage), status(stage).get("active")) == ([], None)
    assert stage.told[-1].reason == "MissingJob"


def test_of_those_that_ended_the_last_are_kept():
    stage = begin(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for at in range(5, 50, 5):
        to_minute(stage, at)
        finish(stage, named(START + at * MINUTE)[0], "Failed" if at % 2 else "Complete")
    wanted = (30, 40, 45)
    assert jobs(stage) == named(*(START + at * MINUTE for at in wanted))


def test_a_job_of_that_name_that_is_another_s_is_left_alone():
    stage = begin()
    [name] = named(START + 5 * MINUTE)
    stage.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": cron_job()["spec"]["jobTemplate"]["spec"],
        }
    )
    to_minute(stage, 6)
    assert status(stage) == {}
    assert jobs(stage) == [name]


def test_a_job_that_was_made_before_the_status_was_written_is_taken():
    stage = begin()
    stage.hold = True
    to_minute(stage, 5.1)
    stage.settle()
    [work] = stage.held
    stage.held.clear()
    stage.write(work.writes[0])
    stage.hold = False
    stage.begin()
    stage.settle()
    assert jobs(stage) == named(START + 5 * MINUTE)
    assert [one["name"] for one in status(stage)["active"]] == jobs(stage)


def test_what_it_made_goes_with_it():
    stage = begin()
    to_minute(stage, 5)
    stage.remove("cronjobs", "nightly")
    stage.settle()
    assert (jobs(stage), stage.pods()) == ([], [])


def test_a_schedule_without_any_time_is_told():
    stage = begin("0 0 31 2 *")
    assert [told.reason for told in stage.told] == ["InvalidSchedule"]


@pytest.mark.parametrize(
    ("since", "now", "deadline", "wanted"),
    [
        (0, 0, None, (None, 0)),
        (0, 5, None, (5, 0)),
        (0, 9.9, None, (5, 0)),
        (0, 10, None, (10, 2)),
        (0, 62, None, (60, 12)),
        (0, 62, 100, (None, 0)),
        (0, 62, 200, (60, 0)),
        (0, 5 * 101, None, (505, 101)),
    ],
)
def test_which_time_is_due(since: float, now: float, deadline: int | None, wanted: tuple[float | None, int]):
    """In minutes; deadlines in seconds."""
    document = cron_job()
    document["metadata"]["creationTimestamp"] = times.rfc3339(START + since * MINUTE)
    if deadline is not None:
        document["spec"]["startingDeadlineSeconds"] = deadline
    view: CronJob = decoded("cronjobs", document)
    found = cron_jobs.due(view, parse("*/5 * * * *"), START + now * MINUTE, within_deadline=True)
    at = None if found.at is None else (found.at - START) / MINUTE
    assert (at, found.missed) == wanted
