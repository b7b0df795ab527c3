"""Scripts are run as they are written; a stand-in for kubectl shows it without a server."""

from pathlib import Path

import pytest
import yaml

from tests.kube.side_by_side.running import TOO_LONG, Answer, Target, run
from tests.kube.side_by_side.script import Compare, Script, Step

STAND_IN = """#!/bin/sh
case "$1" in
say) shift; printf '%b\\n' "$*";;
fail) echo no >&2; exit 3;;
count) n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; echo $n;;
slow) echo begun; exec sleep 60;;
show) cat "$2";;
read) cat;;
edit) echo 'replicas: 2' > edited; sh -c "$KUBE_EDITOR edited"; cat edited;;
watch) echo begun; until [ -f touched ]; do sleep 0.05; done; echo ended; exec sleep 60;;
touch) touch touched;;
where) cat "$KUBECONFIG";;
create|delete) echo "$@" >> LOG;;
esac
"""


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """Who is asked: the stand-in."""
    program, kubeconfig = tmp_path / "kubectl", tmp_path / "kubeconfig"
    program.write_text(STAND_IN.replace("LOG", str(tmp_path / "log")), encoding="utf-8")
    program.chmod(0o755)
    config = {
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"certificate-authority": "ca.crt"}}],
        "users": [{"name": "a", "user": {"client-key": "/elsewhere/a.key"}}],
    }
    kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")
    return Target(program, kubeconfig)


def answers(target: Target, *steps: Step, files: dict[str, str] | None = None) -> list[Answer]:
    return run(Script(name="s", title="t", steps=steps, files=files or {}), target)


def test_code_output_and_errors_are_the_answer(target: Target) -> None:
    assert answers(target, Step(run="say 'a  b'"), Step(run="fail")) == [
        Answer("say 'a  b'", 0, ["a  b"], []),
        Answer("fail", 3, [], ["no"]),
    ]


def test_files_and_standard_input_are_there(target: Target) -> None:
    steps = (Step(run="show deep/a.yaml"), Step(run="read", stdin="x: 2\n"))
    found = answers(target, *steps, files={"deep/a.yaml": "x: 1\n"})
    assert [one.out for one in found] == [["x: 1"], ["x: 2"]]


def test_until_it_says_so_it_is_run_again(target: Target) -> None:
    [found] = answers(target, Step(run="count", until="^3$"))
    assert (found.code, found.out) == (0, ["3"])


def test_what_never_comes_ends_in_time(target: Target) -> None:
    vain, slow, silent = answers(
        target,
        Step(run="say no", until="yes", within=0.1),
        Step(run="slow", within=0.3),
        Step(run="slow", ends="ended", within=0.3),
    )
    assert [(one.code, one.out) for one in (vain, slow, silent)] == [
        (TOO_LONG, ["no"]),
        (TOO_LONG, ["begun"]),
        (TOO_LONG, ["begun"]),
    ]


def test_meanwhile_others_act_and_it_is_interrupted_when_it_has_said_enough(target: Target) -> None:
    [found] = answers(target, Step(run="watch", meanwhile=("touch",), ends="^ended$"))
    assert (found.code, found.out) == (0, ["begun", "ended"])


def test_the_editor_is_a_command_of_sed(target: Target) -> None:
    [found] = answers(target, Step(run="edit", editor='s/2/"3"/'))
    assert found.out == ['replicas: "3"']


@pytest.mark.parametrize(
    ("compare", "code", "out"),
    [
        ("all", 0, ["b", "a"]),
        ("sorted", 0, ["a", "b"]),
        ("last", 0, ["a"]),
        ("code", 0, []),
    ],
)
def test_only_what_counts_is_kept(compare: Compare, code: int, out: list[str], target: Target) -> None:
    [found] = answers(target, Step(run="say 'b\\na'", compare=compare))
    assert (found.code, found.out) == (code, out)


def test_nothing_may_count(target: Target) -> None:
    assert answers(target, Step(run="fail", compare="nothing")) == [Answer("fail", 0, [], [])]


def test_a_script_has_a_namespace_of_its_own_which_goes(target: Target) -> None:
    [found] = answers(target, Step(run="where"))
    config = yaml.safe_load("\n".join(found.out))
    assert config["contexts"][0]["context"]["namespace"] == "script-s"
    log = target.kubectl.with_name("log").read_text(encoding="utf-8")
    assert log.splitlines() == ["create namespace script-s", "delete namespace script-s"]


def test_files_of_the_kubeconfig_are_found_from_elsewhere(target: Target) -> None:
    [found] = answers(target, Step(run="where"))
    config = yaml.safe_load("\n".join(found.out))
    assert config["clusters"][0]["cluster"]["certificate-authority"] == str(target.kubeconfig.with_name("ca.crt"))
    assert config["users"][0]["user"]["client-key"] == "/elsewhere/a.key"
