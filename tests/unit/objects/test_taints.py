import pytest

from podyard.objects import taints
from podyard.objects.affinity import Taint, Toleration

TAINT = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "a100"}, True),
        ({"key": "gpu", "value": "h100"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "a100"}, True),
        ({}, False),
        ({"key": "gpu", "operator": "Gt", "value": "1"}, False),
        ({"key": "gpu", "operator": "Bogus", "value": "a100"}, False),
    ],
)
def test_tolerates(toleration, tolerates):
    assert taints.tolerates(Toleration(**toleration), TAINT) is tolerates


def test_the_first_untolerated_taint_of_the_asked_effects_is_found():
    soft = Taint(key="soft", effect="PreferNoSchedule")
    hard = Taint(key="hard", effect="NoExecute")
    listed = (soft, TAINT, hard)
    tolerations = (Toleration(key="gpu", operator="Exists"),)
    assert taints.untolerated(listed, tolerations) == hard
    assert taints.untolerated(listed, tolerations, ("PreferNoSchedule",)) == soft
    assert taints.untolerated(listed, (Toleration(operator="Exists"),)) is None
    assert taints.untolerated((), ()) is None
