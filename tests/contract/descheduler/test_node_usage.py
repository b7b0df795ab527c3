"""LowNodeUtilization by what agents publish on `usage.<node>`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from podyard.bus import Bus
from podyard.descheduler.core import descheduler
from podyard.descheduler.term import CYCLE
from podyard.proto import codec, subjects
from podyard.proto.operations import DeadLetter
from podyard.proto.signals import NodeUsage, PodUsage
from tests.contract.descheduler.test_descheduler import bound, deleted, service_of, stage, without_api, write_policy
from tests.contract.node_agent.stage import Stage
from tests.support.buses import ConnectBus
from tests.support.services import running
from tests.support.waiting import eventually

__all__ = ["stage", "without_api", "write_policy"]

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{source: KubernetesMetrics}]
profiles:
- name: usage
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 20}
      targetThresholds: {cpu: 50}
      metricsUtilization: {source: KubernetesMetrics}
      evictionLimits: {node: 1}
  plugins:
    balance: {enabled: [LowNodeUtilization]}
"""


async def test_pods_leave_the_node_that_its_agent_says_is_used_too_much(
    bus: Bus,
    connect_bus: ConnectBus,
    stage: Stage,
    write_policy: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del bus
    monkeypatch.setattr(descheduler, "HEARD_WITHIN_S", 0.1)
    pods = await bound(stage, "web-1", "web-2", node="tainted")
    dead = await stage.collect("dead.descheduler", DeadLetter)
    negative = PodUsage(namespace="default", name="web-1", cpu_nanocores=-1)
    made = service_of(
        await connect_bus("descheduler", service="descheduler"), stage, write_policy(POLICY), once=False, interval_s=0.1
    )
    async with running(made):
        told = await eventually("a cycle that knows nothing", lambda: made.health.checks.get(CYCLE))
        assert told.reason.endswith("usage of 2 of 2 nodes was not told within 90 s")
        stage.bus.send(subjects.usage("free"), codec.encode(NodeUsage(node="free", pods=(negative,))))
        stage.bus.send(subjects.usage("free"), codec.encode(NodeUsage(node="tainted")))
        await eventually("dead letters", lambda: len(dead) == 2)
        used = PodUsage(namespace="default", name="web-1", cpu_nanocores=10**9)
        stage.bus.send(subjects.usage("free"), codec.encode(NodeUsage(node="free", cpu_nanocores=1)))
        taken = NodeUsage(node="tainted", cpu_nanocores=60 * 10**9, pods=(used,))
        stage.bus.send(subjects.usage("tainted"), codec.encode(taken))
        labels = {"profile": "usage", "strategy": "LowNodeUtilization", "result": "evicted"}
        counted = "podyard_descheduler_evictions_total"
        await eventually("an eviction", lambda: made.metrics.get_sample_value(counted, labels))
    assert [one.reason.partition(": ")[2] for one in dead] == [
        "a pod uses less than nothing",
        "it is about node tainted, but came on usage.free",
    ]
    assert len(await deleted(stage, pods)) >= 1
