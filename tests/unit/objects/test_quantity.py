from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.objects import quantity
from podyard.objects.errors import QuantityError

FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC = "unable to parse numeric part of quantity"
SUFFIX = "unable to parse quantity's suffix"
INT64_MAX = 2**63 - 1
FACTORS = {
    "": Fraction(1),
    **{
        suffix: Fraction(10) ** exponent
        for suffix, exponent in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}

numbers = st.builds(
    lambda sign, whole, fraction: sign + whole + (f".{fraction}" if fraction is not None else ""),
    st.sampled_from(["", "+", "-"]),
    st.text("0123456789", min_size=1, max_size=15),
    st.none() | st.text("0123456789", max_size=12),
)
suffixes = st.sampled_from([*FACTORS]) | st.integers(-15, 20).map(lambda exponent: f"e{exponent}")


def exact(number, suffix):
    """The dumb oracle: `number` and `suffix` as a fraction."""
    factor = FACTORS[suffix] if suffix in FACTORS else Fraction(10) ** int(suffix[1:])
    sign = -1 if number[0] == "-" else 1
    whole, _, fraction = number.lstrip("+-").partition(".")
    return sign * (Fraction(int(whole)) + (Fraction(int(fraction), 10 ** len(fraction)) if fraction else 0)) * factor


def away_from_zero(amount):
    magnitude = -(-abs(amount).numerator // abs(amount).denominator)
    return magnitude if amount >= 0 else -magnitude


@given(numbers, suffixes)
def test_parsing_is_exact_and_rounds_away_from_zero_below_a_nano_unit(number, suffix):
    wanted = away_from_zero(exact(number, suffix) * 10**9)
    if suffix.endswith("i"):
        wanted = max(-INT64_MAX * 10**9, min(INT64_MAX * 10**9, wanted))
    assert quantity.parse(number + suffix).nano == wanted


@given(numbers, suffixes)
def test_value_and_milli_round_away_from_zero_and_stop_at_the_rails(number, suffix):
    parsed = quantity.parse(number + suffix)
    amount = Fraction(parsed.nano, 10**9)
    for answer, scaled in ((parsed.value(), amount), (parsed.milli(), amount * 1000)):
        assert answer == max(-INT64_MAX - 1, min(INT64_MAX, away_from_zero(scaled)))


@given(numbers, suffixes)
def test_the_canonical_form_loses_nothing_and_is_a_fixed_point(number, suffix):
    parsed = quantity.parse(number + suffix)
    written = str(parsed)
    again = quantity.parse(written)
    assert again.nano == parsed.nano
    assert str(again) == written
    assert "." not in written
    assert not written.startswith("+")


@pytest.mark.parametrize(
    ("text", "canonical", "value", "milli"),
    [
        ("0", "0", 0, 0),
        ("100m", "100m", 1, 100),
        ("1.5", "1500m", 2, 1500),
        ("1.5Gi", "1536Mi", 1610612736, 1610612736000),
        ("0.5Ki", "512", 512, 512000),
        ("0.1Ki", "102400m", 103, 102400),
        ("1000m", "1", 1, 1000),
        ("100000", "100k", 100000, 100000000),
        ("1024", "1024", 1024, 1024000),
        ("2048Ki", "2Mi", 2097152, 2097152000),
        ("1e3", "1e3", 1000, 1000000),
        ("1E3", "1e3", 1000, 1000000),
        ("12e6", "12e6", 12000000, 12000000000),
        ("1E", "1E", 10**18, INT64_MAX),
        ("0.1m", "100u", 1, 1),
        ("0.5n", "1n", 1, 1),
        ("-1500m", "-1500m", -2, -1500),
        ("9Ei", "9223372036854775807", INT64_MAX, INT64_MAX),
        ("10E", "10E", INT64_MAX, INT64_MAX),
        ("+1", "1", 1, 1000),
        ("1.", "1", 1, 1000),
        (".5", "500m", 1, 500),
        (2, "2", 2, 2000),
        (0.25, "250m", 1, 250),
        (1e21, "1e21", INT64_MAX, INT64_MAX),
    ],
)
def test_amounts_as_kubernetes_reads_and_writes_them(text, canonical, value, milli):
    parsed = quantity.parse(text)
    assert (str(parsed), parsed.value(), parsed.milli()) == (canonical, value, milli)
    assert (quantity.value(text), quantity.milli(text)) == (value, milli)


@pytest.mark.parametrize("text", ["m", ".", "+", "-", "Ki"])
def test_a_missing_number_is_zero_as_in_kubernetes(text):
    assert quantity.parse(text).nano == 0


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", FORMAT),
        ("aoeu", FORMAT),
        ("1.1.M", FORMAT),
        ("1+1.0M", FORMAT),
        ("1 Gi", FORMAT),
        (" 1", FORMAT),
        ("1Gi\n", FORMAT),
        ("0.1mi", SUFFIX),
        ("0.1am", FORMAT),
        ("1i", SUFFIX),
        (".5i", SUFFIX),
        ("-3.01e-", SUFFIX),
        ("1GiB", FORMAT),
        ("1K", SUFFIX),
        ("1kk", SUFFIX),
        ("1MB", FORMAT),
        ("12,5", FORMAT),
        ("١", FORMAT),
        (True, FORMAT),
        (float("nan"), FORMAT),
        (float("inf"), FORMAT),
        ("1" * 300, NUMERIC),
    ],
)
def test_what_is_no_quantity_is_refused_in_the_words_of_kubernetes(text, error):
    with pytest.raises(QuantityError) as caught:
        quantity.parse(text)
    assert caught.value.detail == error


@pytest.mark.parametrize("text", ["1e99999999999999999999", "1e-99999999999999999999"])
def test_absurd_exponents_cost_nothing(text):
    parsed = quantity.parse(text)
    assert parsed.value() == (1 if "-" in text else INT64_MAX)
