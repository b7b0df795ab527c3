"""What agents say that nodes use, and what of it each container uses."""

import pytest

from podyard.cluster.usages import LASTS_S, Usages, of_containers, shares
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.signals import ContainerUsage, NodeUsage, PodUsage, VolumeUsage

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("total", "weights", "parts"),
    [
        (10, [1], [10]),
        (10, [0, 0], [5, 5]),
        (11, [0, 0], [6, 5]),
        (10, [1, 4], [2, 8]),
        (0, [1, 2], [0, 0]),
        (5, [], []),
    ],
)
def test_shares(total: int, weights: list[int], parts: list[int]):
    assert shares(total, weights) == parts


def used(**more: object) -> PodUsage:
    return PodUsage(namespace="default", name="web", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pod", "parts"),
    [
        (used(memory_bytes=10), [2, 8]),
        (used(memory_bytes=10, containers=(ContainerUsage(name="a", memory_bytes=7),)), [7, 3]),
        (used(containers=(ContainerUsage(name="a", memory_bytes=7), ContainerUsage(name="b", memory_bytes=1))), [7, 1]),
        (used(memory_bytes=10, volumes=(VolumeUsage(name="v"),)), [2, 8]),
    ],
)
def test_what_nobody_names_is_shared_out(pod: PodUsage, parts: list[int]):
    assert of_containers(pod, "memory", ["a", "b"], [1, 4]) == parts


def test_what_was_heard_too_long_ago_is_none():
    usages = Usages()
    usages.take(subjects.usage("n1"), codec.encode(NodeUsage(node="n1", cpu_nanocores=3)), NOW)
    assert usages.fresh("n2", NOW) is None
    found = usages.fresh("n1", NOW + LASTS_S)
    assert found is not None
    assert found.cpu_nanocores == 3
    assert usages.fresh("n1", NOW + LASTS_S + 1) is None


@pytest.mark.parametrize(
    "said", [NodeUsage(node="n2"), NodeUsage(node="n1", pods=(used(memory_bytes=-1),))], ids=["of another", "negative"]
)
def test_what_cannot_be_is_refused(said: NodeUsage):
    with pytest.raises(MessageError):
        Usages().take(subjects.usage("n1"), codec.encode(said), NOW)
