"""The command line as a whole, as far as it goes without a server."""

import os
import socket
import subprocess
import sys

import pytest

from podyard.cli import app, kubectl_plugin, services, serving
from podyard.cli.__main__ import main
from podyard.cli.commands import bench


def test_version(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("podyard ")


def test_version_loads_nothing_heavy():
    code = (
        "import sys; from podyard.cli.__main__ import main; main(['version']); "
        "print([m for m in ('cyclopts', 'rich', 'nats', 'numpy', 'msgspec', 'anyio') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[1] == "[]"


@pytest.mark.parametrize("name", [name for name, _, _ in app.COMMANDS if name != "bench"])
def test_every_command_has_help_with_examples(name, capsys):
    main([name, "--help"])
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: podyard {name}")
    assert text.count(f"podyard {name}") >= 2


def test_the_list_of_commands_has_a_summary_for_each(capsys):
    main(["--help"])
    text = capsys.readouterr().out
    for name, _, _ in app.COMMANDS:
        assert f"│ {name}" in text


@pytest.mark.parametrize("words", [[], ["basic", "--nodes", "500"], ["-o", "json"]], ids=" ".join)
def test_where_no_benchmarks_are_installed_bench_says_where_they_are(words, capsys, monkeypatch):
    monkeypatch.setattr(bench, "bench", bench.absent())
    assert main(["bench", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {' '.join(('podyard bench', *words))}: the benchmarks are not in the wheel")
    assert "git clone" in captured.err
    assert captured.out == ""


def test_benchmarks_that_cannot_be_loaded_are_not_taken_for_absent_ones(monkeypatch):
    assert bench.found().name == ("bench",)
    monkeypatch.setitem(sys.modules, "podyard.bench.commands.app", None)
    with pytest.raises(ModuleNotFoundError, match=r"podyard\.bench\.commands\.app"):
        bench.found()
    monkeypatch.setattr(bench, "PLACE", "podyard.nowhere")
    monkeypatch.setattr(bench, "COMMANDS", "podyard.nowhere.commands.app")
    assert "not in the wheel" in bench.found().help


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gett"], 'Unknown command "gett". Did you mean "get"?'),
        (["get", "pods", "--bogus"], "Unknown option"),
        (["get"], "requires an argument"),
        (["get", "nonsense"], 'no resource is called "nonsense"'),
        (["apply"], "nothing to apply"),
        (["apply", "-f", "/nowhere.yaml"], "No such file"),
        (["delete", "pods"], "which pods?"),
        (["delete", "pod", "a", "--grace-period", "-1"], "must be 0 or more"),
        (["explain", "service", "a"], "cannot explain 'service'"),
        (["explain", "pod"], "which pod?"),
        (["queue", "--pool", "nonsense"], "no pool is called 'nonsense'"),
        (["publish"], "either an event or --scenario"),
        (["publish", "Node"], "expected RESOURCE/ACTION"),
        (["publish", "Node/Nonsense"], "no action is called 'Nonsense'"),
        (["publish", "Nonsense/Add"], 'no event resource is called "Nonsense"'),
        (["publish", "Node/Add", "--count", "0"], "no whole number from 1"),
        (["watch", "--only", "nonsense"], "unknown"),
        (["up", "--services", "nonsense"], "no service is called 'nonsense'"),
        (["up", "--nodes", "-1"], "must be from 0"),
        (["run", "nonsense"], "no service is called 'nonsense'"),
        (["run", "api", "--set", "nonsense"], "expected PATH=VALUE"),
        (["run", "queue", "--take-over"], "--take-over is not for queue"),
        (["pressure", "node", "n1", "--off", "--ramp", "30s"], "--off ends it at once"),
        (["run", "api", "--host-node", "here"], "--host-node is not for api"),
        (["completion", "tcsh"], "Invalid value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_exits_with_2_and_says_what(words, told, capsys):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("servers", ["nats://127.0.0.1:1", "nats://127.0.0.1:1,nats://localhost:1"])
def test_where_nobody_listens_nobody_waits_and_what_to_do_is_said_once(servers, capsys, caplog, monkeypatch):
    monkeypatch.setattr("podyard.cli.session.CONNECT_S", 3600.0)
    assert main(["get", "pods", "--nats", servers]) == 1
    first, hint = capsys.readouterr().err.splitlines()
    assert first == f"error: no NATS server answers at {servers.replace(',', ', ')}"
    assert "podyard up" in hint
    assert not caplog.records


def test_a_server_that_takes_calls_and_says_nothing_is_given_up(capsys, monkeypatch):
    monkeypatch.setattr("podyard.cli.session.CONNECT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        assert main(["get", "pods", "--nats", url]) == 1
    assert f"no NATS server answers at {url}" in capsys.readouterr().err


def test_completion_where_nothing_runs_offers_nothing_and_says_nothing(capsys, monkeypatch):
    monkeypatch.setenv("PODYARD_NATS_SERVERS", "nats://127.0.0.1:1")
    for words in (["get", "pods", ""], ["get", "nosuchkind", ""], ["eviction", "preview", ""]):
        main(["__complete", *words])
        told = capsys.readouterr()
        assert (told.out.split(), told.err) == (["begin"], "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "explain" in script
    assert "podyard" in script


@pytest.mark.parametrize("service", services.NAMES)
def test_a_service_loads_nothing_that_is_for_people(service):
    assert loaded(service, "cyclopts", "attr", "click", "rich", "pygments", "opentelemetry.sdk") == "[]"


@pytest.mark.parametrize("service", services.NAMES)
def test_a_service_loads_no_http_client_before_it_has_whom_to_ask(service):
    assert loaded(service, "httpx") == "[]"


def test_a_service_loads_numpy_without_threads_of_its_own():
    code = "import os; from podyard.cli import serving; serving.load('scheduler'); print(os.listdir('/proc/self/task'))"
    environment = {name: value for name, value in os.environ.items() if name != serving.ALGEBRA_THREADS}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.count(",") == 0


def test_who_asks_for_threads_of_numpy_has_them(monkeypatch):
    monkeypatch.setenv(serving.ALGEBRA_THREADS, "2")
    serving.load("queue")
    assert os.environ[serving.ALGEBRA_THREADS] == "2"


def test_an_agent_without_a_host_loads_nothing_that_reads_one():
    assert loaded("node_agent", "ctypes", "podyard.node_agent.host.readings") == "[]"


def loaded(service: str, *unwanted: str) -> str:
    """Those of `unwanted` that a service loads; what it did without can be loaded afterwards."""
    code = (
        "import sys; from podyard.cli import __main__, serving; serving.load(sys.argv[1]);"
        "print([module for module in sys.argv[2:] if module in sys.modules]); import rich, click, gc; print(gc.isenabled())"
    )
    found = subprocess.run([sys.executable, "-c", code, service, *unwanted], capture_output=True, text=True, check=True)
    first, *others = found.stdout.split("\n")
    assert others == ["True", ""]
    return first


def test_kubectls_plugin_takes_the_words_that_podyard_takes(capsys):
    assert kubectl_plugin.main(["version"]) == 0
    told = capsys.readouterr()
    assert main(["version"]) == 0
    assert told == capsys.readouterr()
    assert kubectl_plugin.main(["explain", "--nonsense"]) == 2
    assert "podyard explain --help" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--context", "lab"], ["--kubeconfig=a.yaml"], ["--as", "jane"]])
def test_kubectls_plugin_says_that_a_kubeconfig_does_not_lead_to_the_bus(words, capsys):
    assert kubectl_plugin.main(["explain", "pod", "web", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words[0].partition("=")[0] in told.err
    assert "--nats" in told.err
