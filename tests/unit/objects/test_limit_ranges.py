"""What limit ranges fill in and refuse, in the API server's words."""

from typing import Any

import pytest

Document = dict[str, Any]


def limit_range(name: str = "limits", namespace: str = "default", **items: Document) -> Document:
    limits = [{"type": type_, **item} for type_, item in items.items()]
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"limits": limits},
    }


def container(name: str = "c", **resources: Document) -> Document:
    return {"name": name, "image": "x", "resources": resources}


def claim(storage: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
    }


@pytest.fixture
def put(admit, cluster):
    """Admit a range and put it there."""

    def run(document: Document) -> Document:
        stored = admit(document)
        cluster.add("limitranges", stored)
        return stored

    return run


class TestDefaults:
    def test_of_a_range_limits_are_the_most_and_requests_the_limits_or_the_least(self, put):
        stored = put(
            limit_range(Container={"max": {"cpu": "2"}, "min": {"memory": "1Mi"}, "defaultRequest": {"cpu": "1"}})
        )
        (item,) = stored["spec"]["limits"]
        assert item["default"] == {"cpu": "2"}
        assert item["defaultRequest"] == {"cpu": "1", "memory": "1Mi"}

    def test_of_a_pod_come_from_the_ranges_of_its_namespace(self, put, admit, make_pod):
        put(limit_range(Container={"default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}))
        put(limit_range("other", "kube-system", Container={"default": {"cpu": "7"}}))
        given = container("a", requests={"cpu": "200m"})
        stored = admit(make_pod(containers=[given, container("b")], initContainers=[container("i")]))
        first, second = (one["resources"] for one in stored["spec"]["containers"])
        assert first == {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
        assert second["requests"] == {"cpu": "100m", "memory": "1Gi"}
        assert stored["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
            "LimitRanger plugin set: memory request for container a; cpu, memory limit for container a; "
            "cpu, memory request for container b; cpu, memory limit for container b; "
            "cpu, memory request for init container i; cpu, memory limit for init container i"
        )

    def test_a_pod_that_says_all_stays_as_it_is(self, put, admit, make_pod):
        put(limit_range(Container={"default": {"cpu": "1"}}))
        stored = admit(make_pod(containers=[container(requests={"cpu": "1"}, limits={"cpu": "1"})]))
        assert "annotations" not in stored["metadata"]


class TestBounds:
    @pytest.mark.parametrize(
        ("item", "resources", "fault"),
        [
            ({"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}},
             "minimum cpu usage per Container is 1, but request is 500m"),
            ({"min": {"memory": "1Gi"}, "default": {"memory": "2Gi"}, "defaultRequest": {"memory": "2Gi"}},
             {"requests": {"memory": "2Gi"}, "limits": {"memory": "2Gi"}}, ""),
            ({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage per Container is 1, but limit is 2"),
            ({"max": {"cpu": "1"}}, {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, ""),
            ({"maxLimitRequestRatio": {"cpu": "2"}}, {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
             "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"),
            ({"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}},
             "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"),
            ({"maxLimitRequestRatio": {"cpu": "2"}}, {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, ""),
        ],
    )  # fmt: skip
    def test_of_containers(self, put, admit, refused, make_pod, item, resources, fault):
        put(limit_range(Container=item))
        pod = make_pod(containers=[container(**resources)])
        if fault:
            assert refused(pod) == [f"spec.containers[0].resources: Forbidden: {fault} (LimitRange limits)"]
        else:
            admit(pod)

    def test_of_pods_count_what_its_containers_take_together(self, put, refused, make_pod):
        put(limit_range(Pod={"max": {"cpu": "3"}, "min": {"memory": "1Gi"}}))
        two = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
        pod = make_pod(containers=[container("a", **two), container("b", **two)])
        assert refused(pod) == [
            "spec: Forbidden: minimum memory usage per Pod is 1Gi.  No request is specified (LimitRange limits)",
            "spec: Forbidden: maximum cpu usage per Pod is 3, but limit is 4 (LimitRange limits)",
        ]

    def test_of_init_containers(self, put, refused, make_pod):
        put(limit_range(Container={"max": {"cpu": "1"}}))
        pod = make_pod(initContainers=[container("i", limits={"cpu": "2"})])
        fault = "maximum cpu usage per Container is 1, but limit is 2 (LimitRange limits)"
        assert refused(pod) == [f"spec.initContainers[0].resources: Forbidden: {fault}"]

    def test_of_claims(self, put, admit, refused):
        put(limit_range(PersistentVolumeClaim={"min": {"storage": "1Gi"}, "max": {"storage": "4Gi"}}))
        admit(claim("4Gi"))
        assert refused(claim("5Gi")) == [
            (
                "spec.resources: Forbidden: maximum storage usage per PersistentVolumeClaim is 4Gi, "
                "but request is 5Gi (LimitRange limits)"
            )
        ]
        assert refused(claim("1Mi")) == [
            (
                "spec.resources: Forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, "
                "but request is 1Mi (LimitRange limits)"
            )
        ]

    def test_a_pod_that_is_there_may_change_whatever_came_later(self, put, admit, make_pod):
        old = admit(make_pod())
        put(limit_range(Container={"min": {"cpu": "1"}}))
        changed = make_pod(labels={"app": "other"})
        assert admit(changed, old)["metadata"]["labels"] == {"app": "other"}


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        ({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"},
          "defaultRequest": {"cpu": "1"}}, "min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1"),
        ({"type": "Pod", "default": {"cpu": "1"}}, "default: Forbidden: may not be specified when `type` is 'Pod'"),
        ({"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
         "limits: Required value: either minimum or maximum storage value is required, but neither was provided"),
        ({"type": "Node"}, 'type: Invalid value: "Node": must be a standard limit type or fully qualified'),
        ({"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}},
         'maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'),
        ({"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}},
         'maxLimitRequestRatio[cpu]: Invalid value: "4": ratio 4 is greater than max/min = 2.000000'),
        ({"type": "Pod", "max": {"oranges": "1"}},
         'max[oranges]: Invalid value: "oranges": must be a standard resource for containers'),
    ],
)  # fmt: skip
def test_a_range_that_makes_no_sense_is_refused(refused, item: Document, fault: str):
    document = limit_range()
    document["spec"]["limits"] = [item]
    assert f"spec.limits[0].{fault}" in refused(document)


def test_two_of_a_type_in_one_range_are_refused(refused):
    document = limit_range()
    document["spec"]["limits"] = [{"type": "Pod"}, {"type": "Pod"}]
    assert refused(document) == ['spec.limits[1].type: Duplicate value: "Pod"']
