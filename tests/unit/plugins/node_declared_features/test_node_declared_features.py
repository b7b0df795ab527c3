"""NodeDeclaredFeatures against a plain reading, after any changes; its hints."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.cycle_state import CycleState
from podyard.framework.events import HintAnswer
from podyard.framework.status import Code, PluginFault
from podyard.plugins.node_declared_features import hints
from podyard.plugins.node_declared_features.plugin import REASON, NodeDeclaredFeatures
from tests.unit.plugins import worlds
from tests.unit.plugins.node_declared_features import plain

PLUGIN = NodeDeclaredFeatures()
nodes = st.builds(
    lambda name, found: worlds.node(name, declaredFeatures=found),
    st.sampled_from(worlds.NAMES),
    st.lists(st.sampled_from((*plain.KNOWN, "SomethingElse")), unique=True),
)
rules = st.lists(
    st.sampled_from(("Restart", "RestartAllContainers")).map(lambda action: {"action": action}), max_size=2
)
containers = rules.map(lambda found: {"name": "c", "restartPolicyRules": found})


@st.composite
def pods(draw: st.DrawFn) -> worlds.Manifest:
    spec: dict[str, Any] = {"containers": [draw(containers)], "hostNetwork": draw(st.booleans())}
    users = draw(st.sampled_from((None, True, False)))
    spec |= {} if users is None else {"hostUsers": users}
    spec |= {"initContainers": [draw(containers)]} if draw(st.booleans()) else {}
    return worlds.pod(**spec)


@settings(max_examples=200, deadline=None)
@given(history=worlds.histories(nodes, pods()), incoming=pods())
def test_every_node_is_judged_as_the_plain_reading_says_after_every_change(
    history: list[Any], incoming: worlds.Manifest
) -> None:
    world = worlds.World()
    for step in history:
        world.carry_out(step)
        found = worlds.filtered(PLUGIN, worlds.view_of(incoming), world.snapshot)
        if not plain.needed(incoming):
            assert found is None
            continue
        assert found is not None
        assert {name: one is None for name, one in found.items()} == {
            name: plain.needed(incoming) <= set(node["status"]["declaredFeatures"])
            for name, node in world.nodes.items()
        }
        rejected = [one for one in found.values() if one is not None]
        assert all((one.code, one.reasons) == (Code.UNRESOLVABLE, (REASON,)) for one in rejected)


def test_filter_without_prefilter_says_what_is_missing() -> None:
    world = worlds.World()
    with pytest.raises(PluginFault, match=r"PreFilterNodeDeclaredFeatures.* from cycle-state: not found"):
        PLUGIN.filter(CycleState(), worlds.view_of(worlds.pod()), world.snapshot, world.snapshot.nodes.rows())


def object_of(name: str, *features: str) -> Any:
    world = worlds.World()
    world.set_node(worlds.node(name, declaredFeatures=list(features)))
    return world.snapshot.nodes.nodes[0]


def pod_of(action: str, name: str = "me") -> Any:
    rule = {"name": "c", "restartPolicyRules": [{"action": action}]}
    return worlds.view_of(worlds.pod(containers=[rule]), name).pod


ALL = plain.KNOWN[0]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, object_of("n1"), (HintAnswer.QUEUE, "the new node n1 declares no features"), id="new"),
        pytest.param(
            object_of("n1", "A"),
            object_of("n1", "A"),
            (HintAnswer.SKIP, "n1 declares the same features as before"),
            id="same",
        ),
        pytest.param(
            object_of("n1", "A"),
            object_of("n1", "B", "A"),
            (HintAnswer.QUEUE, f"n1 now declares A, B, the pod needs {ALL}"),
            id="more",
        ),
        pytest.param(
            object_of("n1", "A"),
            object_of("n1"),
            (HintAnswer.QUEUE, f"n1 now declares no features, the pod needs {ALL}"),
            id="less-counts-too",
        ),
    ],
)
def test_what_a_node_can_do_for_a_pod(old: Any, new: Any, expected: Any) -> None:
    assert hints.after_node_change(pod_of("RestartAllContainers"), old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        pytest.param(pod_of("RestartAllContainers"), pod_of("Restart"), HintAnswer.QUEUE, id="needs-less"),
        pytest.param(pod_of("Restart"), pod_of("Restart"), HintAnswer.SKIP, id="needs-the-same"),
        pytest.param(pod_of("Restart"), pod_of("RestartAllContainers"), HintAnswer.QUEUE, id="needs-more"),
        pytest.param(pod_of("RestartAllContainers", "o"), pod_of("Restart", "o"), HintAnswer.SKIP, id="another-pod"),
    ],
)
def test_the_pods_own_update(old: Any, new: Any, answer: HintAnswer) -> None:
    assert hints.after_pod_update(pod_of("RestartAllContainers"), old, new).answer == answer
