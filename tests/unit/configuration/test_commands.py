"""`podyard config`, and the commands that take a scheduler configuration."""

import json
from pathlib import Path

import pytest
import yaml

from podyard import configuration
from podyard.cli.__main__ import main
from tests.unit.configuration.documents import HEAD

WRONG = (
    HEAD
    + "parallelism: 0\npercentageOfNodesToScore: 200\nprofiles:\n- plugins: {filter: {enabled: [{name: CinderLimits}]}}\n"
)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    return str(path)


@pytest.fixture
def right(tmp_path: Path) -> str:
    path = tmp_path / "right.yaml"
    path.write_text(HEAD + "percentageOfNodesToScore: 50\npodMaxBackoffSeconds: 30\n")
    return str(path)


def test_validate_shows_every_fault_in_a_table(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "validate", wrong]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["WHERE", "WHAT", "IS", "WRONG"]
    assert [line.split("   ")[0] for line in lines[1:4]] == [
        "parallelism",
        "profiles[0].plugins.filter.enabled[0]",
        "percentageOfNodesToScore",
    ]
    assert "Invalid value: 200: not in valid range [0-100]" in lines[3]
    assert lines[-1] == f"{wrong} is not valid: 3 faults, values are not allowed"


def test_validate_for_programs(wrong: str, right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "validate", wrong, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["stage"], len(found["errors"])) == (False, "validate", 3)
    assert found["errors"][0] == {
        "field": "parallelism",
        "type": "FieldValueInvalid",
        "badValue": 0,
        "detail": "should be an integer value greater than zero",
    }
    assert main(["config", "validate", right, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["valid"]
    assert list(found["effective"]) == ["default-scheduler"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo: 1\n", {"stage": "decode", "strict": True, "errors": [{"field": "foo", "detail": "unknown field"}]}),
        (
            "profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}]}}}]\n",
            {
                "stage": "build",
                "errors": [
                    {
                        "field": "profiles[0].plugins.bind",
                        "detail": "at least one plugin must be enabled; the default one is DefaultBinder",
                    }
                ],
            },
        ),
    ],
)
def test_validate_tells_programs_how_far_it_got(
    text: str, expected: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text(HEAD + text)
    assert main(["config", "validate", str(tmp_path / "a.yaml"), "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"valid": False, **expected}


def test_validate_makes_the_plugins_and_tells_what_they_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{__name__}:Refusing"
    path = tmp_path / "a.yaml"
    path.write_text(f"{HEAD}profiles: [{{plugins: {{preEnqueue: {{enabled: [{{name: '{name}'}}]}}}}}}]\n")
    assert main(["config", "validate", str(path)]) == 1
    assert "its constructor failed: RuntimeError: not today" in capsys.readouterr().out


class Refusing:
    """A plugin that cannot be made."""

    name = "Refusing"

    def __init__(self) -> None:
        raise RuntimeError("not today")

    def pre_enqueue(self, pod: object) -> None:
        """Never asked."""


def test_a_valid_file_is_told_what_of_it_has_no_effect(right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "validate", right]) == 0
    shown = capsys.readouterr().out
    assert f"{right} is valid: 1 profile" in shown
    assert "no effect: percentageOfNodesToScore: all nodes are always judged" in shown


def test_default_writes_the_complete_configuration(right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "default"]) == 0
    written = yaml.safe_load(capsys.readouterr().out)
    assert written == configuration.default().written()
    assert list(written)[:2] == ["apiVersion", "kind"]
    assert main(["config", "default", right, "-o", "json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["percentageOfNodesToScore"], written["podMaxBackoffSeconds"]) == (50, 30)


def test_what_is_written_is_valid_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["config", "default"])
    (tmp_path / "again.yaml").write_text(capsys.readouterr().out)
    assert main(["config", "validate", str(tmp_path / "again.yaml")]) == 0


def test_default_of_a_wrong_file_writes_nothing(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "default", wrong]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count(f"{wrong}: ") == 3


def test_a_file_that_is_not_there_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "validate", "/nowhere.yaml"]) == 2
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["up"], ["run", "queue"], ["run", "scheduler"], ["run", "binder"]])
def test_nothing_is_started_by_a_wrong_configuration(
    words: list[str], wrong: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PODYARD_SCHEDULER_CONFIG", raising=False)
    assert main([*words, "--scheduler-config", wrong]) == 2
    shown = capsys.readouterr().err
    for told in ("parallelism: Invalid value: 0", "CinderLimits", "percentageOfNodesToScore: Invalid value: 200"):
        assert told in shown
