"""RemovePodsViolatingNodeTaints."""

import pytest

from podyard.descheduler.core.evictions import EvictionDone, EvictionFailed
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.core.plugins.node_taints import NodeTaintsArgs, RemovePodsViolatingNodeTaints
from podyard.descheduler.core.state import CycleState
from tests.unit.descheduler.make import node, pod, policy, run

TAINTS = RemovePodsViolatingNodeTaints


def evicted(state: CycleState, **args: object) -> list[str]:
    chosen = policy(TAINTS, args={TAINTS.NAME: args})
    record, _ = run(chosen, state)
    return [one.name for step in record.steps for one in step.evicted]


def one_pod(taint: str, tolerations: list[dict] | None = None) -> CycleState:
    return CycleState(
        nodes=[node("n1", taint), node("n2")],
        pods=[pod("web", spec={"tolerations": tolerations or []}), pod("free", "n2")],
    )


@pytest.mark.parametrize(
    ("taint", "args", "goes"),
    [
        ("a=b:NoSchedule", {}, True),
        ("a=b:NoExecute", {}, False),
        ("a=b:PreferNoSchedule", {}, False),
        ("a=b:PreferNoSchedule", {"includePreferNoSchedule": True}, True),
        ("a=b:NoSchedule", {"excludedTaints": ["a"]}, False),
        ("a=b:NoSchedule", {"excludedTaints": ["a=b"]}, False),
        ("a=b:NoSchedule", {"excludedTaints": ["a=c"]}, True),
        ("a=b:NoSchedule", {"includedTaints": ["a"]}, True),
        ("a=b:NoSchedule", {"includedTaints": ["a=b"]}, True),
        ("a=b:NoSchedule", {"includedTaints": ["c"]}, False),
        ("a=b:NoSchedule", {"includedTaints": []}, False),
        ("a:NoSchedule", {"includedTaints": ["a="]}, False),
    ],
)
def test_which_taints_count(taint: str, args: dict, goes: bool):
    assert evicted(one_pod(taint), **args) == (["web"] if goes else [])


@pytest.mark.parametrize(
    ("toleration", "goes"),
    [
        ({"key": "a", "operator": "Exists"}, False),
        ({"key": "a", "value": "5", "effect": "NoSchedule"}, False),
        ({"key": "a", "value": "5", "effect": "NoExecute"}, True),
        ({"operator": "Exists"}, False),
        ({"key": "a", "operator": "Gt", "value": "4"}, False),
        ({"key": "a", "operator": "Gt", "value": "5"}, True),
        ({"key": "a", "operator": "Lt", "value": "6"}, False),
        ({"key": "a", "operator": "Lt", "value": "06"}, True),
    ],
)
def test_what_is_tolerated_stays(toleration: dict, goes: bool):
    assert evicted(one_pod("a=5:NoSchedule", [toleration])) == (["web"] if goes else [])


def test_pods_that_have_ended_or_are_not_looked_at_stay():
    pods = [
        pod("done", phase="Succeeded"),
        pod("other", namespace="prod"),
        pod("labelled", labels={"keep": "yes"}),
        pod("goes"),
    ]
    state = CycleState(nodes=[node("n1", "a:NoSchedule"), node("n2")], pods=pods)
    selector = {"matchExpressions": [{"key": "keep", "operator": "DoesNotExist"}]}
    assert evicted(state, namespaces={"exclude": ["prod"]}, labelSelector=selector) == ["goes"]
    assert evicted(state, namespaces={"include": ["prod"]}) == ["other"]


def test_the_reason_names_the_taint():
    _, asked = run(policy(TAINTS), one_pod("a=b:NoSchedule"))
    assert [one.reason for one in asked] == ["does not tolerate the taint a=b:NoSchedule of its node"]


def tainted(*names: str) -> CycleState:
    return CycleState(nodes=[node("n1", "a:NoSchedule"), node("n2")], pods=[pod(name) for name in names])


def test_a_node_at_its_limit_is_left():
    state = CycleState(
        nodes=[node("n1", "a:NoSchedule"), node("n2", "a:NoSchedule")],
        pods=[pod("a1"), pod("a2"), pod("a3"), pod("b1", "n2")],
    )
    record, _ = run(policy(TAINTS, maxNoOfPodsToEvictPerNode=1), state)
    (step,) = record.steps
    assert [(one.name, one.answer) for one in step.attempts] == [
        ("a1", Answer.EVICTED), ("a2", Answer.NODE_LIMIT), ("b1", Answer.EVICTED)
    ]  # fmt: skip


def test_a_namespace_at_its_limit_only_skips_the_pod():
    state = CycleState(
        nodes=[node("n1", "a:NoSchedule"), node("n2")], pods=[pod("a"), pod("b"), pod("c", namespace="other")]
    )
    record, _ = run(policy(TAINTS, maxNoOfPodsToEvictPerNamespace=1), state)
    assert [one.answer for one in record.steps[0].attempts] == [
        Answer.EVICTED, Answer.NAMESPACE_LIMIT, Answer.EVICTED
    ]  # fmt: skip


def test_the_total_limit_stops_the_plugin():
    record, _ = run(policy(TAINTS, maxNoOfPodsToEvictTotal=1), tainted("a", "b", "c"))
    assert [(one.answer, one.problem) for one in record.steps[0].attempts] == [
        (Answer.EVICTED, ""),
        (Answer.TOTAL_LIMIT, "maximum number of evicted pods per a descheduling cycle reached"),
    ]


def test_a_refused_pod_is_not_tried_again_and_does_not_count():
    record, asked = run(
        policy(TAINTS, maxNoOfPodsToEvictTotal=1), tainted("a", "b"), answer=lambda one: (
            EvictionFailed("a budget") if one.pod.metadata.name == "a" else EvictionDone()
        )
    )  # fmt: skip
    assert [one.pod.metadata.name for one in asked] == ["a", "b"]
    assert [(one.name, one.problem) for one in record.steps[0].attempts] == [("a", "a budget"), ("b", "")]
    assert record.evicted == 1


def test_faulty_arguments_are_told_together():
    args = NodeTaintsArgs(excluded_taints=("a",), included_taints=("b",))
    assert TAINTS.faults(args) == ["either includedTaints or excludedTaints can be set, but not both"]
    assert TAINTS.faults(NodeTaintsArgs(excluded_taints=("a",), included_taints=())) == []
