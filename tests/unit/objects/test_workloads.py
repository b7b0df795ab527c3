"""Workloads at the door: what is filled in, and what is refused, in the API server's words."""

from typing import Any

import pytest

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
JOB = {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}}


def document(kind: str, name: str = "web", api_version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def running(kind: str, **spec: Any) -> dict[str, Any]:
    return document(kind, **{"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec})


def cron_job(name: str = "web", **spec: Any) -> dict[str, Any]:
    return document("CronJob", name, "batch/v1", **{"schedule": "@daily", "jobTemplate": JOB, **spec})


def filled_in(admitted: dict[str, Any]) -> dict[str, Any]:
    """The spec without what was given."""
    return {key: value for key, value in admitted["spec"].items() if key not in ("selector", "template", "jobTemplate")}


def test_a_daemon_set_is_filled_in(admit):
    admitted = admit(running("DaemonSet"))
    assert filled_in(admitted) == {
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    }
    assert admitted["metadata"]["generation"] == 1
    assert admitted["spec"]["template"]["spec"]["restartPolicy"] == "Always"


def test_a_stateful_set_is_filled_in(admit):
    assert filled_in(admit(running("StatefulSet"))) == {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }


def test_a_stateful_set_that_names_its_strategy_alone_gets_no_partition(admit):
    """Source: SetDefaults_StatefulSet."""
    admitted = admit(running("StatefulSet", updateStrategy={"type": "RollingUpdate"}))
    assert admitted["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


def test_a_cron_job_is_filled_in_and_its_job_when_it_is_made(admit):
    admitted = admit(cron_job())
    assert filled_in(admitted) == {
        "schedule": "@daily",
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
    assert admitted["spec"]["jobTemplate"]["spec"].keys() == {"template"}


NO_ZONE = "spec.timeZone: Invalid value: {}: {}"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (running("DaemonSet", template={"spec": TEMPLATE["spec"]}), "`selector` does not match template `labels`"),
        (
            running("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}}),
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        ),
        (
            running("DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
        (running("DaemonSet", updateStrategy={"type": "Never"}), "spec.updateStrategy: Unsupported value"),
        (running("DaemonSet", revisionHistoryLimit=-1), "spec.revisionHistoryLimit: Invalid value: -1"),
        (running("StatefulSet", podManagementPolicy="Any"), "must be 'OrderedReady' or 'Parallel'"),
        (running("StatefulSet", ordinals={"start": -1}), "spec.ordinals.start: Invalid value: -1"),
        (running("StatefulSet", serviceName="Not.A.Label"), "spec.serviceName: Invalid value"),
        (
            running("StatefulSet", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
            "only allowed for updateStrategy 'RollingUpdate'",
        ),
        (
            running("StatefulSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "0%"}}),
            'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0%": cannot be 0',
        ),
        (
            running("StatefulSet", persistentVolumeClaimRetentionPolicy={"whenScaled": "Maybe"}),
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value",
        ),
        (
            cron_job(schedule="61 * * * *"),
            'spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum',
        ),
        (cron_job(schedule="TZ=UTC 0 0 * * *"), "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        (cron_job(schedule=""), "spec.schedule: Required value"),
        (cron_job(timeZone="Mars/Olympus"), NO_ZONE.format('"Mars/Olympus"', "unknown time zone Mars/Olympus")),
        (cron_job(timeZone="../etc/passwd"), NO_ZONE.format('"../etc/passwd"', "unknown time zone ../etc/passwd")),
        (cron_job(timeZone="local"), "timeZone must be an explicit time zone"),
        (cron_job("n" * 53), "must be no more than 52 characters"),
        (cron_job(concurrencyPolicy="Never"), "spec.concurrencyPolicy: Unsupported value"),
        (cron_job(jobTemplate={"spec": TEMPLATE}), "spec.jobTemplate.spec.template.spec.containers: Required value"),
        (cron_job(jobTemplate={"spec": {**JOB["spec"], "parallelism": -1}}), "spec.jobTemplate.spec.parallelism"),
    ],
)
def test_what_is_refused(refused, given: dict[str, Any], fault: str):
    assert any(fault in one for one in refused(given)), refused(given)


def test_a_schedule_of_every_so_often_is_taken(admit):
    assert admit(cron_job(schedule="@every 90s"))["spec"]["schedule"] == "@every 90s"


def test_the_selector_of_a_daemon_set_stays(admit, refused):
    before = admit(running("DaemonSet"))
    after = running("DaemonSet", selector={"matchLabels": {"app": "web", "more": "x"}})
    after["spec"]["template"] = {**TEMPLATE, "metadata": {"labels": {"app": "web", "more": "x"}}}
    assert any("field is immutable" in one for one in refused(after, before))
