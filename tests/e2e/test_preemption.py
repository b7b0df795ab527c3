"""A full cluster, a pod of high priority: others end for it, and it runs in their place, whoever dies
meanwhile."""

import json
from typing import Any, Final

from podyard.cluster.pods import PodView
from podyard.proto.decisions import AttemptRecord
from podyard.proto.operations import K8sEvent
from tests.e2e.stage import WITHIN_S, Stand, node, state_of
from tests.support.otlp_sink import Ids, OtlpSink, SinkSpan

LOW_PODS: Final = 8


def classes() -> list[dict[str, Any]]:
    """Priority classes `high` and `low`."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("high", 1000), ("low", -10))
    ]


def low(here: Stand, name: str, cpu: str) -> dict[str, Any]:
    return here.pod(name, cpu=cpu, priorityClassName="low", terminationGracePeriodSeconds=1)


def high(here: Stand, name: str, cpu: str) -> dict[str, Any]:
    return here.pod(name, cpu=cpu, priorityClassName="high")


def preemption_of(here: Stand, name: str) -> AttemptRecord | None:
    """The record of the attempt that preempted."""
    return next((record for record in here.attempts(name) if record.victims), None)


async def test_a_pod_of_high_priority_takes_the_place_of_a_lower_one(here: Stand) -> None:
    await here.do.apply([*classes(), node("node-1", cpu="2"), node("node-2", cpu="2")], "the cluster")
    await here.do.apply([low(here, "small", "1"), low(here, "big", "2")], "what fills it")
    await here.running("small", "big")
    place = {name: view.node_name for name in ("small", "big") if (view := here.known(name)) is not None}
    await here.do.apply([high(here, "urgent", "1500m")], "what matters")
    await here.running("urgent")

    record = await here.seen.until("the preemption's record", lambda: preemption_of(here, "urgent"), WITHIN_S)
    [victim] = record.victims
    assert (victim.priority, victim.pdb_violation) == (-10, False)
    assert (record.outcome, record.nominated_node) == ("unschedulable", place[victim.name])
    urgent = here.known("urgent")
    assert urgent is not None
    assert urgent.node_name == place[victim.name]
    [spared] = {"small", "big"} - {victim.name}
    assert here.runs(spared)

    def preempted() -> K8sEvent | None:
        return next((event for event in here.seen.events if event.reason == "Preempted"), None)

    told = await here.seen.until("the event of the preemption", preempted, WITHIN_S)
    assert (told.regarding.uid, told.message) == (
        victim.uid,
        f"Preempted by pod {urgent.uid} on node {record.nominated_node}",
    )
    await here.seen.until("the victim gone", lambda: here.known(victim.name) is None, WITHIN_S)
    await here.seen.until("the nomination over", lambda: not urgent_nomination(here), WITHIN_S)
    told_by = await here.cli("explain", "pod", "urgent")
    assert f"preempts {here.namespace}/{victim.name} (priority -10)" in told_by.out
    listed = await here.cli("get", "events", "--for", f"pod/{victim.name}", "-o", "json")
    reported = {(one["reason"], one["reportingComponent"]) for one in json.loads(listed.out)["items"]}
    assert reported == {
        ("Scheduled", "default-scheduler"),
        ("Preempted", "default-scheduler"),
        ("Killing", "kubelet"),
    }


def urgent_nomination(here: Stand) -> str:
    view = here.known("urgent")
    return "" if view is None or view.nomination is None else view.nomination.node


async def test_what_replaces_a_victim_links_to_its_preemption_and_that_to_the_preemptor(
    here: Stand, sink: OtlpSink
) -> None:
    await here.do.apply([*classes(), node("node-1", cpu="2"), replicated(here, "worker", "2")], "the cluster")
    [old] = await here.seen.until("the worker running", lambda: here.seen.running("worker"), WITHIN_S)
    await here.do.apply([high(here, "urgent", "1")], "what matters")
    await here.running("urgent")

    def another() -> PodView | None:
        return next((one for one in here.seen.pods("worker") if one.uid != old.uid), None)

    new = await here.seen.until("another worker", another, WITHIN_S)
    await here.attempted(new.name)

    def told(spans: list[SinkSpan]) -> bool:
        return bool(here.spans_of(spans, "preempt pod", old.name) and here.spans_of(spans, "attempt", new.name))

    spans = sink.wait_for(told)
    [preempted], attempt = here.spans_of(spans, "preempt pod", old.name), here.spans_of(spans, "attempt", new.name)[0]
    assert Ids(preempted.trace_id, preempted.span_id) in attempt.links
    follows, ends = preempted.links
    cycle = next(span for span in spans if span.span_id == follows.span_id)
    assert (cycle.name, cycle.attributes["k8s.pod.name"]) == ("schedule cycle", "urgent")
    assert cycle.attributes["podyard.nominated_node"] == "node-1"
    assert here.spans_of(spans, "bind", old.name)[0].trace_id == ends.trace_id


def replicated(here: Stand, name: str, cpu: str) -> dict[str, Any]:
    """A ReplicaSet of one pod of low priority."""
    template = low(here, name, cpu)
    template["metadata"] = {"labels": {"app": name}}
    del template["apiVersion"], template["kind"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": here.namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


async def test_a_preemptor_ends_bound_although_its_scheduler_is_killed_in_the_middle(here: Stand) -> None:
    names = [f"low-{number}" for number in range(LOW_PODS)]
    await here.do.apply([*classes(), node("node-1", cpu=str(LOW_PODS))], "the cluster")
    await here.do.apply([low(here, name, "1") for name in names], "what fills it")
    await here.running(*names)
    scheduler = here.lab.child("scheduler")
    starts = scheduler.starts
    await here.do.apply([high(here, "urgent", str(LOW_PODS))], "what matters")

    def begun() -> bool:
        return any((view := here.known(name)) is None or view.deleting for name in names)

    await here.seen.until("the first victim ending", begun, WITHIN_S)
    scheduler.kill()
    await state_of(here.lab, lambda one: one is not scheduler or one.starts > starts, "another scheduler")
    await here.running("urgent")
