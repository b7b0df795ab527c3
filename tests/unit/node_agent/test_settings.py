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


def test_a_kubelet_configuration_takes_the_place_of_the_settings(tmp_path):
    file = tmp_path / "kubelet.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\n"
        "kind: KubeletConfiguration\n"
        "clusterDomain: cluster.local\n"
        "evictionHard: {pid.available: 5%}\n"
        "evictionPressureTransitionPeriod: 1m30s\n"
        "evictionMaxPodGracePeriod: 60\n"
        "localStorageCapacityIsolation: false\n"
    )
    found = NodeAgentSettings(kubelet_config=str(file), eviction_hard={"memory.available": "1Gi"}).eviction()
    assert [one.signal for one in found.thresholds] == ["pid.available"]
    assert (found.transition_s, found.max_pod_grace_s) == (90.0, 60)
    assert not found.local_storage_isolation


def test_limits_of_local_storage_hold_unless_that_is_switched_off():
    assert NodeAgentSettings().eviction().local_storage_isolation
    assert not NodeAgentSettings(local_storage_capacity_isolation=False).eviction().local_storage_isolation


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"evictionHard: {memory.free: 1}", ["apiVersion: must be", "kind: must be", "evictionHard: Expected `str`"]),
        (
            (
                b"{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, maxPods: -1, "
                b"evictionSoft: {memory.free: 1Gi}}"
            ),
            ["maxPods: invalid configuration", "evictionSoft[memory.free]: unsupported eviction signal memory.free"],
        ),
        (b"", ["is no KubeletConfiguration"]),
        (b"- a", ["is no KubeletConfiguration"]),
        (b"a: b: c", ["line 1: not valid YAML"]),
        (b"a: \xff", ["is not UTF-8 text"]),
    ],
)
def test_all_that_is_wrong_with_the_file_is_told_with_its_path(tmp_path, content: bytes, told: list[str]):
    file = tmp_path / "kubelet.yaml"
    file.write_bytes(content)
    with pytest.raises(ThresholdError) as error:
        NodeAgentSettings(kubelet_config=str(file)).eviction()
    assert len(error.value.faults) == len(told)
    for fault, words in zip(error.value.faults, told, strict=True):
        assert str(fault).startswith(f"{file}: {words}")


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(ThresholdError, match="nowhere: cannot be read: No such file or directory"):
        NodeAgentSettings(kubelet_config="nowhere").eviction()


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
