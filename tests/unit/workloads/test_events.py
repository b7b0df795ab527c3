"""What people are told of writes that changed something, in the words of Kubernetes' controllers."""

from typing import Any

import msgspec
import pytest

from podyard.cluster.errors import ObjectMissing
from podyard.cluster.intents import Keep, Put, Remove, Stored, Written
from podyard.cluster.keys import ObjectKey
from podyard.objects.errors import ObjectError
from podyard.shell.writes import Result
from podyard.workloads import events
from podyard.workloads.core.actions import Alter, Create, Delete, Work, Write
from tests.support import stored

OWNER = ObjectKey("replicasets", "default", "web")
POD = ObjectKey("pods", "default", "web-x")
SET = ObjectKey("replicasets", "default", "web-1")
DEPLOYMENT = ObjectKey("deployments", "default", "web")


def told(owner: ObjectKey, write: Write, result: Result) -> list[tuple[str, str, bool, str]]:
    found = events.of_write(Work(owner, "why", [write]), write, result, "uid", 1.0)
    return [(event.reason, event.message, event.warning, event.controller) for event in found]


def written(step: Any, before: Stored | None = None, after: Stored | None = None) -> Written:
    return Written(POD, step, 7, before, after)


def replicas(count: int) -> Stored:
    document = {"metadata": {"name": "web-1", "namespace": "default", "uid": "u"}, "spec": {"replicas": count}}
    return Stored(1, stored.version("replicasets", document).payload, deleted=False)


@pytest.mark.parametrize(
    ("write", "result", "expected"),
    [
        pytest.param(Create(POD, {}), written(Put({})), [], id="its object tells of a pod that was made"),
        pytest.param(
            Delete(POD, "u"), written(Put({})), [("SuccessfulDelete", "Deleted pod: web-x", False)], id="bound"
        ),
        pytest.param(
            Delete(POD, "u"), written(Remove()), [("SuccessfulDelete", "Deleted pod: web-x", False)], id="not"
        ),
        pytest.param(Delete(POD, "u"), written(Keep()), [], id="it was being deleted already"),
        pytest.param(Delete(POD, "u"), ObjectMissing(POD), [], id="it was gone already"),
        pytest.param(
            Delete(POD, "u"), ObjectError("", "no"), [("FailedDelete", "Error deleting: no", True)], id="not deleted"
        ),
        pytest.param(
            Create(POD, {}), ObjectError("", "no"), [("FailedCreate", "Error creating: no", True)], id="not made"
        ),
        pytest.param(Alter(OWNER, "u", lambda document: document), written(Put({})), [], id="its own status"),
    ],
)
def test_of_a_pod(write: Write, result: Result, expected: list[tuple[str, str, bool]]) -> None:
    assert told(OWNER, write, result) == [(*one, "replicaset-controller") for one in expected]


def test_a_job_reports_as_its_own_controller() -> None:
    (found,) = told(ObjectKey("jobs", "default", "sum"), Delete(POD, "u"), written(Remove()))
    assert found[3] == "job-controller"


def key(resource: str, name: str) -> ObjectKey:
    return ObjectKey(resource, "default", name)


@pytest.mark.parametrize(
    ("owner", "write", "expected"),
    [
        ("statefulsets", Delete(key("pods", "db-0"), "u"), "Delete Pod db-0 in StatefulSet db successful"),
        (
            "statefulsets",
            Create(key("persistentvolumeclaims", "data-db-0"), {}),
            "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        ),
        ("cronjobs", Create(key("jobs", "db-1"), {}), "Created job db-1"),
        ("cronjobs", Delete(key("jobs", "db-1"), "u"), "Deleted job db-1"),
        ("daemonsets", Delete(key("pods", "db-x"), "u"), "Deleted pod: db-x"),
        ("daemonsets", Create(key("controllerrevisions", "db-1"), {}), ""),
        ("statefulsets", Alter(key("persistentvolumeclaims", "data-db-0"), "u", lambda document: document), ""),
    ],
)
def test_each_controller_has_its_words(owner: str, write: Write, expected: str) -> None:
    found = told(key(owner, "db"), write, written(Put({})))
    assert [message for _, message, _, _ in found] == ([expected] if expected else [])


def test_a_job_that_cannot_be_made_is_told() -> None:
    (found,) = told(key("cronjobs", "db"), Create(key("jobs", "db-1"), {}), ObjectError("", "no"))
    assert found == ("FailedCreate", "Error creating: no", True, "cronjob-controller")


@pytest.mark.parametrize("owner", [POD, ObjectKey("poddisruptionbudgets", "default", "web")])
def test_others_tell_nothing(owner: ObjectKey) -> None:
    assert told(owner, Delete(POD, "u"), written(Remove())) == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (None, replicas(3), "Scaled up replica set web-1 from 0 to 3"),
        (replicas(3), replicas(1), "Scaled down replica set web-1 from 3 to 1"),
        (replicas(3), replicas(3), ""),
        (None, replicas(0), ""),
    ],
)
def test_a_deployment_tells_how_it_scales(before: Stored | None, after: Stored, message: str) -> None:
    write = Create(SET, {}) if before is None else Alter(SET, "u", lambda document: document)
    found = told(DEPLOYMENT, write, written(Put({}), before, after))
    assert found == ([("ScalingReplicaSet", message, False, "deployment-controller")] if message else [])


def job(*conditions: dict[str, str]) -> Stored:
    document = {
        "metadata": {"name": "sum", "namespace": "default", "uid": "u"},
        "status": {"conditions": list(conditions)},
    }
    return Stored(1, stored.version("jobs", document).payload, deleted=False)


REACHED = {"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"}
COMPLETE = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "all of them"}
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (job(), job(REACHED, COMPLETE), [("Completed", "Job completed", False)]),
        (job(), job(FAILED), [("BackoffLimitExceeded", "too often", True)]),
        (job(), job(REACHED), []),
        (job(), job(COMPLETE | {"status": "False"}), []),
        (job(COMPLETE), job(COMPLETE), []),
    ],
)
def test_a_job_tells_how_it_ended(before: Stored, after: Stored, expected: list[tuple[str, str, bool]]) -> None:
    key = ObjectKey("jobs", "default", "sum")
    found = told(key, Alter(key, "u", lambda document: document), written(Put({}), before, after))
    assert found == [(*one, "job-controller") for one in expected]


def test_what_cannot_be_read_asks_for_none() -> None:
    broken = Stored(1, msgspec.json.encode({"resource": "x"}), deleted=False)
    found = told(DEPLOYMENT, Alter(SET, "u", lambda document: document), written(Put({}), broken, replicas(2)))
    assert [message for _, message, _, _ in found] == ["Scaled up replica set web-1 from 0 to 2"]
