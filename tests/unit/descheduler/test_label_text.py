"""Label selectors in text form."""

import pytest

from podyard.descheduler.core.label_text import LabelTextError, parse

LABELS = {"a": "b", "n": "5", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True), ("a=b", True), ("a==b", True), ("a = c", False), ("a!=b", False), ("x!=b", True),
        ("a", True), ("x", False), ("!x", True), ("! a", False), ("a in (c, b)", True), ("a notin (b)", False),
        ("x notin (b)", True), ("n>4", True), ("n > 5", False), ("n<6", True), ("a>1", False),
        ("a=b,!x,n in (5)", True), ("a=b,x", False), ("empty=", True), ("a=", False), ("a in (,b)", True),
        ("empty in ()", True),
    ],
)  # fmt: skip
def test_matches(text: str, matches: bool):
    assert parse(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ],
)
def test_faults(text: str, sentence: str):
    with pytest.raises(LabelTextError) as error:
        parse(text)
    assert str(error.value) == sentence
