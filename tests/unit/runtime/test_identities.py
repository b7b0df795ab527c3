"""Who asks, by certificate or token, and what he may read."""

from pathlib import Path
from typing import Any

import pytest

from podyard.runtime.identities import (
    AUTHENTICATED,
    Access,
    Identity,
    TokenFileError,
    bearer_token,
    of_certificate,
    read_tokens,
)

ENDS = 1_800_000_000.0
"""Jan 15 08:00:00 2027 GMT."""


def certificate(**subject: str | tuple[str, ...]) -> dict[str, Any]:
    """As `SSLObject.getpeercert` describes one."""
    parts = tuple(
        ((field, value),)
        for field, values in subject.items()
        for value in ((values,) if isinstance(values, str) else values)
    )
    return {"subject": parts, "notAfter": "Jan 15 08:00:00 2027 GMT"}


def test_a_certificate_names_a_user_and_his_groups() -> None:
    shown = certificate(organizationName=("system:masters", "people"), commonName="jane")
    assert of_certificate(shown, ENDS) == Identity("jane", frozenset({"system:masters", "people", AUTHENTICATED}))


def test_a_certificate_that_has_ended_or_names_nobody_is_none() -> None:
    assert of_certificate(certificate(commonName="jane"), ENDS + 1) is None
    assert of_certificate(certificate(organizationName="people"), ENDS) is None
    assert of_certificate(certificate(commonName=""), ENDS) is None


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        (" bearer abc", "abc"),
        ("Bearer abc def", "abc"),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("abc", ""),
        ("", ""),
    ],
)
def test_the_token_of_a_header(header: str, token: str) -> None:
    assert bearer_token(header) == token


def written(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "tokens.csv"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_tokens_stand_in_a_file_with_users_and_groups(tmp_path: Path) -> None:
    text = 'secret1,jane,1,"system:masters,people"\n\nsecret2,prometheus,2,system:monitoring\nsecret3,nobody,3\n'
    tokens = read_tokens(written(tmp_path, text))
    assert len(tokens) == 3
    assert tokens.identity("secret1") == Identity("jane", frozenset({"system:masters", "people", AUTHENTICATED}))
    assert tokens.identity("secret2") == Identity("prometheus", frozenset({"system:monitoring", AUTHENTICATED}))
    assert tokens.identity("secret3") == Identity("nobody", frozenset({AUTHENTICATED}))
    for other in ("", "secret", "secret11", "jane"):
        assert tokens.identity(other) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hush,jane\n", "line 1 has 2 columns; expected token,user,uid"),
        ("hush,jane,1\nhush,joe,2\n", "line 2: the token stands in an earlier line, too"),
        (",jane,1\n", "line 1: the token is empty"),
        ("hush hush,jane,1\n", "line 1: the token is empty or holds spaces"),
        ("hush,,1\n", "line 1: no user is named"),
        ('hush,"jane,1\n', "line 1: "),
    ],
)
def test_a_wrong_line_is_told_without_its_token(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(TokenFileError) as raised:
        read_tokens(written(tmp_path, text))
    assert told in str(raised.value)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(("mode", "is_read"), [(0o600, True), (0o440, True), (0o604, False), (0o644, False)])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int, *, is_read: bool) -> None:
    path = written(tmp_path, "hush,jane,1\n", mode)
    if is_read:
        assert len(read_tokens(path)) == 1
        return
    with pytest.raises(TokenFileError, match=f"its mode is {mode:04o}: others may read it; chmod o="):
        read_tokens(path)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match="No such file"):
        read_tokens(str(tmp_path / "missing"))
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    binary.chmod(0o600)
    with pytest.raises(TokenFileError, match="not UTF-8"):
        read_tokens(str(binary))
    binary.write_bytes(b"a" * 1_048_577)
    with pytest.raises(TokenFileError, match="larger than 1048576 bytes"):
        read_tokens(str(binary))


@pytest.mark.parametrize(
    ("user", "groups", "path", "may"),
    [
        ("jane", ("system:masters",), "/debug/queue", True),
        ("prometheus", ("system:monitoring",), "/metrics", True),
        ("prometheus", ("system:monitoring",), "/metrics/", False),
        ("prometheus", ("system:monitoring",), "/metricsx", False),
        ("prometheus", ("system:monitoring",), "/configz", False),
        ("system:masters", (), "/configz", False),
        ("joe", (), "/debug/queue", True),
        ("joe", (), "/debug", False),
        ("joe", ("system:monitoring",), "/metrics", True),
        ("nobody", (), "/metrics", False),
    ],
)
def test_paths_may_be_read_by_users_and_groups(user: str, groups: tuple[str, ...], path: str, *, may: bool) -> None:
    access = Access({"joe": ("/debug/*",)}, {"system:masters": ("*",), "system:monitoring": ("/metrics",)})
    assert access.may_read(Identity(user, frozenset(groups)), path) == may
