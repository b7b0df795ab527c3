"""`/livez`, `/healthz` and `/readyz` as texts, in the form of Kubernetes' API machinery.

One thing differs: a check says its reason, and where help stands, where the API machinery says
`reason withheld`.
Source: apiserver pkg/server/healthz/healthz.go, v0.36.2.
"""

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from podyard.runtime.pages import TEXT, Answer


class Found(NamedTuple):
    """A check as it was found."""

    name: str
    ok: bool
    reason: str = ""
    """What is waited for or wrong; or, of one that is ok, in which way it is."""


OK: Final = "ok"
_PAGE: Final = "docs/checks.md"
"""What to do: a section for each check."""

HELP: Final = f"; see {_PAGE}"
"""Begins what stands after a reason."""


def of_all(name: str, checks: Sequence[Found], *, verbose: bool = False, exclude: Sequence[str] = ()) -> Answer:
    """The answer of `/NAME`: `ok`, or a line for each check if one fails or `verbose` asks for it.

    :param exclude: checks that do not count; one that is not there is warned of
    """
    lines: list[str] = []
    failed = False
    for check in checks:
        if check.name in exclude:
            lines.append(f"[+]{check.name} excluded: ok")
        elif check.ok:
            lines.append(f"[+]{check.name} ok{_after_colon(check.reason)}")
        else:
            failed = True
            lines.append(f"[-]{check.name} failed{_after_colon(check.reason)}{_help(check.name)}")
    unknown = sorted({*exclude} - {check.name for check in checks})
    if unknown:
        quoted = ",".join(json.dumps(one, ensure_ascii=False) for one in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if failed:
        return _text(HTTPStatus.INTERNAL_SERVER_ERROR, "\n".join((*lines, f"{name} check failed\n")))
    return _text(HTTPStatus.OK, "\n".join((*lines, f"{name} check passed\n")) if verbose else OK)


def of_one(checks: Sequence[Found], name: str) -> Answer | None:
    """The answer of `/.../NAME`; None if there is no such check."""
    for check in checks:
        if check.name == name:
            if check.ok:
                return _text(HTTPStatus.OK, OK)
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error{_after_colon(check.reason)}\n")
    return None


def _help(name: str) -> str:
    """Where it is said what to do: the page, and the command that shows it where no checkout is."""
    return f"{HELP}#{name.lower()}, or run: podyard checks {name}"


def _after_colon(reason: str) -> str:
    """On the same line: what a server or a client once said may not look like a check of its own."""
    return f": {' '.join(reason.split())}" if reason else ""


def _text(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, TEXT, text.encode())
