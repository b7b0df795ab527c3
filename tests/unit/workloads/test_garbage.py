"""What becomes of what a deleted object owns, and of what is in a deleted namespace."""

from typing import Any

import pytest

from podyard.cluster import intents
from podyard.cluster.intents import Author, Keep
from podyard.cluster.keys import ObjectKey
from podyard.proto import subjects
from tests.support.objects import pod, written
from tests.unit.workloads.stage import Stage, cron_job, deployment, job, replica_set


@pytest.fixture
def stage() -> Stage:
    return Stage()


def delete(stage: Stage, resource: str, name: str, propagation: Any = "", namespace: str = "default") -> None:
    key = ObjectKey(resource, namespace, name)
    there = stage.there(subjects.object_(*key))
    plan = intents.deletion(key, now=stage.now, occupies=stage.occupies, propagation=propagation)
    step = plan(there)
    if not isinstance(step, Keep):
        stage.put(key, step, Author("test"))


def owned(name: str, *owners: tuple[str, str, str], blocks: bool = True, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap.

    :param owners: kind, name and uid of each
    """
    references = [
        {"apiVersion": "v1", "kind": kind, "name": of, "uid": uid, "blockOwnerDeletion": blocks}
        for kind, of, uid in owners
    ]
    about = {"name": name, **({"ownerReferences": references} if references else {}), **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def own(stage: Stage, name: str) -> tuple[str, str, str]:
    return "ConfigMap", name, stage.uid("configmaps", name)


def finalizers(stage: Stage, resource: str, name: str) -> list[str]:
    return stage.document(resource, name)["metadata"].get("finalizers", [])


def release(stage: Stage, resource: str, name: str) -> None:
    """Take all finalizers away, as their owners do."""
    key = ObjectKey(resource, "default", name)

    def alter(document: dict[str, Any]) -> dict[str, Any]:
        document["metadata"].pop("finalizers", None)
        return document

    stage.put(key, intents.alteration(key, alter)(stage.there(subjects.object_(*key))), Author("test"))


def running(stage: Stage) -> str:
    """A Deployment of two pods that run; the name of its ReplicaSet."""
    stage.apply(deployment(2))
    stage.settle()
    stage.run_all()
    (made,) = stage.all("replicasets")
    return made["metadata"]["name"]


def end_all(stage: Stage) -> None:
    for one in stage.pods():
        stage.report(one.name, phase="Succeeded", ready=False, ended=True)
        stage.release_pod(one.name)
    stage.settle()


def test_in_the_background_the_owner_goes_first(stage: Stage):
    replicas = running(stage)
    delete(stage, "deployments", "web", "Background")
    stage.settle()
    assert not stage.exists("deployments", "web")
    assert not stage.exists("replicasets", replicas)
    assert [one.deleting for one in stage.pods()] == [True, True]


def test_in_the_foreground_the_owner_goes_last(stage: Stage):
    replicas = running(stage)
    delete(stage, "deployments", "web", "Foreground")
    stage.settle()
    assert finalizers(stage, "deployments", "web") == ["foregroundDeletion"]
    assert finalizers(stage, "replicasets", replicas) == ["foregroundDeletion"], "it has dependents itself"
    assert [one.deleting for one in stage.pods()] == [True, True]
    end_all(stage)
    assert stage.pods() == []
    assert not stage.exists("replicasets", replicas)
    assert not stage.exists("deployments", "web")


def test_in_the_foreground_nobody_waits_for_what_does_not_block(stage: Stage):
    stage.apply(owned("owner"))
    stage.apply(owned("held", own(stage, "owner"), blocks=False, finalizers=["a/b"]))
    delete(stage, "configmaps", "owner", "Foreground")
    stage.settle()
    assert not stage.exists("configmaps", "owner")
    assert stage.document("configmaps", "held")["metadata"]["deletionGracePeriodSeconds"] == 0


def test_in_the_foreground_a_finalizer_of_a_dependent_is_waited_for(stage: Stage):
    stage.apply(owned("owner"))
    stage.apply(owned("held", own(stage, "owner"), finalizers=["a/b"]))
    delete(stage, "configmaps", "owner", "Foreground")
    stage.settle()
    assert stage.exists("configmaps", "owner")
    release(stage, "configmaps", "held")
    stage.settle()
    assert stage.all("configmaps") == []


def test_a_circle_of_owners_goes(stage: Stage):
    stage.apply(owned("a"))
    stage.apply(owned("b", own(stage, "a")))
    stage.change(
        "configmaps",
        "a",
        lambda document: document["metadata"].update(owned("a", own(stage, "b"))["metadata"]),
    )
    delete(stage, "configmaps", "a", "Foreground")
    stage.settle()
    assert stage.all("configmaps") == []


def test_orphans_forget_their_owner_and_stay(stage: Stage):
    replicas = running(stage)
    delete(stage, "deployments", "web", "Orphan")
    stage.settle()
    assert not stage.exists("deployments", "web")
    assert "ownerReferences" not in stage.document("replicasets", replicas)["metadata"]
    assert [one.deleting for one in stage.pods()] == [False, False], "their owner is the ReplicaSet"


def test_a_dependent_forgets_an_owner_that_is_gone_while_another_one_lives(stage: Stage):
    for name in ("a", "b"):
        stage.apply(owned(name))
    stage.apply(owned("both", own(stage, "a"), own(stage, "b")))
    delete(stage, "configmaps", "a", "Background")
    stage.settle()
    (left,) = stage.document("configmaps", "both")["metadata"]["ownerReferences"]
    assert left["name"] == "b"


def test_what_has_an_owner_of_an_unknown_kind_stays_as_it_is(stage: Stage):
    stage.apply(owned("both", ("ConfigMap", "never-there", "u"), ("NoSuchKind", "x", "u2")))
    stage.settle()
    assert len(stage.document("configmaps", "both")["metadata"]["ownerReferences"]) == 2


def test_what_is_in_no_namespace_is_owned_by_nothing_in_one(stage: Stage):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": owned("n1", ("ConfigMap", "gone", "u"))["metadata"]}
    stage.apply(node)
    stage.settle()
    assert "n1" in stage.cluster.nodes


def test_pods_of_a_job_that_is_gone_lose_the_finalizer_by_which_it_counts_them(stage: Stage):
    stage.apply(job())
    stage.settle()
    stage.run_all()
    delete(stage, "jobs", "sum", "Background")
    stage.settle()
    (left,) = stage.pods()
    assert (left.deleting, left.stored.metadata.finalizers) == (True, ())
    end_all(stage)
    assert stage.pods() == []


def test_pods_of_a_job_that_leaves_them_are_free(stage: Stage):
    stage.apply(job())
    stage.settle()
    stage.run_all()
    delete(stage, "jobs", "sum", "Orphan")
    stage.settle()
    assert not stage.exists("jobs", "sum")
    (left,) = stage.pods()
    metadata = left.stored.metadata
    assert (left.deleting, metadata.finalizers, metadata.owner_references) == (False, (), ())


def test_a_job_that_waits_for_its_pods_goes_with_the_last(stage: Stage):
    stage.apply(job())
    stage.settle()
    stage.run_all()
    delete(stage, "jobs", "sum", "Foreground")
    stage.settle()
    assert stage.exists("jobs", "sum")
    assert [one.deleting for one in stage.pods()] == [True], "and none is made in its place"
    end_all(stage)
    assert not stage.exists("jobs", "sum")


def test_a_pod_that_has_ended_stays_for_its_finalizers(stage: Stage):
    stage.apply(written(pod("a", metadata={"finalizers": ["a/b"]})))
    stage.settle()
    stage.run_all()
    delete(stage, "pods", "a")
    stage.settle()
    assert stage.document("pods", "a")["metadata"]["deletionGracePeriodSeconds"] == 30
    end_all(stage)
    assert stage.document("pods", "a")["metadata"]["deletionGracePeriodSeconds"] == 0
    works = len(stage.works)
    stage.pass_time(400)
    assert len(stage.works) == works, "it is left alone"
    release(stage, "pods", "a")
    stage.settle()
    assert not stage.exists("pods", "a")


# ---- namespaces


def namespace(stage: Stage, name: str = "shop", **metadata: Any) -> None:
    stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}})
    stage.settle()


def within(document: dict[str, Any], name: str = "shop") -> dict[str, Any]:
    document["metadata"]["namespace"] = name
    return document


def conditions(stage: Stage) -> dict[str, str]:
    found = stage.stored("namespaces", "shop", "").document()["status"]["conditions"]
    return {one["type"]: one["message"] for one in found if one["status"] == "True"}


def is_there(stage: Stage, resource: str, name: str, where: str = "shop") -> bool:
    return intents.living(stage.there(subjects.object_(resource, where, name))) is not None


def test_a_namespace_goes_after_its_content(stage: Stage):
    namespace(stage)
    stage.apply(within(replica_set(2)))
    stage.apply(within(owned("settings")))
    stage.apply(owned("elsewhere"))
    stage.settle()
    delete(stage, "namespaces", "shop", namespace="")
    assert stage.stored("namespaces", "shop", "").document()["status"]["phase"] == "Terminating"
    stage.settle()
    assert not is_there(stage, "namespaces", "shop", "")
    assert [one.name for one in stage.pods()] == []
    assert [one["metadata"]["name"] for one in stage.all("configmaps")] == ["elsewhere"]
    assert stage.all("replicasets") == []


def test_pods_of_a_namespace_go_first(stage: Stage):
    namespace(stage)
    stage.apply(within(cron_job()))
    stage.apply(within(written(pod("held", metadata={"finalizers": ["a/b"]}))))
    stage.settle()
    delete(stage, "namespaces", "shop", namespace="")
    stage.settle()
    assert is_there(stage, "cronjobs", "nightly")
    assert conditions(stage) == {
        "NamespaceContentRemaining": "Some resources are remaining: pods. has 1 resource instances",
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: a/b in 1 resource instances"
        ),
    }
    key = ObjectKey("pods", "shop", "held")
    stage.put(key, intents.Remove(), Author("test"))
    stage.settle()
    assert not is_there(stage, "cronjobs", "nightly")
    assert not is_there(stage, "namespaces", "shop", "")


def test_a_namespace_stays_for_finalizers_of_its_own(stage: Stage):
    namespace(stage, finalizers=["a/b"])
    delete(stage, "namespaces", "shop", namespace="")
    stage.settle()
    left = stage.stored("namespaces", "shop", "").document()
    assert (left["spec"]["finalizers"], left["metadata"]["finalizers"]) == ([], ["a/b"])
