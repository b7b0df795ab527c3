"""Differences of two targets are told step by step."""

from tests.kube.side_by_side.comparing import pairs
from tests.kube.side_by_side.running import Answer
from tests.kube.side_by_side.script import Script, Step

SCRIPT = Script(name="s", title="t", steps=(Step(run="get a"), Step(run="get b")))
A = Answer("get a", 0, ["x", "y"], [])
B = Answer("get b", 1, [], ["no"])


def test_the_same_answers_do_not_differ() -> None:
    assert all(pair.same for pair in pairs(SCRIPT, [A, B], [A, B]))


def test_exit_codes_outputs_and_errors_are_told() -> None:
    first, second = pairs(SCRIPT, [A, B], [A._replace(out=["x", "z"]), B._replace(code=2, err=["never"])])
    assert [line for line in first.differences() if line[0] != "@"] == [" output:", " x", "-y", "+z"]
    assert [line for line in second.differences() if line[0] != "@"] == [
        "-exit code 1", "+exit code 2", " errors:", "-no", "+never",
    ]  # fmt: skip


def test_a_step_that_one_side_was_not_asked_differs() -> None:
    *_, last = pairs(SCRIPT, [A, B], [A])
    assert not last.same
    assert last.differences() == ["-asked get b", "+asked nothing"]
