"""`podyard config` of other kinds than the scheduler's: a DeschedulerPolicy, a KubeletConfiguration, and what
is none of ours."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podyard.cli.__main__ import main

POLICY = """apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  pluginConfig:
  - {name: DefaultEvictor, args: {nodeFit: true, minPodAge: 90m, priorityThreshold: {name: gold}}}
  - {name: RemoveFailedPods}
  - {name: LowNodeUtilization, args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 60}}}
  plugins: {balance: {enabled: [LowNodeUtilization]}}
"""
KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 1Gi}
evictionPressureTransitionPeriod: 90s
maxPods: 20
kubeReserved: {cpu: 100m}
clusterDomain: cluster.local
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(text: str) -> str:
        path = tmp_path / "file.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def shown(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["config", *words]) == code
    return capsys.readouterr().out


def completed(capsys: pytest.CaptureFixture[str], file: str) -> dict[str, Any]:
    found = json.loads(shown(capsys, "default", file, "-o", "json"))
    assert yaml.safe_load(shown(capsys, "default", file)) == found
    return found


def test_a_valid_policy_is_told_in_short_with_what_cannot_be_meant(write: Any, capsys: Any) -> None:
    file = write(POLICY)
    assert shown(capsys, "validate", file).splitlines() == [
        f"{file} is valid: 1 profile",
        "  spread: 2 plugins (deschedule 0, balance 1, filter 1, preevictionfilter 1)",
        (
            "  cannot be meant so: profiles[0].pluginConfig[1]: "
            "RemoveFailedPods is configured and enabled nowhere: it does nothing"
        ),
    ]
    found = json.loads(shown(capsys, "validate", file, "-o", "json"))
    assert [one["field"] for one in found["doubtful"]] == ["profiles[0].pluginConfig[1]"]
    assert found["effective"][0]["plugins"]["balance"] == [{"name": "LowNodeUtilization"}]


@pytest.mark.parametrize(
    ("change", "stage", "fields"),
    [
        (("cpu: 20", "cpu: x"), "decode", ["profiles[0].pluginConfig[2].args.thresholds[...]"]),
        (
            ("nodeFit: true", "nodeFits: true, cpu: 1"), "decode", ["profiles[0].pluginConfig[0].args"],
        ),
        (("cpu: 20", "cpu: 200"), "validate", ["profiles[0].pluginConfig[2]"]),
        (("profiles:", "metricsProviders: [{source: Prometheus}]\nprofiles:"), "validate", ["metricsProviders"]),
        (("profiles:", "nodeSelector: a in b\nprofiles:"), "build", ["nodeSelector"]),
        (("enabled: [", "enabled: [Nothing, 'no.where:Plugin', 'not.there:Plugin', "), "build", ["profiles[0]"] * 2),
        (("enabled: [", "enabled: [Nothing, "), "build", ["profiles[0]"]),
    ],
)  # fmt: skip
def test_every_fault_of_a_policy_is_told_with_its_field(
    change: tuple[str, str], stage: str, fields: list[str], write: Any, capsys: Any
) -> None:
    text = POLICY.replace(*change)
    assert text != POLICY
    found = json.loads(shown(capsys, "validate", write(text), "-o", "json", code=1))
    assert (found["stage"], [one["field"] for one in found["errors"]]) == (stage, fields)
    assert all(one["detail"] and not one["detail"].startswith(one["field"]) for one in found["errors"])
    assert f"{len(fields)} fault" in shown(capsys, "validate", write(text), code=1)


def test_default_completes_a_policy_and_can_be_read_again(write: Any, capsys: Any) -> None:
    found = completed(capsys, write(POLICY))
    evictor, failed, low = (one["args"] for one in found["profiles"][0]["pluginConfig"])
    assert (evictor["nodeFit"], evictor["minReplicas"], evictor["minPodAge"]) == (True, 0, "1h30m0s")
    assert evictor["priorityThreshold"] == {"name": "gold"}
    assert failed["minPodLifetimeSeconds"] == 3600
    assert (low["numberOfNodes"], low["targetThresholds"]) == (0, {"cpu": 60.0})
    assert found["profiles"][0]["plugins"]["filter"] == {"enabled": ["DefaultEvictor"], "disabled": []}
    assert completed(capsys, write(json.dumps(found))) == found


def test_a_valid_kubelet_configuration_is_told_with_what_has_no_effect(write: Any, capsys: Any) -> None:
    file = write(KUBELET)
    lines = shown(capsys, "validate", file).splitlines()
    assert lines[0] == f"{file} is valid: 2 thresholds"
    assert [line.split(":")[1] for line in lines[1:]] == [" kubeReserved", " clusterDomain"]
    found = json.loads(shown(capsys, "validate", file, "-o", "json"))
    assert [one["field"] for one in found["unused"]] == ["kubeReserved", "clusterDomain"]


@pytest.mark.parametrize(
    ("change", "stage", "fields"),
    [
        (("maxPods: 20", "maxPods: x\nevictionSoft: 5"), "decode", ["evictionSoft", "maxPods"]),
        (("1Gi", "1Xi"), "validate", ["evictionHard[memory.available]"]),
        (("maxPods: 20", "maxPods: -1\nimageGCHighThresholdPercent: 101"), "validate",
         ["imageGCHighThresholdPercent", "maxPods"]),
    ],
)  # fmt: skip
def test_every_fault_of_a_kubelet_configuration_is_told_with_its_field(
    change: tuple[str, str], stage: str, fields: list[str], write: Any, capsys: Any
) -> None:
    found = json.loads(shown(capsys, "validate", write(KUBELET.replace(*change)), "-o", "json", code=1))
    assert (found["stage"], [one["field"] for one in found["errors"]]) == (stage, fields)


def test_default_completes_a_kubelet_configuration_and_can_be_read_again(write: Any, capsys: Any) -> None:
    found = completed(capsys, write(KUBELET))
    assert found["evictionHard"] == {"memory.available": "1Gi"}
    assert (found["evictionPressureTransitionPeriod"], found["imageMinimumGCAge"]) == ("1m30s", "2m0s")
    assert (found["enforceNodeAllocatable"], found["clusterDomain"]) == (["pods"], "cluster.local")
    assert (found["maxPods"], found["kubeReserved"]) == (20, {"cpu": "100m"})
    assert completed(capsys, write(json.dumps(found))) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("apiVersion: apps/v1\nkind: Deployment\n", "is Deployment"),
        ("apiVersion: apps/v1\n", "missing"),
        ("kind: [1]\n", "is [1]"),
    ],
)
def test_a_file_of_another_kind_is_told_which_are_taken(text: str, told: str, write: Any, capsys: Any) -> None:
    (found,) = json.loads(shown(capsys, "validate", write(text), "-o", "json", code=1))["errors"]
    assert found["field"] == "kind"
    assert found["detail"] == (
        f"{told}; taken are KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), "
        "DeschedulerPolicy (descheduler/v1alpha2), KubeletConfiguration (kubelet.config.k8s.io/v1beta1)"
    )


def test_the_version_alone_says_whose_file_it_is(write: Any, capsys: Any) -> None:
    assert "is valid: 1 profile" in shown(capsys, "validate", write(POLICY.replace("kind: DeschedulerPolicy\n", "")))


def test_standard_input_is_of_any_kind(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(POLICY))
    assert "- is valid: 1 profile" in shown(capsys, "validate", "-")


@pytest.mark.parametrize("words", [("validate", "--outptu"), ("validate", "-o", "json", "-x"), ("default", "-x")])
def test_a_mistyped_option_is_no_file(words: tuple[str, ...], capsys: Any) -> None:
    assert main(["config", *words]) == 2
    assert f"no such option: {words[-1]}" in capsys.readouterr().err
