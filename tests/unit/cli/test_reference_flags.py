"""Flags of kube-scheduler and the descheduler: each is taken for what it means, or refused with a reason."""

import inspect
import re
from pathlib import Path

import pytest

from podyard.cli import reference_flags, services
from podyard.cli.__main__ import main
from podyard.cli.commands import run as command
from podyard.cli.errors import InputError
from podyard.cli.reference_flags import FLAGS, Ours, Taken, parsed, settings
from podyard.cluster.view import ClusterView
from podyard.plugins.defaults import default_profile
from podyard.queue import assembly
from podyard.queue.settings import QueueSettings
from podyard.runtime.settings import load_settings
from tools import flags

LISTED = Path(__file__).with_name("kube_scheduler_flags.txt")
"""What `kube-scheduler --help` of v1.36.2 lists: names and types."""
OUR_OWN = {"config", "write-config-to", "help", "version"}
"""Of the same name and meaning, and told by `podyard run --help`."""


def taken(service: str, *words: str) -> dict[str, object]:
    return {path: leaf.value for path, leaf in settings(service, parsed(words)).items()}


def test_the_table_has_every_flag_of_kube_scheduler():
    lines = LISTED.read_text().splitlines()
    names = {re.search(r"--([\w-]+)", line)[1] for line in lines}
    assert len(names) > 50
    assert names - OUR_OWN == set(reference_flags.KUBE_SCHEDULER)


def test_flags_that_run_has_itself_set_what_the_table_says():
    """Each sets its setting, seen by the file of options that is written."""
    ours = {name: flag.setting for name, flag in FLAGS.items() if isinstance(flag, Ours)}
    declared = set(inspect.signature(command.run).parameters)
    assert {name.replace("-", "_") for name in ours} <= declared
    common, _ = load_settings(services.definition("api").settings_type, "api")
    for setting in ours.values():
        group, _, field = setting.partition(".")
        assert hasattr(getattr(common, group), field), setting


def test_switches_are_those_that_take_no_value_there():
    lines = [line for line in LISTED.read_text().splitlines() if re.search(r"--[\w-]+ $", line)]
    switches = {re.search(r"--([\w-]+)", line)[1] for line in lines} - OUR_OWN
    assert switches == {name for name in reference_flags.KUBE_SCHEDULER if reference_flags.is_switch(name)}


@pytest.mark.parametrize("name", [name for name, flag in FLAGS.items() if isinstance(flag, Taken)])
def test_what_is_taken_sets_a_setting_that_exists(name):
    value = {"logging-format": "json", "v": "4", "policy-config-file": "x", "client-ca-file": "x"}.get(name, "3s")
    flag = FLAGS[name]
    for service in flag.services:
        text = "true" if flag.switch else value
        for attempt in (text, "10259", "127.0.0.1", "x"):  # whichever its type takes
            try:
                flags = settings(service, [(name, attempt)])
                load_settings(services.definition(service).settings_type, service, flags=flags)
            except (InputError, ValueError):
                continue
            break
        else:
            pytest.fail(f"no value of --{name} is taken for {service}")


def test_durations_are_written_as_go_writes_them():
    words = (
        "--leader-elect-lease-duration=1m30s",
        "--leader-elect-renew-deadline",
        "1m",
        "--leader-elect-retry-period=500ms",
    )
    assert taken("queue", *words) == {
        "queue.lease_ttl_s": 90,
        "queue.lease_renew_deadline_s": 60.0,
        "queue.lease_retry_period_s": 0.5,
    }


def test_hyphens_and_underscores_are_one():
    assert taken("binder", "--leader_elect_lease_duration=15s") == {"binder.lease_ttl_s": 15}
    words = ["run", "queue", "--log_level", "debug", "--set", "log.level=a_b", "-s", "x_y=1"]
    assert reference_flags.normalized(words) == [
        "run", "queue", "--log-level", "debug", "--set", "log.level=a_b", "-s", "x_y=1",
    ]  # fmt: skip


@pytest.mark.parametrize("words", [("-v", "4"), ("-v=4",), ("-v4",), ("--v=4",), ("--v", "5"), ("--v=10",)])
def test_verbosity_four_and_more_is_debug(words):
    assert taken("api", *words) == {"log.level": "debug"}


@pytest.mark.parametrize("number", ["0", "1", "2", "3"])
def test_verbosity_below_four_is_info(number):
    assert taken("api", f"--v={number}") == {"log.level": "info"}


def test_the_deschedulers_flags():
    words = ("--policy-config-file", "p.yaml", "--descheduling-interval=0", "--dry-run")
    assert taken("descheduler", *words) == {
        "descheduler.policy": "p.yaml",
        "descheduler.interval_s": 0.0,
        "descheduler.dry_run": True,
    }
    assert taken("descheduler", "--dry-run=false") == {"descheduler.dry_run": False}


def test_how_long_a_pod_stays_parked_reaches_the_queue():
    flags = settings("queue", [("pod-max-in-unschedulable-pods-duration", "1m")])
    _, own = load_settings(QueueSettings, "queue", flags=flags)
    core = assembly.build_leader(
        [default_profile()], {}, own, epoch=1, view=ClusterView(), new_trace=lambda keep: "", timer=lambda: 0.0
    )
    assert core.queue._max_unschedulable_s == 60.0  # pyright: ignore[reportPrivateUsage]


def test_switches_that_ask_for_what_is_so_are_taken():
    assert taken("queue", "--leader-elect", "--profiling=false") == {}
    assert taken("scheduler", "--leader-elect=false") == {}


@pytest.mark.parametrize(
    ("service", "words", "told"),
    [
        (
            "queue",
            ["--leader-elect=false"],
            "--leader-elect=false is not so of queue: whoever leads does so by a lease",
        ),
        ("scheduler", ["--leader-elect"], "--leader-elect=true is not so of scheduler"),
        ("queue", ["--profiling"], "there is no profiling endpoint"),
        ("queue", ["--kubeconfig=x"], "--kubeconfig cannot be taken: there is no Kubernetes API server"),
        ("queue", ["--feature-gates", "X=true"], "--feature-gates cannot be taken"),
        ("queue", ["--authentication-skip-lookup", "--v=4"], "--authentication-skip-lookup cannot be taken"),
        ("queue", ["--dry-run"], "--dry-run is not for queue"),
        ("api", ["--leader-elect-lease-duration=15s"], "is not for api"),
        ("queue", ["--leader-elect-lease-duration=1.5s"], "NATS keeps leases for whole seconds"),
        ("queue", ["--leader-elect-lease-duration=15"], "missing unit in duration"),
        ("queue", ["--leader-elect-retry-period=-1s"], "must not be negative"),
        ("queue", ["--leader-elect-lease-duration"], "needs a value"),
        ("queue", ["--v=high"], "write a whole number"),
        ("queue", ["--logging-format=xml"], "write text or json"),
        ("descheduler", ["--dry-run", "true"], "what is true?"),
        ("descheduler", ["--dry-run=maybe"], "write true or false"),
        ("queue", ["--leader-elect-lease-durations=1s"], "did you mean --leader-elect-lease-duration?"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(service, words, told):
    with pytest.raises(InputError) as caught:
        taken(service, *words)
    assert told in f"{caught.value.message}; {caught.value.advice}"


def test_a_wrong_value_names_the_flag(capsys):
    words = ["run", "queue", "--leader-elect-lease-duration", "2h"]
    assert main(words) == 2
    assert "--leader-elect-lease-duration" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=5s"],
            "must be more than the renew deadline",
        ),
        (["--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=2.5s"], "1.2 times the retry period"),
        (["--v=4", "--log-level", "info"], "--v sets log.level, which is set by another flag, too"),
    ],
)
@pytest.mark.parametrize("service", ["queue", "binder", "descheduler", "workloads", "node-agent"])
def test_times_that_do_not_go_together_end_the_start(service, words, told, capsys):
    assert main(["run", service, *words]) == 2
    assert told in capsys.readouterr().err


def test_version_is_printed_and_nothing_runs(capsys):
    assert main(["run", "queue", "--version"]) == 0
    assert re.fullmatch(r"podyard \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_the_help_names_every_flag_that_is_taken():
    for name, flag in FLAGS.items():
        if isinstance(flag, Taken) or name == "leader-elect":
            assert f"--{name}" in command.run.__doc__, name


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", "--scheduler-config FILE"),
        ("apiVersion: kubescheduler.config.k8s.io/v1\n", "--scheduler-config FILE"),
        ("kind: DeschedulerPolicy\napiVersion: descheduler/v1alpha2\nprofiles: []\n", "--policy-config-file FILE"),
        ('{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}', "--kubelet-config FILE"),
        ("kind: Deployment\napiVersion: apps/v1\n", "podyard apply -f FILE"),
        ("---\nkind: Deployment\napiVersion: apps/v1\n---\nkind: Pod\napiVersion: v1\n", "podyard apply -f FILE"),
    ],
)
def test_a_file_of_another_kind_as_config_is_known_and_the_right_flag_named(text, flag, tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert main(["run", "queue", "--config", str(file)]) == 2
    told = capsys.readouterr().err
    assert flag in told
    assert told.count("\n") == 1, "one fault, not one for each of its fields"


PAGE = Path(__file__).parents[3] / "docs/flags.md"


def test_the_page_lists_every_flag_as_the_table_has_it():
    """`make flags` writes it."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == flags.page(text)


def test_the_commands_of_the_page_are_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    policy = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"
    (tmp_path / "policy.yaml").write_text(policy)
    commands = re.findall(r"^podyard (run .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2
    for command_line in commands:
        assert main([*command_line.split(), "--write-config-to", "out.yaml"]) == 0
