"""What services run by, as /configz shows it: complete, and without a secret."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from podyard.cli import services
from podyard.cli.security.authority import Authority
from podyard.configuration import files
from podyard.queue.settings import QueueSettings
from podyard.runtime import process
from podyard.runtime.settings import SettingsError, load_settings

PLANTED = "hunter2-planted"
SCHEDULER = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{schedulerName: mine}}]
extenders:
- {{urlPrefix: "https://me:{PLANTED}@extender:8080", filterVerb: filter, enableHTTPS: true,
   tlsConfig: {{insecure: true, certData: %(certificate)s, keyData: %(key)s}}}}
"""
LEADERS = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: "


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "given.yaml"


def encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def shown(service: str, **flags: Any) -> dict[str, Any]:
    """/configz of a service."""
    definition = services.definition(service)
    settings = load_settings(definition.settings_type, service, flags=flags)
    return process.configuration_in_force(definition, *settings)


@pytest.mark.parametrize("service", services.NAMES)
def test_every_service_shows_all_its_settings(service: str) -> None:
    found = shown(service)
    assert found["process"]["shutdown_timeout_s"] == 10.0
    own = services.definition(service).settings_type()
    assert set(found[service]) == set(type(own).__struct_fields__)


@pytest.mark.parametrize("service", ["queue", "scheduler", "binder", "descheduler"])
def test_the_schedulers_configuration_has_all_defaults(service: str, file: Path) -> None:
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    found = shown(service, scheduler_config=str(file))["componentconfig"]
    assert (found["apiVersion"], found["kind"]) == ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration")
    [profile] = found["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert {"name": "NodeResourcesFit", "weight": 1} in profile["plugins"]["multiPoint"]["enabled"]
    args = {one["name"]: one["args"] for one in profile["pluginConfig"]}
    assert args["NodeResourcesFit"]["scoringStrategy"]["type"] == "LeastAllocated"
    assert found["podInitialBackoffSeconds"] == 1


def test_the_deschedulers_policy_has_all_defaults(file: Path) -> None:
    file.write_text(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: p\n"
        "  plugins: {balance: {enabled: [RemoveDuplicates]}}\n  pluginConfig: [{name: RemoveDuplicates, args: {}}]\n"
    )
    [profile] = shown("descheduler", **{"descheduler.policy": str(file)})["deschedulerpolicy"]["profiles"]
    assert profile["plugins"]["filter"]["enabled"] == ["DefaultEvictor"]
    assert "DefaultEvictor" in [one["name"] for one in profile["pluginConfig"]]


def test_the_agents_configurations_and_thresholds(file: Path) -> None:
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "evictionSoft: {memory.available: 300Mi}\nevictionSoftGracePeriod: {memory.available: 90s}\n"
    )
    by_label = f"[{{selector: {{disk: ssd}}, file: {file}}}]"
    found = shown("node_agent", **{"node_agent.kubelet_configs": by_label})
    assert found["kubeletconfig"]["evictionHard"]["memory.available"] == "100Mi"
    assert "maxPods" not in found["kubeletconfig"], "as many as the node's object says"
    [labelled] = found["kubeletconfigs"]
    assert labelled["selector"] == {"disk": "ssd"}
    assert labelled["maxPods"] == 110
    general, own = found["thresholds"]["node_agent"], found["thresholds"]["node_agent.kubelet_configs[0]"]
    assert {"signal": "memory.available", "operator": "LessThan", "value": "100Mi"} in general
    assert {"signal": "nodefs.available", "operator": "LessThan", "value": "10%"} in general
    soft = {"signal": "memory.available", "operator": "LessThan", "value": "300Mi", "gracePeriod": "1m30s"}
    assert soft in own
    assert soft not in general


@pytest.mark.parametrize("service", services.NAMES)
def test_no_secret_is_shown(service: str, file: Path) -> None:
    made = Authority().client("scheduler")
    pair = {"certificate": encoded(made.certificate), "key": encoded(made.key)}
    file.write_text(SCHEDULER % pair)
    servers = f"nats://me:{PLANTED}@one:4222,{PLANTED}@two:4222"
    text = json.dumps(shown(service, scheduler_config=str(file), **{"nats.servers": servers}))
    assert PLANTED not in text
    assert pair["key"] not in text
    assert service in ("api", "kube_api", "node_agent", "workloads") or pair["certificate"] in text
    assert "@two:4222" in text


def test_no_secret_of_a_policy_is_shown(file: Path) -> None:
    file.write_text(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmetricsProviders:\n- source: Prometheus\n"
        f"  prometheus: {{url: 'https://me:{PLANTED}@prometheus:9090'}}\nprofiles: []\n"
    )
    found = shown("descheduler", **{"descheduler.policy": str(file), "descheduler.secrets_dir": "/etc/secrets"})
    assert found["deschedulerpolicy"]["metricsProviders"][0]["prometheus"]["url"] == "https://***@prometheus:9090"
    assert found["descheduler"]["secrets_dir"] == "/etc/secrets"
    assert PLANTED not in json.dumps(found)


def test_the_lease_is_what_settings_say_then_the_file_then_the_default(file: Path) -> None:
    file.write_text(f"{LEADERS}{{leaseDuration: 30s, retryPeriod: 4s}}\n")
    found = shown("queue", scheduler_config=str(file), **{"queue.lease_retry_period_s": 2})
    own, election = found["queue"], found["componentconfig"]["leaderElection"]
    assert (own["lease_ttl_s"], own["lease_renew_deadline_s"], own["lease_retry_period_s"]) == (30, 24.0, 2.0)
    assert (election["leaseDuration"], election["renewDeadline"], election["retryPeriod"]) == ("30s", "24s", "2s")
    assert shown("queue")["queue"]["lease_ttl_s"] == 10
    assert shown("workloads")["workloads"]["lease_ttl_s"] == 10
    unchanged = shown("descheduler", scheduler_config=str(file))["descheduler"]
    assert unchanged["lease_ttl_s"] == 10, "kube-scheduler's configuration says nothing of its lease"


def test_a_file_without_election_says_nothing_of_leases(file: Path) -> None:
    file.write_text(f"{LEADERS}{{leaderElect: false, leaseDuration: 30s}}\n")
    assert shown("binder", scheduler_config=str(file))["binder"]["lease_ttl_s"] == 10


@pytest.mark.parametrize(
    ("election", "told"),
    [
        ("{leaseDuration: 15500ms}", "leaderElection.leaseDuration: 15.5s: NATS keeps leases for whole seconds"),
        ("{renewDeadline: 12s}", "lease_ttl_s: 10 s must be more than the renew deadline, 12 s"),
    ],
)
def test_a_lease_of_the_file_that_cannot_be_had_ends_the_start(election: str, told: str, file: Path) -> None:
    file.write_text(f"{LEADERS}{election}\n")
    common, own = load_settings(QueueSettings, "queue", flags={"scheduler_config": str(file)})
    with pytest.raises(SettingsError, match=told.replace(".", r"\.")):
        files.check_leader(common, own)


def test_the_queues_own_backoff_takes_the_place_of_the_files() -> None:
    found = shown("queue", **{"queue.pod_max_backoff_s": 60})
    assert found["componentconfig"]["podMaxBackoffSeconds"] == 60
    assert found["queue"]["pod_initial_backoff_s"] == 1
