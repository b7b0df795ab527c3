"""Values of enumerations as people read them."""

import pytest

from podyard.telling import words


@pytest.mark.parametrize(
    ("value", "told"),
    [("bindError", "bind error"), ("notFound", "not found"), ("nodeGone", "node gone"), ("scheduled", "scheduled")],
)
def test_people_read_words(value: str, told: str):
    assert words.spoken(value) == told
