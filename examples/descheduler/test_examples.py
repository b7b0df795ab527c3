"""The examples as `policy.yaml` enables them: one cycle over two nodes, of which one retires at noon."""

from pathlib import Path

import pytest

from podyard.descheduler.core import loading, registry
from podyard.descheduler.core.state import CycleState
from podyard.objects import times
from tests.support import objects
from tests.unit.descheduler import world
from tests.unit.descheduler.make import node, pod, run_loaded
from tests.unit.descheduler.world import Play, view_of

TEXT = Path(__file__).with_name("policy.yaml").read_text(encoding="utf-8")
NOON = "2026-05-01T12:00:00Z"
RETIRES = {"example.com/retire-at": NOON}


def evicted_at(moment, text=TEXT):
    """Names of the pods that go in a cycle at that time."""
    found = loading.checked(text, registry.by_name())
    pods = [
        pod("web", "old"),
        pod("loud", "old", labels={"disturb": "yes"}),
        pod("dns", "old", namespace="kube-system"),
        pod("elsewhere", "new"),
    ]
    state = CycleState(nodes=[node("old", annotations=RETIRES), node("new")], pods=pods)
    record, evictions = run_loaded(found, state, times.seconds_of(moment))
    assert [step.error for step in record.steps] == [""]
    return [one.pod.metadata.name for one in evictions]


@pytest.mark.parametrize(
    ("moment", "names"),
    [
        ("2026-05-01T11:59:59Z", []),
        ("2026-05-01T12:00:00Z", ["loud", "web"]),
        ("2026-05-01T22:00:00Z", ["loud"]),
        ("2026-05-02T05:59:59Z", ["loud"]),
        ("2026-05-02T06:00:00Z", ["loud", "web"]),
    ],
)
def test_pods_leave_a_node_that_retires_but_not_in_quiet_hours(moment, names):
    assert evicted_at(moment) == names


def test_nothing_goes_to_another_node_that_retires():
    nodes = [
        objects.node(name, cpu=cpu, metadata={"annotations": RETIRES}) for name, cpu in (("old", "2"), ("too", "4"))
    ]
    view = view_of(nodes, {"old": [world.pod("web", labels={"disturb": "yes"}), world.pod("x", "", cpu="1")]})
    policy = loading.checked(TEXT, registry.by_name())
    found = Play(policy.policy, view, loaded=policy.plugins, now=times.seconds_of(NOON))
    assert found.kept == {"web": "too, where it would go, is no better for RetiringNodes: it is to retire, too"}


def test_no_more_go_than_the_policy_allows():
    assert evicted_at("2026-05-01T12:00:00Z", TEXT.replace("PerNode: 5", "PerNode: 1")) == ["loud"]
