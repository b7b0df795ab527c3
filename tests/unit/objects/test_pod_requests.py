from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.objects import decoding, pod_requests
from podyard.objects.core import Pod
from podyard.proto.placement import HostPort

MIB = 1024 * 1024


def container(name="c", cpu=None, memory=None, **more):
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    return {"name": name, "image": "x", "resources": {"requests": requests}, **more}


def test_one_container(typed_pod):
    pod = typed_pod(containers=[container(cpu="250m", memory="64Mi")])
    assert pod_requests.pod_requests(pod) == {"cpu": 250, "memory": 64 * MIB}


def test_amounts_are_summed_exactly_and_rounded_up_once(typed_pod):
    pod = typed_pod(containers=[container("a", "0.1m", "500m"), container("b", "0.1m", "500m")])
    assert pod_requests.pod_requests(pod) == {"cpu": 1, "memory": 1}


def test_an_init_container_counts_only_if_it_is_larger(typed_pod):
    containers = [container("a", "100m", "1Gi"), container("b", "200m")]
    pod = typed_pod(containers=containers, initContainers=[container("i", "1", "1Mi"), container("j", "2")])
    assert pod_requests.pod_requests(pod) == {"cpu": 2000, "memory": 1024 * MIB}


def test_sidecars_add_to_the_sum_and_to_the_init_containers_after_them(typed_pod):
    init = [container("i", "1"), container("s", "300m", restartPolicy="Always"), container("j", "900m")]
    assert pod_requests.pod_requests(typed_pod(containers=[container(cpu="500m")], initContainers=init)) == {
        "cpu": 1200
    }
    assert pod_requests.pod_requests(typed_pod(containers=[container(cpu="2")], initContainers=init)) == {"cpu": 2300}


def test_overhead_comes_on_top(typed_pod):
    pod = typed_pod(containers=[container(cpu="1")], overhead={"cpu": "250m", "memory": "120Mi"})
    assert pod_requests.pod_requests(pod) == {"cpu": 1250, "memory": 120 * MIB}
    assert pod_requests.exact_requests(pod, overhead=False) == {"cpu": 10**9}


def test_requests_of_the_pod_as_a_whole_replace_the_sum_for_what_they_name(typed_pod):
    pod = typed_pod(
        containers=[container(cpu="1", memory="1Gi")],
        resources={"requests": {"cpu": "2"}},
        overhead={"cpu": "100m"},
    )
    assert pod_requests.pod_requests(pod) == {"cpu": 2100, "memory": 1024 * MIB}
    limits_only = typed_pod(containers=[container(cpu="1")], resources={"limits": {"cpu": "2"}})
    assert pod_requests.pod_requests(limits_only) == {"cpu": 1000}


def resized(wanted, given, used, condition=None):
    status = {
        "containerStatuses": [
            {"name": "c", "allocatedResources": {"cpu": given}, "resources": {"requests": {"cpu": used}}}
        ]
    }
    if condition:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": condition}]
    document = {"spec": {"containers": [container(cpu=wanted)]}, "status": status}
    return pod_requests.pod_requests(decoding.convert(Pod, document))


@pytest.mark.parametrize(
    ("wanted", "given", "used", "condition", "cpu"),
    [
        ("1", "500m", "500m", None, 1000),
        ("500m", "1", "500m", None, 1000),
        ("500m", "500m", "2", None, 2000),
        ("4", "500m", "700m", "Deferred", 4000),
        ("4", "500m", "700m", "Infeasible", 700),
    ],
)
def test_a_resize_in_place_counts_with_the_larger_of_wanted_given_and_used(wanted, given, used, condition, cpu):
    assert resized(wanted, given, used, condition) == {"cpu": cpu}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({}, 1000, id="nothing reported"),
        pytest.param({"allocatedResources": {"cpu": "3"}}, 1000, id="given alone counts for nothing"),
        pytest.param({"resources": {"requests": {"cpu": "3"}}}, 3000, id="used more"),
        pytest.param(
            {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}, 2000, id="given more"
        ),
        pytest.param({"resources": {"requests": {"cpu": "200m"}}}, 1000, id="wants more"),
        pytest.param({"resources": {"requests": {"cpu": "200m"}}, "conditions": "Infeasible"}, 200, id="never had"),
        pytest.param({"resources": {}, "conditions": "Infeasible"}, 0, id="never had, nothing used"),
        pytest.param(
            {"resources": {"requests": {"hugepages-2Mi": "4Mi"}}}, 1000, id="names that the spec does not request"
        ),
    ],
)
def test_a_pod_as_a_whole_that_is_resized_counts_as_the_reference_counts_it(status, cpu):
    """What its status says has overhead in it nowhere: nothing is subtracted, all of it comes on top."""
    if "conditions" in status:
        pending = {"type": "PodResizePending", "status": "True", "reason": status["conditions"]}
        status = {**status, "conditions": [pending]}
    spec = {"containers": [container()], "resources": {"requests": {"cpu": "1"}}, "overhead": {"cpu": "100m"}}
    pod = decoding.convert(Pod, {"spec": spec, "status": status})
    assert pod_requests.pod_requests(pod) == {"cpu": cpu + 100}


@pytest.mark.parametrize(
    ("before", "after", "shrank"),
    [
        ({"cpu": "1"}, {"cpu": "999m"}, True),
        ({"cpu": "1"}, {"cpu": "1", "memory": "1"}, False),
        ({"cpu": "1", "example.com/a": "0"}, {"cpu": "1"}, True),
        ({"memory": "1500m"}, {"memory": "1200m"}, True),
        ({"memory": "1500u"}, {"memory": "1200u"}, False),
        ({"memory": "20Pi"}, {"memory": "19Pi"}, True),
    ],
)
def test_a_pod_shrinks_by_thousandths_of_anything(before, after, shrank):
    pods = [
        decoding.convert(Pod, {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
        for requests in (before, after)
    ]
    assert pod_requests.shrank(*pods) is shrank


def test_a_resize_of_an_init_container_that_ends_is_not_asked_for():
    status = {"initContainerStatuses": [{"name": "i", "resources": {"requests": {"cpu": "5"}}}]}
    spec = {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="2")]}
    pod = decoding.convert(Pod, {"spec": spec, "status": status})
    assert pod_requests.pod_requests(pod) == {"cpu": 2000}


@pytest.mark.parametrize(
    ("spec", "assumed"),
    [
        ({"containers": [{"name": "c"}]}, (100, 200 * MIB)),
        ({"containers": [container(cpu="0", memory="0")]}, (0, 0)),
        ({"containers": [container("a"), container("b", cpu="1")]}, (1100, 400 * MIB)),
        ({"containers": [container()], "initContainers": [container("i", "250m", "1Gi")]}, (250, 1024 * MIB)),
        ({"containers": [container()], "overhead": {"cpu": "50m"}}, (150, 200 * MIB)),
        ({"containers": [container()], "resources": {"requests": {"cpu": "1"}}}, (1000, 200 * MIB)),
        (
            {"containers": [container("a", memory="1Mi"), container("b")], "resources": {"requests": {"cpu": "1"}}},
            (1000, MIB),
        ),
    ],
)
def test_scoring_assumes_something_for_containers_that_request_nothing(spec, assumed):
    assert pod_requests.nonzero_requests(decoding.convert(Pod, {"spec": spec})) == assumed


def test_host_ports_of_containers_and_sidecars(typed_pod):
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    udp = [{"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    init = [container("s", ports=udp, restartPolicy="Always"), container("i", ports=ports)]
    pod = typed_pod(containers=[container(ports=ports)], initContainers=init)
    assert pod_requests.host_ports(pod) == (HostPort(port=8080), HostPort(port=53, protocol="UDP", ip="10.0.0.1"))


def test_usage_leaves_out_what_no_node_counts(typed_pod):
    requests = {"cpu": "1", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "oddity": "3"}
    pod = typed_pod(containers=[{"name": "c", "resources": {"requests": requests}}])
    usage = pod_requests.usage(pod)
    assert usage.requests == {"cpu": 1000, "nvidia.com/gpu": 2, "hugepages-2Mi": 4 * MIB}
    assert (usage.nonzero_cpu_milli, usage.nonzero_memory_bytes) == (1000, 200 * MIB)
    assert usage.ports == ()


amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 5000).map(lambda milli: f"{milli}m"))
plain = st.lists(amounts, min_size=1, max_size=3)
starting = st.lists(st.tuples(amounts, st.booleans()), max_size=4)


def peak(containers, init, resource):
    """The dumb oracle: the largest sum of what runs at the same time."""

    def amount(requests):
        return Fraction(int(requests[resource][:-1]), 1000) if resource in requests else Fraction(0)

    sidecars, peaks = Fraction(0), []
    for requests, sidecar in init:
        peaks.append(sidecars + amount(requests))
        sidecars += amount(requests) if sidecar else 0
    return max(*peaks, sidecars + sum(map(amount, containers)), Fraction(0))


@given(plain, starting)
def test_requests_are_the_largest_sum_of_what_runs_at_the_same_time(containers, init):
    spec = {
        "containers": [
            {"name": f"c{at}", "resources": {"requests": requests}} for at, requests in enumerate(containers)
        ],
        "initContainers": [
            {"name": f"i{at}", "resources": {"requests": requests}, **({"restartPolicy": "Always"} if sidecar else {})}
            for at, (requests, sidecar) in enumerate(init)
        ],
    }
    found = pod_requests.pod_requests(decoding.convert(Pod, {"spec": spec}))
    assert found.get("cpu", 0) == peak(containers, init, "cpu") * 1000
    memory = peak(containers, init, "memory")
    assert found.get("memory", 0) == -(-memory.numerator // memory.denominator)
