"""Job: completions, parallelism, backoffLimit; each pod counted once, whatever stops in between."""

from typing import Any

import pytest

from podyard.workloads.core import jobs
from podyard.workloads.core.actions import Create, Done
from podyard.workloads.core.jobs import FINALIZER
from podyard.workloads.core.receipts import Receipts
from tests.support import objects
from tests.unit.workloads.stage import Stage, job


@pytest.fixture
def stage() -> Stage:
    return Stage()


def finish(stage: Stage, name: str, phase: str = "Succeeded") -> None:
    stage.bind(name)
    stage.report(name, phase=phase, ready=False, ended=True)
    stage.release_pod(name, "completed")
    stage.settle()


def conditions(stage: Stage) -> dict[str, str]:
    return {found["type"]: found["reason"] for found in stage.document("jobs", "sum")["status"].get("conditions", [])}


def test_parallelism_pods_run_at_once(stage: Stage):
    stage.apply(job(completions=5, parallelism=2))
    stage.settle()
    assert len(stage.active()) == 2
    labels = stage.active()[0].labels
    assert labels["batch.kubernetes.io/job-name"] == "sum"
    assert stage.document("jobs", "sum")["status"]["active"] == 2


def test_it_completes_after_its_completions(stage: Stage):
    stage.apply(job(completions=3, parallelism=2))
    stage.settle()
    for _ in range(3):
        finish(stage, stage.active()[0].name)
    status = stage.document("jobs", "sum")["status"]
    assert (status["succeeded"], status.get("active", 0)) == (3, 0)
    assert conditions(stage) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert status["completionTime"]
    assert not stage.active()
    assert len(stage.pods()) == 3  # what has ended stays to be looked at


def test_no_more_pods_than_are_missing(stage: Stage):
    stage.apply(job(completions=3, parallelism=2))
    stage.settle()
    finish(stage, stage.active()[0].name)
    finish(stage, stage.active()[0].name)
    assert len(stage.active()) == 1


def test_a_pod_counts_once_also_when_it_is_deleted_afterwards(stage: Stage):
    stage.apply(job(completions=2, parallelism=1))
    stage.settle()
    name = stage.active()[0].name
    finish(stage, name)
    stage.remove("pods", name)
    stage.settle()
    assert stage.document("jobs", "sum")["status"]["succeeded"] == 1
    finish(stage, stage.active()[0].name)
    assert stage.document("jobs", "sum")["status"]["succeeded"] == 2
    assert conditions(stage) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}


def test_the_count_and_the_finalizer_are_written_together(stage: Stage):
    stage.apply(job(completions=2, parallelism=1))
    stage.settle()
    name = stage.active()[0].name
    assert stage.document("pods", name)["metadata"]["finalizers"] == [FINALIZER]
    finish(stage, name)
    work = next(work for work in stage.works if work.atomic)
    assert [write.key.resource for write in work.writes] == ["jobs", "pods"]
    assert "finalizers" not in stage.document("pods", name)["metadata"]


def test_a_batch_that_failed_is_counted_at_the_next_look(stage: Stage):
    stage.apply(job(completions=2, parallelism=1))
    stage.settle()
    stage.hold = True
    finish(stage, stage.active()[0].name)
    (work,) = [held for held in stage.held if held.atomic]
    stage.held.clear()
    stage.step(Done(work.owner, stage.stream.last))  # a conflict: nothing was written
    stage.hold = False
    stage.settle()
    assert stage.document("jobs", "sum")["status"]["succeeded"] == 1


def test_a_terminating_pod_that_is_not_counted_yet_stays(stage: Stage):
    stage.apply(job(completions=2, parallelism=1))
    stage.settle()
    name = stage.active()[0].name
    stage.bind(name)
    stage.hold = True
    stage.evict(name)
    stage.report(name, phase="Failed", ready=False, ended=True)
    stage.release_pod(name)
    stage.settle()
    assert not [work for work in stage.works if work.owner.resource == "pods"]
    stage.hold = False
    stage.settle()
    assert stage.document("jobs", "sum")["status"]["failed"] == 1
    assert not stage.exists("pods", name)


def test_a_failed_pod_is_replaced_after_the_back_off(stage: Stage):
    stage.apply(job(completions=1))
    stage.settle()
    finish(stage, stage.active()[0].name, "Failed")
    assert not stage.active()
    stage.pass_time(9)
    assert not stage.active()
    stage.pass_time(2)
    assert len(stage.active()) == 1
    finish(stage, stage.active()[0].name, "Failed")
    stage.pass_time(12)
    assert not stage.active()  # 20 s the second time
    stage.pass_time(9)
    assert len(stage.active()) == 1


def test_a_success_ends_the_row_of_failures(stage: Stage):
    """Source: pkg/controller/job/backoff_utils.go, newBackoffRecord."""
    stage.apply(job(completions=5, parallelism=1))
    stage.settle()
    for pause_s in (10, 20):
        finish(stage, stage.active()[0].name, "Failed")
        stage.pass_time(pause_s + 1)
    finish(stage, stage.active()[0].name)
    assert len(stage.active()) == 1, "after a success the next is made at once"
    stage.pass_time(5)
    finish(stage, stage.active()[0].name, "Failed")
    stage.pass_time(9)
    assert not stage.active()
    stage.pass_time(2)
    assert len(stage.active()) == 1


def test_a_failed_pod_whose_agents_clock_is_ahead_is_replaced_in_time(stage: Stage):
    stage.agents_ahead_s = 3600.0
    test_a_failed_pod_is_replaced_after_the_back_off(stage)


def test_no_step_makes_or_ends_more_than_500_pods(stage: Stage):
    """Source: pkg/controller/job/job_controller.go, MaxPodCreateDeletePerSync."""
    stage.hold = True
    stage.apply(job(completions=100_000, parallelism=100_000))
    stage.settle()
    assert sum(isinstance(write, Create) for work in stage.works for write in work.writes) == 500
    document = stage.stored("jobs", "sum").document()
    many = [objects.view(objects.pod(f"p{number}")) for number in range(700)]
    for change in ({"parallelism": 10}, {"suspend": True}, {"activeDeadlineSeconds": 0}):
        changed = {**document, "spec": {**document["spec"], **change}, "status": {"startTime": "2020-01-01T00:00:00Z"}}
        chosen = jobs.plan(objects.decoded("jobs", changed), changed, many, Receipts(), stage.now)
        assert (chosen.create, len(chosen.delete)) == (0, 500), change


def test_all_pods_are_made_in_the_end(stage: Stage):
    stage.apply(job(completions=1_200, parallelism=1_200))
    stage.settle()
    assert len(stage.active()) == 1_200


def test_a_step_makes_few_very_large_pods(stage: Stage):
    document = job(completions=100, parallelism=100)
    document["spec"]["template"]["metadata"] = {"annotations": {"about": "x" * 200_000}}
    document["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * 1_000_000]
    stage.hold = True
    stage.apply(document)
    stage.settle()
    assert sum(isinstance(write, Create) for work in stage.works for write in work.writes) == 13
    stage.hold = False
    stage.settle()
    assert len(stage.active()) == 100


def test_the_back_off_of_very_many_failures_is_the_longest(stage: Stage):
    stage.apply(job(completions=1, backoffLimit=2_000))
    stage.settle()

    def fail_often(document: dict[str, Any]) -> None:
        document["status"]["failed"] = 1_500

    stage.change("jobs", "sum", fail_often)
    finish(stage, stage.active()[0].name, "Failed")
    assert not stage.active()
    stage.pass_time(590)
    assert not stage.active()
    stage.pass_time(20)
    assert len(stage.active()) == 1


def test_it_fails_above_its_backoff_limit(stage: Stage):
    stage.apply(job(completions=3, parallelism=2, backoffLimit=1))
    stage.settle()
    finish(stage, stage.active()[0].name, "Failed")
    stage.pass_time(11)
    finish(stage, stage.active()[0].name, "Failed")
    assert conditions(stage) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert not stage.active()
    stage.pass_time(1000)
    assert not stage.active()


def test_it_fails_after_its_deadline(stage: Stage):
    stage.apply(job(completions=1, activeDeadlineSeconds=60))
    stage.settle()
    stage.run_all()
    stage.pass_time(59)
    assert len(stage.active()) == 1
    stage.pass_time(2)
    assert conditions(stage) == {"FailureTarget": "DeadlineExceeded", "Failed": "DeadlineExceeded"}
    assert not stage.active()


def test_a_suspended_job_runs_nothing(stage: Stage):
    stage.apply(job(completions=2, parallelism=2, suspend=True))
    stage.settle()
    assert not stage.pods()
    stage.change("jobs", "sum", lambda document: document["spec"].update(suspend=False))
    stage.settle()
    assert len(stage.active()) == 2
    stage.change("jobs", "sum", lambda document: document["spec"].update(suspend=True))
    stage.settle()
    assert not stage.active()


def test_without_completions_one_success_ends_it(stage: Stage):
    stage.apply(job(parallelism=3, completions=None))
    stage.settle()
    stage.change("jobs", "sum", lambda document: document["spec"].pop("completions", None))
    stage.settle()
    assert len(stage.active()) == 3
    first, *rest = stage.active()
    finish(stage, first.name)
    assert conditions(stage) == {}  # the others may end
    assert len(stage.active()) == 2
    for pod in rest:
        finish(stage, pod.name)
    assert conditions(stage) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}


def test_a_finished_job_goes_after_its_time_to_live(stage: Stage):
    stage.apply(job(completions=1, ttlSecondsAfterFinished=100))
    stage.settle()
    finish(stage, stage.active()[0].name)
    stage.pass_time(90)
    assert stage.exists("jobs", "sum")
    stage.pass_time(20)
    assert not stage.exists("jobs", "sum")
    assert not stage.pods()


def test_a_pod_of_a_lost_node_counts_as_failed(stage: Stage):
    stage.apply(job(completions=1))
    stage.settle()
    name = stage.active()[0].name
    stage.bind(name)
    stage.report(name)
    stage.release_pod(name, "nodeGone")
    stage.settle()
    assert stage.document("jobs", "sum")["status"]["failed"] == 1
    assert not stage.exists("pods", name)
