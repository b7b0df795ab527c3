"""Texts of /livez, /healthz and /readyz, as the API machinery writes them (apiserver healthz.go, v0.36.2)."""

import pytest

from podyard.runtime.probes import Found, of_all, of_one

FINE = [Found("ping", True), Found("leader", True, "stands by: another one leads")]
BROKEN = [Found("nats", False, "waiting for NATS"), Found("ping", True), Found("view", False)]


def told(*args: object, **wanted: object) -> tuple[int, str]:
    answer = of_all(*args, **wanted)  # type: ignore[arg-type]
    return answer.status, answer.body.decode()


def test_ok_is_all_that_is_said_unless_somebody_wants_more() -> None:
    assert told("livez", FINE) == (200, "ok")
    assert told("livez", FINE, verbose=True) == (
        200,
        "[+]ping ok\n[+]leader ok: stands by: another one leads\nlivez check passed\n",
    )


def test_a_failure_is_always_told_with_its_reason() -> None:
    failed = (
        "[-]nats failed: waiting for NATS; see docs/checks.md#nats, or run: podyard checks nats\n",
        "[-]view failed; see docs/checks.md#view, or run: podyard checks view\n",
    )
    expected = f"{failed[0]}[+]ping ok\n{failed[1]}readyz check failed\n"
    assert told("readyz", BROKEN) == (500, expected)


def test_what_is_excluded_does_not_count() -> None:
    assert told("readyz", BROKEN, exclude=["nats", "view"]) == (200, "ok")
    assert told("readyz", BROKEN, exclude=["nats"], verbose=True) == (
        500,
        "[+]nats excluded: ok\n[+]ping ok\n[-]view failed; see docs/checks.md#view, or run: podyard checks view\nreadyz check failed\n",
    )


def test_what_cannot_be_excluded_is_warned_of() -> None:
    _, text = told("livez", FINE[:1], exclude=["ping", "b", 'a"'], verbose=True)
    assert text.splitlines() == [
        "[+]ping excluded: ok",
        'warn: some health checks cannot be excluded: no matches for "a\\"","b"',
        "livez check passed",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ping", (200, b"ok")),
        ("nats", (500, b"internal server error: waiting for NATS\n")),
        ("view", (500, b"internal server error\n")),
    ],
)
def test_one_check_is_asked_alone(name: str, expected: tuple[int, bytes]) -> None:
    answer = of_one(BROKEN, name)
    assert answer is not None
    assert (answer.status, answer.body) == expected


def test_of_a_check_that_is_not_there_nothing_is_said() -> None:
    assert of_one(BROKEN, "other") is None


def test_a_reason_is_one_line_whatever_it_quotes() -> None:
    assert told("readyz", [Found("nats", False, "no\n[+]nats ok\r\nreadyz")]) == (
        500,
        "[-]nats failed: no [+]nats ok readyz; see docs/checks.md#nats, or run: podyard checks nats\nreadyz check failed\n",
    )
