"""Label selectors in text form; what each text matches, and each sentence, is labels.Parse's of apimachinery
v0.34.1."""

import pytest

from podyard.objects.errors import LabelTextError
from podyard.objects.label_text import parse, text_of

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
        ("a==b,==", "found '==', expected: identifier after ','"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("x/=b", 'unable to parse requirement: <nil>: Invalid value: "x/": name part must be non-empty'),
        (
            "a!=" + "x" * 64,
            f'unable to parse requirement: values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
        ),
    ],
)
def test_faults(text: str, sentence: str):
    with pytest.raises(LabelTextError) as error:
        parse(text)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""), ("a==b", "a=b"), ("a!=b", "a!=b"), ("b, !a", "!a,b"), ("a in (c, b)", "a in (b,c)"),
        ("a notin (b)", "a!=b"), ("a notin (c,b)", "a notin (b,c)"), ("n > 5", "n>5"), ("n<6", "n<6"), ("a=", "a="),
    ],
)  # fmt: skip
def test_a_selector_is_written_sorted_and_in_its_shortest_form(text: str, written: str):
    assert text_of(parse(text)) == written
    assert parse(written) == parse(text)
