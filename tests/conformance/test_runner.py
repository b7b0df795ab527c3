"""How the runner is called: files, exit codes, one case, everything shown."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance import running
from tests.conformance.__main__ import main
from tests.conformance.cases import contents

DATA = Path(__file__).parent / "data"
CONFIG = DATA / "config" / "public.jsonl.gz"


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return contents(CONFIG).splitlines()[:4]


@pytest.fixture
def plain(lines, tmp_path) -> Path:
    path = tmp_path / "some.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


@pytest.fixture
def failing(lines, tmp_path) -> Path:
    wrong = json.loads(lines[1])
    wrong["expected"] = {"stage": "build", "error": ""} if wrong["expected"]["stage"] != "build" else {"stage": "ok"}
    path = tmp_path / "failing.jsonl"
    path.write_bytes(b"\n".join([lines[0], json.dumps(wrong).encode(), *lines[2:]]))
    return path


def identifier(line: bytes) -> str:
    return json.loads(line)["id"]


def test_plain_and_gzip_are_the_same(plain, lines, capsys) -> None:
    packed = plain.with_suffix(".gz")
    packed.write_bytes(gzip.compress(b"\n".join(lines)))
    assert (main(["config", str(plain)]), capsys.readouterr().out) == (0, "4 passed, 0 failed\n")
    assert (main(["config", str(packed)]), capsys.readouterr().out) == (0, "4 passed, 0 failed\n")


def test_a_failed_case_is_told_and_counted_and_fails_the_run(failing, lines, capsys) -> None:
    assert main(["config", str(failing)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(identifier(lines[1]))
    assert "stage: expected" in out
    assert identifier(lines[0]) not in out
    assert out.endswith("\n3 passed, 1 failed\n")


def test_one_case_only(failing, lines, capsys) -> None:
    assert main(["config", str(failing), "--case", identifier(lines[0])]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
    assert main(["config", str(failing), "--case", identifier(lines[1])]) == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 1 failed\n")


def test_show_tells_a_case_in_full(plain, lines, capsys) -> None:
    case = json.loads(lines[0])
    assert main(["config", str(plain), "--case", case["id"], "--show"]) == 0
    out = capsys.readouterr().out
    assert f"{case['id']} passed" in out
    assert case["about"] in out
    assert case["input"]["document"].splitlines()[0] in out
    assert "expected" in out
    assert "got" in out
    assert case["expected"]["stage"] in out


def test_show_without_a_case_shows_those_that_fail(failing, lines, capsys) -> None:
    assert main(["config", str(failing), "--show"]) == 1
    out = capsys.readouterr().out
    assert f"{identifier(lines[1])} FAILED" in out
    assert identifier(lines[0]) not in out


def test_manifests_are_shown_a_line_each(capsys) -> None:
    file = str(DATA / "schedule" / "public.jsonl.gz")
    assert main(["schedule", file, "--case", "schedule-100662", "--show"]) == 0
    out = capsys.readouterr().out
    assert "nodes (4)" in out
    assert "\n  Node/node-0 labels=" in out
    assert "\n  Pod/default/p1 labels=" in out
    assert "pods default/p1 nodes node-0 scores" in out


def test_a_script_is_shown_step_by_step(capsys) -> None:
    file = str(DATA / "requeue" / "public.jsonl.gz")
    assert main(["requeue", file, "--case", "requeue-5000003", "--show"]) == 0
    out = capsys.readouterr().out
    assert "\n  1 create object=Pod/default/p0 " in out
    assert "\n  6 fail pod=default/p0 unschedulablePlugins=" in out
    assert "step 6" in out
    assert "addUnschedulable default/p0" in out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "holds no case", id="nothing in it"),
        pytest.param("{", "line 1: not a case", id="no JSON"),
        pytest.param('{"id": "a", "input": {}}', "line 1: not a case", id="nothing expected"),
        pytest.param('{"id": "a", "input": {}, "expected": {}, "more": 1}', "unknown field `more`", id="unknown key"),
        pytest.param(
            '{"id": "a", "input": {"document": ""}, "expected": {"stage": "ok", "wrote": {}}}',
            "unknown field `wrote`",
            id="something expected that nobody compares",
        ),
        pytest.param(
            '{"id": "a", "input": {"document": "", "flags": []}, "expected": {"stage": "ok"}}',
            "unknown field `flags`",
            id="input that nobody reads",
        ),
        pytest.param(
            '{"id": "a", "input": {"document": ""}, "expected": {"stage": "ok"}}\n' * 2,
            "line 2: case a comes twice",
            id="an id twice",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(text, told, tmp_path, capsys) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    assert main(["config", str(path)]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert str(path) in captured.err
    assert captured.out == ""


def test_a_case_with_parts_that_nobody_looks_at_fails(plain, lines, capsys) -> None:
    odd = json.loads(lines[0]) | {"id": "odd"}
    odd["expected"]["moreover"] = 1
    plain.write_bytes(b"\n".join([*lines, json.dumps(odd).encode()]))
    assert main(["config", str(plain)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("odd ")
    assert "unknown field `moreover`" in out
    assert out.endswith("\n4 passed, 1 failed\n")


def test_a_missing_file_and_a_broken_archive_are_refused(tmp_path, lines, capsys) -> None:
    assert main(["config", str(tmp_path / "none.jsonl")]) == 2
    assert "No such file" in capsys.readouterr().err
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(lines[0])[:-9])
    assert main(["config", str(broken)]) == 2
    assert str(broken) in capsys.readouterr().err


def test_an_unknown_case_is_refused(plain, capsys) -> None:
    assert main(["config", str(plain), "--case", "config-0"]) == 2
    assert "has no case 'config-0'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["config"], ["nonsense", "file"], ["config", "file", "--wrong"]], ids=str)
def test_a_wrong_call_is_refused(arguments, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m tests.conformance" in capsys.readouterr().err


def test_it_runs_as_a_module(plain) -> None:
    command = [sys.executable, "-m", "tests.conformance", "config", str(plain)]
    done = subprocess.run(command, cwd=DATA.parents[2], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "4 passed, 0 failed\n"), done.stderr


def test_several_processes_tell_the_same_in_the_same_order(failing, monkeypatch) -> None:
    cases = running.load("config", failing)
    alone = list(running.run_all("config", cases))
    monkeypatch.setattr(running, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(running, "PORTION", 1)
    monkeypatch.setattr(running.os, "cpu_count", lambda: 2)
    assert list(running.run_all("config", cases)) == alone
    assert [outcome.passed for outcome in alone] == [True, False, True, True]
