"""Which pods go first. Source: pkg/controller/controller_utils.go, ActivePodsWithRanks; one case a rule, in
its order."""

from itertools import permutations

import pytest

from podyard.cluster.pods import PodView
from podyard.objects import times
from podyard.proto.facts import Condition, PodStatusFact
from podyard.proto.placement import BoundPod
from podyard.workloads.core import scale_down
from tests.support import objects

NOW = 2_000_000_000.0
HOUR = 3600.0


def pod(
    name: str,
    node: str = "n1",
    phase: str = "Running",
    ready: bool = True,
    cost: str = "",
    ready_s: float = HOUR,
    restarts: int = 0,
    age_s: float = HOUR,
) -> PodView:
    """:param ready_s: ago :param age_s: ago"""
    annotations = {scale_down.DELETION_COST: cost} if cost else {}
    document = objects.pod(
        name,
        namespace="d",
        uid=name,
        metadata={"creationTimestamp": times.rfc3339(NOW - age_s), "annotations": annotations},
        status={"containerStatuses": [{"name": "main", "restartCount": restarts}]},
    )
    condition = Condition(
        type="Ready", status="True" if ready else "False", last_transition_time=times.rfc3339(NOW - ready_s)
    )
    fact = PodStatusFact(namespace="d", name=name, uid=name, node=node, phase=phase, conditions=(condition,))  # pyright: ignore[reportArgumentType]
    bound = BoundPod(namespace="d", name=name, uid=name, node=node) if node else None
    return objects.view(document, bound=bound, status=fact)


RULES = [
    pytest.param([pod("first", node=""), pod("then")], id="unassigned before assigned"),
    pytest.param([pod("first", phase="Pending"), pod("then")], id="pending before running"),
    pytest.param([pod("first", ready=False), pod("then")], id="not ready before ready"),
    pytest.param([pod("first", cost="-5"), pod("second"), pod("then", cost="7")], id="lower deletion cost first"),
    pytest.param([pod("x1"), pod("x2"), pod("then", node="n2")], id="doubled up first"),
    pytest.param([pod("first", ready_s=10), pod("then", ready_s=HOUR)], id="ready for less time first"),
    pytest.param([pod("first", restarts=5), pod("then")], id="more restarts first"),
    pytest.param([pod("first", age_s=10), pod("then", age_s=HOUR)], id="younger first"),
    pytest.param([pod("a", age_s=HOUR), pod("b", age_s=HOUR + 100)], id="ages of one magnitude by uid"),
    pytest.param([pod("first", node="", cost="9"), pod("then", cost="-9")], id="earlier rules win"),
    pytest.param([pod("a", cost="x"), pod("b")], id="a cost that is no number is 0"),
]


@pytest.mark.parametrize("pods", RULES)
def test_order(pods: list[PodView]):
    for order in permutations(pods):
        chosen = scale_down.choose(order, len(pods) - 1, pods, NOW)
        assert [found.name for found in chosen] == [found.name for found in pods[:-1]]


def test_pods_of_sibling_sets_count_for_doubling_up():
    mine = [pod("a", node="n1"), pod("b", node="n2")]
    siblings = [pod("s1", node="n2"), pod("s2", node="n2")]
    assert [found.name for found in scale_down.choose(mine, 1, [*mine, *siblings], NOW)] == ["b"]


def test_all_of_them():
    pods = [pod("a"), pod("b")]
    assert scale_down.choose(pods, 2, pods, NOW) == pods
