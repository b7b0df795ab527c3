"""A new leader's epoch is above all earlier ones, also when the lease's begins anew."""

import pytest

from podyard.proto.placement import BoundPod, Release
from podyard.queue.earlier import Earlier, epoch_above


def bound(attempt: str) -> BoundPod:
    return BoundPod(namespace="default", name="a", uid="u", node="n1", attempt=attempt)


RELEASED = Release(namespace="default", name="b", uid="v", node="n1", reason="completed")


@pytest.mark.parametrize(
    ("lease", "found", "attempts", "known", "epoch"),
    [
        pytest.param(7, 3, ["5-1"], 0, 7, id="the lease's"),
        pytest.param(1, 3, [], 0, 4, id="above records and nominations"),
        pytest.param(1, 3, ["5-1", "30-2"], 0, 31, id="above bindings"),
        pytest.param(30, 3, ["30-2"], 0, 31, id="never the same"),
        pytest.param(1, 0, ["", "x-1", "again-30-2"], 0, 1, id="what is no attempt of a queue counts nothing"),
        pytest.param(1, 3, ["9" * 5_000 + "-1", "9" * 19 + "-1"], 0, 4, id="no number that an int64 holds"),
        pytest.param(1, 3, ["5-1"], 8, 9, id="above what schedulers know"),
    ],
)
def test_an_epoch_never_goes_back(lease: int, found: int, attempts: list[str], known: int, epoch: int):
    placements = [RELEASED, *map(bound, attempts)]
    assert epoch_above(lease, Earlier({}, (), found), placements, known) == epoch
