import os
from pathlib import Path

import pytest
import yaml

from podyard.cli import session
from podyard.cli.errors import InputError
from podyard.cli.lab import plan, state
from podyard.cli.lab.child import Child, parse_ready
from podyard.cli.lab.nodes import virtual_node
from podyard.cli.render import lab as rendered
from podyard.cli.services import NAMES

NOW = 1_800_000_000.0


@pytest.fixture
def environment(tmp_path):
    return {"PODYARD_STATE_DIR": str(tmp_path / "state")}


def test_one_of_each_service_unless_told():
    assert [planned.service for planned in plan.parse("")] == list(NAMES)


def test_numbers_make_instances_with_names_of_their_own():
    assert [tuple(planned) for planned in plan.parse("queue=2, api,node-agent")] == [
        ("api", "api-1"),
        ("queue", "queue-1"),
        ("queue", "queue-2"),
        ("node_agent", "node_agent-1"),
    ]


@pytest.mark.parametrize("text", ["que", "queue=0", "queue=x", "queue=17", "queue="])
def test_a_wrong_choice_is_refused(text):
    with pytest.raises(InputError):
        plan.parse(text)


def test_restarts_slow_down_and_a_stable_run_starts_over():
    assert [plan.restart_delay_s(failures) for failures in (1, 2, 3, 10)] == [0.2, 0.4, 0.8, 10.0]
    assert plan.failures_after(4, 5.0) == 5
    assert plan.failures_after(4, 31.0) == 1


def test_a_running_lab_is_found_and_a_dead_one_forgotten(environment):
    living = state.LabState(pid=os.getpid(), url="nats://127.0.0.1:1", started_at=1.0)
    dead = state.LabState(pid=2**22 + 1, url="nats://127.0.0.1:2", started_at=2.0)
    state.write(living, environment)
    path = state.write(dead, environment)
    assert state.running(environment) == [living]
    assert not path.exists()
    state.remove(os.getpid(), environment)
    assert state.running(environment) == []


def test_the_state_directory_follows_the_xdg_rules():
    assert str(state.directory({"XDG_STATE_HOME": "/x"})) == "/x/podyard"
    assert str(state.directory({"PODYARD_STATE_DIR": "/y", "XDG_STATE_HOME": "/x"})) == "/y"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nok", ("ready", "")),
        (
            (
                b"HTTP/1.1 500 X\r\n\r\n[+]view ok\n"
                b"[-]nats failed: waiting; see docs/checks.md#nats, or run: podyard checks nats\n[-]lease failed: none\n"
            ),
            ("not ready", "nats: waiting; lease: none"),
        ),
        (b"", ("not ready", "")),
    ],
)
def test_readiness_is_read_with_its_reasons(answer, found):
    assert parse_ready(answer) == found


def test_virtual_nodes_take_turns_over_the_zones():
    zones = [virtual_node(n)["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in range(1, 5)]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]


def test_a_change_of_a_service_is_one_line():
    row = rendered.ServiceRow("queue-1", "ready", 42, 0, "127.0.0.1:9", "")
    assert rendered.change(row) == "queue-1        ready     pid 42, http://127.0.0.1:9"
    ended = rendered.ServiceRow("queue-1", "ended", 0, 1, "127.0.0.1:9", "signal SIGKILL")
    assert rendered.change(ended) == "queue-1        ended     signal SIGKILL"


@pytest.mark.parametrize(("service", "code", "runs", "state"), [
    ("descheduler", 0, 1, "done"), ("descheduler", 1, 3, "stopped"), ("queue", 0, 3, "stopped"),
])  # fmt: skip
async def test_who_has_done_all_that_it_was_to_do_is_not_started_again(
    service: str, code: int, runs: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A descheduler with interval 0 ends with exit code 0; any other end is not meant."""
    child = Child(plan.Planned(service, f"{service}-1"), tmp_path / "log", {}, lambda: None)
    ran: list[int] = []

    async def run(tasks: object) -> int:
        del tasks
        ran.append(code)
        if len(ran) == 3:
            child.terminate()
        return code

    monkeypatch.setattr(child, "_run", run)
    monkeypatch.setattr(plan, "restart_delay_s", lambda failures: 0.0)
    await child.supervise()
    assert (len(ran), child.state) == (runs, state)


def test_compose_starts_a_descheduler_again_only_if_it_failed():
    services = yaml.safe_load(Path("docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert {name: one["restart"] for name, one in services.items() if name in ("descheduler", "queue", "api")} == {
        "api": "unless-stopped", "queue": "unless-stopped", "descheduler": "on-failure"
    }  # fmt: skip


@pytest.fixture
def two_labs(environment):
    """Both of this process, which lives."""
    for number, name in enumerate(("lab", "staging")):
        lab = state.LabState(pid=os.getpid(), url=f"nats://127.0.0.1:{number + 1}", name=name, started_at=NOW - number)
        state.write(lab, environment).rename(Path(environment["PODYARD_STATE_DIR"]) / f"lab-{name}.json")
    return environment


def test_a_lab_has_a_name_of_its_own(environment, two_labs):
    assert state.chosen_name("", two_labs) == "lab-2"
    assert state.chosen_name("third", two_labs) == "third"
    assert state.chosen_name("", {"PODYARD_STATE_DIR": "/nowhere"}) == "lab"
    for wrong in ("staging", "a.b", "host:4222", "-x", "X"):
        with pytest.raises(InputError, match=wrong):
            state.chosen_name(wrong, two_labs)


def test_commands_find_the_lab_by_name_by_server_or_as_the_only_one(environment, two_labs):
    assert session.servers("staging", two_labs) == ("nats://127.0.0.1:2",)
    assert session.servers(None, {**two_labs, "PODYARD_NATS_SERVERS": "staging"}) == ("nats://127.0.0.1:2",)
    assert session.lab("nats://127.0.0.1:1", two_labs).name == "lab"
    assert session.servers("nats://a:1, nats://b:2", two_labs) == ("nats://a:1", "nats://b:2")
    with pytest.raises(InputError, match="no lab called other"):
        session.servers("other", two_labs)
    with pytest.raises(InputError, match="several labs run here"):
        session.servers(None, two_labs)
    (Path(two_labs["PODYARD_STATE_DIR"]) / "lab-staging.json").unlink()
    assert session.servers(None, two_labs) == ("nats://127.0.0.1:1",)
    assert session.servers(None, {"PODYARD_STATE_DIR": "/nowhere"}) == (session.DEFAULT_SERVER,)


def test_labs_are_listed_with_where_since_and_what_runs():
    services = {"api-1": state.LabService(name="api", pid=1), "queue-1": state.LabService(name="queue")}
    lab = state.LabState(pid=1, url="nats://h:1", name="a", data_dir="/d", started_at=NOW - 90, services=services)
    heads, row = rendered.running([lab], NOW)
    assert heads.split() == ["NAME", "SERVER", "SINCE", "SERVICES", "DATA"]
    assert row.split() == ["a", "nats://h:1", "90s", "1/2", "without", "queue-1", "/d"]
