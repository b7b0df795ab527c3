"""Autoscalers from one version to the other and back.

Source: kubernetes v1.36.2, pkg/apis/autoscaling/v1/conversion.go.
"""

import json
from typing import Any

import pytest

from podyard.kube_api.core.autoscalers import V1, V2, converted

SELECTOR = {"matchLabels": {"a": "b"}}
ABOUT = {"kind": "Service", "name": "s", "apiVersion": "v1"}
ANNOTATION = "autoscaling.alpha.kubernetes.io/"


def v2(*metrics: dict[str, Any], behavior: Any = None, status: Any = None) -> dict[str, Any]:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": list(metrics)}
    found: dict[str, Any] = {
        "apiVersion": V2,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": spec,
    }
    if behavior is not None:
        spec["behavior"] = behavior
    return found if status is None else {**found, "status": status}


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
METRICS = {
    "resource": (
        {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
        {"name": "memory", "targetAverageValue": "1Gi"},
    ),
    "containerResource": (
        {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5}},
        {"name": "cpu", "targetAverageUtilization": 5, "container": "c"},
    ),
    "pods": (
        {"metric": {"name": "m", "selector": SELECTOR}, "target": {"type": "AverageValue", "averageValue": "7"}},
        {"metricName": "m", "targetAverageValue": "7", "selector": SELECTOR},
    ),
    "object": (
        {"describedObject": ABOUT, "metric": {"name": "m"}, "target": {"type": "Value", "value": "9"}},
        {"target": ABOUT, "metricName": "m", "targetValue": "9"},
    ),
    "external": (
        {"metric": {"name": "m", "selector": SELECTOR}, "target": {"type": "Value", "value": "9"}},
        {"metricName": "m", "metricSelector": SELECTOR, "targetValue": "9"},
    ),
}
TYPES = {kind: kind[0].upper() + kind[1:] for kind in METRICS}


@pytest.mark.parametrize("kind", METRICS)
def test_a_metric_that_v1_has_no_field_for_stands_in_an_annotation(kind: str) -> None:
    whole, short = METRICS[kind]
    given = v2({"type": TYPES[kind], kind: whole}, CPU)
    found = converted(given, V1)
    assert (found["apiVersion"], found["spec"]["targetCPUUtilizationPercentage"]) == (V1, 60)
    assert "metrics" not in found["spec"]
    kept = json.loads(found["metadata"]["annotations"][f"{ANNOTATION}metrics"])
    assert kept == [{"type": TYPES[kind], kind: short}]
    assert converted(found, V2) == given


def test_an_average_of_an_object_is_no_value_of_zero() -> None:
    target = {"type": "AverageValue", "averageValue": "3"}
    given = v2({"type": "Object", "object": {"describedObject": ABOUT, "metric": {"name": "m"}, "target": target}})
    (kept,) = json.loads(converted(given, V1)["metadata"]["annotations"][f"{ANNOTATION}metrics"])
    assert (kept["object"]["targetValue"], kept["object"]["averageValue"]) == ("0", "3")
    assert converted(converted(given, V1), V2) == given


def test_behavior_is_spelled_as_go_spells_it() -> None:
    """The reference writes an internal type there."""
    policy = {"type": "Pods", "value": 4, "periodSeconds": 15}
    given = v2(
        CPU, behavior={"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [policy]}}
    )
    found = converted(given, V1)
    assert json.loads(found["metadata"]["annotations"][f"{ANNOTATION}behavior"]) == {
        "ScaleUp": {
            "StabilizationWindowSeconds": 0,
            "SelectPolicy": "Max",
            "Policies": [{"Type": "Pods", "Value": 4, "PeriodSeconds": 15}],
            "Tolerance": None,
        },
        "ScaleDown": None,
    }
    assert converted(found, V2) == given


def test_a_status_keeps_its_raw_values_and_conditions() -> None:
    current = {"name": "cpu", "current": {"averageUtilization": 12, "averageValue": "10m"}}
    conditions = [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [{"type": "Resource", "resource": current}],
        "conditions": conditions,
    }
    found = converted(v2(CPU, status=status), V1)
    assert found["status"] == {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 12}
    kept = {name.removeprefix(ANNOTATION): json.loads(text) for name, text in found["metadata"]["annotations"].items()}
    assert kept == {
        "current-metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "currentAverageUtilization": 12, "currentAverageValue": "10m"},
            }
        ],
        "conditions": conditions,
    }
    assert converted(found, V2) == v2(CPU, status=status)


def test_without_a_metric_it_is_cpu_at_80_percent() -> None:
    given = converted(v2(), V1)
    assert "targetCPUUtilizationPercentage" not in given["spec"]
    (metric,) = converted(given, V2)["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_annotations_of_others_stay_and_ours_are_not_believed_in_v2() -> None:
    given = v2(CPU)
    given["metadata"]["annotations"] = {
        "mine": "x",
        f"{ANNOTATION}metrics": "old",
        f"{ANNOTATION}scale-up-tolerance": "1",
    }
    found = converted(given, V1)
    assert found["metadata"]["annotations"] == {"mine": "x"}
    found["metadata"]["annotations"][f"{ANNOTATION}metrics"] = "no json"
    found["metadata"]["annotations"][f"{ANNOTATION}conditions"] = "3"
    again = converted(found, V2)
    assert (again["metadata"]["annotations"], again["spec"]["metrics"]) == ({"mine": "x"}, [CPU])


def test_the_same_version_and_other_kinds_stay_as_they_are() -> None:
    given = v2(CPU)
    assert converted(given, V2) is given
    other = {"apiVersion": "v1"}
    assert converted(other, V2) is other
