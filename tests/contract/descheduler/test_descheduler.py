"""The descheduler: cycles, limits, budgets, dry runs."""

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import structlog

from podyard.api import eviction
from podyard.api.service import SERVICE as API
from podyard.bus import Bus, Delivery, Outgoing, RemoteError, Reply
from podyard.cluster.view import ClusterView
from podyard.descheduler import eviction_link, making, term
from podyard.descheduler.core import descheduler as core
from podyard.descheduler.core.effects import CycleEnded, CycleFailed
from podyard.descheduler.making import check
from podyard.descheduler.service import SERVICE
from podyard.descheduler.settings import DeschedulerSettings
from podyard.descheduler.spans_and_events import DOUBTFUL
from podyard.descheduler.term import CYCLE
from podyard.objects import times
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import Condition, PodStatusFact
from podyard.proto.moves import MoveRecord
from podyard.proto.objects_api import ObjectsReply
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings, SettingsError
from podyard.shell import stream_reading
from podyard.shell.leading import CHECK as LEADER
from podyard.shell.leading import STANDS_BY
from tests.contract.node_agent.stage import Stage, staged
from tests.support import objects
from tests.support.buses import ConnectBus
from tests.support.holding import Hold
from tests.support.leases import take_lease
from tests.support.services import make_service, running
from tests.support.stored import version
from tests.support.waiting import eventually

LIMIT_S = 15
TRACE = f"00-{7:032x}-{9:016x}-01"
CYCLES = "podyard_descheduler_cycles_total"
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
OWNER = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-1", "controller": True}]
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default", "uid": "pdb-1", "generation": 1},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
}
"""Its controller has not seen it yet."""

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
{limits}
profiles:
- name: taints
  pluginConfig:
  - name: DefaultEvictor
    args: {{nodeFit: true}}
  - name: RemovePodsViolatingNodeTaints
    args: {{}}
  plugins:
    deschedule:
      enabled: [RemovePodsViolatingNodeTaints]
"""


@pytest_asyncio.fixture
async def without_api(connect_bus: ConnectBus) -> AsyncIterator[Stage]:
    """Two nodes, the first of them with a taint."""
    async with staged(await connect_bus("stage")) as found:
        await found.node("free")
        await found.node("tainted", taints=[TAINT])
        yield found


@pytest_asyncio.fixture
async def stage(without_api: Stage, connect_bus: ConnectBus, hold: Hold[object]) -> Stage:
    """The same, and an api that evicts."""
    api = make_service(API, await connect_bus("api"))
    await hold(running(api))
    await eventually("the api is ready", lambda: api.health.ready)
    return without_api


@pytest.fixture
def write_policy(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def policy(write_policy: Callable[[str], Path]) -> Path:
    return write_policy(POLICY.format(limits=""))


def service_of(bus: Bus, stage: Stage, policy: Path | str, **settings: object) -> Service:
    chosen = {"policy": str(policy), "once": True, "interval_s": 0.1, **settings}
    return make_service(SERVICE, bus, msgspec.convert(chosen, DeschedulerSettings), spans=stage.spans)


async def one_cycle(bus: Bus, stage: Stage, policy: Path | str, **settings: object) -> Service:
    service = service_of(bus, stage, policy, **settings)
    async with asyncio.timeout(LIMIT_S):
        await SERVICE.main(service)
    return service


async def bound(stage: Stage, *names: str, node: str = "tainted") -> list[dict]:
    """Pods of one owner that are ready on a node."""
    metadata = {"ownerReferences": OWNER}
    pods = [objects.pod(name, node=node, labels={"app": "web"}, metadata=metadata) for name in names]
    for pod in pods:
        await stage.write("pods", pod)
    await stage.bind(*pods)
    for pod in pods:
        ready = (Condition(type="Ready", status="True"),)
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        await stage.status(
            PodStatusFact(namespace="default", name=name, uid=uid, node=node, phase="Running", conditions=ready)
        )
    return pods


def subject_of(pod: dict) -> str:
    return subjects.object_("pods", "default", pod["metadata"]["name"])


async def stored(stage: Stage, pod: dict) -> tuple[dict, str, ClusterEvent]:
    """The pod's document, the trace it was written with, and its message."""
    found = await stage.bus.get("CLUSTER", subject_of(pod))
    assert found is not None
    event = codec.decode(ClusterEvent, found.payload)
    return msgspec.json.decode(event.object), found.trace, event


async def deleted(stage: Stage, pods: list[dict]) -> list[str]:
    """Names of those pods that are on their way out."""
    documents = [(await stored(stage, pod))[0] for pod in pods]
    return [one["metadata"]["name"] for one in documents if one["metadata"].get("deletionTimestamp")]


async def test_a_cycle_evicts_what_does_not_tolerate_its_node(bus: Bus, stage: Stage, policy: Path):
    pods = await bound(stage, "web-1")
    pods += await bound(stage, "web-2", node="free")
    await one_cycle(bus, stage, policy)
    assert await deleted(stage, pods) == ["web-1"]
    document, trace, event = await stored(stage, pods[0])
    assert document["status"]["conditions"][0]["type"] == "DisruptionTarget"
    assert event.who == "descheduler"
    assert "does not tolerate the taint dedicated=gpu:NoSchedule" in event.why
    (span,) = stage.spans.named("evict pod")
    (cycle,) = stage.spans.named("deschedule cycle")
    assert f"{span.ids.trace_id:032x}" in trace, "who makes the replacement can link to the eviction"
    assert span.parent == cycle.ids
    assert {name: span.attributes[name] for name in ("k8s.pod.name", "k8s.namespace.name", "k8s.node.name")} == {
        "k8s.pod.name": "web-1", "k8s.namespace.name": "default", "k8s.node.name": "tainted"
    }  # fmt: skip
    assert span.attributes["podyard.eviction.strategy"] == "RemovePodsViolatingNodeTaints"
    await eventually("news of the eviction", lambda: stage.news)
    (told,) = stage.news
    assert (told.type, told.reason, told.action) == ("Normal", "RemovePodsViolatingNodeTaints", "Descheduled")
    assert told.message.startswith("pod eviction from tainted node by sigs.k8s.io/descheduler: ")
    assert "does not tolerate the taint dedicated=gpu:NoSchedule" in told.message
    assert (told.controller, told.reporter, told.trace) == (
        "sigs.k8s.io.descheduler",
        "descheduler",
        str(span.ids),
    )


async def test_an_interval_of_0_is_one_cycle_and_the_end(bus: Bus, stage: Stage, policy: Path):
    """`main` returns, so the process ends with exit code 0."""
    pods = await bound(stage, "web-1")
    await one_cycle(bus, stage, policy, once=False, interval_s=0)
    assert await deleted(stage, pods) == ["web-1"]
    assert len(stage.spans.named("deschedule cycle")) == 1


async def test_a_policy_may_ask_for_an_event_about_each_pod_that_stays(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
):
    await stage.write("poddisruptionbudgets", {**BUDGET, "status": {"disruptionsAllowed": 0, "observedGeneration": 1}})
    await bound(stage, "web-1")
    await one_cycle(bus, stage, write_policy(POLICY.format(limits="evictionFailureEventNotification: true")))
    (told,) = await eventually("news of it", lambda: stage.news)
    assert (told.type, told.reason, told.action) == ("Warning", "EvictionFailed", "Descheduled")
    assert told.message.startswith("pod eviction from tainted node by sigs.k8s.io/descheduler failed: ")


async def test_a_budget_refuses_and_its_answer_is_final_for_the_cycle(bus: Bus, stage: Stage, policy: Path):
    """docs/rules.md, a-refusal-is-final-for-the-cycle. The budget allows one disruption, two pods should
    go."""
    status = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    await stage.write("poddisruptionbudgets", {**BUDGET, "status": {**status, "observedGeneration": 1}})
    pods = await bound(stage, "web-1", "web-2")
    await one_cycle(bus, stage, policy)
    assert await deleted(stage, pods) == ["web-1"]
    problems = [span.error for span in stage.spans.named("evict pod")]
    assert problems[0] == ""
    assert "disruption budget" in problems[1]
    assert [event.name for event in stage.spans.named("evict pod")[1].events] == ["Eviction Failed"]


@pytest.mark.parametrize("readable", [True, False])
async def test_a_budget_that_comes_after_the_listing_protects_too(
    readable: bool, bus: Bus, stage: Stage, policy: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also one that cannot be read: nobody can say whom it does not protect."""
    pods = await bound(stage, "web-1")
    listing = term.snapshot

    async def listed(*asked: Any, **more: Any) -> ClusterView:
        view = await listing(*asked, **more)
        message = version("poddisruptionbudgets", BUDGET)
        await bus.publish(message.but(expect=0, payload=message.payload if readable else b"7"))
        return view

    monkeypatch.setattr(term, "snapshot", listed)
    await one_cycle(bus, stage, policy)
    assert await deleted(stage, pods) == []
    (problem,) = [span.error for span in stage.spans.named("evict pod")]
    assert ("is still being processed" if readable else "cannot be read") in problem


async def test_a_dry_run_takes_the_same_way_and_writes_nothing(bus: Bus, stage: Stage, policy: Path):
    """docs/rules.md, dry-run-goes-the-same-way."""
    pods = await bound(stage, "web-1", "web-2")
    before = await stage.bus.last_sequence("CLUSTER")
    service = await one_cycle(bus, stage, policy, dry_run=True)
    assert await stage.bus.last_sequence("CLUSTER") == before
    assert await deleted(stage, pods) == []
    assert [span.attributes["podyard.eviction.dry_run"] for span in stage.spans.named("evict pod")] == [True, True]
    value = service.metrics.get_sample_value(
        "podyard_descheduler_evictions_total",
        {"profile": "taints", "strategy": "RemovePodsViolatingNodeTaints", "result": "evicted"},
    )
    assert value == 2
    counted = {"result": "success", "strategy": "RemovePodsViolatingNodeTaints", "profile": "taints"}
    place = {"namespace": "default", "node": "tainted"}
    assert service.metrics.get_sample_value("descheduler_pods_evicted_total", {**counted, **place}) == 2
    assert service.metrics.get_sample_value("descheduler_loop_duration_seconds_count") == 1


@pytest.mark.parametrize(
    ("dry_run", "selector", "plugin", "told"),
    [
        (False, "", "PodLifeTime", "last cycle evicted 1 pods"),
        (True, "", "PodLifeTime", "last cycle would evict 1 pods (dry run)"),
        (False, "nodeSelector: a=b", "PodLifeTime", "last cycle was skipped: 0 ready nodes are selected"),
        (False, "", "LowNodeUtilization", "last cycle evicted 1 pods; LowNodeUtilization: error initializing"),
    ],
    ids=["real", "dry run", "skipped", "a plugin that failed"],
)
async def test_readyz_tells_what_the_cycle_came_to(
    dry_run: bool, selector: str, plugin: str, told: str, bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
):
    percent = "thresholds: {cpu: 1}, targetThresholds: {cpu: 2}"
    arguments = {
        "PodLifeTime": "{maxPodLifeTimeSeconds: 4000000000}",
        "LowNodeUtilization": f"{{{percent}, metricsUtilization: {{source: KubernetesMetrics}}}}",
    }
    point = "balance" if plugin == "LowNodeUtilization" else "deschedule"
    text = POLICY.format(limits=selector)
    text += f"""
- name: more
  pluginConfig: [{{name: {plugin}, args: {arguments[plugin]}}}]
  plugins: {{{point}: {{enabled: [{plugin}]}}}}
"""
    await bound(stage, "web-1")
    service = service_of(bus, stage, write_policy(text), once=False, interval_s=600, dry_run=dry_run)
    async with running(service):
        check = await eventually("the end of a cycle", lambda: service.health.checks.get(CYCLE))
        assert check.ok
        assert check.reason.startswith(told)


async def test_a_dry_run_counts_on_budgets_what_it_would_evict(bus: Bus, stage: Stage, policy: Path):
    """docs/rules.md, dry-run-goes-the-same-way. The real run evicts one: the budget is used up then."""
    status = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
    await stage.write("poddisruptionbudgets", {**BUDGET, "status": {**status, "observedGeneration": 1}})
    await bound(stage, "web-1", "web-2", "web-3")
    await one_cycle(bus, stage, policy, dry_run=True)
    problems = [span.error for span in stage.spans.named("evict pod")]
    assert problems[0] == ""
    assert all("web allows 1, and so many would be evicted before" in one for one in problems[1:])
    assert len(problems) == 3


async def test_limits_are_checked_before_the_eviction_and_told(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
):
    """docs/rules.md, limits-come-before-the-call."""
    policy = write_policy(POLICY.format(limits="maxNoOfPodsToEvictPerNode: 1"))
    pods = await bound(stage, "web-1", "web-2", "web-3")
    await one_cycle(bus, stage, policy)
    assert await deleted(stage, pods) == ["web-1"]
    assert len(stage.spans.named("evict pod")) == 1
    (cycle,) = stage.spans.named("deschedule cycle")
    assert [event.attributes["err"] for event in cycle.events] == ["maximum number of evicted pods per node reached"]


async def test_cycles_go_on_by_the_interval(bus: Bus, stage: Stage, policy: Path):
    service = service_of(bus, stage, policy, once=False)
    async with running(service):
        await eventually("a cycle", lambda: (service.metrics.get_sample_value(CYCLES, {"result": "done"}) or 0) >= 1)
        assert service.health.ready
        pods = await bound(stage, "late")
        await eventually("news of the eviction", lambda: stage.news)
    assert await deleted(stage, pods) == ["late"]


async def test_a_policy_that_cannot_be_used_ends_the_service_with_every_fault(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
):
    policy = write_policy(POLICY.format(limits="").replace("{nodeFit: true}", "{nodefit: true}"))
    with pytest.raises(SettingsError) as error:
        await one_cycle(bus, stage, policy)
    (problem,) = error.value.problems
    assert str(policy) in problem
    assert 'profiles[0].pluginConfig[0].args: unknown field "nodefit"' in problem


async def test_without_a_policy_nothing_is_evicted(bus: Bus, stage: Stage):
    pods = await bound(stage, "web-1")
    await one_cycle(bus, stage, "")
    assert await deleted(stage, pods) == []


async def test_an_unknown_priority_class_fails_the_cycle_and_neither_the_service_nor_a_standby(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
):
    policy = write_policy(POLICY.format(limits="").replace("{nodeFit: true}", "{priorityThreshold: {name: nope}}"))
    pods = await bound(stage, "web-1")
    service = service_of(bus, stage, policy, once=False)
    async with running(service):
        check = await eventually("the end of a cycle", lambda: service.health.checks.get(CYCLE))
        assert not check.ok
        assert 'priorityclasses.scheduling.k8s.io "nope" not found' in check.reason
        await take_lease(bus, SERVICE.name)
        await eventually("the end of the term", lambda: service.health.checks[LEADER].reason == STANDS_BY)
        assert service.health.ready, "a standby runs no cycles"
    assert await deleted(stage, pods) == []


async def test_a_cycle_on_demand_is_not_tried_again(
    bus: Bus, stage: Stage, policy: Path, monkeypatch: pytest.MonkeyPatch
):
    """Who asked for it asks again."""

    async def late(*arguments: Any, **more: Any) -> ClusterView:
        raise TimeoutError

    await bound(stage, "web-1")
    found = await making.one_cycle(service_of(bus, stage, policy, plan="obey", dry_run=True))
    assert isinstance(found, CycleEnded)
    (attempt,) = found.record.steps[0].attempts
    assert (attempt.name, attempt.planned_node, attempt.plan_problem) == ("web-1", "free", "")
    assert found.record.before.keys() == {"cpu", "memory"}
    monkeypatch.setattr(term, "snapshot", late)
    found = await making.one_cycle(service_of(bus, stage, policy))
    assert isinstance(found, CycleFailed)
    assert found.reason == "the cluster cannot be listed: no answer in time"


async def test_a_cycle_knows_what_others_have_moved(bus: Bus, stage: Stage, policy: Path):
    """A cycle on demand moves pods beside those of the service, which reads of it before its next one."""
    service = service_of(bus, stage, policy, once=False, interval_s=0.2, plan="obey")
    async with running(service):
        await eventually("a cycle", lambda: (service.metrics.get_sample_value(CYCLES, {"result": "done"}) or 0) >= 1)
        now = service.clock.now()
        came = MoveRecord(
            id="m", namespace="default", kind="ReplicaSet", name="web", owner="web", owner_uid="rs-1", pod="old",
            uid="uid-old", from_node="tainted", at=now, profile="p", plugin="Q", outcome="back", known_at=now,
        )  # fmt: skip
        await bus.publish(Outgoing(subjects.moves("default", "ReplicaSet", "web"), codec.encode(came)))
        pods = await bound(stage, "web-1")

        async def told() -> list[str]:
            stored = await stream_reading.listing(bus, streams.MOVES.name, (subjects.ALL_MOVES,))
            return [one.problem for delivery in stored if (one := codec.decode(MoveRecord, delivery.payload)).problem]

        (problem,) = await eventually("a pod that stays", told)
        assert problem.startswith("it is left alone until ")
    assert await deleted(stage, pods) == []


async def test_a_listing_that_is_not_answered_in_time_says_so_and_is_tried_again(
    bus: Bus, stage: Stage, policy: Path, monkeypatch: pytest.MonkeyPatch
):
    """Of the two cycles one counts, if it is to be one."""
    monkeypatch.setattr(core, "RETRY_S", 0.05)
    listing, asked = term.snapshot, 0

    async def late_once(*arguments: Any, **more: Any) -> ClusterView:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise TimeoutError
        check = service.health.checks[CYCLE]
        assert (check.ok, check.reason) == (False, "the cluster cannot be listed: no answer in time")
        return await listing(*arguments, **more)

    monkeypatch.setattr(term, "snapshot", late_once)
    pods = await bound(stage, "web-1")
    service = service_of(bus, stage, policy)
    async with asyncio.timeout(LIMIT_S):
        await SERVICE.main(service)
    assert await deleted(stage, pods) == ["web-1"]


async def test_who_has_run_its_only_cycle_leads_no_more(bus: Bus, stage: Stage, policy: Path):
    service = await one_cycle(bus, stage, policy)
    found = await bus.get(streams.LEASES.name, subjects.lease(SERVICE.name))
    assert found is None or found.deleted
    assert CYCLE not in service.health.checks
    assert service.metrics.get_sample_value("podyard_descheduler_leading") == 0


async def test_between_cycles_no_listing_is_kept(bus: Bus, stage: Stage, policy: Path, monkeypatch: pytest.MonkeyPatch):
    """It is as large as the cluster."""
    listing, listed = term.snapshot, list[weakref.ref[ClusterView]]()

    async def noted(*arguments: Any, **more: Any) -> ClusterView:
        view = await listing(*arguments, **more)
        listed.append(weakref.ref(view))
        return view

    monkeypatch.setattr(term, "snapshot", noted)
    await bound(stage, "web-1")
    service = service_of(bus, stage, policy, once=False, interval_s=600)
    async with running(service):
        await eventually("the end of a cycle", lambda: CYCLE in service.health.checks)
        gc.collect()
        assert [one() for one in listed] == [None]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Evictions are done, which the first event tells, and answered after the second."""
    evict, done, may_answer = eviction.evict, asyncio.Event(), asyncio.Event()

    async def slowly(*arguments: Any, **more: Any) -> eviction.Evicted:
        evicted = await evict(*arguments, **more)
        done.set()
        await may_answer.wait()
        return evicted

    monkeypatch.setattr(eviction, "evict", slowly)
    return done, may_answer


async def test_a_cycle_that_is_cancelled_ends_between_two_evictions(
    bus: Bus, stage: Stage, policy: Path, answers: tuple[asyncio.Event, asyncio.Event]
):
    """The one under way is told as any other; the next one does not begin."""
    done, may_answer = answers
    pods = await bound(stage, "web-1", "web-2")
    async with asyncio.timeout(LIMIT_S), running(service_of(bus, stage, policy)) as work:
        await done.wait()
        work.cancel()
        may_answer.set()
        await eventually("news of the eviction", lambda: stage.news)
    assert await deleted(stage, pods) == ["web-1"]
    assert [span.error for span in stage.spans.named("evict pod")] == [""]
    assert [(one.pod, one.outcome) for one in await records(stage)] == [("web-1", "moving")]


async def test_an_eviction_that_is_never_answered_does_not_hold_the_end_of_the_term_up(
    bus: Bus, stage: Stage, policy: Path, answers: tuple[asyncio.Event, asyncio.Event], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(term, "END_WITHIN_S", 0.05)
    await bound(stage, "web-1")
    async with asyncio.timeout(LIMIT_S), running(service_of(bus, stage, policy)) as work:
        await answers[0].wait()
        work.cancel()


def evictions(service: Service) -> float:
    """How many the descheduler counts."""
    labels = {"profile": "taints", "strategy": "RemovePodsViolatingNodeTaints", "result": "evicted"}
    return service.metrics.get_sample_value("podyard_descheduler_evictions_total", labels) or 0


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Makes the api answer none of the first requests, which it carries out; returns the pods of all."""
    monkeypatch.setattr(eviction_link, "TRY_S", 1.0)

    def silenced(times: int) -> list[str]:
        evict, asked = eviction.evict, list[str]()

        async def unanswered(bus: Bus, wanted: eviction.Wanted, *more: Any) -> eviction.Evicted:
            asked.append(wanted.key.name)
            done = await evict(bus, wanted, *more)
            if len(asked) <= times:
                await asyncio.Event().wait()
            return done

        monkeypatch.setattr(eviction, "evict", unanswered)
        return asked

    return silenced


async def test_an_eviction_without_an_answer_is_asked_for_again_and_counted_once(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path], silent: Callable[[int], list[str]]
):
    """docs/rules.md, an-unanswered-eviction-is-looked-up."""
    asked = silent(1)
    status = {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
    await stage.write("poddisruptionbudgets", {**BUDGET, "status": {**status, "observedGeneration": 1}})
    pods = await bound(stage, "web-1", "web-2", "web-3")
    policy = write_policy(POLICY.format(limits="maxNoOfPodsToEvictTotal: 2"))
    service = await one_cycle(bus, stage, policy)
    assert asked == ["web-1", "web-1", "web-2"]
    assert await deleted(stage, pods) == ["web-1", "web-2"]
    assert evictions(service) == 2
    found = await stage.bus.get("CLUSTER", subjects.object_("poddisruptionbudgets", "default", "web"))
    assert found is not None
    charged = msgspec.json.decode(codec.decode(ClusterEvent, found.payload).object)["status"]
    assert (charged["disruptionsAllowed"], sorted(charged["disruptedPods"])) == (0, ["web-1", "web-2"])


async def test_an_eviction_that_nobody_ever_answers_is_looked_up_before_the_next_one(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path], silent: Callable[[int], list[str]],
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    """docs/rules.md, an-unanswered-eviction-is-looked-up. The limit holds it, too; and a replica that lags
    shows the pods as they were."""
    monkeypatch.setattr(eviction_link, "PATIENCE_S", 2.0)
    monkeypatch.setattr(eviction_link, "TRY_S", 2.0)
    monkeypatch.setattr(eviction_link, "LATE_S", 0.0)
    asked = silent(1)
    pods = await bound(stage, "web-1", "web-2", "web-3")
    before = {subject: await bus.get("CLUSTER", subject) for subject in map(subject_of, pods)}
    get = bus.get

    async def lagging(stream: str, subject: str) -> Delivery | None:
        return before[subject] if subject in before else await get(stream, subject)

    monkeypatch.setattr(bus, "get", lagging)
    policy = write_policy(POLICY.format(limits="maxNoOfPodsToEvictTotal: 2"))
    service = await one_cycle(bus, stage, policy)
    assert asked == ["web-1", "web-2"]
    assert await deleted(stage, pods) == ["web-1", "web-2"]
    assert evictions(service) == 2


def test_it_is_looked_up_when_nobody_sends_it_any_more() -> None:
    assert eviction_link.LATE_S > eviction.WRITE_S


async def test_a_cycle_ends_where_nobody_evicts(
    bus: Bus, without_api: Stage, policy: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each further eviction would wait as long, in vain."""
    monkeypatch.setattr(eviction_link, "PATIENCE_S", 1.0)
    pods = await bound(without_api, "web-1", "web-2")
    service = service_of(bus, without_api, policy, once=False, interval_s=600)
    async with running(service):
        check = await eventually("the end of a cycle", lambda: service.health.checks.get(CYCLE))
    assert not check.ok
    assert "it went no further: svc.objects.evict does not answer: nobody answers on svc.objects.evict" in check.reason
    assert await deleted(without_api, pods) == []
    assert len(without_api.spans.named("evict pod")) == 1


async def test_a_negative_grace_period_means_one_second(bus: Bus, stage: Stage, write_policy: Callable[[str], Path]):
    """As the API server has it."""
    pods = await bound(stage, "web-1")
    await one_cycle(bus, stage, write_policy(POLICY.format(limits="gracePeriodSeconds: -1")))
    assert await deleted(stage, pods) == ["web-1"]
    assert (await stored(stage, pods[0]))[0]["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize("how", ["it cannot read it", "it breaks"])
async def test_a_pod_whose_eviction_the_api_refuses_keeps_no_other_from_its_own(
    how: str, bus: Bus, stage: Stage, policy: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nor does anybody wait for an answer that was given."""
    pods = await bound(stage, "web-1", "web-2")
    request = bus.request

    async def refused(subject: str, payload: bytes, **more: Any) -> Reply:
        if b"web-1" not in payload:
            return await request(subject, payload, **more)
        if how == "it breaks":
            raise RemoteError("a bug", subject=subject)
        return Reply(codec.encode(ObjectsReply(refused="a bug")), {})

    monkeypatch.setattr(bus, "request", refused)
    monkeypatch.setattr(eviction_link, "LATE_S", 2.0 * LIMIT_S)
    service = await one_cycle(bus, stage, policy)
    assert await deleted(stage, pods) == ["web-2"]
    assert evictions(service) == 1
    assert [span.error for span in stage.spans.named("evict pod")] == ["the api refused the request: a bug", ""]


async def records(stage: Stage) -> list[MoveRecord]:
    found = await stream_reading.listing(stage.bus, streams.MOVES.name, (subjects.ALL_MOVES,))
    return [codec.decode(MoveRecord, one.payload) for one in found]


async def test_what_was_moved_is_stored_and_followed_by_the_next_term(bus: Bus, stage: Stage, policy: Path):
    await bound(stage, "web-1")
    await one_cycle(bus, stage, policy, dry_run=True)
    assert await records(stage) == []
    await one_cycle(bus, stage, policy)
    (moved,) = await records(stage)
    assert (moved.kind, moved.name, moved.pod, moved.from_node, moved.outcome) == (
        "ReplicaSet", "web", "web-1", "tainted", "moving"
    )  # fmt: skip
    assert (moved.profile, moved.plugin) == ("taints", "RemovePodsViolatingNodeTaints")
    made = {"ownerReferences": OWNER, "creationTimestamp": times.rfc3339(time.time())}
    await stage.write("pods", objects.pod("web-2", labels={"app": "web"}, metadata=made))
    await one_cycle(bus, stage, policy)
    assert [(one.id, one.outcome, one.to_pod) for one in await records(stage)] == [
        (moved.id, "moving", ""), (moved.id, "pending", "web-2")
    ]  # fmt: skip


async def test_a_listing_that_is_older_than_the_last_eviction_begins_no_cycle(
    bus: Bus, stage: Stage, policy: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(core, "RETRY_S", 0.05)
    listing, first = term.snapshot, list[ClusterView]()
    reasons: list[str] = []

    async def stale_once(*arguments: Any, **more: Any) -> ClusterView:
        if len(first) == 2:  # tried again
            reasons.append(service.health.checks[CYCLE].reason)
        first.append(await listing(*arguments, **more))
        return first[0] if len(first) == 2 else first[-1]

    monkeypatch.setattr(term, "snapshot", stale_once)
    await bound(stage, "web-1")
    service = service_of(bus, stage, policy, once=False, interval_s=0.05)
    async with running(service):
        await eventually("a third listing", lambda: len(first) > 2)
    assert "it is older than the last eviction" in reasons[0]
    assert evictions(service) == 1


async def test_what_cannot_be_meant_is_told_once_for_each_cause(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
):
    text = POLICY.format(limits="nodeSelector: zone=b") + "- name: idle\n"
    service = service_of(bus, stage, write_policy(text), once=False, interval_s=0.01)
    with structlog.testing.capture_logs() as logs:
        async with running(service):

            def skipped() -> bool:
                return (
                    service.metrics.get_sample_value("podyard_descheduler_cycles_total", {"result": "skipped"}) or 0
                ) >= 3

            await eventually("three cycles", skipped)
    told = [one["field"] for one in logs if one["event"] == DOUBTFUL]
    assert told == ["profiles[1].plugins", "nodeSelector"]


async def test_a_node_that_gets_a_taint_starts_a_cycle_whose_span_links_to_it(
    bus: Bus, stage: Stage, policy: Path, hold: Hold[object]
) -> None:
    (pod,) = await bound(stage, "web", node="free")
    service = service_of(bus, stage, policy, once=False, interval_s=3600, run_on="events", gather_s=0.0, pause_s=0.0)
    await hold(running(service))
    await eventually(
        "the first cycle ends",
        lambda: service.metrics.get_sample_value(CYCLES, {"result": "done"}) == 1,
    )
    assert not stage.spans.spans, "a cycle that found nothing to do has no span"
    await stage.node("other")
    tainted = version("nodes", objects.node("free", taints=[TAINT]))
    await bus.publish(tainted.but(trace=TRACE))
    await eventually("the pod goes", lambda: bool(stage.spans.named("evict pod")))
    (evicted,) = stage.spans.named("evict pod")
    assert evicted.attributes["k8s.pod.name"] == pod["metadata"]["name"]
    await eventually("the cycle ends", lambda: any(span.links for span in stage.spans.named("deschedule cycle")))
    called = next(span for span in stage.spans.named("deschedule cycle") if span.links)
    assert [link.ids.trace_id for link in called.links] == [int(TRACE.split("-")[1], 16)]
    (told,) = called.attributes["podyard.descheduler.called_by"]
    assert " of free for RemovePodsViolatingNodeTaints: " in told


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"once": True}, "with once, or an interval of 0, there is one cycle"),
        ({"interval_s": 0}, "with once, or an interval of 0, there is one cycle"),
        ({"policy": ""}, "no plugin that the policy enables has registered any event"),
    ],
)
def test_events_that_could_never_start_a_cycle_are_refused_at_the_start(
    policy: Path, chosen: dict[str, Any], told: str
) -> None:
    settings = {"policy": str(policy), "run_on": "events", **chosen}
    with pytest.raises(SettingsError, match=told):
        check(ServiceSettings(), msgspec.convert(settings, DeschedulerSettings))
