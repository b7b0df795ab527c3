"""What is used of a quota, counted from what is there."""

from typing import Any

import pytest

from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.facts import QuotaUsageFact
from tests.unit.workloads.stage import Stage


def quota(name: str = "q", hard: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard or {"pods": "9"}, **spec},
    }


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}} if cpu else {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


@pytest.fixture
def stage() -> Stage:
    return Stage()


def fact(stage: Stage, name: str = "q") -> QuotaUsageFact | None:
    (last,) = [one for one in stage.stream.held() if one.subject.startswith(f"cluster.quotausage.default.{name}.")]
    return None if last.deleted else codec.decode(QuotaUsageFact, last.payload)


def used(stage: Stage, name: str = "q") -> dict[str, str]:
    found = fact(stage, name)
    assert found is not None
    return found.used


def put(stage: Stage, *wanted: dict[str, Any]) -> None:
    for document in wanted:
        stage.apply(document)
        stage.settle()


def test_what_is_there_is_counted_once_and_written_once(stage: Stage) -> None:
    put(stage, pod("a"), pod("b", cpu="1500m"), quota(hard={"pods": "9", "requests.cpu": "2", "count/pods": "7"}))
    assert used(stage) == {"count/pods": "2", "pods": "2", "requests.cpu": "1600m"}
    found = fact(stage)
    assert found is not None
    assert found.hard == {"pods": "9", "requests.cpu": "2", "count/pods": "7"}
    assert len(stage.counts) == 1


def test_a_pod_that_has_ended_counts_by_its_object_alone(stage: Stage) -> None:
    put(stage, quota(hard={"pods": "9", "cpu": "2", "count/pods": "7"}), pod("a"), pod("b"))
    stage.bind("a")
    stage.report("a", phase="Succeeded", ready=False, ended=True)
    stage.settle()
    assert used(stage) == {"count/pods": "2", "cpu": "100m", "pods": "1"}
    stage.remove("pods", "b")
    stage.settle()
    assert used(stage) == {"count/pods": "1", "cpu": "0", "pods": "0"}


def test_a_pod_whose_deletion_hangs_is_free_after_its_grace_period(stage: Stage) -> None:
    put(stage, quota(), pod("a"))
    stage.bind("a")
    stage.evict("a")  # it has 30 s, which the reference adds twice
    stage.settle()
    assert used(stage) == {"pods": "1"}
    stage.pass_time(50)
    assert used(stage) == {"pods": "1"}
    stage.pass_time(20)
    assert used(stage) == {"pods": "0"}


def test_scopes_choose_pods(stage: Stage) -> None:
    put(
        stage,
        quota("best-effort", scopes=["BestEffort"]),
        quota("jobs", hard={"pods": "9", "cpu": "1"}, scopes=["Terminating", "NotBestEffort"]),
        quota(
            "important",
            scopeSelector={
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
                ]
            },
        ),
        quota("reaching", scopes=["CrossNamespacePodAffinity"]),
        pod("plain", cpu=""),
        pod("deadline", activeDeadlineSeconds=60),
        pod("high", priorityClassName="system-node-critical"),
        pod(
            "reach",
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "zone", "namespaces": ["other"], "labelSelector": {}}
                    ]
                }
            },
        ),
    )
    found = {name: used(stage, name) for name in ("best-effort", "jobs", "important", "reaching")}
    assert found == {
        "best-effort": {"pods": "1"},
        "jobs": {"pods": "1", "cpu": "100m"},
        "important": {"pods": "1"},
        "reaching": {"pods": "1"},
    }


def test_a_new_limit_is_counted_and_an_old_one_forgotten(stage: Stage) -> None:
    put(stage, quota(), pod("a"), quota(hard={"requests.cpu": "1"}))
    assert used(stage) == {"requests.cpu": "100m"}


def test_a_quota_that_is_gone_leaves_a_marker(stage: Stage) -> None:
    put(stage, quota())
    stage.remove("resourcequotas", "q")
    stage.settle()
    assert fact(stage) is None


def test_a_quota_that_went_while_nobody_led_leaves_a_marker(stage: Stage) -> None:
    put(stage, quota())
    stage.remove("resourcequotas", "q")
    stage.begin()
    stage.settle()
    assert fact(stage) is None


def test_drift_is_put_right_and_what_was_charged_meanwhile_is_not_lost(stage: Stage) -> None:
    put(stage, quota(), pod("a"))
    found = fact(stage)
    assert found is not None
    subject = subjects.quota_usage("default", "q", found.uid)
    stage.hold = True
    stage.remove("pods", "a")
    stage.settle()  # it wants 0 to be stored, in the place of 1
    (count,) = stage.counts[-1:]
    assert [one.fact and one.fact.used for one in count.usages] == [{"pods": "0"}]
    stage.apply(pod("b"))
    charged = QuotaUsageFact(namespace="default", name="q", uid=found.uid, hard=found.hard, used={"pods": "2"})
    stage.stream.put(Outgoing(subject, codec.encode(charged)))
    stage.hold = False
    stage.release()
    assert used(stage) == {"pods": "2"}, "the count went by what was there before"
    stage.settle()
    assert used(stage) == {"pods": "1"}


def test_pods_of_a_namespace_without_a_quota_are_not_looked_at(stage: Stage) -> None:
    elsewhere = quota()
    elsewhere["metadata"]["namespace"] = "kube-system"
    stage.apply(elsewhere)
    stage.settle()
    before = len(stage.counts)
    put(stage, pod("a"), pod("b"))
    assert len(stage.counts) == before


def test_what_an_object_took_goes_with_it(stage: Stage) -> None:
    put(stage, quota(), pod("a"), pod("b"))
    stage.bind("a")
    stage.evict("a")
    stage.settle()
    stage.report("a", phase="Failed", ready=False, ended=True)
    stage.release_pod("a")
    stage.remove("pods", "b")
    stage.settle()
    counts: Any = stage.core._quotas
    (counted,) = counts._quotas.values()
    assert (counted.taken, counted.free_at, counts._new) == ({}, {}, {})
    stage.remove("resourcequotas", "q")
    stage.settle()
    assert (counts._quotas, counts._in) == ({}, {})
