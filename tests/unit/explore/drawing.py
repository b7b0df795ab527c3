"""A property that tells what it draws, for the tests of profiles: `DRAWN_TO` names the file."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

if os.environ.get("WITH_MORE_MODULES"):  # whose constants Hypothesis would draw
    import tests.simulation.world  # noqa: F401
    from tests.conformance import suites  # noqa: F401


@given(st.lists(st.text() | st.integers()), st.floats())
def test_draws(values: list[str | int], number: float) -> None:
    with Path(os.environ["DRAWN_TO"]).open("a") as file:
        file.write(f"{values!r} {number!r}\n")
