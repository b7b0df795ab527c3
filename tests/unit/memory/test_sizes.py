"""How many bytes a value takes."""

import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest

from podyard.memory.sizes import bytes_of
from podyard.objects import decoding


def test_what_is_held_twice_counts_once() -> None:
    text = "x" * 1000
    assert bytes_of((text, text)) < bytes_of((text, "y" * 1000)) - 900


def test_arrays_count_their_cells() -> None:
    assert bytes_of(np.zeros(10_000, dtype=np.int64)) >= 80_000


def _pod() -> Any:
    labels = {f"key-{number}": f"value-{number}" for number in range(500)}
    containers = [
        {"name": f"c-{number}", "image": f"image-{number}", "resources": {"requests": {"cpu": f"{number}m"}}}
        for number in range(200)
    ]
    document = {"metadata": {"name": "a", "labels": labels}, "spec": {"containers": containers}}
    return decoding.decode("pods", msgspec.json.encode(document))


def _nested() -> Any:
    return {str(one): [{"a": one, "b": [str(one + 1000)] * 3}] for one in range(2000)}


@pytest.mark.parametrize("make", [_pod, _nested])
def test_it_is_what_the_value_takes(make: Any) -> None:
    make()
    tracemalloc.start()
    try:
        made = make()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.7 * taken < bytes_of(made) < 1.5 * taken
