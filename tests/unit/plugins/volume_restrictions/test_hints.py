"""What wakes a pod that VolumeRestrictions rejected."""

from typing import Any

import pytest

from podyard.framework.events import HintAnswer
from podyard.plugins.volume_restrictions import hints
from tests.unit.plugins.volume_binding.storage_objects import EBS, claim, pod, uses

QUEUE, SKIP = HintAnswer.QUEUE, HintAnswer.SKIP
DELETED, ADDED = hints.after_pod_delete, hints.after_claim_add


@pytest.mark.parametrize(
    ("hint", "old", "new", "answer", "reason"),
    [
        (DELETED, pod("o", EBS), None, QUEUE, "default/o, which used the AWS EBS volume vol-1, is gone"),
        (DELETED, pod("o", uses("mine")), None, QUEUE, "default/o, which used the claim mine, is gone"),
        (DELETED, pod("o", uses("x")), None, SKIP, "default/o, which is gone, used none of the pod's disks and claims"),
        (DELETED, pod("o", EBS, namespace="far"), None, SKIP, "far/o, which is gone, is of another namespace"),
        (ADDED, None, claim("mine"), QUEUE, "the pod's claim mine is there now"),
        (ADDED, None, claim("p-v2"), SKIP, "the pod does not use the new claim default/p-v2"),
        (ADDED, None, claim("mine", "far"), SKIP, "the pod does not use the new claim far/mine"),
    ],
)
def test_hints(hint: Any, old: Any, new: Any, answer: HintAnswer, reason: str) -> None:
    assert hint(pod("p", uses("mine"), EBS), old, new) == (answer, reason)


def test_any_new_node_wakes_without_a_hint() -> None:
    assert [one.event.label for one in hints.registrations() if one.hint is None] == ["NodeAdd"]
