"""What wakes a pod that NodeVolumeLimits rejected."""

from typing import Any

import pytest

from podyard.framework.events import HintAnswer
from podyard.objects.csi_migration import TranslationError
from podyard.plugins.node_volume_limits import hints
from tests.unit.plugins.volume_binding.storage_objects import (
    EBS,
    EPHEMERAL,
    attachment,
    claim,
    csi_node,
    pod,
    uses,
)

QUEUE, SKIP = HintAnswer.QUEUE, HintAnswer.SKIP
NODE, DELETED, CLAIM = hints.after_csi_node_update, hints.after_pod_delete, hints.after_claim_add
DETACHED = hints.after_attachment_delete
GCE = {"gcePersistentDisk": {"pdName": "d"}}


@pytest.mark.parametrize(
    ("hint", "old", "new", "answer", "reason"),
    [
        (NODE, csi_node(x=1), csi_node(x=2), QUEUE, "n1 may have 2 volumes of x, 1 before"),
        (NODE, csi_node(), csi_node(x=2), QUEUE, "n1 may have 2 volumes of x, 0 before"),
        (NODE, csi_node(x=2, y=1), csi_node(x=1, y=2), QUEUE, "n1 may have 2 volumes of y, 1 before"),
        (NODE, csi_node(x=2), csi_node(x=None), SKIP, "n1 may have no more volumes of any driver than before"),
        (NODE, csi_node(x=2), csi_node(), SKIP, "n1 may have no more volumes of any driver than before"),
        (DELETED, pod("o", uses("x"), node="n1"), None, QUEUE, "default/o, which may have had volumes attached, is gone"),
        (DELETED, pod("o", EPHEMERAL, nominated="n1"), None, QUEUE, "default/o, which may have had volumes attached, is gone"),
        (DELETED, pod("o", EBS, node="n1"), None, QUEUE, "default/o, which may have had volumes attached, is gone"),
        (DELETED, pod("o", uses("x")), None, SKIP, "default/o, which is gone, was on no node"),
        (DELETED, pod("o", {"emptyDir": {}}, node="n1"), None, SKIP, "default/o, which is gone, had no volumes that are attached"),
        (CLAIM, None, claim("mine"), QUEUE, "the pod's claim mine is there now"),
        (CLAIM, None, claim("p-v1"), QUEUE, "the pod's claim p-v1 is there now"),
        (CLAIM, None, claim("x"), SKIP, "the pod does not use the new claim default/x"),
        (CLAIM, None, claim("mine", "far"), SKIP, "the pod does not use the new claim far/mine"),
        (DETACHED, attachment(), None, QUEUE, "a volume of csi.example.com is no longer attached to n1; the pod has claims"),
    ],
)  # fmt: skip
def test_hints(hint: Any, old: Any, new: Any, answer: HintAnswer, reason: str) -> None:
    assert hint(pod("p", uses("mine"), EPHEMERAL), old, new) == (answer, reason)


@pytest.mark.parametrize(
    ("volume", "attacher", "answer"),
    [
        (EBS, "ebs.csi.aws.com", QUEUE),
        (EBS, "pd.csi.storage.gke.io", SKIP),
        (GCE, "pd.csi.storage.gke.io", QUEUE),
        (EPHEMERAL, "csi.example.com", SKIP),
        ({"emptyDir": {}}, "csi.example.com", SKIP),
    ],
)
def test_inline_volumes_are_woken_by_their_drivers_attachments(
    volume: dict[str, Any], attacher: str, answer: HintAnswer
) -> None:
    assert hints.after_attachment_delete(pod("p", volume), attachment(attacher), None).answer is answer


def test_an_inline_volume_that_cannot_be_translated_is_an_error_and_so_counts_as_queue() -> None:
    odd = pod("p", {"awsElasticBlockStore": {"volumeID": "aws://z/x"}})
    with pytest.raises(TranslationError):
        hints.after_attachment_delete(odd, attachment("other"), None)


def test_any_new_csi_node_wakes_without_a_hint() -> None:
    assert [one.event.label for one in hints.registrations() if one.hint is None] == ["storage.k8s.io/CSINodeAdd"]
