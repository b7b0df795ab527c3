"""--write-config-to: what is written, read again, is the same configuration."""

import stat
from pathlib import Path

import pytest
import yaml

from podyard.cli import services
from podyard.cli.__main__ import main
from podyard.runtime.settings import load_settings

SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 33
leaderElection: {leaseDuration: 20s, renewDeadline: 12s}
profiles:
- schedulerName: a
  plugins: {score: {disabled: [{name: ImageLocality}]}}
- schedulerName: b
  pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 7}}]
extenders:
- {urlPrefix: "https://extender:8080", filterVerb: filter, enableHTTPS: true, tlsConfig: {insecure: true}}
"""
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 3
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {minReplicas: 2}}
  - {name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 5}}
  plugins: {deschedule: {enabled: [RemovePodsHavingTooManyRestarts]}}
"""
KUBELET = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 5%}
evictionSoft: {memory.available: 300Mi}
evictionSoftGracePeriod: {memory.available: 1m30s}
maxPods: 30
podPidsLimit: 99
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("scheduler", SCHEDULER), ("policy", POLICY), ("kubelet", KUBELET)):
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PODYARD_CONFIG", raising=False)
    return tmp_path


def written(*words: str) -> dict:
    assert main(["run", *words, "--write-config-to", "out.yaml"]) == 0
    return yaml.safe_load(Path("out.yaml").read_text())


@pytest.mark.parametrize(
    ("service", "flag", "file"),
    [
        ("queue", "--scheduler-config", "scheduler.yaml"),
        ("scheduler", "--scheduler-config", "scheduler.yaml"),
        ("binder", "--scheduler-config", "scheduler.yaml"),
        ("descheduler", "--policy-config-file", "policy.yaml"),
        ("node_agent", "--kubelet-config", "kubelet.yaml"),
    ],
)
def test_what_is_written_is_the_same_when_it_is_read_again(files: Path, service: str, flag: str, file: str) -> None:
    document = written(service, flag, str(files / file))
    again = Path("out.yaml").rename(files / "again.yaml")
    assert written(service, flag, str(again)) == document


@pytest.mark.parametrize("service", services.NAMES)
def test_so_it_is_without_any_file(files: Path, service: str) -> None:
    flag = {"descheduler": "--policy-config-file", "node_agent": "--kubelet-config"}.get(service, "--scheduler-config")
    flag = "--config" if service in ("api", "kube_api", "workloads") else flag
    document = written(service)
    again = written(service, flag, str(Path("out.yaml").rename(files / "again.yaml")))
    if service == "node_agent":
        assert again.pop("maxPods") == 110  # a KubeletConfiguration says it, whether it is written or not
    assert again == document


def test_the_schedulers_has_all_defaults_and_what_flags_and_settings_say(files: Path) -> None:
    document = written(
        "queue",
        "--scheduler-config",
        str(files / "scheduler.yaml"),
        "--leader-elect-retry-period=3s",
        "--set",
        "queue.pod_initial_backoff_s=4",
    )
    assert (document["apiVersion"], document["kind"]) == (
        "kubescheduler.config.k8s.io/v1",
        "KubeSchedulerConfiguration",
    )
    assert (document["podInitialBackoffSeconds"], document["podMaxBackoffSeconds"]) == (4, 33)
    election = document["leaderElection"]
    assert (election["leaderElect"], election["leaseDuration"]) == (True, "20s")
    assert (election["renewDeadline"], election["retryPeriod"]) == ("12s", "3s")
    assert [profile["schedulerName"] for profile in document["profiles"]] == ["a", "b"]
    args = {one["name"]: one["args"] for one in document["profiles"][0]["pluginConfig"]}
    assert args["DefaultPreemption"]["minCandidateNodesPercentage"] == 10


def test_the_options_file_says_the_same_settings(files: Path) -> None:
    written("workloads", "--leader-elect-lease-duration=30s", "--log-level", "debug")
    kind = services.definition("workloads").settings_type
    common, own = load_settings(kind, "workloads", config_file="out.yaml", named=False)
    wanted = {
        "workloads.lease_ttl_s": 30,
        "workloads.lease_renew_deadline_s": 24.0,
        "workloads.lease_retry_period_s": 10.0,
    }
    expected = load_settings(kind, "workloads", flags={"log.level": "debug", **wanted}, named=False)
    assert (common, own) == expected
    assert common.instance == "", "a name that was made up is of one process"


def test_only_the_owner_may_read_it(files: Path) -> None:
    written("queue")
    assert stat.S_IMODE(Path("out.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["queue", "--set", "queue.pod_initial_backoff_s=0.5"], "podInitialBackoffSeconds takes whole seconds"),
        (["api", "--nats", "nats://me:hunter2@h:4222"], "nats.servers: nats://***@h:4222: who connects is not written"),
        (["queue", "--scheduler-config", "policy.yaml"], "no kind DeschedulerPolicy is known"),
    ],
)
def test_what_cannot_be_written_is_refused(files: Path, words: list[str], told: str, capsys) -> None:
    assert main(["run", *words, "--write-config-to", "out.yaml"]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "hunter2" not in error
    assert not Path("out.yaml").exists()


def test_a_file_that_cannot_be_written_is_told(files: Path, capsys) -> None:
    assert main(["run", "queue", "--write-config-to", "nowhere/out.yaml"]) == 1
    assert "--write-config-to nowhere/out.yaml: No such file or directory" in capsys.readouterr().err


def test_a_written_agents_file_says_what_it_does_not_say(files: Path, capsys) -> None:
    document = written("node_agent")
    assert "maxPods" not in document
    assert "note: nodes that go by this file take 110 pods" in capsys.readouterr().err
