"""LowNodeUtilization by what node agents say."""

import msgspec
import pytest

from podyard.cluster.usages import MOST_BYTES, Heard, Usages
from podyard.descheduler.core import loading
from podyard.descheduler.core.effects import CycleEnded, Evict, List
from podyard.descheduler.core.node_usage import HEARD_WITHIN_S
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.registry import by_name
from podyard.proto.signals import ContainerUsage, NodeUsage, PodUsage
from tests.unit.descheduler.make import NOW, querying
from tests.unit.descheduler.stage import INTERVAL_S, Stage

CORE = 10**9
WAITS = HEARD_WITHIN_S + 0.1


def going_by_agents(*, provided: bool = True, **metrics: object) -> Policy:
    """One profile by usage, and one that does not need it."""
    low = {
        "thresholds": {"cpu": 20},
        "targetThresholds": {"cpu": 50},
        "metricsUtilization": metrics or {"source": "KubernetesMetrics"},
        "evictionLimits": {"node": 1},
    }
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [{"source": "KubernetesMetrics"}] if provided else [],
        "profiles": [
            {
                "name": "p",
                "pluginConfig": [
                    {"name": "LowNodeUtilization", "args": low},
                    {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 10**12}},
                ],
                "plugins": {
                    "balance": {"enabled": ["LowNodeUtilization"]},
                    "deschedule": {"enabled": ["PodLifeTime"]},
                },
            }
        ],
    }
    return loading.load(msgspec.json.encode(document).decode(), by_name(), {})


def says(node: str, cores: float, **pods: float) -> NodeUsage:
    used = tuple(
        PodUsage(
            namespace="default",
            name=name,
            containers=(ContainerUsage(name="main", cpu_nanocores=int(of * CORE), memory_bytes=1),),
        )
        for name, of in pods.items()
    )
    return NodeUsage(node=node, cpu_nanocores=int(cores * CORE), memory_bytes=1, pods=used)


def staged(policy: Policy | None = None) -> Stage:
    stage = Stage(policy or going_by_agents())
    stage.pods("a", "b")
    return stage


def begun(stage: Stage) -> Stage:
    stage.tick()
    stage.tick(WAITS)
    return stage


def steps(stage: Stage) -> dict[str, str]:
    """Errors of the cycle that has ended, by plugin."""
    (ended,) = stage.wanted
    assert isinstance(ended, CycleEnded)
    return {step.plugin: step.error for step in ended.record.steps}


def test_pods_leave_the_node_that_its_agent_says_is_used_too_much():
    stage = begun(staged())
    stage.heard = {
        "n1": Heard(says("n1", 3.0, b=2.0), stage.now - 80.0),
        "n2": Heard(says("n2", 0.5), stage.now),
    }
    stage.listed()
    assert isinstance(stage.wanted[0], Evict)
    assert stage.evicting in ("a", "b")
    stage.answer()
    assert steps(stage) == {"PodLifeTime": "", "LowNodeUtilization": ""}


@pytest.mark.parametrize(
    ("heard", "lacking"),
    [
        ({}, 2),
        ({"n1": (says("n1", 60.0), 0.0)}, 1),
        ({"n1": (says("n1", 60.0), 0.0), "n2": (says("n2", 0.5), 90.1)}, 1),
        ({"n1": (says("n1", 60.0), 0.0), "other": (says("other", 0.5), 0.0)}, 1),
    ],
    ids=["missing", "half of the nodes", "old", "of another node"],
)
def test_without_usage_of_every_node_the_plugin_does_nothing_and_says_of_how_many(heard, lacking):
    stage = begun(staged())
    stage.heard = {node: Heard(usage, stage.now - age) for node, (usage, age) in heard.items()}
    stage.listed()
    told = steps(stage)
    assert told["PodLifeTime"] == ""
    assert told["LowNodeUtilization"].endswith(f"usage of {lacking} of 2 nodes was not told within 90 s")


def test_the_first_cycle_waits_until_every_agent_has_spoken():
    stage = staged()
    assert stage.tick() == []
    assert stage.core.wake_at == NOW + HEARD_WITHIN_S
    assert stage.tick(HEARD_WITHIN_S - 1) == []
    assert [type(one) for one in stage.tick(1.0)] == [List]
    stage.listed()
    assert [type(one) for one in stage.tick(INTERVAL_S)] == [List]


@pytest.mark.parametrize("policy", [going_by_agents(provided=False), querying("cpu", provided=False)])
def test_who_does_not_go_by_agents_does_not_wait_for_them(policy):
    assert [type(one) for one in staged(policy).tick()] == [List]


def test_the_old_way_to_ask_waits_too():
    policy = going_by_agents(metricsServer=True)
    assert staged(policy).tick() == []


def test_what_is_heard_is_bounded():
    usages = Usages()
    for number in range(100):
        usages.hear(says(f"n{number}", 1.0), MOST_BYTES // 10, NOW)
    assert list(usages.heard()) == [f"n{number}" for number in range(91, 100)]
    usages.hear(says("n99", 2.0), 100, NOW + 1)
    assert usages.heard()["n99"] == Heard(says("n99", 2.0), NOW + 1)
