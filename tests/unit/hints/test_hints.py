"""What each hint says, and in which words."""

import pytest

from podyard.framework.events import HintAnswer
from podyard.objects.errors import SelectorError
from podyard.objects.meta import ObjectMeta
from podyard.objects.resource import DeviceClass, DeviceClassSpec
from podyard.plugins.hinted import UnexpectedObjectError
from podyard.plugins.node_affinity import hints as node_affinity
from podyard.plugins.node_name import hints as node_name
from podyard.plugins.node_resources_fit import hints as fit
from podyard.plugins.node_unschedulable import hints as node_unschedulable
from podyard.plugins.scheduling_gates import hints as gates
from podyard.plugins.scheduling_gates.plugin import SchedulingGates
from podyard.plugins.taint_toleration import hints as taint_toleration
from tests.support.objects import typed_node as node
from tests.support.objects import typed_pod as pod

QUEUE, SKIP = HintAnswer.QUEUE, HintAnswer.SKIP
affinity_hint = node_affinity.registrations()[0].hint
fit_node = fit.registrations()[1].hint
assert affinity_hint is not None
assert fit_node is not None


def taint(key: str, effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "effect": effect}


def tolerates(key: str) -> dict[str, str]:
    return {"key": key, "operator": "Exists"}


@pytest.mark.parametrize(
    ("old", "new", "answer", "reason"),
    [
        (node(unschedulable=True), node(), QUEUE, "n1 is no longer cordoned"),
        (None, node(), QUEUE, "n1 is not cordoned"),
        (None, node(unschedulable=True), SKIP, "n1 is cordoned"),
        (node(taints=[taint("a")]), node(), SKIP, "n1 was not cordoned before either"),
    ],
)
def test_node_unschedulable_after_a_node(old, new, answer, reason) -> None:
    assert node_unschedulable.after_node_change(pod(), old, new) == (answer, reason)


def test_node_unschedulable_hears_of_the_pods_own_toleration() -> None:
    mine = pod(tolerations=[tolerates("node.kubernetes.io/unschedulable")])
    assert node_unschedulable.after_toleration(pod(), pod(), mine).answer is QUEUE
    assert node_unschedulable.after_toleration(pod(), pod(), pod(tolerations=[tolerates("x")])).answer is SKIP
    other = pod("other", tolerations=[tolerates("node.kubernetes.io/unschedulable")])
    assert node_unschedulable.after_toleration(pod(), pod("other"), other).answer is SKIP


def test_node_name_wants_any_new_node_without_a_hint() -> None:
    (only,) = node_name.registrations()
    assert only.event.label == "NodeAdd"
    assert only.hint is None


@pytest.mark.parametrize(
    ("old", "new", "answer", "reason"),
    [
        (
            node(taints=[taint("a")]),
            node(),
            QUEUE,
            "taint a:NoSchedule, which the pod does not tolerate, is gone from n1",
        ),
        (
            node(taints=[taint("a")]),
            node(taints=[taint("b")]),
            SKIP,
            "the pod does not tolerate taint b:NoSchedule of n1",
        ),
        (node(), node(taints=[taint("ok")]), SKIP, "the pod tolerated all taints of n1 before"),
        (None, node(taints=[taint("ok")]), QUEUE, "the pod tolerates all taints of the new node n1"),
        (None, node(taints=[taint("a", "PreferNoSchedule")]), QUEUE, "the pod tolerates all taints of the new node n1"),
    ],
)
def test_taint_toleration_after_a_node(old, new, answer, reason) -> None:
    assert taint_toleration.after_node_change(pod(tolerations=[tolerates("ok")]), old, new) == (answer, reason)


def test_taint_toleration_after_the_pods_own_toleration() -> None:
    assert taint_toleration.after_toleration(pod(), pod(), pod()).answer is QUEUE
    assert taint_toleration.after_toleration(pod(), pod("o"), pod("o")).answer is SKIP


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (None, node(labels={"disk": "ssd"}), QUEUE),
        (None, node(labels={"disk": "hdd"}), SKIP),
        (node(labels={"disk": "hdd"}), node(labels={"disk": "ssd"}), QUEUE),
        (node(labels={"disk": "ssd"}), node(labels={"disk": "ssd", "x": "y"}), SKIP),
        (node(labels={"disk": "ssd"}), node(), SKIP),
    ],
)
def test_node_affinity_after_a_node(old, new, answer) -> None:
    assert affinity_hint(pod(nodeSelector={"disk": "ssd"}), old, new).answer is answer


def test_an_affinity_that_cannot_be_read_raises_so_it_counts_as_queue() -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Nonsense", "values": ["1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    with pytest.raises(SelectorError):
        affinity_hint(pod(affinity={"nodeAffinity": required}), None, node())


def test_an_object_of_another_kind_raises() -> None:
    with pytest.raises(UnexpectedObjectError, match="expected a Node"):
        taint_toleration.after_node_change(pod(), None, pod("other"))
    with pytest.raises(UnexpectedObjectError, match="got none"):
        taint_toleration.after_node_change(pod(), node(), None)


NEEDY = pod(requests={"cpu": "500m", "memory": "1Gi"})


@pytest.mark.parametrize(
    ("gone", "answer", "reason"),
    [
        (
            pod("x", node="n1", requests={"cpu": "200m"}),
            QUEUE,
            "freed 200m cpu on n1, the pod needs 500m cpu",
        ),
        (pod("x", node="n1"), QUEUE, "default/x left n1; the pod needs 500m cpu, 1Gi memory"),
        (
            pod("x", nominated="n1", requests={"cpu": "1"}),
            QUEUE,
            "default/x gave up its nomination to n1 (1 cpu), the pod needs 500m cpu",
        ),
        (pod("x", requests={"cpu": "1"}), SKIP, "default/x was on no node"),
    ],
    ids=["freed", "26 any assigned pod's deletion", "26 nominated", "26 on no node"],
)
def test_fit_after_a_deletion(gone, answer, reason) -> None:
    assert fit.after_pod_event(NEEDY, gone, None) == (answer, reason)


@pytest.mark.parametrize(
    ("old", "new", "answer", "reason"),
    [
        (
            pod("x", node="n1", requests={"cpu": "2"}),
            pod("x", node="n1", requests={"cpu": "500m"}),
            QUEUE,
            "default/x gave back 1500m cpu on n1, the pod needs 500m cpu",
        ),
        (
            pod("x", node="n1", requests={"example.com/gpu": "2"}),
            pod("x", node="n1", requests={"example.com/gpu": "1"}),
            SKIP,
            "default/x gave back nothing that the pod needs",
        ),
        (pod("x", requests={"cpu": "2"}), pod("x", requests={"cpu": "1"}), SKIP, "default/x is on no node"),
        (pod("p", requests={"cpu": "9"}), NEEDY, QUEUE, "the pod itself asks for less now"),
    ],
)
def test_fit_after_a_scale_down(old, new, answer, reason) -> None:
    assert fit.after_pod_event(NEEDY, old, new) == (answer, reason)


@pytest.mark.parametrize(
    ("old", "new", "answer", "reason"),
    [
        (
            node(status={"allocatable": {"cpu": "4", "memory": "512Mi", "pods": "9"}}),
            node(status={"allocatable": {"cpu": "4", "memory": "768Mi", "pods": "9"}}),
            SKIP,
            "the whole of n1 is 768Mi memory, the pod needs 1Gi memory",
        ),
        (
            node(status={"allocatable": {"cpu": "4", "memory": "512Mi", "pods": "9"}}),
            node(status={"allocatable": {"cpu": "4", "memory": "2Gi", "pods": "9"}}),
            QUEUE,
            "n1 grew from 512Mi memory to 2Gi memory, the pod needs 1Gi memory",
        ),
        (
            node(status={"allocatable": {"cpu": "4", "memory": "2Gi", "pods": "9"}}),
            node(status={"allocatable": {"cpu": "4", "memory": "2Gi", "pods": "9", "example.com/gpu": "1"}}),
            SKIP,
            "n1 has no more than before of what the pod needs",
        ),
        (None, node(), QUEUE, "the new node n1 is large enough: the pod needs 500m cpu, 1Gi memory"),
        (
            None,
            node(status={"allocatable": {"cpu": "4", "memory": "2Gi", "pods": "0"}}),
            SKIP,
            "n1 takes no pods at all",
        ),
    ],
    ids=["grown but still below", "grown enough", "grown elsewhere", "added", "no pods"],
)
def test_fit_after_a_node(old, new, answer, reason) -> None:
    assert fit_node(NEEDY, old, new) == (answer, reason)


def test_fit_leaves_ignored_resources_to_others() -> None:
    hint = fit.registrations(ignored_resource_groups=("example.com",))[1].hint
    assert hint is not None
    assert hint(pod(requests={"example.com/gpu": "1"}), None, node()).answer is QUEUE
    assert fit_node(pod(requests={"example.com/gpu": "1"}), None, node()).answer is SKIP


def test_fit_counts_devices_that_stand_for_an_extended_resource() -> None:
    hint = fit.registrations(by_devices=lambda resource: resource == "example.com/gpu")[1].hint
    assert hint is not None
    assert hint(pod(requests={"example.com/gpu": "1"}), None, node()).answer is QUEUE
    assert hint(pod(requests={"example.com/nic": "1"}), None, node()).answer is SKIP


@pytest.mark.parametrize(
    ("requests", "listed", "answer"),
    [
        pytest.param({"example.com/gpu": "1"}, {}, QUEUE, id="not listed"),
        pytest.param({"example.com/gpu": "1"}, {"example.com/gpu": "0"}, QUEUE, id="listed as none"),
        pytest.param({"example.com/gpu": "1"}, {"example.com/gpu": "2"}, SKIP, id="listed, and not more than before"),
        pytest.param({"example.com/gpu": "1", "cpu": "5"}, {}, SKIP, id="the node is too small otherwise"),
        pytest.param({"example.com/nic": "1"}, {"example.com/nic": "2"}, SKIP, id="no device class stands for it"),
    ],
)
def test_any_change_of_a_node_counts_for_a_resource_that_devices_may_stand_for(requests, listed, answer) -> None:
    registration = fit.registrations(by_devices=lambda resource: resource == "example.com/gpu")[1]
    assert registration.hint is not None
    assert registration.new_index is not None
    wants = pod(requests=requests)
    old, new = node(memory="8Gi", amounts=listed), node(memory="9Gi", amounts=listed)
    assert registration.hint(wants, old, new).answer is answer
    index, signature = registration.new_index(), tuple(sorted(fit.wanted(wants).items()))
    index.add(signature)
    assert list(index.candidates(old, new) or ()) == ([signature] if answer is QUEUE else [])


def test_fit_after_a_device_class() -> None:
    def device_class(resource: str | None) -> DeviceClass:
        return DeviceClass(metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(extended_resource_name=resource))

    wants = pod(requests={"example.com/gpu": "1"})
    assert fit.after_device_class(wants, None, device_class("example.com/gpu")).answer is QUEUE
    assert fit.after_device_class(wants, device_class(None), device_class("example.com/gpu")).answer is QUEUE
    same = device_class("example.com/gpu")
    assert fit.after_device_class(wants, same, same).answer is SKIP
    by_name = pod(requests={"deviceclass.resource.kubernetes.io/gpu": "1"})
    assert fit.after_device_class(by_name, None, device_class(None)).answer is QUEUE


def test_gates_hint_looks_at_the_pod_itself_only() -> None:
    assert gates.after_gates_eliminated(pod(), pod(), pod()).answer is QUEUE
    assert gates.after_gates_eliminated(pod(), pod("o"), pod("o")).answer is SKIP


def test_scheduling_gates_names_what_it_waits_for() -> None:
    plugin = SchedulingGates()
    assert plugin.pre_enqueue(pod()).ok
    refused = plugin.pre_enqueue(pod(schedulingGates=[{"name": "a"}, {"name": "b"}]))
    assert refused.rejected
    assert refused.message == "waiting for scheduling gates: [a b]"
