"""DaemonSet: a pod on each node, how it is brought up to date, what is told of it."""

from typing import Any

import pytest

from podyard.workloads.core.daemon_sets import affinity_to, pod_template
from tests.unit.workloads.stage import Stage, daemon_set

HASH = "controller-revision-hash"
OWN = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
]


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def taint(stage: Stage, name: str, *taints: tuple[str, str]) -> None:
    given = [{"key": key, "effect": effect} for key, effect in taints]
    stage.change("nodes", name, lambda found: found.setdefault("spec", {}).update(taints=given), namespace="")
    stage.settle()


def begin(*names: str, **more: Any) -> Stage:
    stage = Stage()
    for name in names or ("a", "b", "c"):
        stage.apply(node(name, kind="gpu" if name == "a" else "cpu"))
    stage.settle()
    stage.apply(daemon_set(**more))
    stage.settle()
    return stage


def target(pod: Any) -> str:
    required = pod.stored.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    [term] = required.node_selector_terms
    [field] = term.match_fields
    assert (field.key, field.operator, term.match_expressions) == ("metadata.name", "In", ())
    return field.values[0]


def start(stage: Stage, *nodes: str) -> list[str]:
    """Bind pods to the nodes they are for and let them become ready; returns their names."""
    started = [pod for pod in stage.active() if pod.bound is None and (not nodes or target(pod) in nodes)]
    for pod in started:
        stage.bind(pod.name, node=target(pod))
        stage.report(pod.name, node=target(pod))
    stage.settle()
    return [pod.name for pod in started]


def leaving(stage: Stage) -> list[Any]:
    return [pod for pod in stage.pods() if pod.deleting]


def images(stage: Stage) -> dict[str, list[str]]:
    """Of living pods, by node."""
    found: dict[str, list[str]] = {}
    for pod in stage.active():
        found.setdefault(target(pod), []).append(pod.stored.spec.containers[0].image)
    return {name: sorted(found[name]) for name in sorted(found)}


def status(stage: Stage) -> dict[str, Any]:
    return stage.document("daemonsets", "web")["status"]


def test_every_node_gets_one_pod_that_no_other_takes():
    stage = begin()
    assert sorted(map(target, stage.pods())) == ["a", "b", "c"]
    start(stage)
    assert len(stage.pods()) == 3
    assert status(stage) == {
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 3,
        "numberReady": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
    }


def test_its_pods_tolerate_what_befalls_nodes_and_name_their_revision():
    stage = begin("a")
    [pod] = stage.all("pods")
    assert pod["spec"]["tolerations"] == OWN
    [revision] = stage.all("controllerrevisions")
    labels = pod["metadata"]["labels"]
    assert labels == {"app": "web", HASH: revision["metadata"]["labels"][HASH], "pod-template-generation": "1"}
    assert revision["metadata"]["name"] == f"web-{labels[HASH]}"
    assert revision["revision"] == 1
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"


def test_a_toleration_that_ends_is_replaced_by_its_own_without_end():
    given = [{**OWN[0], "tolerationSeconds": 300}, {"key": "x", "operator": "Exists"}]
    found = pod_template({"spec": {"tolerations": given, "hostNetwork": True}}, {})["spec"]["tolerations"]
    network = {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"}
    assert found == [OWN[0], given[1], *OWN[1:], network]


def test_an_affinity_keeps_what_is_preferred():
    preferred = [{"weight": 1, "preference": {}}]
    before = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
        "podAffinity": {},
    }
    found = affinity_to(before, "n")
    assert found["podAffinity"] == {}
    assert found["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
    assert found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
    }


def test_only_nodes_that_match_get_a_pod():
    stage = begin(nodeSelector={"kind": "cpu"})
    assert sorted(map(target, stage.pods())) == ["b", "c"]


def test_a_node_name_that_does_not_exist_gets_none():
    assert begin(nodeName="nowhere").pods() == []


def test_a_node_that_comes_gets_a_pod_and_one_that_matches_no_more_loses_it():
    stage = begin(nodeSelector={"kind": "cpu"})
    start(stage)
    stage.apply(node("d", kind="cpu"))
    stage.change("nodes", "b", lambda found: found["metadata"]["labels"].update(kind="gpu"), namespace="")
    stage.settle()
    assert sorted(map(target, stage.active())) == ["c", "d"]
    [gone] = leaving(stage)
    assert target(gone) == "b"


@pytest.mark.parametrize(
    ("effect", "stays", "comes"),
    [("NoSchedule", True, False), ("NoExecute", False, False), ("PreferNoSchedule", True, True)],
)
def test_a_taint_keeps_new_pods_away_and_ends_old_ones_if_it_says_so(effect: str, stays: bool, comes: bool):
    stage = begin("a")
    start(stage)
    taint(stage, "a", ("odd", effect))
    assert bool(stage.active()) is stays
    assert (status(stage)["desiredNumberScheduled"], status(stage)["numberMisscheduled"]) == (
        int(comes),
        int(not comes),
    )
    stage.apply(node("b"))
    stage.settle()
    taint(stage, "b", ("odd", effect))
    stage.apply(daemon_set(name="late"))
    stage.settle()
    late = [pod for pod in stage.active() if pod.stored.metadata.controller.name == "late"]
    assert len(late) == (2 if comes else 0)


def test_a_node_that_cannot_be_scheduled_to_or_is_lost_keeps_its_pod():
    stage = begin("a")
    start(stage)
    taint(
        stage, "a", ("node.kubernetes.io/unschedulable", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute")
    )
    assert (len(stage.active()), status(stage)["desiredNumberScheduled"]) == (1, 1)


def test_an_unbound_pod_of_a_node_that_is_gone_goes():
    stage = begin("a", "b")
    stage.remove("nodes", "a", namespace="")
    stage.settle()
    assert [target(pod) for pod in stage.pods()] == ["b"]


def test_of_two_pods_on_a_node_the_one_without_node_goes():
    stage = begin("a")
    [first] = start(stage)
    copy = stage.document("pods", first)
    copy["metadata"] |= {"name": "web-twin", "uid": "twin"}
    stage.apply(copy)
    stage.settle()
    assert [pod.name for pod in stage.active()] == [first]


# ---- what ends ---------------------------------------------------------------------------------------------


def test_a_failed_pod_is_replaced_at_once_then_ever_more_slowly():
    stage = begin("a")
    waits: list[float] = []
    for _ in range(4):
        [name] = start(stage)
        failed_at = stage.now
        stage.report(name, phase="Failed", ready=False, ended=True, node="a")
        stage.release_pod(name, "completed", node="a")
        stage.settle()
        while stage.exists("pods", name):
            stage.pass_time(0.25)
        waits.append(round(stage.now - failed_at))
        stage.settle()
    assert waits[0] == 0
    assert waits[1:] == [1, 2, 4]
    assert {told.reason for told in stage.told} == {"FailedDaemonPod"}
    assert stage.told[0].message.startswith("Found failed daemon pod default/web-")


def test_a_pod_that_succeeded_is_replaced():
    stage = begin("a")
    [name] = start(stage)
    stage.report(name, phase="Succeeded", ready=False, ended=True, node="a")
    stage.release_pod(name, "completed", node="a")
    stage.settle()
    assert not stage.exists("pods", name)
    assert len(stage.active()) == 1
    assert stage.told[0].reason == "SucceededDaemonPod"


# ---- a new template ----------------------------------------------------------------------------------------


def test_one_node_after_another_gets_the_new_template():
    stage = begin()
    start(stage)
    stage.apply(daemon_set("web:2"))
    stage.settle()
    for _ in range(3):
        [old] = leaving(stage)
        assert len(stage.active()) == 2
        stage.release_pod(old.name, node=old.node_name)
        stage.settle()
        start(stage)
    assert images(stage) == {"a": ["web:2"], "b": ["web:2"], "c": ["web:2"]}
    assert status(stage)["updatedNumberScheduled"] == 3
    assert [one["revision"] for one in stage.all("controllerrevisions")] == [1, 2]
    assert {pod.labels["pod-template-generation"] for pod in stage.active()} == {"2"}


def test_as_many_as_may_be_missing_are_replaced_at_once():
    stage = begin(rolling={"maxUnavailable": "50%"})
    start(stage)
    stage.apply(daemon_set("web:2", rolling={"maxUnavailable": "50%"}))
    stage.settle()
    assert len(leaving(stage)) == 2


def test_pods_that_are_not_available_go_first_and_whatever_may_be_missing():
    stage = begin()
    start(stage, "a")
    stage.apply(daemon_set("web:2"))
    stage.settle()
    assert images(stage) == {"a": ["web:1"], "b": ["web:2"], "c": ["web:2"]}


def test_with_a_surge_the_new_pod_comes_before_the_old_one_goes():
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    stage = begin(rolling=rolling)
    start(stage)
    stage.apply(daemon_set("web:2", rolling=rolling))
    stage.settle()
    assert images(stage) == {"a": ["web:1", "web:2"], "b": ["web:1"], "c": ["web:1"]}
    start(stage)
    [old] = leaving(stage)
    assert target(old) == "a"
    assert images(stage) == {"a": ["web:2"], "b": ["web:1", "web:2"], "c": ["web:1"]}


def test_with_a_surge_an_old_pod_that_is_not_ready_is_replaced_beyond_the_limit():
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    stage = begin(rolling=rolling)
    start(stage, "a")
    stage.apply(daemon_set("web:2", rolling=rolling))
    stage.settle()
    assert images(stage) == {"a": ["web:1", "web:2"], "b": ["web:2"], "c": ["web:2"]}


def test_on_delete_waits_for_people():
    stage = begin()
    start(stage)
    document = daemon_set("web:2")
    document["spec"]["updateStrategy"] = {"type": "OnDelete"}
    stage.apply(document)
    stage.settle()
    assert leaving(stage) == []
    assert "updatedNumberScheduled" not in status(stage)
    name = stage.active()[0].name
    stage.evict(name)
    stage.release_pod(name, node="a")
    stage.settle()
    assert sorted(image for found in images(stage).values() for image in found) == ["web:1", "web:1", "web:2"]


def test_a_template_that_comes_back_takes_its_revision_and_history_is_cut():
    stage = begin("a")
    start(stage)
    for image in ("web:2", "web:3", "web:1"):
        document = daemon_set(image)
        document["spec"]["revisionHistoryLimit"] = 1
        stage.apply(document)
        stage.settle()
        for old in leaving(stage):
            stage.release_pod(old.name, node="a")
        stage.settle()
        start(stage)
    kept = {
        one["revision"]: one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in stage.all("controllerrevisions")
    }
    assert kept == {3: "web:3", 4: "web:1"}


def test_min_ready_seconds_are_waited_for():
    stage = begin("a", "b")
    document = daemon_set()
    document["spec"]["minReadySeconds"] = 10
    stage.apply(document)
    stage.settle()
    start(stage)
    assert (status(stage)["numberReady"], status(stage).get("numberAvailable", 0)) == (2, 0)
    stage.pass_time(10)
    assert status(stage)["numberAvailable"] == 2


def test_what_it_made_goes_with_it():
    stage = begin("a")
    stage.remove("daemonsets", "web")
    stage.settle()
    assert (stage.all("pods"), stage.all("controllerrevisions")) == ([], [])
