"""TaintToleration: soft taints against a plain reading; PreScore. Filter is read in tests/unit/framework."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.cycle_state import CycleState
from podyard.framework.status import PluginFault
from podyard.plugins.taint_toleration.plugin import TaintToleration
from tests.unit.framework import builders, clusters, oracle
from tests.unit.plugins import worlds

PLUGIN = TaintToleration()


@settings(max_examples=100, deadline=None)
@given(
    nodes=st.lists(st.sampled_from(clusters.NAMES).flatmap(clusters.nodes), unique_by=lambda node: node["name"]),
    tolerations=clusters.tolerations,
)
def test_soft_taints_are_counted_as_the_plain_reading_does(
    nodes: list[oracle.Manifest], tolerations: list[oracle.Manifest]
) -> None:
    snapshot = builders.snapshot_of(*map(clusters.node_object, nodes))
    found = worlds.scored(PLUGIN, builders.make_pod("p", spec={"tolerations": tolerations}), snapshot)
    assert found == {node["name"]: oracle.soft(node, {"tolerations": tolerations}) for node in nodes}


def test_score_without_prescore_says_what_is_missing() -> None:
    snapshot = builders.snapshot_of(builders.make_node("a"))
    missing = r'^failed to read "PreScoreTaintToleration" from cycleState: not found$'
    with pytest.raises(PluginFault, match=missing):
        PLUGIN.score(CycleState(), builders.make_pod("p"), snapshot, snapshot.nodes.rows())
