"""Settings of the agent."""

import pytest

from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.settings import NodeAgentSettings
from podyard.runtime.settings import SettingsError, load_settings


def test_agents_of_the_same_nodes_share_a_lease_and_others_do_not():
    one = NodeAgentSettings(nodes=("b", "a"))
    assert NodeAgentSettings().lease() == "node_agent"
    assert one.lease() == NodeAgentSettings(nodes=("a", "b")).lease()
    assert one.lease() != NodeAgentSettings(nodes=("a",)).lease()
    assert one.lease() != NodeAgentSettings(node_selector={"a": "b"}).lease()


def test_setting_hard_thresholds_replaces_all_defaults():
    assert {one.signal for one in NodeAgentSettings().eviction().thresholds} >= {"memory.available", "nodefs.available"}
    chosen = NodeAgentSettings(eviction_hard={"pid.available": "10"})
    assert [one.signal for one in chosen.eviction().thresholds] == ["pid.available"]


def test_a_wrong_threshold_is_told():
    with pytest.raises(ThresholdError, match=r"unsupported eviction signal memory\.free"):
        NodeAgentSettings(eviction_hard={"memory.free": "1"}).eviction()


def test_settings_come_from_the_environment():
    environment = {
        "PODYARD_NODE_AGENT_NODES": "n1, n2",
        "PODYARD_NODE_AGENT_START_DELAY_S": "1.5",
        "PODYARD_NODE_AGENT_NODE_SELECTOR": "{zone: a}",
        "PODYARD_NODE_AGENT_EVICTION_HARD": "{memory.available: 5%}",
    }
    _, found = load_settings(NodeAgentSettings, "node_agent", environment=environment)
    assert found.selection().names == {"n1", "n2"}
    assert found.selection().labels == {"zone": "a"}
    assert found.pace().start_s == 1.5
    assert found.eviction_hard == {"memory.available": "5%"}
    with pytest.raises(SettingsError):
        load_settings(NodeAgentSettings, "node_agent", environment={"PODYARD_NODE_AGENT_START_DELAY_S": "-1"})
