import pytest

from podyard.telemetry import traceparent

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
PLAIN = GOOD[:-2]


def test_ids_are_read_and_written_back():
    ids = traceparent.parse(GOOD)
    assert ids == traceparent.SpanIds(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, 1)
    assert str(ids) == GOOD


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("03", True)])
def test_flags_are_bits(flags, sampled):
    ids = traceparent.parse(GOOD[:-2] + flags)
    assert ids is not None
    assert ids.sampled is sampled


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        GOOD.upper(),
        GOOD[:-1],
        "ff" + GOOD[2:],
        "00-" + "0" * 32 + GOOD[35:],
        GOOD[:36] + "0" * 16 + "-01",
        GOOD + "x",
    ],
)
def test_what_is_not_a_traceparent_is_none(text):
    assert traceparent.parse(text) is None


def test_a_later_version_may_carry_more():
    assert traceparent.parse("01" + GOOD[2:] + "-more") is not None


def test_a_child_shares_trace_and_flag_but_not_the_span():
    found = traceparent.parse(traceparent.child(GOOD) or "")
    assert found is not None
    assert found.trace_id == 0x4BF92F3577B34DA6A3CE929D0E0E4736
    assert found.span_id != 0x00F067AA0BA902B7
    assert found.sampled


@pytest.mark.parametrize("text", ["", "nonsense", GOOD[:-1], GOOD + "x", GOOD.replace("-", "_")])
def test_nothing_has_no_child(text):
    assert traceparent.child(text) is None


@pytest.mark.parametrize(
    ("text", "sampled"),
    [(GOOD, True), (GOOD[:-2] + "03", True), (GOOD[:-2] + "02", False), ("", False), ("nonsense1", False)],
)
def test_the_flag_is_seen_without_parsing(text, sampled):
    assert traceparent.is_sampled(text) is sampled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN + "00", PLAIN + "01"),
        (PLAIN + "02", PLAIN + "03"),
        (PLAIN + "01", PLAIN + "01"),
        ("", ""),
        (PLAIN + "zz", PLAIN + "zz"),
    ],
)
def test_a_kept_trace_has_the_lowest_bit_and_all_others(text: str, expected: str) -> None:
    assert traceparent.flagged(text) == expected


def test_a_log_line_names_the_ids() -> None:
    assert traceparent.told(GOOD) == {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}
    assert traceparent.told("") == {}


def test_new_traces_differ_and_carry_the_flag():
    made = [traceparent.new(sampled=True) for _ in range(100)]
    assert len(set(made)) == 100
    assert all(traceparent.parse(text).sampled for text in made)
