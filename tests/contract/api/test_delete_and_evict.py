"""`svc.objects.delete` and `svc.objects.evict` as people use them."""

from collections.abc import Sequence
from typing import Any

import pytest
import structlog
from anyio import create_task_group, fail_after

from podyard.api import eviction
from podyard.bus import Bus, Outgoing, Unavailable, Unclear
from podyard.proto import codec, subjects
from podyard.proto.facts import Condition, NodeLifeFact, PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import BudgetAnswer
from podyard.shell import writes
from tests.contract.api import conftest
from tests.contract.api.conftest import Api, outcomes, stored
from tests.support import objects
from tests.support.cluster import Cluster, bound
from tests.support.objects import Document
from tests.support.stored import version

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
    uids = await report(api, *names, ready=ready, phase=phase)
    await api.reached(await Cluster(api.bus).commit([bound(name, NODE, uid=uid) for name, uid in uids.items()]))


async def report(api: Api, *names: str, ready: bool = True, phase: Any = "Running") -> dict[str, str]:
    """What their agent says of pods; returns their uids."""
    uids = {name: (await stored(api.bus, "pods", name)).uid for name in names}
    conditions = (Condition(type="Ready", status="True" if ready else "False"),)
    for name, uid in uids.items():
        await Cluster(api.bus).status(
            PodStatusFact(namespace="default", name=name, uid=uid, node=NODE, phase=phase, conditions=conditions)
        )
    return uids


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


async def test_a_refusal_says_budget_healthy_pods_and_when_to_try_again_in_fields(api: Api) -> None:
    await api.apply(pod("a"), *measured(budget(allowed=0, healthy=2, desired=2)))
    await bind(api, "a")
    (result,) = (await api.evict(ref("a"))).results
    assert result.budget == BudgetAnswer(
        budgets=("web",), desired_healthy=2, current_healthy=2, code=429, waits_for="healthyPods"
    )
    new, _ = measured(budget("new", allowed=1))
    await api.delete(ref("web", "pdb"))
    await api.apply(new)
    (result,) = (await api.evict(ref("a"))).results
    assert result.budget == BudgetAnswer(budgets=("new",), code=429, retry_after_s=10, waits_for="time")


async def test_a_repeated_eviction_is_charged_once(api: Api) -> None:
    await api.apply(pod("a"), *measured(budget(allowed=2)))
    await bind(api, "a")
    assert [outcomes(await api.evict(ref("a"))) for _ in range(2)] == [["evicted"], ["evicted"]]
    status = (await stored(api.bus, "poddisruptionbudgets", "web")).document()["status"]
    assert status["disruptionsAllowed"] == 1


async def test_an_eviction_that_nobody_waits_for_any_more_does_not_begin(api: Api) -> None:
    await api.apply(pod("a"))
    await bind(api, "a")
    reply = await api.evict(ref("a"), until=1.0)
    assert outcomes(reply) == ["refused"]
    assert "is over" in reply.results[0].message
    assert "deletionTimestamp" not in (await stored(api.bus, "pods", "a")).document()["metadata"]


@pytest.mark.parametrize("phase", ["Running", "Pending"])
async def test_who_is_charged_to_no_budget_goes_only_while_it_stands_as_it_was_read(
    api: Api, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/rules.md, free-evictions-hold-their-budgets. The pod was not ready when it was looked at; then it
    was, its budget counted it, and another one went instead."""
    await api.apply(pod("a"), *measured(budget(allowed=0)))
    await bind(api, "a", ready=False, phase=phase)
    publish = eviction._publish

    async def after_the_count(bus: Bus, messages: Sequence[Outgoing]) -> int:
        monkeypatch.setattr(eviction, "_publish", publish)
        await report(api, "a", ready=True)
        await api.apply(budget(allowed=0, healthy=2))
        return await publish(bus, messages)

    monkeypatch.setattr(eviction, "_publish", after_the_count)
    reply = await api.evict(ref("a"))
    assert outcomes(reply) == ["blocked"]
    assert "needs 2 healthy pods and has 2 currently" in reply.results[0].message


async def test_what_cannot_be_known_is_not_told_as_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch of the first attempt was sent and not answered; then the budget is used up."""
    await api.apply(pod("a"), *measured(budget(allowed=1)))
    await bind(api, "a")

    async def unanswered(bus: Bus, messages: Sequence[Outgoing]) -> int:
        await api.apply(budget(allowed=0))
        raise Unclear("cluster.pods.default.a", "no answer")

    monkeypatch.setattr(eviction, "_publish", unanswered)
    (result,) = (await api.evict(ref("a"))).results
    assert (result.outcome, result.unclear) == ("refused", True)


@pytest.mark.parametrize("then", ["the look fails", "the next judgement fails", "the next write fails"])
async def test_what_fails_after_an_unanswered_write_does_not_say_that_nothing_was_written(
    then: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.apply(pod("a"))
    await bind(api, "a")
    away = Unavailable("NATS is away")
    tries = 0

    async def fails(*_: Any) -> Any:
        raise away

    async def unanswered(bus: Bus, messages: Sequence[Outgoing]) -> int:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise away
        match then:
            case "the look fails":
                monkeypatch.setattr(writes, "read", fails)
            case "the next judgement fails":
                monkeypatch.setattr(eviction._Eviction, "judge", fails)
            case _:
                pass
        raise Unclear("cluster.pods.default.a", "no answer")

    monkeypatch.setattr(eviction, "_publish", unanswered)
    (result,) = (await api.evict(ref("a"))).results
    assert (result.outcome, result.unclear) == ("refused", True)
    assert "nothing was written" not in result.message


async def test_a_pod_that_cannot_be_judged_keeps_nobody_else_from_its_answer(api: Api) -> None:
    broken = objects.pod("broken", node=NODE) | {"status": {"conditions": None}}
    await Cluster(api.bus).write(version("pods", broken))
    await api.apply(pod("a"))
    await bind(api, "broken", "a")
    with structlog.testing.capture_logs() as logs:
        reply = await api.evict(ref("broken"), ref("a"))
    assert outcomes(reply) == ["refused", "evicted"]
    assert "an eviction failed" in [one["event"] for one in logs]


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
