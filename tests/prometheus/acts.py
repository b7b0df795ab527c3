"""What the demo's story does not have: many pods, one that waits for long, a preemption, pods that their node
refuses or has others go for, a second eviction, so that its histogram grows while somebody looks."""

from typing import Any, Final

from podyard.cli.demo.actions import GIBIBYTE
from podyard.cluster.pods import PodView
from tests.e2e.stage import WITHIN_S, Stand, node, pod
from tests.prometheus.server import PrometheusServer
from tests.support.objects import HOSTNAME
from tests.support.waiting import eventually

EDGE: Final = "edge"
"""A node of its own, full of one pod."""
BATCHES: Final = 3
MANY: Final = 25


async def all_of_them(here: Stand, server: PrometheusServer) -> None:
    """One after the other, each until it is seen."""
    await here.do.apply([pod("stuck", cpu="1000")], "what fits nowhere")
    await _scraped(server, 'scheduler_pending_pods{queue="unschedulable"} >= 1')
    for batch in range(BATCHES):
        await _many(here, server, batch)
    await here.join(node(EDGE, cpu="2"))
    await here.do.apply([_class("low", -10), _class("high", 1000), _on_edge("low", "2", "low")], "a full node")
    await here.running("low")
    await _preempts(here)
    await _refuses(here)
    await _has_others_go(here)
    await _evicts(here)


async def seen_by(server: PrometheusServer) -> None:
    """Wait until the last of it was scraped, twice where it is the first of its kind, and the rules were
    looked at.

    :raises AssertionError: if that takes too long
    """
    await _scraped(server, "sum(kubelet_evictions) >= 2")
    for counter in ("kubelet_preemptions", "podyard_node_agent_refusals_total"):
        await _scraped(server, f"rate({counter}[10s])")
    await eventually(
        "the rules looked at", lambda: all(rule["lastEvaluation"] > "0001" for rule in server.rules()), WITHIN_S
    )


async def _scraped(server: PrometheusServer, query: str) -> None:
    """Wait until a query finds something."""
    await eventually(query, lambda: server.now(query), WITHIN_S)


async def _many(here: Stand, server: PrometheusServer, batch: int) -> None:
    """No two alike: so plugins are called for each, and one cycle in ten is timed."""
    names = [f"many-{batch}-{number}" for number in range(MANY)]
    pods = [pod(name, cpu=f"{1 + batch * MANY + number}m") for number, name in enumerate(names)]
    await here.do.apply(pods, "many")
    await here.running(*names)
    await _scraped(server, f'sum(scheduler_schedule_attempts_total{{result="scheduled"}}) >= {MANY * (batch + 1)}')


def _class(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _on_edge(name: str, cpu: str, priority: str, **more: Any) -> dict[str, Any]:
    chosen = {"nodeSelector": {HOSTNAME: EDGE}, "priorityClassName": priority, "terminationGracePeriodSeconds": 1}
    return pod(name, cpu=cpu, **{**chosen, **more})


async def _preempts(here: Stand) -> None:
    await here.do.apply([_on_edge("high", "2", "high")], "what matters more")
    await here.running("high")


async def _refuses(here: Stand) -> None:
    """Its creator puts it onto the node, whose labels are others."""
    wrong = _on_edge("wrong", "", "low", node=EDGE, nodeSelector={"disk": "ssd"})
    await here.do.apply([wrong], "somebody errs")
    await here.seen.until("the refusal", lambda: _reason(here.known("wrong")) == "NodeAffinity", WITHIN_S)


async def _has_others_go(here: Stand) -> None:
    """Its creator puts it onto the node, which is full."""
    await here.do.apply([_on_edge("vital", "1", "system-node-critical", node=EDGE)], "what must run")
    await here.running("vital")


async def _evicts(here: Stand) -> None:
    await here.do.apply([_on_edge("greedy", "500m", "low")], "who will take too much")
    await here.running("greedy")
    here.do.memory(EDGE, 20 * 1024**2, 16 * GIBIBYTE, {(here.namespace, "greedy"): GIBIBYTE})
    await here.seen.until("the eviction", lambda: _reason(here.known("greedy")) == "Evicted", WITHIN_S)


def _reason(found: PodView | None) -> str:
    return "" if found is None or found.status is None else found.status.reason
