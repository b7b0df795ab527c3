"""What wakes a pod that VolumeZone rejected."""

from typing import Any

import pytest

from podyard.framework.events import HintAnswer
from podyard.objects.csi_migration import ZONE
from podyard.plugins.volume_zone import hints
from tests.unit.plugins.volume_binding.storage_objects import EPHEMERAL, claim, pod, storage_class, uses, volume

QUEUE, SKIP = HintAnswer.QUEUE, HintAnswer.SKIP
CLASS, CLAIM, VOLUME = hints.after_class_add, hints.after_claim_change, hints.after_volume_change
HERE, THERE = volume(**{ZONE: "a__b"}), volume(**{ZONE: "b"})


@pytest.mark.parametrize(
    ("hint", "old", "new", "answer", "reason"),
    [
        (CLASS, None, storage_class(mode="WaitForFirstConsumer"), QUEUE, "volumes of the new class sc wait for the first pod"),
        (CLASS, None, storage_class(mode="Immediate"), SKIP, "volumes of the new class sc do not wait for the first pod"),
        (CLASS, None, storage_class(), SKIP, "volumes of the new class sc do not wait for the first pod"),
        (CLAIM, None, claim("mine"), QUEUE, "the pod's claim mine is new or changed"),
        (CLAIM, None, claim("p-v1"), SKIP, "the pod does not use the claim default/p-v1"),
        (CLAIM, None, claim("mine", "far"), SKIP, "the pod does not use the claim far/mine"),
        (VOLUME, None, HERE, QUEUE, "the volume pv is new"),
        (VOLUME, HERE, THERE, QUEUE, "the volume pv is in other zones or regions now"),
        (VOLUME, HERE, volume(**{ZONE: "b__a"}), SKIP, "the volume pv is in the same zones and regions as before"),
        (VOLUME, volume(), volume(disk="x"), SKIP, "the volume pv is in the same zones and regions as before"),
    ],
)  # fmt: skip
def test_hints(hint: Any, old: Any, new: Any, answer: HintAnswer, reason: str) -> None:
    assert hint(pod("p", uses("mine"), EPHEMERAL), old, new) == (answer, reason)


def test_nodes_wake_without_a_hint() -> None:
    assert [one.event.resource for one in hints.registrations() if one.hint is None] == ["Node"]
