"""Numbers and durations in Go's spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.objects.go_syntax import duration_text, parse_duration, parse_float


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("-0", 0), ("1m30s", 90), ("1.5h", 5400), ("500ms", 0.5), ("-2s", -2), ("+1s", 1), (".5s", 0.5),
     ("1.s", 1), ("3us", 3e-6), ("3µs", 3e-6), ("1h0m0.25s", 3600.25)],
)  # fmt: skip
def test_durations(text: str, seconds: float):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", 'time: invalid duration ""'),
        ("soon", 'time: invalid duration "soon"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1s ", 'time: unknown unit "s " in duration "1s "'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
    ],
)
def test_what_is_no_duration(text: str, sentence: str):
    with pytest.raises(ValueError, match=r"^time: ") as error:
        parse_duration(text)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (90, "1m30s"), (86400, "24h0m0s"), (0.5, "500ms"), (1.5, "1.5s"), (3600.25, "1h0m0.25s"), (-90, "-1m30s"),
     (3e-6, "3µs"), (1e-9, "1ns"), (0.0015, "1.5ms")],
)  # fmt: skip
def test_duration_text(seconds: float, text: str):
    assert duration_text(seconds) == text


@given(st.integers(-(10**6), 10**6).map(lambda milli: milli / 1000))
def test_a_duration_survives_being_written(seconds: float):
    assert parse_duration(duration_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10", 10),
        ("+1.5", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1e2", 100),
        ("inf", float("inf")),
        ("0x1p4", 16),
        ("0x_1_0p0", 16),
    ],
)
def test_floats(text: str, number: float):
    assert parse_float(text) == number


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1_000", "ten", "1,5", "0x10", "1e", "--1"])
def test_what_is_no_float(text: str):
    with pytest.raises(ValueError, match=r"strconv\.ParseFloat: parsing .*: invalid syntax"):
        parse_float(text)
