"""Settings of the agent."""

from typing import Any

import pytest

from podyard.node_agent.core.images import ImagePolicy
from podyard.node_agent.service import SERVICE
from podyard.node_agent.settings import LabelledFile, NodeAgentSettings, check
from podyard.runtime.settings import ServiceSettings, SettingsError, load_settings


def test_agents_of_the_same_nodes_share_a_lease_and_others_do_not():
    one = NodeAgentSettings(nodes=("b", "a"))
    assert NodeAgentSettings().lease() == "node_agent"
    assert one.lease() == NodeAgentSettings(nodes=("a", "b")).lease()
    assert one.lease() != NodeAgentSettings(nodes=("a",)).lease()
    assert one.lease() != NodeAgentSettings(node_selector={"a": "b"}).lease()


def test_who_plays_its_host_alone_is_the_agent_of_that_node():
    host = NodeAgentSettings(host_node="me")
    assert host.played() == ("me",)
    assert host.lease() == NodeAgentSettings(nodes=("me",)).lease()
    assert NodeAgentSettings(host_node="me", nodes=("me", "n1")).played() == ("me", "n1")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {"node_cgroup": "/x"},
            "node_agent.node_cgroup: holds for a host only: write node_agent.host_node, the node's name",
        ),
        (
            {"host_node": "me", "nodes": ("n1",)},
            "node_agent.nodes: me, the host_node, is not among them: add it, or leave nodes out",
        ),
        (
            {"host_node": "me", "node_selector": {"a": "b"}},
            "node_agent.node_selector: with host_node the nodes are named: write node_agent.nodes",
        ),
        (
            {"host_node": "me", "runtime": "process"},
            "node_agent.process_namespaces: name the namespaces whose pods may run as processes of this machine",
        ),
        (
            {"host_node": "me", "process_namespaces": ("default",)},
            "node_agent.process_namespaces: holds for processes only: write node_agent.runtime: process",
        ),
        (
            {"host_node": "me", "allow_root": True},
            "node_agent.allow_root: holds for processes only: write node_agent.runtime: process",
        ),
        (
            {"runtime": "process"},
            "node_agent.runtime: holds for a host only: write node_agent.host_node, the node's name",
        ),
    ],
)
def test_what_cannot_hold_of_a_host_is_told(said, told):
    with pytest.raises(SettingsError) as error:
        check(ServiceSettings(), NodeAgentSettings(**said))
    assert error.value.problems == (told,)


def test_a_host_goes_by_one_file():
    labelled = (LabelledFile(selector={"a": "b"}, file="small.yaml"),)
    assert list(NodeAgentSettings(host_node="me", kubelet_configs=labelled).contradictory()) == [
        "node_agent.kubelet_configs: a host goes by one file for all nodes: write node_agent.kubelet_config"
    ]


def test_setting_hard_thresholds_replaces_all_defaults():
    assert {one.signal for one in NodeAgentSettings().configs().general.eviction.thresholds} >= {
        "memory.available",
        "nodefs.available",
    }
    chosen = NodeAgentSettings(eviction_hard={"pid.available": "10"})
    assert [one.signal for one in chosen.configs().general.eviction.thresholds] == ["pid.available"]


def test_everything_that_is_wrong_is_told_with_its_setting():
    settings = NodeAgentSettings(
        eviction_hard={"memory.free": "1"},
        eviction_soft_grace_period={"memory.available": "-1s"},
        enforce_node_allocatable=("podz",),
    )
    with pytest.raises(SettingsError) as error:
        settings.configs()
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
    file.write_text("{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, kubeReserved: {cpu: 1m}}")
    found = NodeAgentSettings(kubelet_config=str(file), eviction_hard={}, eviction_max_pod_grace_period=3).unused()
    assert [one.field for one in found] == [
        "node_agent.eviction_hard", "node_agent.eviction_max_pod_grace_period", "kubeReserved"
    ]  # fmt: skip
    assert NodeAgentSettings(eviction_hard={}).unused() == ()
    by_label = labelled((str(file), {"pool": "small"}))
    assert [one.field for one in by_label.unused()] == ["node_agent.kubelet_configs[0]: kubeReserved"]


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
        "imageGCHighThresholdPercent: 90\n"
        "imageGCLowThresholdPercent: 70\n"
        "imageMinimumGCAge: 5m\n"
        "imageMaximumGCAge: 24h\n"
    )
    general = NodeAgentSettings(kubelet_config=str(file), eviction_hard={"memory.available": "1Gi"}).configs().general
    found = general.eviction
    assert [one.signal for one in found.thresholds] == ["pid.available"]
    assert (found.transition_s, found.max_pod_grace_s) == (90.0, 60)
    assert not found.local_storage_isolation
    assert general.images == ImagePolicy(high_percent=90, low_percent=70, min_age_s=300, max_age_s=86_400)
    assert general.max_pods == 110, "the kubelet's default, as of all fields"


def test_without_a_kubelet_configuration_nodes_take_as_many_pods_as_their_objects_say():
    found = NodeAgentSettings().configs()
    assert (found.general.max_pods, found.general.images, found.labelled) == (None, ImagePolicy(), ())


HEAD = "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration"


def labelled(*files: tuple[str, dict[str, str]], **settings: Any) -> NodeAgentSettings:
    configs = tuple(LabelledFile(selector=selector, file=file) for file, selector in files)
    return NodeAgentSettings(kubelet_configs=configs, **settings)


def test_nodes_with_some_labels_have_a_configuration_of_their_own(tmp_path):
    small, large = tmp_path / "small.yaml", tmp_path / "large.yaml"
    small.write_text(HEAD + ", maxPods: 10, evictionHard: {pid.available: 5%}}")
    large.write_text(HEAD + ", maxPods: 500}")
    files = ((str(small), {"pool": "small"}), (str(large), {"pool": "large"}))
    found = labelled(*files, eviction_hard={"memory.available": "1Gi"}).configs()
    assert [found.of(labels).max_pods for labels in ({"pool": "small"}, {"pool": "large"}, {})] == [10, 500, None]
    assert [one.signal for one in found.of({"pool": "small"}).eviction.thresholds] == ["pid.available"]
    assert found.general.eviction.thresholds[0].value.quantity == "1Gi"


def test_configurations_by_label_come_from_an_options_file(tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("node_agent: {kubelet_configs: [{selector: {pool: small}, file: a.yaml}]}")
    _, found = load_settings(NodeAgentSettings, "node_agent", config_file=str(file))
    assert found.kubelet_configs == (LabelledFile(selector={"pool": "small"}, file="a.yaml"),)
    file.write_text("node_agent: {kubelet_configs: [{selectr: {pool: small}, file: a.yaml}]}")
    with pytest.raises(SettingsError, match="selectr"):
        load_settings(NodeAgentSettings, "node_agent", config_file=str(file))


FIRST, SECOND = "node_agent.kubelet_configs[0]", "node_agent.kubelet_configs[1]"
HIDDEN = f"{SECOND}: never matches: {FIRST} takes all of its nodes; put it before that one, or remove it"
FOR_ALL = f"{FIRST}: matches all of the agent's nodes: write the file as node_agent.kubelet_config"


@pytest.mark.parametrize(
    ("selectors", "node_selector", "told"),
    [
        (({"a": "1"}, {"a": "2"}), {}, ""),
        (({"a": "1", "b": "1"}, {"a": "1"}), {}, ""),
        (({"a": "1"}, {"a": "1"}), {}, HIDDEN),
        (({"a": "1"}, {"b": "1", "a": "1"}), {}, HIDDEN),
        (({},), {}, FOR_ALL),
        (({"a": "1"},), {"a": "1"}, FOR_ALL),
        (({"b": "1"}, {"a": "1", "b": "1"}), {"a": "1"}, HIDDEN),
        (({"a": "2"}, {"b": "1"}), {"a": "1"}, f"{FIRST}: matches none of the agent's nodes: node_selector asks for"),
        (({"not a key": "1"},), {}, f"{FIRST}.selector[not a key]: no node can have this label: name part must"),
        (({"a": "not a value"},), {}, f"{FIRST}.selector[a]: no node can have this label: "),
    ],
    ids=[
        "apart", "narrower first", "equal", "wider first", "empty", "all have it", "equal beside it", "none has it",
        "no key", "no value",
    ],
)  # fmt: skip
def test_selectors_that_cannot_be_told_apart_or_never_match_are_refused(
    tmp_path, selectors: tuple[dict[str, str], ...], node_selector: dict[str, str], told: str
):
    file = tmp_path / "kubelet.yaml"
    file.write_text(HEAD + "}")
    settings = labelled(*((str(file), one) for one in selectors), node_selector=node_selector)
    if not told:
        assert len(settings.configs().labelled) == len(selectors)
        return
    with pytest.raises(SettingsError) as error:
        settings.configs()
    (problem,) = error.value.problems
    assert problem.startswith(told)


def test_the_faults_of_all_files_are_told_together(tmp_path):
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(HEAD + ", maxPods: -1, imageGCLowThresholdPercent: 90}")
    other.write_text(HEAD + ", kubeReserved: {disk: 1Gi}, evictionSoft: {memory.free: 1Gi}}")
    settings = labelled((str(one), {"a": "1"}), (str(other), {"a": "1"}), ("nowhere", {"b": "1"}), kubelet_config="no")
    with pytest.raises(SettingsError) as error:
        settings.configs()
    third = "node_agent.kubelet_configs[2]"
    assert [problem.split(": invalid configuration")[0].split(": --")[0] for problem in error.value.problems] == [
        "node_agent.kubelet_config: no: cannot be read: No such file or directory",
        f"{FIRST}: {one}: imageGCLowThresholdPercent",
        f"{FIRST}: {one}: maxPods",
        f"{SECOND}: {other}: kubeReserved[disk]",
        f"{SECOND}: {other}: evictionSoft[memory.free]: unsupported eviction signal memory.free",
        f"{third}: nowhere: cannot be read: No such file or directory",
        HIDDEN,
    ]


def test_limits_of_local_storage_hold_unless_that_is_switched_off():
    assert NodeAgentSettings().configs().general.eviction.local_storage_isolation
    assert (
        not NodeAgentSettings(local_storage_capacity_isolation=False).configs().general.eviction.local_storage_isolation
    )


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
        NodeAgentSettings(kubelet_config=str(file)).configs()
    assert len(error.value.problems) == len(told)
    for problem, words in zip(error.value.problems, told, strict=True):
        assert problem.startswith(f"node_agent.kubelet_config: {file}: {words}")


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(SettingsError, match="nowhere: cannot be read: No such file or directory"):
        NodeAgentSettings(kubelet_config="nowhere").configs()


def test_settings_come_from_the_environment():
    environment = {
        "PODYARD_NODE_AGENT_NODES": "n1, n2",
        "PODYARD_NODE_AGENT_START_DELAY_S": "1.5",
        "PODYARD_NODE_AGENT_NODE_SELECTOR": "{zone: a}",
        "PODYARD_NODE_AGENT_IMAGE_GC_PERIOD_S": "30",
        "PODYARD_NODE_AGENT_KUBELET_CONFIGS": "[{selector: {pool: small}, file: a.yaml}]",
        "PODYARD_NODE_AGENT_EVICTION_HARD": "{memory.available: 5%}",
    }
    _, found = load_settings(NodeAgentSettings, "node_agent", environment=environment)
    assert found.selection().names == {"n1", "n2"}
    assert found.selection().labels == {"zone": "a"}
    assert found.pace().start_s == 1.5
    assert (found.rhythm().images_s, NodeAgentSettings().rhythm().images_s) == (30.0, 300.0)
    assert found.kubelet_configs == (LabelledFile(selector={"pool": "small"}, file="a.yaml"),)
    assert found.eviction_hard == {"memory.available": "5%"}
    with pytest.raises(SettingsError):
        load_settings(NodeAgentSettings, "node_agent", environment={"PODYARD_NODE_AGENT_START_DELAY_S": "-1"})
