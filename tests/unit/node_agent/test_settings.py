"""Settings of the agent."""

import pytest

from podyard.node_agent.service import SERVICE
from podyard.node_agent.settings import NodeAgentSettings
from podyard.runtime.settings import ServiceSettings, SettingsError, load_settings


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


def test_everything_that_is_wrong_is_told_with_its_setting():
    settings = NodeAgentSettings(
        eviction_hard={"memory.free": "1"},
        eviction_soft_grace_period={"memory.available": "-1s"},
        enforce_node_allocatable=("podz",),
    )
    with pytest.raises(SettingsError) as error:
        settings.eviction()
    assert [problem.partition(": ")[0] for problem in error.value.problems] == [
        "node_agent.enforce_node_allocatable[0]",
        "node_agent.eviction_hard[memory.free]",
        "node_agent.eviction_soft_grace_period[memory.available]",
    ]
    assert error.value.problems[1].endswith(": unsupported eviction signal memory.free")


def test_wrong_settings_are_told_before_the_agent_starts():
    """Later it would be said to be ready, and then end."""
    assert SERVICE.check is not None
    SERVICE.check(ServiceSettings(), NodeAgentSettings())
    with pytest.raises(SettingsError, match=r"^node_agent\.kubelet_config: nowhere: "):
        SERVICE.check(ServiceSettings(), NodeAgentSettings(kubelet_config="nowhere"))


@pytest.mark.parametrize(
    ("after_s", "heartbeat_s", "least"), [(19.9, 10.0, "20"), (3.9, 1.0, "4"), (20.0, 10.0, ""), (4.0, 2.0, "")]
)
def test_an_agent_that_lives_is_not_to_be_taken_for_silent(after_s: float, heartbeat_s: float, least: str):
    settings = NodeAgentSettings(take_over_after_s=after_s, heartbeat_interval_s=heartbeat_s, kubelet_config="nowhere")
    assert SERVICE.check is not None
    with pytest.raises(SettingsError) as error:
        SERVICE.check(ServiceSettings(), settings)
    *told, _ = error.value.problems
    words = (
        f"node_agent.take_over_after_s: {after_s:g} is too short, an agent that lives would seem silent: "
        f"write {least} or more, twice heartbeat_interval_s and at least 4"
    )
    assert told == ([words] if least else [])


def test_what_a_kubelet_configuration_replaces_or_has_no_effect_in_it_is_told(tmp_path):
    file = tmp_path / "kubelet.yaml"
    file.write_text("{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, maxPods: 3}")
    found = NodeAgentSettings(kubelet_config=str(file), eviction_hard={}, eviction_max_pod_grace_period=3).unused()
    assert [one.field for one in found] == [
        "node_agent.eviction_hard", "node_agent.eviction_max_pod_grace_period", "maxPods"
    ]  # fmt: skip
    assert NodeAgentSettings(eviction_hard={}).unused() == ()


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
        (
            b"evictionHard: {memory.free: 1}",
            ["apiVersion: must be", "kind: must be", "evictionHard[memory.free]: must be text"],
        ),
        (
            (
                b"{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, maxPods: -1, "
                b"evictionSoft: {memory.free: 1Gi}}"
            ),
            ["maxPods: invalid configuration", "evictionSoft[memory.free]: unsupported eviction signal memory.free"],
        ),
        (b"", ["is no KubeletConfiguration"]),
        (b"- a", ["is no KubeletConfiguration"]),
        (b"{a: 1}\n---\n{a: 2}", ["has 2 documents: give each KubeletConfiguration a file of its own"]),
        (b"a: b: c", ["line 1: not valid YAML"]),
        (b"a: \xff", ["is not UTF-8 text"]),
    ],
)
def test_all_that_is_wrong_with_the_file_is_told_with_its_path(tmp_path, content: bytes, told: list[str]):
    file = tmp_path / "kubelet.yaml"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as error:
        NodeAgentSettings(kubelet_config=str(file)).eviction()
    assert len(error.value.problems) == len(told)
    for problem, words in zip(error.value.problems, told, strict=True):
        assert problem.startswith(f"node_agent.kubelet_config: {file}: {words}")


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(SettingsError, match="nowhere: cannot be read: No such file or directory"):
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
