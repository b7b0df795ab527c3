"""What quotas may say, and what objects take of them."""

from typing import Any

import pytest

from podyard.objects import decoding, quota_usage
from podyard.objects.kinds import KEPT_KINDS, kind_for

Document = dict[str, Any]


def quota(hard: Document, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard, **spec},
    }


def taken(document: Document, **more: Any) -> dict[str, str]:
    kind = kind_for(document["apiVersion"], document["kind"])
    found = quota_usage.usage(kind.resource, decoding.view(kind, document), **more)
    return {name: quota_usage.spelled(name, nano) for name, nano in found.items()}


def claim(storage: str, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **spec},
    }


def service(**spec: Any) -> Document:
    ports = [{"port": 80, "nodePort": 30080}, {"port": 81}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports, **spec}}


class TestQuotas:
    @pytest.mark.parametrize(
        ("hard", "spec", "fault"),
        [
            ({"gpus": "1"}, {}, 'spec.hard[gpus]: Invalid value: "gpus": must be a standard resource for quota'),
            ({"pods": "1500m"}, {}, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'),
            ({"cpu": "-1"}, {}, 'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
            ({"pods": "1"}, {"scopes": ["Odd"]}, 'spec.scopes: Invalid value: "[Odd]": unsupported scope'),
            (
                {"cpu": "1"},
                {"scopes": ["BestEffort"]},
                'spec.scopes: Invalid value: "[BestEffort]": unsupported scope applied to resource',
            ),
            (
                {"pods": "1"},
                {"scopes": ["BestEffort", "NotBestEffort"]},
                'spec.scopes: Invalid value: "[BestEffort NotBestEffort]": conflicting scopes',
            ),
        ],
    )
    def test_that_make_no_sense_are_refused(self, refused, hard, spec, fault):
        assert refused(quota(hard, **spec)) == [fault]

    def test_a_scope_selector_is_checked(self, refused):
        selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}
        assert refused(quota({"pods": "1"}, scopeSelector=selector)) == [
            (
                "spec.scopeSelector.matchExpressions.values: Required value: "
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
        ]

    def test_scopes_stay(self, admit, refused):
        old = admit(quota({"pods": "1"}, scopes=["BestEffort"]))
        assert refused(quota({"pods": "1"}, scopes=["NotBestEffort"]), old) == [
            'spec.scopes: Invalid value: "[NotBestEffort]": field is immutable'
        ]

    def test_a_status_is_not_stored(self, admit):
        old = admit({**quota({"pods": "1"}), "status": {"used": {"pods": "1"}}})
        assert "status" not in old
        assert "status" not in admit({**quota({"pods": "2"}), "status": {"used": {"pods": "1"}}}, old)


class TestUsage:
    def test_of_a_pod(self, make_pod):
        resources = {
            "requests": {"cpu": "1500m", "memory": "1Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
            "limits": {"cpu": "2", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
        }
        containers = [{"name": "a", "resources": resources}, {"name": "b"}]
        document = make_pod(containers=containers, overhead={"cpu": "250m", "memory": "1Mi"})
        assert taken(document) == {
            "count/pods": "1",
            "pods": "1",
            "cpu": "1750m",
            "requests.cpu": "1750m",
            "limits.cpu": "2250m",
            "memory": "1025Mi",
            "requests.memory": "1025Mi",
            "hugepages-2Mi": "4Mi",
            "requests.hugepages-2Mi": "4Mi",
            "requests.example.com/gpu": "2",
        }
        assert taken(document, ended=True) == {"count/pods": "1"}

    def test_of_a_claim_by_class_too(self):
        assert taken(claim("1500M", storageClassName="gold")) == {
            "count/persistentvolumeclaims": "1",
            "persistentvolumeclaims": "1",
            "requests.storage": "1500000000",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "gold.storageclass.storage.k8s.io/requests.storage": "1500000000",
        }
        resized = {**claim("1Gi"), "status": {"allocatedResources": {"storage": "2Gi"}}}
        assert taken(resized)["requests.storage"] == "2Gi"

    @pytest.mark.parametrize(
        ("spec", "balancers", "ports"),
        [
            ({}, "0", "0"),
            ({"type": "NodePort"}, "0", "2"),
            ({"type": "LoadBalancer"}, "1", "2"),
            ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, "1", "1"),
        ],
    )
    def test_of_a_service(self, spec, balancers, ports):
        assert taken(service(**spec)) == {
            "count/services": "1",
            "services": "1",
            "services.loadbalancers": balancers,
            "services.nodeports": ports,
        }

    def test_of_a_claim_for_devices_is_the_most_that_it_may_get(self):
        alternatives = [
            {"name": "a", "deviceClassName": "big", "allocationMode": "ExactCount", "count": 2},
            {"name": "b", "deviceClassName": "big", "allocationMode": "All"},
            {"name": "c", "deviceClassName": "small", "allocationMode": "ExactCount", "count": 4},
        ]
        exactly = {"deviceClassName": "small", "allocationMode": "ExactCount", "count": 3}
        document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "devices": {
                    "requests": [{"name": "one", "firstAvailable": alternatives}, {"name": "two", "exactly": exactly}]
                }
            },
        }
        assert taken(document) == {
            "count/resourceclaims.resource.k8s.io": "1",
            "big.deviceclass.resource.k8s.io/devices": "32",
            "small.deviceclass.resource.k8s.io/devices": "7",
        }

    def test_of_other_kinds_is_their_number(self):
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
        deployment["spec"] = {"selector": {}, "template": {}}
        assert taken(deployment) == {"count/deployments.apps": "1"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        assert taken(secret) == {"count/secrets": "1", "secrets": "1"}


class TestCounted:
    @pytest.mark.parametrize(
        ("resource", "names"),
        [
            ("pods", ["cpu", "hugepages-2Mi", "limits.memory", "pods", "requests.example.com/gpu"]),
            ("persistentvolumeclaims", ["gold.storageclass.storage.k8s.io/requests.storage", "requests.storage"]),
            ("services", ["services", "services.nodeports"]),
            ("deployments", ["count/deployments.apps"]),
            ("configmaps", ["configmaps", "count/configmaps"]),
            ("secrets", []),
        ],
    )
    def test_names_are_counted_by_what_they_name(self, resource, names):
        all_names = [
            *("cpu", "hugepages-2Mi", "limits.memory", "pods", "requests.example.com/gpu", "requests.storage"),
            *("gold.storageclass.storage.k8s.io/requests.storage", "services", "services.nodeports"),
            *("count/deployments.apps", "configmaps", "count/configmaps"),
        ]
        assert quota_usage.counted(resource, all_names) == names


def test_names_of_made_up_kinds_are_remembered_up_to_a_number():
    quota_usage.count_name.cache_clear()
    for number in range(KEPT_KINDS + 10):
        assert quota_usage.count_name(f"x{number}s.v1.example.org") == f"count/x{number}s.example.org"
    assert quota_usage.count_name.cache_info().currsize == KEPT_KINDS
