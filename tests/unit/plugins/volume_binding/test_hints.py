"""What wakes a pod that VolumeBinding rejected."""

from typing import Any

import pytest

from podyard.framework.events import HintAnswer
from podyard.objects.csi_migration import ZONE
from podyard.plugins.hinted import UnexpectedObjectError
from podyard.plugins.volume_binding import hints
from tests.unit.plugins.volume_binding.storage_objects import (
    EPHEMERAL,
    capacity,
    claim,
    csi_node,
    driver,
    pod,
    storage_class,
    uses,
)

QUEUE, SKIP = HintAnswer.QUEUE, HintAnswer.SKIP
ZONES = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
NODE, CLASS, CLAIM = hints.after_csi_node_change, hints.after_class_change, hints.after_claim_change
DRIVER, CAPACITY = hints.after_driver_change, hints.after_capacity_change


@pytest.mark.parametrize(
    ("hint", "old", "new", "answer", "reason"),
    [
        (CLASS, None, storage_class(), QUEUE, "the storage class sc is new"),
        (CLASS, storage_class(), storage_class(topologies=ZONES), QUEUE, "the storage class sc allows other nodes now"),
        (CLASS, storage_class(), storage_class(mode="Immediate"), SKIP, "the storage class sc allows the same nodes as before"),
        (CLAIM, None, claim("mine"), QUEUE, "the pod's claim mine is new or changed"),
        (CLAIM, claim("mine"), claim("mine"), QUEUE, "the pod's claim mine is new or changed"),
        (CLAIM, None, claim("p-v1"), QUEUE, "the pod's claim p-v1 is new or changed"),
        (CLAIM, None, claim("other"), SKIP, "the pod does not use the claim default/other"),
        (CLAIM, None, claim("mine", "far"), SKIP, "the claim far/mine is of another namespace"),
        (NODE, None, csi_node(), QUEUE, "the CSINode n1 is new"),
        (NODE, csi_node(), csi_node("kubernetes.io/aws-ebs"), QUEUE, "CSI drivers serve other in-tree volumes on n1 now"),
        (NODE, csi_node(x=1), csi_node(x=2), SKIP, "CSI drivers serve the same in-tree volumes on n1 as before"),
        (DRIVER, driver("d", told=True), driver("d", told=False), QUEUE, "the room that d has is not looked at any more"),
        (DRIVER, driver("d", told=False), driver("d", told=True), SKIP, "the room that d has is looked at, or not, as before"),
        (DRIVER, driver("e", told=True), driver("e", told=False), SKIP, "the pod has no inline volume of e"),
        (CAPACITY, None, capacity(), QUEUE, "the storage capacity default/k is new"),
        (CAPACITY, capacity("1"), capacity("2"), QUEUE, "volumes of up to 2 bytes can be made by default/k, 1 before"),
        (CAPACITY, capacity("9", "1"), capacity("9", "2"), QUEUE, "volumes of up to 2 bytes can be made by default/k, 1 before"),
        (CAPACITY, capacity("1", "5"), capacity("9", "5"), SKIP, "no larger volumes can be made by default/k than before"),
        (CAPACITY, capacity(), capacity("0"), QUEUE, "volumes of up to 0 bytes can be made by default/k, 0 before"),
        (CAPACITY, capacity("1"), capacity(), SKIP, "no larger volumes can be made by default/k than before"),
    ],
)  # fmt: skip
def test_hints(hint: Any, old: Any, new: Any, answer: HintAnswer, reason: str) -> None:
    waiting = pod("p", uses("mine"), EPHEMERAL, {"csi": {"driver": "d"}})
    assert hint(waiting, old, new) == (answer, reason)


def test_any_volume_and_any_node_wakes_without_a_hint() -> None:
    assert [one.event.label for one in hints.registrations() if one.hint is None] == ["PersistentVolume", "Node"]


def test_what_is_not_expected_raises_and_so_counts_as_queue() -> None:
    with pytest.raises(UnexpectedObjectError):
        hints.after_driver_change(pod(), None, driver("d", told=True))
    with pytest.raises(UnexpectedObjectError):
        hints.after_claim_change(pod(), None, storage_class())
