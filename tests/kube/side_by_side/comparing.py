"""Answers of two targets beside each other. Pure."""

import difflib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from tests.kube.side_by_side.running import Answer
from tests.kube.side_by_side.script import Script, Step

NONE: Final = Answer("", -1, [], [])
"""Of a step that one side was not asked."""


class Pair(NamedTuple):
    """One step's answers."""

    script: str
    number: int
    """Of the step, from 1."""
    step: Step
    wanted: Answer
    given: Answer

    @property
    def same(self) -> bool:
        """Whether nothing that counts differs."""
        return self.wanted == self.given

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.script} {self.number}: kubectl {self.step.run}"

    def differences(self) -> list[str]:
        """Lines that say what differs, as diff does: `-` is wanted, `+` is given."""
        found: list[str] = []
        if self.wanted.run != self.given.run:
            return [f"-asked {self.wanted.run or 'nothing'}", f"+asked {self.given.run or 'nothing'}"]
        if self.wanted.code != self.given.code:
            found += [f"-exit code {self.wanted.code}", f"+exit code {self.given.code}"]
        for what, wanted, given in (
            ("output", self.wanted.out, self.given.out),
            ("errors", self.wanted.err, self.given.err),
        ):
            if wanted != given:
                found += [f" {what}:", *list(difflib.unified_diff(wanted, given, lineterm="", n=2))[2:]]
        return found


def pairs(script: Script, wanted: Sequence[Answer], given: Sequence[Answer]) -> Iterator[Pair]:
    """Step by step; a step that one side was not asked is a difference."""
    beside = zip_longest(script.steps, wanted, given, fillvalue=None)
    for number, (step, one, other) in enumerate(beside, 1):
        yield Pair(script.name, number, step or Step(run="of another script"), one or NONE, other or NONE)
