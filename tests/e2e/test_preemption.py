"""A full cluster, a pod of high priority: others end for it, and it runs in their place, whoever dies meanwhile."""

from pathlib import Path
from typing import Any, Final

import pytest

from podyard.cluster.pods import PodView
from podyard.proto.decisions import AttemptRecord
from tests.e2e.stage import WITHIN_S, WITHOUT_LOOPS, Stand, node, pod, stand, state_of

SERVICES: Final = f"{WITHOUT_LOOPS},workloads"
SESSION_S: Final = 10.0
"""After so much silence the queue takes a scheduler's session for dead."""
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


def low(name: str, cpu: str) -> dict[str, Any]:
    return pod(name, cpu=cpu, priorityClassName="low", terminationGracePeriodSeconds=1)


def high(name: str, cpu: str) -> dict[str, Any]:
    return pod(name, cpu=cpu, priorityClassName="high")


def known(here: Stand, name: str) -> PodView | None:
    return here.seen.view.pods.get(("default", name))


def preemption_of(here: Stand, name: str) -> AttemptRecord | None:
    """The record of the attempt that preempted."""
    return next((record for record in here.seen.attempts if record.name == name and record.victims), None)


@pytest.mark.timeout(180)
async def test_a_pod_of_high_priority_takes_the_place_of_a_lower_one(tmp_path: Path) -> None:
    async with stand(tmp_path, SERVICES) as here:
        await here.do.apply([*classes(), node("node-1", cpu="2"), node("node-2", cpu="2")], "the cluster")
        await here.do.apply([low("small", "1"), low("big", "2")], "what fills it")
        await here.running("small", "big")
        place = {name: view.node_name for name in ("small", "big") if (view := known(here, name)) is not None}
        await here.do.apply([high("urgent", "1500m")], "what matters")
        await here.running("urgent")

        record = await here.seen.until("the preemption's record", lambda: preemption_of(here, "urgent"), WITHIN_S)
        [victim] = record.victims
        assert (victim.priority, victim.pdb_violation) == (-10, False)
        assert (record.outcome, record.nominated_node) == ("unschedulable", place[victim.name])
        urgent = known(here, "urgent")
        assert urgent is not None
        assert urgent.node_name == place[victim.name]
        [spared] = {"small", "big"} - {victim.name}
        assert here.runs(spared)
        told = next(event for event in here.seen.events if event.reason == "Preempted")
        assert (told.regarding.uid, told.message) == (
            victim.uid,
            f"Preempted by pod {urgent.uid} on node {record.nominated_node}",
        )
        await here.seen.until("the victim gone", lambda: known(here, victim.name) is None, WITHIN_S)
        await here.seen.until("the nomination over", lambda: not urgent_nomination(here), WITHIN_S)
        told_by = await here.cli("explain", "pod", "urgent")
        assert f"preempts default/{victim.name} (priority -10)" in told_by.out


def urgent_nomination(here: Stand) -> str:
    view = known(here, "urgent")
    return "" if view is None or view.nomination is None else view.nomination.node


@pytest.mark.timeout(240)
async def test_35_a_preemptor_ends_bound_although_its_scheduler_is_killed_in_the_middle(tmp_path: Path) -> None:
    async with stand(tmp_path, SERVICES) as here:
        names = [f"low-{number}" for number in range(LOW_PODS)]
        await here.do.apply([*classes(), node("node-1", cpu=str(LOW_PODS))], "the cluster")
        await here.do.apply([low(name, "1") for name in names], "what fills it")
        await here.running(*names)
        scheduler = here.lab.child("scheduler")
        starts = scheduler.starts
        await here.do.apply([high("urgent", str(LOW_PODS))], "what matters")

        def begun() -> bool:
            return any((view := known(here, name)) is None or view.deleting for name in names)

        await here.seen.until("the first victim ending", begun, WITHIN_S)
        scheduler.kill()
        await state_of(here.lab, lambda one: one is not scheduler or one.starts > starts, "another scheduler")
        await here.seen.until("urgent running", lambda: here.runs("urgent"), SESSION_S + 2 * WITHIN_S)
