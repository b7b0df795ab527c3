"""Where a workload runs: a stack that is started, or a lab that runs."""

import os
from pathlib import Path

import pytest

from podyard.bench import meters
from podyard.bench.scheduler_perf import stacks
from podyard.bus import BusSettings
from podyard.cli.__main__ import main
from podyard.cli.errors import CliError
from podyard.cli.lab.state import LabService, LabState

CASE = """
- name: A
  workloadTemplate: [{opcode: createPods, count: 1, collectMetrics: true}]
  workloads: [{name: w, params: {}}]
"""


def lab(**pids: int) -> LabState:
    services = {f"{name}-1": LabService(name=name, pid=pid, http=f"127.0.0.1:{pid}") for name, pid in pids.items()}
    return LabState(pid=os.getpid(), url="nats://127.0.0.1:1", name="bench", services=services)


@pytest.mark.parametrize("stack", ["headline", "api", "all"])
def test_every_stack_has_as_many_schedulers_as_wanted(stack: stacks.Stack):
    found = stacks.processes(stack, 3)
    assert [one.instance for one in found if one.service == "scheduler"] == [
        "scheduler-1",
        "scheduler-2",
        "scheduler-3",
    ]
    assert sum(one.service == "binder" for one in found) == 1


def test_a_process_is_called_by_its_service_unless_there_are_several():
    assert meters.named({"binder-1": 1, "scheduler-1": 2, "scheduler-2": 3}) == {
        "binder": 1,
        "scheduler-1": 2,
        "scheduler-2": 3,
    }


def test_a_lab_whose_service_is_down_is_refused():
    with pytest.raises(CliError, match="binder-1 does not run"):
        stacks.running(lab(queue=4, binder=0), BusSettings(servers=()))


def test_a_lab_on_servers_of_somebody_else_is_refused():
    with pytest.raises(CliError, match="has no NATS server of its own"):
        stacks.running(lab(queue=4, binder=5), BusSettings(servers=()))


def test_a_lab_is_measured_with_its_server_and_written_by_its_api(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stacks, "_server", lambda lab: 9)
    there = stacks.running(lab(queue=4, binder=5), BusSettings(servers=()))
    assert there.processes == {"queue": 4, "binder": 5, "nats-server": 9, "client": os.getpid()}
    assert (there.name, there.by_api, there.monitor_port) == ("running", False, None)
    assert there.places == ("127.0.0.1:4", "127.0.0.1:5")
    assert stacks.running(lab(api=3, queue=4), BusSettings(servers=())).by_api


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--running", "nobody"], "no lab called nobody runs here"),
        (["--running", "nobody", "--tracing", "1"], "the lab is as it is"),
        (["--running", "nobody", "--schedulers", "2"], "the lab is as it is"),
        (["--plot", "a.svg"], "several numbers of schedulers"),
        (["--tracing", "2"], "must be from 0 to 1"),
    ],
)
def test_words_that_make_no_sense_are_told(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PODYARD_STATE_DIR", str(tmp_path))
    (tmp_path / "c.yaml").write_text(CASE)
    assert main(["bench", "scheduler-perf", str(tmp_path / "c.yaml"), "--case", "A/w", *words]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
