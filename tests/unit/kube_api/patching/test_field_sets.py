"""Steps of the paths of managed fields."""

from podyard.kube_api.core.patching import field_sets
from podyard.kube_api.core.patching.field_sets import KEPT_STEPS, LONGEST_KEPT


def test_what_is_too_long_is_read_and_not_remembered() -> None:
    before = field_sets._step.cache_info().currsize
    long = f"f:{'x' * LONGEST_KEPT}"
    assert field_sets._step_of(long) == long
    assert field_sets._ordered(long) == (0, long[2:])
    assert field_sets._step.cache_info().currsize == before
    for number in range(KEPT_STEPS + 10):
        field_sets._step_of(f"f:field-{number}")
    assert field_sets._step.cache_info().currsize == KEPT_STEPS
