"""Scripts are read strictly."""

import pytest

from tests.kube.side_by_side import recorded, script
from tests.kube.side_by_side.script import ScriptError


@pytest.mark.parametrize(
    "text",
    [
        "title: a\nsteps: [{run: get pods, untl: x}]",
        "title: a\nsteps: [{run: ''}]",
        "title: a\nsteps: [{run: get pods, until: '('}]",
        "title: a\nsteps: [{run: get pods, until: a, ends: b}]",
        'title: a\nsteps: [{run: "get \'pods"}]',
        "title: a\nsteps: [{run: get pods, compare: some}]",
        "steps: [{run: get pods}]",
        "title: [",
        "3",
    ],
)
def test_a_text_that_is_no_script_is_refused(text: str) -> None:
    with pytest.raises(ScriptError, match="script s: "):
        script.read("s", text)


def test_words_are_those_of_a_shell() -> None:
    [step] = script.read("s", "title: a\nsteps:\n- run: >-\n    patch pod x -p '{\"a\": 1}'\n").steps
    assert step.words == ["patch", "pod", "x", "-p", '{"a": 1}']


def test_answers_are_kept_of_every_step_of_every_script() -> None:
    asked = {name: [step.run for step in script.load(name).steps] for name in script.names()}
    kept = {name: [answer.run for answer in answers] for name, answers in recorded.load().items()}
    assert kept == asked, "python -m tests.kube.side_by_side --record"


def test_the_kept_answers_are_of_the_programs_that_are_built() -> None:
    assert recorded.unpack(recorded.FILE)["versions"] == recorded.VERSIONS
