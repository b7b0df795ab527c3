"""What a pod gets from its runtime class, and what is refused, in the API server's words."""

from typing import Any

import pytest

Document = dict[str, Any]


def runtime_class(**more: Any) -> Document:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "gvisor"},
        "handler": "runsc",
        **more,
    }


@pytest.fixture
def put(admit, cluster):
    """Admit a class and put it there."""

    def run(**more: Any) -> None:
        cluster.add("runtimeclasses", admit(runtime_class(**more)))

    return run


def test_overhead_selector_and_tolerations_come_from_the_class(put, admit, make_pod):
    toleration = {"key": "sandboxed", "operator": "Exists"}
    put(
        overhead={"podFixed": {"cpu": "250m", "memory": "64Mi"}},
        scheduling={"nodeSelector": {"runtime": "gvisor"}, "tolerations": [toleration]},
    )
    spec = admit(make_pod(runtimeClassName="gvisor", nodeSelector={"disk": "ssd"}))["spec"]
    assert spec["overhead"] == {"cpu": "250m", "memory": "64Mi"}
    assert spec["nodeSelector"] == {"disk": "ssd", "runtime": "gvisor"}
    assert toleration in spec["tolerations"]
    assert len(spec["tolerations"]) == 3


def test_a_class_without_either_changes_nothing(put, admit, make_pod):
    put()
    plain, classed = admit(make_pod())["spec"], admit(make_pod(runtimeClassName="gvisor"))["spec"]
    assert classed == {**plain, "runtimeClassName": "gvisor"}


def test_the_same_overhead_may_be_given(put, admit, make_pod):
    put(overhead={"podFixed": {"cpu": "250m"}})
    assert admit(make_pod(runtimeClassName="gvisor", overhead={"cpu": "0.25"}))["spec"]["overhead"] == {"cpu": "250m"}


@pytest.mark.parametrize(
    ("more", "spec", "fault"),
    [
        (None, {"runtimeClassName": "kata"},
         ('spec.runtimeClassName: Forbidden: pod rejected: RuntimeClass "kata" not found: '
         "create it first, or leave runtimeClassName out")),
        (None, {"overhead": {"cpu": "1"}},
         "spec.overhead: Forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        ({}, {"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}},
         "spec.overhead: Forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        ({"overhead": {"podFixed": {"cpu": "2"}}}, {"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}},
         "spec.overhead: Forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
        ({"scheduling": {"nodeSelector": {"a": "1"}}}, {"runtimeClassName": "gvisor", "nodeSelector": {"a": "2"}},
         ("spec.nodeSelector[a]: Forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = 1; "
         "pod.spec.nodeSelector[a] = 2")),
    ],
    ids=["no class", "no class named", "no overhead in it", "another overhead", "another node"],
)  # fmt: skip
def test_what_differs_is_refused(put, refused, make_pod, more: Document | None, spec: Document, fault: str):
    if more is not None:
        put(**more)
    assert refused(make_pod(**spec)) == [fault]


@pytest.mark.parametrize(
    ("given", "theirs", "left"),
    [
        ({"key": "a", "operator": "Equal", "value": "1"}, {"key": "a", "operator": "Exists"}, [1]),
        ({"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Equal", "value": "1"}, [0]),
        ({"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists"}, [0]),
        ({"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}, [0, 1]),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a", "operator": "Exists"}, [1]),
        ({"operator": "Exists"}, {"key": "a", "operator": "Exists", "effect": "NoSchedule"}, [0]),
        (
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            [0],
        ),
    ],
)
def test_of_two_tolerations_one_that_covers_the_other_stays(put, admit, make_pod, given, theirs, left):
    put(scheduling={"tolerations": [theirs]})
    stored = admit(make_pod(runtimeClassName="gvisor", tolerations=[given]))["spec"]["tolerations"]
    both = [given, theirs]
    assert [one for one in stored if one in both] == [both[at] for at in left]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"handler": ""}, "handler: Required value"),
        ({"overhead": {"podFixed": {"cpu": "-1"}}},
         'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
    ],
)  # fmt: skip
def test_a_class_that_makes_no_sense_is_refused(refused, more: Document, fault: str):
    assert fault in refused({**runtime_class(), **more})
