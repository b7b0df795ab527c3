"""`podyard bench trace` on a real stack: a recording of 20 nodes and 60 pods, with two configurations."""

import json
from pathlib import Path

import pytest

from podyard.cli.__main__ import main

NODES = ["sn,cpu_milli,memory_mib,gpu,model"]
NODES += [
    f"node-{number:02},32000,131072,{4 if number % 2 else 0},{'T4' if number % 2 else ''}" for number in range(20)
]
PODS = [
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
    "large,64000,1024,0,0,,LS,Pending,0,100,",
    "picky,1000,1024,1,500,P100,BE,Pending,0,100,",
]
PODS += [
    f"pod-{number:02},1000,1024,{min(1, number % 3)},{(0, 500, 1000)[number % 3]},,{'LS' if number % 2 else 'BE'},Succeeded,"
    f"{number},{60 + number},{number + 1}"
    for number in range(58)
]
SPEED = "--speedup=30"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {name}
  pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: {strategy}, resources: [{{name: cpu, weight: 1}}]}}}}
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    for name, lines in (("pods.csv", PODS), ("nodes.csv", NODES)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    for strategy in ("LeastAllocated", "MostAllocated"):
        (tmp_path / f"{strategy}.yaml").write_text(CONFIG.format(name="default-scheduler", strategy=strategy))
    return ["bench", "trace", "openb", str(tmp_path / "pods.csv"), str(tmp_path / "nodes.csv")]


def test_a_recording_is_replayed_with_two_configurations(tmp_path: Path, words: list[str], capsys):
    configs = [str(tmp_path / f"{name}.yaml") for name in ("LeastAllocated", "MostAllocated")]
    picture = tmp_path / "replay.svg"
    code = main([*words, SPEED, "--config", configs[0], "--config", configs[1], "--plot", str(picture), "-o", "json"])
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert code == (0 if all(run["kept_up"] for run in found["runs"]) else 1), captured.err
    assert (found["trace"]["nodes"], found["trace"]["gpus"], found["trace"]["pods"]) == (20, 40, 60)
    assert [run["config"] for run in found["runs"]] == configs
    for run in found["runs"]:
        assert (run["bound"], run["never_bound"]) == (58, 2)
        assert run["never_bound_by"] == {"NodeAffinity": 1, "NodeResourcesFit": 1}
        assert run["curves"]["bound"]["peak"] >= 40
        assert run["curves"]["bound"]["end"] == 0
        assert 0 < run["curves"]["gpu"]["mean"] < run["curves"]["gpu"]["peak"] <= 1
        assert run["curves"]["overloaded"] == []
        assert {name: one["pods"] for name, one in run["wait_by_qos"].items()} == {"BE": 29, "LS": 29}
        assert run["cpu_us_per_pod_by_process"].keys() == {"queue", "scheduler", "binder", "nats-server", "client"}
    # who packs nodes leaves more of them whole
    least, most = (run["curves"]["fragmented"]["mean"] for run in found["runs"])
    assert most < least
    assert picture.read_text().startswith("<?xml")


def test_pods_may_stay(words: list[str], capsys):
    code = main([*words, SPEED, "--stay", "--one-node-in", "10", "-o", "json"])
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    [run] = found["runs"]
    assert code == (0 if run["kept_up"] else 1), captured.err
    assert (found["trace"]["nodes"], found["trace"]["gpus"]) == (2, 4)
    # of three pods one asks for half a GPU, one for a whole one: 29 in all
    assert run["curves"]["gpu"]["end"] == 1
    assert run["curves"]["bound"]["end"] == run["bound"] < 58
    assert run["never_bound_by"]["NodeResourcesFit"] == run["never_bound"] - 1


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--speedup=0",), "--speedup 0: must be above 0"),
        ((SPEED, "--one-node-in=0"), "--one-node-in at least 1"),
        ((SPEED, "--from=200"), "--from 200: no pod is left"),
        ((SPEED, "--config=a.yaml", "--config=a.yaml"), "each once"),
        ((SPEED, "--plot=replay.pdf"), "drawn as .svg or .png"),
        ((SPEED, "--config=-"), "it has to be a file"),
        ((SPEED, "--config=other.yaml"), "has no profile default-scheduler"),
        ((SPEED, "--config=bad.yaml"), "profiles[0]"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, words: list[str], more: tuple[str, ...], told: str, capsys, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.yaml").write_text(CONFIG.format(name="other", strategy="LeastAllocated"))
    (tmp_path / "bad.yaml").write_text(CONFIG.format(name="default-scheduler", strategy="Nonsense"))
    assert main([*words, *more]) == 2
    assert told in capsys.readouterr().err
