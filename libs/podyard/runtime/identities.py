"""Who asks over HTTPS, and what he may read: users and groups, as Kubernetes' API machinery has them.

A client certificate names its user (CN) and his groups (O). A token stands with both in a file of the form of
`--token-auth-file`: a line `token,user,uid,"group1,group2"` each. What one may read are paths as in RBAC's
nonResourceURLs: whole, or the beginning before a `*`.

Source: apiserver pkg/authentication/request/x509/x509.go (CommonNameUserConversion),
request/bearertoken/bearertoken.go, token/tokenfile/tokenfile.go, v0.36.2.
"""

import csv
import hashlib
import io
import os
import ssl
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

AUTHENTICATED: Final = "system:authenticated"
"""A group of everybody who said who he is. Source: apiserver
pkg/authentication/group/authenticated_group_adder.go, v0.36.2."""
LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a file of tokens: some ten thousand of them."""


class Identity(NamedTuple):
    """Somebody who asks."""

    user: str
    groups: frozenset[str]


def of_certificate(certificate: Mapping[str, Any], now: float) -> Identity | None:
    """Whom a client certificate names; None if nobody, or if it has expired since it was shown.

    :param certificate: verified, as `SSLObject.getpeercert` describes it
    """
    if now > ssl.cert_time_to_seconds(certificate["notAfter"]):
        return None
    named: dict[str, list[str]] = {}
    for part in cast("Sequence[Sequence[tuple[str, str]]]", certificate["subject"]):
        for field, value in part:
            named.setdefault(field, []).append(value)
    users = named.get("commonName")
    if not users or not users[-1]:
        return None
    return Identity(users[-1], frozenset((*named.get("organizationName", ()), AUTHENTICATED)))


def bearer_token(authorization: str) -> str:
    """The token of an `Authorization` header; empty if there is none."""
    words = authorization.strip().split(" ", 2)
    return words[1] if len(words) > 1 and words[0].lower() == "bearer" else ""


class Tokens:
    """Tokens that somebody may show, as digests: a look-up takes no longer for one that is nearly right."""

    def __init__(self, known: Mapping[str, Identity] | None = None) -> None:
        self._known = {_digest(token): identity for token, identity in (known or {}).items()}

    def __len__(self) -> int:
        return len(self._known)

    def identity(self, token: str) -> Identity | None:
        """Whose token it is."""
        return self._known.get(_digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class TokenFileError(ValueError):
    """It cannot be used; says why and what to do, without its path, and never a token."""


def read_tokens(path: str) -> Tokens:
    """The tokens of a file.

    :raises TokenFileError: if others may read it, or a line is wrong
    """
    return Tokens(dict(_records(_private_text(path))))


def _private_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & stat.S_IRWXO:
                raise TokenFileError(f"its mode is {mode:04o}: others may read it; chmod o= takes that away")
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise TokenFileError(f"{error.strerror or error}") from error
    if len(content) > LARGEST_FILE:
        raise TokenFileError(f"it is larger than {LARGEST_FILE} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise TokenFileError("it is not UTF-8 text") from error


def _records(text: str) -> Iterator[tuple[str, Identity]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    seen: set[str] = set()
    try:
        for record in reader:
            if not record:
                continue
            where = f"line {reader.line_num}"
            if len(record) < 3:
                raise TokenFileError(f'{where} has {len(record)} columns; expected token,user,uid,"group1,group2"')
            token, user = record[0], record[1]
            if not token or token.split() != [token]:
                raise TokenFileError(f"{where}: the token is empty or holds spaces")
            if not user:
                raise TokenFileError(f"{where}: no user is named")
            if token in seen:
                raise TokenFileError(f"{where}: the token stands in an earlier line, too")
            seen.add(token)
            groups = record[3].split(",") if len(record) > 3 and record[3] else []
            yield token, Identity(user, frozenset((*groups, AUTHENTICATED)))
    except csv.Error as error:
        raise TokenFileError(f"line {reader.line_num}: {error}") from error


class Access:
    """Which paths users and groups may read."""

    def __init__(self, users: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]]) -> None:
        self._users = users
        self._groups = groups

    def may_read(self, identity: Identity, path: str) -> bool:
        """Whether `path`, as it was asked for, is among those of the user or of one of his groups."""
        paths = [*self._users.get(identity.user, ())]
        for group in identity.groups:
            paths += self._groups.get(group, ())
        return any(_covers(pattern, path) for pattern in paths)


def _covers(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
