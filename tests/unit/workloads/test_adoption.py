"""A Deployment takes over ReplicaSets that nobody controls and its selector takes."""

from typing import Any

import pytest

from podyard.cluster import intents
from podyard.cluster.intents import Author, Keep
from podyard.cluster.keys import ObjectKey
from podyard.proto import subjects
from podyard.workloads.core.deployments import REVISION
from tests.unit.workloads.stage import Stage, deployment, replica_set

OTHER = {"apiVersion": "x.example/v1", "kind": "Own", "name": "other", "uid": "u", "controller": True}
GOING = {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": ["example.org/held"]}


@pytest.fixture
def stage() -> Stage:
    return Stage()


def left_alone(stage: Stage) -> str:
    """The name of a ReplicaSet of two pods that run, whose Deployment went without it."""
    stage.apply(deployment(2))
    stage.settle()
    stage.run_all()
    key = ObjectKey("deployments", "default", "web")
    there = stage.there(subjects.object_(*key))
    step = intents.deletion(key, now=stage.now, occupies=stage.occupies, propagation="Orphan")(there)
    assert not isinstance(step, Keep)
    stage.put(key, step, Author("test"))
    stage.settle()
    (left,) = stage.all("replicasets")
    assert "ownerReferences" not in left["metadata"]
    return left["metadata"]["name"]


def owner(document: dict[str, Any]) -> str:
    """The name of its controller; empty: none."""
    found = document["metadata"].get("ownerReferences", [])
    return next((one["name"] for one in found if one.get("controller")), "")


def bare(name: str = "bare", labels: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    made = replica_set(1, name)
    made["metadata"] |= {"labels": labels or {"app": "web"}, **metadata}
    return made


def test_the_one_of_its_template_is_its_own_again(stage: Stage) -> None:
    name = left_alone(stage)
    pods = [one.name for one in stage.pods()]
    stage.apply(deployment(3))
    stage.settle()
    (found,) = stage.all("replicasets")
    assert (found["metadata"]["name"], owner(found), found["spec"]["replicas"]) == (name, "web", 3)
    assert {one.name for one in stage.pods()} > set(pods), "those that ran go on"


def test_one_of_another_template_is_rolled_from(stage: Stage) -> None:
    left_alone(stage)
    stage.apply(deployment(2, "web:2"))
    stage.settle()
    revisions = {one["metadata"]["annotations"][REVISION]: owner(one) for one in stage.all("replicasets")}
    assert revisions == {"1": "web", "2": "web"}


def test_one_that_comes_later_is_taken_too(stage: Stage) -> None:
    stage.apply(deployment(2))
    stage.settle()
    stage.apply(bare())
    stage.settle()
    assert owner(stage.document("replicasets", "bare")) == "web"


def test_one_whose_labels_match_later_is_taken_then(stage: Stage) -> None:
    stage.apply(deployment(2))
    stage.apply(bare(labels={"app": "other"}))
    stage.settle()
    assert owner(stage.document("replicasets", "bare")) == ""
    stage.change("replicasets", "bare", lambda document: document["metadata"].update(labels={"app": "web"}))
    stage.settle()
    assert owner(stage.document("replicasets", "bare")) == "web"


def test_it_keeps_owners_that_do_not_control_it(stage: Stage) -> None:
    stage.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "of", "uid": stage.uid("configmaps", "of")}
    stage.apply(bare(ownerReferences=[reference]))
    stage.apply(deployment(2))
    stage.settle()
    names = [one["name"] for one in stage.document("replicasets", "bare")["metadata"]["ownerReferences"]]
    assert names == ["of", "web"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"app": "other"}},
        {"namespace": "elsewhere"},
        GOING,
        {
            "ownerReferences": [
                {"apiVersion": "x.example/v1", "kind": "Own", "name": "o", "uid": "u", "controller": True}
            ]
        },
    ],
    ids=["other labels", "another namespace", "it is being deleted", "somebody controls it"],
)
def test_others_are_left_alone(stage: Stage, metadata: dict[str, Any]) -> None:
    made = bare()
    stage.apply(made)
    stage.remove("replicasets", "bare")
    made["metadata"] |= {"uid": "u-1", **metadata}
    namespace = made["metadata"].setdefault("namespace", "default")
    stage.put(ObjectKey("replicasets", namespace, "bare"), intents.Put(made), Author("test"))
    stage.apply(deployment(2))
    stage.settle()
    found = stage.stored("replicasets", "bare", namespace).document()
    assert owner(found) != "web"
    assert "web" in map(owner, stage.all("replicasets")), "the Deployment goes on"


def test_a_deployment_that_goes_takes_none(stage: Stage) -> None:
    stage.apply(deployment(2))
    stage.settle()
    stage.change("deployments", "web", lambda document: document["metadata"].update(GOING))
    stage.apply(bare())
    stage.settle()
    assert owner(stage.document("replicasets", "bare")) == ""


@pytest.mark.parametrize("meanwhile", [{"ownerReferences": [OTHER]}, {"labels": {"app": "other"}}, GOING])
def test_what_changed_meanwhile_is_not_taken(stage: Stage, meanwhile: dict[str, Any]) -> None:
    stage.apply(deployment(2))
    stage.settle()
    stage.hold = True
    stage.apply(bare())
    stage.settle()
    assert stage.held
    stage.change("replicasets", "bare", lambda document: document["metadata"].update(meanwhile))
    stage.hold = False
    stage.release()
    stage.settle()
    assert owner(stage.document("replicasets", "bare")) != "web"
