"""Which images a node collects by itself, and which its eviction manager has collected."""

from typing import Any

import msgspec
import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core.images import Collection, ImagePolicy, Images
from podyard.node_agent.core.node_config import NodeConfig, NodeConfigs
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.selection import Selection
from podyard.proto.signals import Failing, NodeSignals, PodUsage, SignalValue, Unused, UnusedImage
from tests.unit.node_agent.make import GIBIBYTE, Playing, node, pod, view

CAPACITY = 1000
"""Of the image file system, bytes: a per cent is ten."""


def image(name: str, size: int, pulled_s: float = 1000.0, used_s: float | None = 500.0) -> UnusedImage:
    return UnusedImage(name=name, disk_bytes=size, inodes=size, pulled_s=pulled_s, used_s=used_s)


def shelf(*single: UnusedImage, lump: int = 0, now: float = 0.0) -> Images:
    return Images(NodeSignals(node="n1", images=Unused(disk_bytes=lump, inodes=lump), single_images=single), now)


def collect(images: Images, used: int, now: float = 0.0, **policy: Any) -> Collection:
    """With so many bytes used of 1000, by an agent that has looked on since -10000."""
    return images.collect(CAPACITY - used, CAPACITY, ImagePolicy(**policy), now, -10_000.0)


@pytest.mark.parametrize(
    ("used", "freed"),
    [(849, 0), (850, 50), (851, 51), (1000, 200)],
    ids=["just below", "at the high one", "above", "full"],
)
def test_from_the_high_percentage_on_images_go_down_to_the_low_one(used: int, freed: int):
    """The kubelet cuts what is left to whole per cents, so 84.9 % is 85 % used; 84.0 % is not."""
    expected = 49 if used == 849 else freed
    assert collect(shelf(lump=500), used) == Collection(for_space=expected)
    assert collect(shelf(lump=500), 840) == Collection()


def test_single_images_go_as_a_whole_those_first_that_were_used_longest_ago():
    images = shelf(
        image("recent", 31, pulled_s=5000, used_s=10),
        image("never", 30, used_s=None, pulled_s=300),
        image("long ago", 30, used_s=900),
    )
    assert collect(images, 850).for_space == 60, "one of 30 is not enough for 50"
    assert collect(images, 850) == Collection(
        for_space=31,
        fault="Insufficient free disk space on the node's image filesystem (85% of 1000 B used). Failed to free "
        "sufficient space by deleting unused images (freed 31 bytes). Investigate disk usage, as it could be used by "
        "active images, logs, volumes, or other data.",
        reason="FreeDiskSpaceFailed",
    ), "the one of recent use was left"
    assert (images.freed_bytes, images.freed_inodes) == (91, 91)


def test_of_images_that_were_never_used_the_one_pulled_first_goes():
    images = shelf(image("b", 60, used_s=None, pulled_s=200), image("a", 70, used_s=None, pulled_s=300))
    assert collect(images, 850).for_space == 70


def test_what_is_no_single_image_goes_first_and_in_part():
    images = shelf(image("app", 100), lump=40)
    assert collect(images, 820, high_percent=82) == Collection(for_space=20)
    assert images.freed_inodes == 20
    assert collect(images, 850).for_space == 120


def test_an_image_stays_until_it_is_old_enough_whatever_needs_its_room():
    images = shelf(image("app", 100, pulled_s=100, used_s=None))
    assert collect(images, 900, now=19.9).for_space == 0
    images.take_unused(ImagePolicy(), 19.9)
    assert images.freed_bytes == 0
    images.take_unused(ImagePolicy(), 20.0)
    assert images.freed_bytes == 100


def test_an_image_that_nobody_used_for_too_long_goes_without_need():
    images = shelf(image("old", 10, used_s=101), image("new", 10, used_s=100), image("never", 10, used_s=None))
    assert collect(images, 0, max_age_s=100.0) == Collection(for_age=20)
    assert collect(images, 0, now=0.1, max_age_s=100.0) == Collection(for_age=10)


def test_age_counts_once_the_agent_has_looked_on_for_so_long():
    images, policy = shelf(image("old", 10, used_s=None)), ImagePolicy(max_age_s=100.0)
    assert images.collect(1000, 1000, policy, 0.0, -100.0) == Collection()
    assert images.collect(1000, 1000, policy, 0.1, -100.0) == Collection(for_age=10)


def test_what_age_frees_counts_before_room_is_looked_for():
    assert collect(shelf(image("old", 100, used_s=900)), 860, max_age_s=500.0) == Collection(for_age=100)


def test_a_file_system_without_capacity_is_told():
    assert shelf(lump=5).collect(0, 0, ImagePolicy(), 0.0, 0.0) == Collection(
        fault="invalid capacity 0 on image filesystem", reason="InvalidDiskCapacity"
    )


@pytest.mark.parametrize(
    ("policy", "runs"),
    [
        (ImagePolicy(), True),
        (ImagePolicy(high_percent=100), False),
        (ImagePolicy(high_percent=100, max_age_s=60.0), True),
        (ImagePolicy(high_percent=99), True),
    ],
)
def test_a_node_that_may_be_full_and_whose_images_do_not_age_collects_none(policy: ImagePolicy, runs: bool):
    assert policy.runs == runs


# ---- of a node ---------------------------------------------------------------------------------------------


def playing(**policy: Any) -> Playing:
    """A node of an agent that looks on since second 100."""
    configs = NodeConfigs(NodeConfig(images=ImagePolicy(**policy)))
    found = Playing(Selection(), configs, NodeRhythm())
    found.node_seen(node(amounts={"ephemeral-storage": "100Gi"}), (), 100.0)
    return found


def full(left: int, **said: Any) -> NodeSignals:
    """So many GiB left, of 100; a standing word."""
    value = SignalValue(available=left * GIBIBYTE, capacity=100 * GIBIBYTE)
    return NodeSignals(node="n1", signals={"nodefs.available": value}, standing=True, **said)


def run(found: Playing, begin: int, end: int) -> list[tuple[int, effects.Effect]]:
    """What comes of images, and when, with a look each second."""
    wanted = effects.ImagesCollected, effects.Announce
    return [
        (second, one) for second in range(begin, end) for one in found.tick(float(second)) if isinstance(one, wanted)
    ]


def left(found: Playing, now: float) -> int:
    """GiB."""
    held = found.nodes.get("n1")
    assert held is not None
    usage = held.usage(now)
    assert usage is not None
    return usage.signals["nodefs.available"].available // GIBIBYTE


def test_a_node_collects_images_every_five_minutes_before_anything_is_under_pressure():
    found = playing()
    found.observe(full(12, images=Unused(disk_bytes=50 * GIBIBYTE)), 150.0)
    (collected,) = run(found, 151, 701)
    assert (collected[0], collected[1][1:]) == (400, (0, 8 * GIBIBYTE)), "five minutes after its agent began"
    assert left(found, 700.0) == 20
    again = full(12, images=Unused(disk_bytes=50 * GIBIBYTE))
    found.observe(msgspec.structs.replace(again, at=710.0), 710.0)
    assert [at for at, _ in run(found, 711, 1100)] == [1000], "new signals, new images, the same beat"


def test_too_few_images_are_told_at_each_collection_and_again_and_again_as_a_failure():
    found = playing()
    found.observe(full(12, images=Unused(disk_bytes=GIBIBYTE)), 150.0)
    told = [(at, getattr(one, "reason", "collected")) for at, one in run(found, 151, 1001)]
    assert told == [
        (400, "collected"), (400, "FreeDiskSpaceFailed"), (700, "FreeDiskSpaceFailed"), (700, "ImageGCFailed"),
        (1000, "FreeDiskSpaceFailed"), (1000, "ImageGCFailed"),
    ]  # fmt: skip


def test_a_node_that_cannot_collect_is_told_from_the_second_time_on():
    found = playing()
    cannot = (Failing(what="images", why="read-only"),)
    found.observe(full(12, images=Unused(disk_bytes=50 * GIBIBYTE), failing=cannot), 150.0)
    ((at, told),) = run(found, 151, 900)
    assert isinstance(told, effects.Announce)
    assert (at, told.reason, told.message) == (700, "ImageGCFailed", "read-only")


def test_on_a_reading_of_no_use_only_age_has_images_go():
    """As on a kubelet whose statistics fail. What was measured once is old after three looks."""
    found = playing(max_age_s=590.0)
    images = (image("old", GIBIBYTE, used_s=300), image("new", 50 * GIBIBYTE, used_s=0))
    measured = msgspec.structs.replace(full(12, single_images=images), standing=False)
    found.observe(measured, 150.0)
    (_, collected), (at, told) = run(found, 151, 701)
    assert isinstance(collected, effects.ImagesCollected)
    assert (collected.for_age, collected.for_space) == (GIBIBYTE, 0)
    assert isinstance(told, effects.Announce)
    assert (at, told.reason, told.message) == (700, "ImageGCFailed", "what was measured is older than 30 s")


def test_where_nobody_says_what_is_left_age_has_images_go_all_the_same():
    found = playing(max_age_s=250.0)
    found.observe(NodeSignals(node="n1", images=Unused(disk_bytes=GIBIBYTE)), 150.0)
    ((at, collected),) = run(found, 151, 1000)
    assert (at, collected[1:]) == (400, (GIBIBYTE, 0))


def test_what_pods_use_that_are_gone_takes_no_room_from_images():
    found = playing()
    used = PodUsage(namespace="default", name="a", disk_bytes=88 * GIBIBYTE)
    found.pod_seen(view(pod("a")), 100.0, 100.0)
    found.tick(102.0)
    lump = Unused(disk_bytes=60 * GIBIBYTE)
    found.observe(NodeSignals(node="n1", pods=(used,), images=lump, standing=True), 150.0)
    found.pod_gone("uid-a", 200.0)
    assert run(found, 201, 701) == [], "all is left"


def test_a_node_without_images_never_wakes_the_agent_for_them():
    found = playing()
    found.observe(full(12, images=Unused(disk_bytes=50 * GIBIBYTE)), 150.0)
    found.observe(full(12), 160.0)
    assert run(found, 161, 1200) == []


def test_a_node_whose_configuration_switches_collection_off_collects_none():
    found = playing(high_percent=100)
    found.observe(full(12, images=Unused(disk_bytes=50 * GIBIBYTE)), 150.0)
    assert run(found, 151, 1200) == []


def test_an_eviction_manager_leaves_images_that_are_too_young_and_a_pod_may_go():
    """As the kubelet's: DeleteUnusedImages minds the minimum age."""
    found = playing()
    young = full(1, single_images=(image("app", 50 * GIBIBYTE, pulled_s=0),))
    found.observe(young, 150.0)
    assert left(found, 150.0) == 1
    found.tick(270.0)
    assert left(found, 270.0) == 51
