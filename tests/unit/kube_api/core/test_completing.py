"""What Go writes of a status although it is zero. Expected by hand, from k8s.io/api v0.36.2."""

from typing import Any

import pytest

from podyard.kube_api.core.completing import complete
from podyard.proto.facts import ContainerFact, PodStatusFact
from tests.support import stored
from tests.unit.kube_api.core.world import World

TERMINATED = {"terminated": {"exitCode": 1, "startedAt": None, "finishedAt": None}}


@pytest.mark.parametrize(
    ("resource", "status", "filled"),
    [
        ("statefulsets", None, {"replicas": 0}),
        ("replicasets", {"readyReplicas": 1}, {"readyReplicas": 1, "replicas": 0}),
        (
            "daemonsets",
            {"numberReady": 2},
            {"numberReady": 2, "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0},
        ),
        (
            "pods",
            {"containerStatuses": [{"name": "c", "image": "i", "state": {"terminated": {"exitCode": 1}}}]},
            {
                "containerStatuses": [
                    {
                        "name": "c",
                        "image": "i",
                        "state": TERMINATED,
                        "imageID": "",
                        "lastState": {},
                        "ready": False,
                        "restartCount": 0,
                    }
                ],
                "qosClass": "BestEffort",
            },
        ),
        ("services", None, {"loadBalancer": {}}),
        ("deployments", {"replicas": 1}, {"replicas": 1}),
        ("jobs", None, {}),
    ],
)
def test_a_status_has_what_go_writes(resource: str, status: Any, filled: Any) -> None:
    document: dict[str, Any] = {} if status is None else {"status": status}
    assert completed(document, resource).get("status", {}) == filled


def test_a_pod_s_containers_are_whole() -> None:
    """What its agent says comes joined with it."""
    made = World()
    made.pod("p")
    made.relist()
    made.bind("p", "n")
    container = ContainerFact(name="c", ready=True)
    fact = PodStatusFact(namespace="default", name="p", uid="uid-p", node="n", phase="Running", containers=(container,))
    made.stream.put(stored.pod_status(fact))
    made.deliver()
    [found] = made.list()["items"]
    [status] = found["status"]["containerStatuses"]
    assert (status["imageID"], status["restartCount"], status["lastState"]) == ("", 0, {})


def completed(document: dict[str, Any], resource: str) -> dict[str, Any]:
    complete(resource, document)
    return document


def test_zeros_are_nobody_else_s() -> None:
    """Each object has structures of its own."""
    one, another = completed({}, "services"), completed({}, "services")
    one["status"]["loadBalancer"]["ingress"] = []
    assert another["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize("resource", ["configmaps", "ponds.v1.example.com"])
def test_what_has_no_status_gets_none(resource: str) -> None:
    assert completed({"data": {}}, resource) == {"data": {}}
