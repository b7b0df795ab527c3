"""What the checker of nodes calls wrong, and as of when it judges."""

from collections.abc import Iterable

import pytest

from podyard.objects.times import rfc3339_micro
from podyard.proto import codec
from podyard.proto.facts import Condition, NodeLifeFact, TaintFact
from tests.simulation.clock import START
from tests.simulation.node_rules import NodeChecker

LOST = Condition(type="Ready", status="Unknown", reason="NodeStatusUnknown", last_transition_time="")


def lost(node: str, decided: float, effect: str = "NoSchedule") -> bytes:
    taint = TaintFact(key="node.kubernetes.io/unreachable", effect=effect)  # type: ignore[arg-type]
    return codec.encode(
        NodeLifeFact(node=node, node_uid="1", conditions=(LOST,), taints=(taint,), at=rfc3339_micro(START + decided))
    )


def silent_from_10_to_95(parted: Iterable[tuple[float, float]] = ()) -> NodeChecker:
    checker = NodeChecker({f"n{number}": "z" for number in range(5)})
    for since, until in parted:
        checker.parted(since, until)
    checker.beat("n0", 10.0)
    checker.beat("n0", 95.0)
    return checker


class TestLost:
    def test_after_a_heartbeat_it_is_wrong(self):
        checker = silent_from_10_to_95()
        checker.life("n0", lost("n0", 100.0), 100.0)
        assert checker.violations == ["n0 is declared lost, though it beat 5.0 s before"]

    def test_what_a_partition_kept_counts_as_of_its_decision(self):
        checker = silent_from_10_to_95([(80.0, 100.0)])
        checker.life("n0", lost("n0", 90.0), 100.0)
        assert not checker.violations
        assert checker.losses == 1

    def test_decided_too_early_within_a_partition_is_wrong(self):
        checker = silent_from_10_to_95([(20.0, 40.0)])
        checker.life("n0", lost("n0", 30.0), 40.0)
        assert checker.violations == ["n0 is declared lost, though it beat 20.0 s before"]

    @pytest.mark.parametrize("parted", [(), [(60.0, 70.0)], [(60.0, 98.0)]], ids=["none", "over", "just over"])
    def test_an_early_time_alone_excuses_nothing(self, parted: list[tuple[float, float]]):
        checker = silent_from_10_to_95(parted)
        checker.life("n0", lost("n0", 61.0), 100.0)
        assert checker.violations == ["n0 is declared lost, though it beat 5.0 s before"]


class TestGivenUp:
    def test_faster_than_the_rate_is_wrong(self):
        checker = NodeChecker({f"n{number}": "z" for number in range(5)})
        for number in range(2):
            checker.life(f"n{number}", lost(f"n{number}", 100.0 + number, "NoExecute"), 100.0 + number)
        assert checker.violations == ["2 nodes of z are given up within 1.0 s"]

    def test_what_a_partition_kept_counts_as_of_its_decision(self):
        checker = NodeChecker({f"n{number}": "z" for number in range(5)})
        checker.parted(90.0, 130.0)
        for number in range(3):
            checker.life(f"n{number}", lost(f"n{number}", 100.0 + 10.0 * number, "NoExecute"), 130.0)
        assert not checker.violations

    def test_what_comes_late_is_counted_with_what_was_decided_after_it(self):
        checker = NodeChecker({f"n{number}": "z" for number in range(5)})
        checker.parted(90.0, 105.0)
        checker.life("n1", lost("n1", 104.0, "NoExecute"), 104.0)
        checker.life("n0", lost("n0", 100.0, "NoExecute"), 105.0)
        assert checker.violations == ["2 nodes of z are given up within 4.0 s"]
