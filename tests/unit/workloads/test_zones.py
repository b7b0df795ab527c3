"""How fast nodes are given up, by the state of their zone."""

import pytest

from podyard.workloads.core.zones import Bucket, Rates, Zones, zone_of
from tests.unit.workloads.node_stage import Stage

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ""),
        ({"other": "a"}, ""),
        ({ZONE: "a"}, ":\0:a"),
        ({REGION: "r"}, "r:\0:"),
        ({ZONE: "a", REGION: "r"}, "r:\0:a"),
        ({ZONE: "a", BETA_ZONE: "b"}, ":\0:b"),
    ],
)
def test_zone_of_a_node(labels: dict[str, str], zone: str) -> None:
    assert zone_of(labels) == zone


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        (1, 0, "normal"), (0, 1, "full"), (0, 9, "full"), (1, 2, "normal"), (1, 3, "partial"),
        (9, 11, "partial"), (9, 10, "normal"), (45, 55, "partial"), (46, 54, "normal"), (0, 0, "normal"),
    ],
)  # fmt: skip
def test_state_of_a_zone(ready: int, not_ready: int, state: str) -> None:
    zones = Zones(Rates())
    zones.keep(["", "well"], 0.0)
    zones.judge({"": (ready, not_ready), "well": (1, 0)}, 0.0)
    assert zones.states()[""] == state


def test_a_bucket_has_one_token_at_a_time() -> None:
    bucket = Bucket(0.1, 100.0)
    assert bucket.take(100.0)
    assert not bucket.take(109.9)
    assert bucket.take(200.0)
    assert not bucket.take(209.9), "tokens do not add up"
    bucket.become(0.01, 205.0)
    assert bucket.next_at() == 305.0
    bucket.become(0.0, 205.0)
    assert bucket.next_at() == float("inf")
    bucket.become(0.1, 500.0)
    assert bucket.next_at() == 510.0


def nodes(stage: Stage, count: int, zone: str, prefix: str = "n") -> list[str]:
    names = [f"{prefix}{number:03}" for number in range(count)]
    for name in names:
        stage.node(name, labels={ZONE: zone} if zone else {})
    return names


def test_nodes_of_a_zone_are_given_up_one_in_ten_seconds() -> None:
    stage = Stage()
    names = nodes(stage, 10, "a")
    stage.pass_time(20.0)
    stage.alive.difference_update(names[:4])
    stage.pass_time(55.0)
    assert len(stage.view.node_lives) == 4, "all are tainted NoSchedule at once"
    seen = [len(stage.given_up())]
    for _ in range(4):
        stage.pass_time(10.0)
        seen.append(len(stage.given_up()))
    assert seen == [1, 2, 3, 4, 4]


def test_zones_have_rates_of_their_own() -> None:
    stage = Stage()
    first, second = nodes(stage, 5, "a", "a"), nodes(stage, 5, "b", "b")
    stage.pass_time(20.0)
    stage.alive.difference_update(first[:2] + second[:2])
    stage.pass_time(55.0)
    assert stage.given_up() == {"a000", "b000"}


def test_in_a_small_zone_of_which_much_is_lost_nobody_is_given_up() -> None:
    stage = Stage()
    names = nodes(stage, 20, "a")
    stage.pass_time(20.0)
    stage.alive.difference_update(names[:11])
    stage.pass_time(600.0)
    assert len(stage.view.node_lives) == 11
    assert stage.given_up() == set()
    stage.alive.update(names[:5])
    stage.pass_time(40.0)
    assert len(stage.given_up()) >= 3, "the usual rate again"


def test_in_a_large_zone_of_which_much_is_lost_it_goes_slowly() -> None:
    stage = Stage()
    names = nodes(stage, 51, "a")
    stage.pass_time(20.0)
    stage.alive.difference_update(names[:30])
    stage.pass_time(56.0)
    assert len(stage.given_up()) == 1
    stage.pass_time(90.0)
    assert len(stage.given_up()) == 1
    stage.pass_time(15.0)
    assert len(stage.given_up()) == 2


def test_a_zone_that_is_lost_as_a_whole_goes_at_the_usual_rate_if_others_live() -> None:
    stage = Stage()
    lost = nodes(stage, 5, "a", "a")
    nodes(stage, 2, "b", "b")
    stage.pass_time(20.0)
    stage.alive.difference_update(lost)
    stage.pass_time(95.0)
    assert len(stage.given_up()) == 5


def test_if_all_zones_are_lost_nobody_is_given_up_and_who_was_is_let_go() -> None:
    stage = Stage()
    first, second = nodes(stage, 3, "a", "a"), nodes(stage, 3, "b", "b")
    stage.pod("p1", "a000", {"operator": "Exists", "tolerationSeconds": 300, "effect": "NoExecute"})
    stage.pass_time(20.0)
    stage.alive.difference_update(first)
    stage.pass_time(90.0)
    assert stage.given_up() == set(first)
    stage.alive.difference_update(second)
    stage.pass_time(66.0)
    assert stage.given_up() == set()
    assert len(stage.view.node_lives) == 6, "they are unreachable, and tainted NoSchedule"
    stage.pass_time(1000.0)
    assert (stage.given_up(), stage.deleted()) == (set(), [])
    stage.alive.add("b000")
    stage.pass_time(60.0)
    assert len(stage.given_up()) >= 3


def test_when_not_all_is_lost_any_more_every_node_has_its_time_again() -> None:
    stage = Stage()
    for name in ("n1", "n2"):
        stage.node(name)
        stage.report(name, Ready="False")
    stage.pass_time(20.0)
    stage.beat(["n1"])
    stage.alive.discard("n1")
    stage.pass_time(40.0)
    stage.report("n2")
    stage.pass_time(50.0)
    assert stage.conditions("n1")["Ready"] == "False"
    stage.pass_time(11.0)
    assert stage.conditions("n1")["Ready"] == "Unknown"


def test_an_excluded_node_does_not_count() -> None:
    stage = Stage()
    names = nodes(stage, 3, "a")
    stage.node("extra", labels={ZONE: "a", "node.kubernetes.io/exclude-disruption": ""})
    stage.pass_time(20.0)
    stage.alive.difference_update(names)
    stage.pass_time(600.0)
    assert stage.given_up() == set(), "the one that is ready is not asked"
