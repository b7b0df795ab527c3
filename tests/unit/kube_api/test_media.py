"""Accept headers, and pages that a client has already."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.media import LONGEST_ACCEPT, Clause, Page, clauses


@pytest.mark.parametrize(
    ("accept", "types"),
    [
        ("", ["*/*"]),
        ("*", ["*/*"]),
        ("application/json, */*", ["application/json", "*/*"]),
        ("*/*, application/*, application/json", ["application/json", "application/*", "*/*"]),
        ("text/html;q=0.5,application/yaml", ["application/yaml", "text/html"]),
        ("nonsense,a/b/c,/x;q=1,,application/json", ["/x", "application/json"]),
        ("text/plain;q=2,application/json;q=0.1", ["application/json", "text/plain"]),
        ("text/plain;q=nan,application/json;q=0.1", ["application/json", "text/plain"]),
    ],
)
def test_the_most_wanted_comes_first(accept: str, types: list[str]) -> None:
    assert [clause.type for clause in clauses(accept)] == types


def test_parameters() -> None:
    """Those without a value, or with two, are left out."""
    assert clauses("application/json; as=Table;v=v1 ;g=meta.k8s.io;x;y=1=2") == [
        Clause("application/json", 1.0, {"as": "Table", "v": "v1", "g": "meta.k8s.io"})
    ]


def test_what_a_clause_takes() -> None:
    assert all(Clause(type_).takes("application/json") for type_ in ("*/*", "application/*", "application/json"))
    assert not any(Clause(type_).takes("application/json") for type_ in ("text/*", "application/yaml"))


def test_a_header_that_is_too_long_is_refused() -> None:
    clauses("a/b," * (LONGEST_ACCEPT // 4))
    with pytest.raises(ApiError, match="more than 4096 characters") as refused:
        clauses("a/b," * (LONGEST_ACCEPT // 4) + "a")
    assert refused.value.code == 406


@given(st.text("application/json*;,q=. 0123456789aé", max_size=200))
def test_any_header_is_read(accept: str) -> None:
    qualities = [clause.quality for clause in clauses(accept)]
    assert qualities == sorted(qualities, reverse=True)
    assert all(0 <= quality <= 1 for quality in qualities)


def test_a_page_that_the_client_has_is_not_sent_again() -> None:
    page = Page("application/json", b"{}", '"ABC"')
    again = page.unless('"ABC"')
    assert (again.status, again.body, again.etag) == (304, b"", '"ABC"')
    assert page.unless('"XYZ"') == page
    assert page.unless("") == page
    unnamed = Page("application/json", b"{}")
    assert unnamed.unless("") == unnamed
