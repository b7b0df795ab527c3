"""`svc.objects.delete` and `svc.objects.evict` as people use them."""

from typing import Any

import pytest
from anyio import create_task_group, fail_after

from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.facts import Condition, NodeLifeFact, PodStatusFact
from podyard.proto.message import ObjectRef
from tests.contract.api import conftest
from tests.contract.api.conftest import Api, outcomes, stored
from tests.support.cluster import Cluster, bound
from tests.support.objects import Document

NODE = "n1"


def pod(name: str) -> Document:
    """One that the budgets below are about, with 12 s to end."""
    return conftest.pod(name, labels={"app": "web"}, terminationGracePeriodSeconds=12)


def budget(name: str = "web", *, allowed: int, healthy: int = 3, desired: int = 2, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": "web"}}} | spec,
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": healthy,
            "observedGeneration": 1,
        },
    }


def measured(found: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A new budget, which has no status, and then the same with what workloads says of its pods."""
    return {key: value for key, value in found.items() if key != "status"}, found


def ref(name: str, resource: str = "pods", **more: str) -> ObjectRef:
    return ObjectRef(resource=resource, namespace="default", name=name, **more)


async def bind(api: Api, *names: str, ready: bool = True, phase: Any = "Running") -> None:
    """Bind pods as the binder does, and report them as their agent does; then wait until the api has read
    it."""
    cluster = Cluster(api.bus)
    uids = {name: (await stored(api.bus, "pods", name)).uid for name in names}
    conditions = (Condition(type="Ready", status="True" if ready else "False"),)
    for name, uid in uids.items():
        await cluster.status(
            PodStatusFact(namespace="default", name=name, uid=uid, node=NODE, phase=phase, conditions=conditions)
        )
    await api.reached(await cluster.commit([bound(name, NODE, uid=uid) for name, uid in uids.items()]))


async def test_a_bound_pod_gets_its_grace_period_and_a_pending_one_its_marker(api: Api) -> None:
    await api.apply(pod("bound"), pod("pending"))
    await bind(api, "bound")
    reply = await api.delete(ref("bound"), ref("pending"), ref("nobody"))
    assert outcomes(reply) == ["deleted", "deleted", "notFound"]
    assert reply.results[0].message == "it has 12 s to end"
    bound, pending = await stored(api.bus, "pods", "bound"), await stored(api.bus, "pods", "pending")
    assert not bound.deleted
    assert bound.document()["metadata"]["deletionGracePeriodSeconds"] == 12
    assert pending.deleted


async def test_grace_zero_removes_a_bound_pod_at_once(api: Api) -> None:
    await api.apply(pod("a"))
    await bind(api, "a")
    await api.delete(ref("a"), grace_period_s=0)
    assert (await stored(api.bus, "pods", "a")).deleted


async def test_a_second_deletion_may_shorten_the_grace_period_only(api: Api) -> None:
    await api.apply(pod("a"))
    await bind(api, "a")
    await api.delete(ref("a"), grace_period_s=30)
    longer = await api.delete(ref("a"), grace_period_s=60)
    assert longer.results[0].message == "it was being deleted already"
    await api.delete(ref("a"), grace_period_s=5)
    assert (await stored(api.bus, "pods", "a")).document()["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_other_kinds_get_markers_by_any_of_their_names(api: Api) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    await api.apply(node, budget(allowed=1))
    reply = await api.delete(ObjectRef(resource="no", name="n1"), ref("web", "pdb"), ref("x", "ponds"))
    assert outcomes(reply) == ["deleted", "deleted", "refused"]
    assert (await stored(api.bus, "nodes", "n1", "")).deleted
    assert "ponds" in reply.results[2].message


async def test_a_deleted_name_may_be_used_again_and_a_foreign_uid_is_not_deleted(api: Api) -> None:
    first = (await api.apply(pod("a"))).results[0].uid
    await api.delete(ref("a", uid=first))
    second = (await api.apply(pod("a"))).results[0]
    assert (second.outcome, second.uid != first) == ("created", True)
    assert outcomes(await api.delete(ref("a", uid=first))) == ["notFound"]
    assert not (await stored(api.bus, "pods", "a")).deleted


async def test_an_eviction_is_charged_to_the_budget_in_the_same_batch(api: Api) -> None:
    await api.apply(pod("a"), pod("b"), *measured(budget(allowed=1)))
    await bind(api, "a", "b")
    reply = await api.evict(ref("a"), ref("b"), why="drain")
    assert outcomes(reply) == ["evicted", "blocked"]
    assert reply.results[0].message == "charged to the disruption budget default/web"
    assert "needs 2 healthy pods and has 3 currently" in reply.results[1].message
    evicted, charged = await stored(api.bus, "pods", "a"), await stored(api.bus, "poddisruptionbudgets", "web")
    assert charged.sequence == evicted.sequence + 1 == reply.results[0].position + 1
    status = charged.document()["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])
    assert status["conditions"][0]["reason"] == "InsufficientPods"
    assert evicted.document()["metadata"]["deletionGracePeriodSeconds"] == 12
    assert evicted.document()["status"]["conditions"][0]["type"] == "DisruptionTarget"
    assert "deletionTimestamp" not in (await stored(api.bus, "pods", "b")).document()["metadata"]


async def test_the_eviction_span_is_kept_and_named_by_the_pods_version(api: Api) -> None:
    await api.apply(pod("a"))
    await bind(api, "a")
    await api.evict(ref("a"), why="drain")
    delivery = await api.bus.get("CLUSTER", subjects.object_("pods", "default", "a"))
    assert delivery is not None
    span = next(one for one in api.spans if one.name == "evict pod")
    assert str(span.ids) == delivery.trace
    assert (span.attributes["k8s.pod.name"], span.attributes["podyard.why"]) == ("a", "drain")


async def test_a_dry_run_evicts_nobody(api: Api) -> None:
    await api.apply(pod("a"), *measured(budget(allowed=1)))
    await bind(api, "a")
    before = await api.bus.last_sequence("CLUSTER")
    assert outcomes(await api.evict(ref("a"), dry_run=True)) == ["evicted"]
    assert await api.bus.last_sequence("CLUSTER") == before


@pytest.mark.parametrize(
    ("ready", "phase", "more", "expected"),
    [
        (True, "Running", {}, "blocked"),
        (False, "Running", {}, "evicted"),
        (False, "Running", {"healthy": 1}, "blocked"),
        (False, "Running", {"healthy": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, "evicted"),
        (True, "Succeeded", {}, "evicted"),
        (True, "Pending", {}, "evicted"),
    ],
    ids=["healthy", "unhealthy", "unhealthy, budget not met", "always allowed", "has ended", "never ran"],
)
async def test_a_used_up_budget_protects_healthy_pods(
    api: Api, ready: bool, phase: str, more: dict[str, Any], expected: str
) -> None:
    await api.apply(pod("a"), *measured(budget(allowed=0, **more)))
    await bind(api, "a", ready=ready, phase=phase)
    assert outcomes(await api.evict(ref("a"))) == [expected]
    charged = (await stored(api.bus, "poddisruptionbudgets", "web")).document()["status"]
    assert charged["disruptionsAllowed"] == 0


@pytest.mark.parametrize(("uid", "expected"), [("uid-n1", "evicted"), ("another", "blocked")])
async def test_a_used_up_budget_does_not_protect_pods_of_a_lost_node(api: Api, uid: str, expected: str) -> None:
    """docs/rules.md, pods-of-a-lost-node-are-not-ready"""
    await api.apply(pod("a"), *measured(budget(allowed=0)))
    cluster = Cluster(api.bus)
    await cluster.node(NODE)
    unknown = Condition(type="Ready", status="Unknown")
    life = NodeLifeFact(node=NODE, node_uid=uid, conditions=(unknown,))
    await cluster.write(Outgoing(subjects.node_life(NODE), codec.encode(life)))
    await bind(api, "a")
    assert outcomes(await api.evict(ref("a"))) == [expected]


async def test_two_budgets_for_one_pod_are_not_supported(api: Api) -> None:
    await api.apply(pod("a"), budget("one", allowed=1), budget("two", allowed=1))
    await bind(api, "a")
    reply = await api.evict(ref("a"))
    assert outcomes(reply) == ["blocked"]
    assert "more than one disruption budget (one, two)" in reply.results[0].message


async def test_only_pods_are_evicted(api: Api) -> None:
    reply = await api.evict(ref("n", "nodes"), ref("a"))
    assert outcomes(reply) == ["refused", "notFound"]


async def test_racing_evictions_never_take_more_than_the_budget(api: Api) -> None:
    names = [f"p{number}" for number in range(12)]
    await api.apply(*(pod(name) for name in names), *measured(budget(allowed=5, healthy=12, desired=7)))
    await bind(api, *names)
    found: list[str] = []
    with fail_after(20.0):
        async with create_task_group() as tasks:

            async def evict(name: str) -> None:
                found.extend(outcomes(await api.evict(ref(name))))

            for name in names:
                tasks.start_soon(evict, name)
    evicted = found.count("evicted")
    status = (await stored(api.bus, "poddisruptionbudgets", "web")).document()["status"]
    assert evicted + status["disruptionsAllowed"] == 5
    assert len(status["disruptedPods"]) == evicted
    assert evicted >= 1
    deleting = [
        name for name in names if "deletionTimestamp" in (await stored(api.bus, "pods", name)).document()["metadata"]
    ]
    assert len(deleting) == evicted


async def test_who_evicts_is_written_on_the_pod(api: Api) -> None:
    await api.apply(pod("a"))
    await bind(api, "a")
    await api.evict(ref("a"), why="drain")
    event = (await stored(api.bus, "pods", "a")).event
    assert (event.who, event.why) == ("ann", "drain")
