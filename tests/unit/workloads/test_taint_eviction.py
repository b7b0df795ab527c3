"""Which pods end by the taints of their node, and when."""

import pytest

from podyard.cluster.changes import Change, Origin
from podyard.cluster.keys import ObjectKey
from podyard.objects import times
from podyard.objects.affinity import Taint, Toleration
from podyard.workloads.core.actions import Done
from podyard.workloads.core.node_life import POLL_S, Hearing
from podyard.workloads.core.taint_eviction import NEVER, SPARE, TaintEviction, tolerated_s
from tests.support import stored
from tests.unit.workloads.node_stage import Stage, tolerating

MINE = {"key": "mine", "value": "x", "effect": "NoExecute"}
OTHER = {"key": "other", "effect": "NoExecute"}


@pytest.fixture
def stage() -> Stage:
    return Stage.of_two()


def ends_after(stage: Stage, name: str, seconds: float) -> None:
    """The pod is deleted then, no other, and not before."""
    stage.pass_time(seconds - 0.1)
    assert stage.deleted() == []
    stage.pass_time(0.2)
    assert stage.deleted() == [name]


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], None),
        ([Toleration(key="other", operator="Exists")], None),
        ([Toleration(operator="Exists")], NEVER),
        ([Toleration(operator="Exists", toleration_seconds=7)], 7.0),
        ([Toleration(operator="Exists", toleration_seconds=-7)], 0.0),
        ([Toleration(operator="Exists", toleration_seconds=0)], 0.0),
        ([Toleration(key="a", operator="Exists", toleration_seconds=9), Toleration(operator="Exists")], 9.0),
        ([Toleration(operator="Exists"), Toleration(key="a", operator="Exists", toleration_seconds=9)], NEVER),
        ([Toleration(key="a", operator="Exists", toleration_seconds=9), Toleration(key="b", operator="Exists",
          toleration_seconds=4)], 4.0),
        ([Toleration(key="a", operator="Exists", toleration_seconds=9)], None),
    ],
)  # fmt: skip
def test_for_how_long_two_taints_are_tolerated(tolerations: list[Toleration], seconds: float | None) -> None:
    taints = [Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoExecute")]
    assert tolerated_s(taints, tolerations) == seconds


def test_a_taint_that_is_not_tolerated_ends_pods_at_once(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating())
    stage.pod("p2", "n2")
    stage.taint("n1", MINE)
    assert stage.deleted() == ["p1"]
    pod = stage.document("pods", "p1")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint",
    )  # fmt: skip
    assert [(one.key.name, one.reason, one.message) for one in stage.announced] == [
        ("p1", "TaintManagerEviction", "Marking for deletion Pod default/p1")
    ]
    stage.pass_time(600.0)
    assert stage.deleted() == ["p1"], "once"


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_other_effects_end_nobody(stage: Stage, effect: str) -> None:
    stage.pod("p1")
    stage.taint("n1", {**MINE, "effect": effect})
    stage.pass_time(600.0)
    assert stage.deleted() == []


def test_a_pod_of_a_lost_node_ends_when_its_toleration_is_over(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(300))
    stage.pod("p2", "n1", tolerating(None))
    stage.alive.discard("n1")
    stage.pass_time(60.0)
    assert stage.given_up() == {"n1"}
    (taint,) = (one for one in stage.seen("n1").node.spec.taints if one.effect == "NoExecute")
    stage.pass_time(290.0)
    assert stage.deleted() == []
    stage.pass_time(20.0)
    ((at, name),) = stage.deletions
    assert name == "p1"
    assert taint.time_added is not None
    assert at == times.seconds_of(taint.time_added) + 300.0


def test_a_node_that_comes_back_keeps_its_pods(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(300))
    stage.alive.discard("n1")
    stage.pass_time(200.0)
    stage.alive.add("n1")
    stage.pass_time(600.0)
    assert stage.deleted() == []
    assert stage.announced[-1].message == "Cancelling deletion of Pod default/p1"


def test_a_pod_that_comes_to_a_tainted_node_has_its_own_time(stage: Stage) -> None:
    stage.taint("n1", MINE)
    stage.pass_time(100.0)
    stage.pod("p1", "n1", tolerating(30, "mine"))
    ends_after(stage, "p1", 30.0)


@pytest.mark.parametrize("seconds", [30, 0])
def test_a_time_that_runs_goes_on_when_another_taint_is_tolerated(seconds: int, stage: Stage) -> None:
    """docs/rules.md, toleration-is-counted-from-the-first-look: even where the other is tolerated for no
    time."""
    stage.pod("p1", "n1", tolerating(30, "mine"), tolerating(seconds, "other"))
    stage.taint("n1", MINE)
    stage.pass_time(20.0)
    stage.taint("n1", OTHER)
    ends_after(stage, "p1", 10.0)


def test_a_time_that_runs_ends_with_the_taints(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(30, "mine"))
    stage.taint("n1", MINE)
    stage.pass_time(20.0)
    stage.taint("n1")
    stage.pass_time(1.0)
    stage.taint("n1", MINE)
    ends_after(stage, "p1", 30.0)


def test_a_second_taint_that_is_not_tolerated_ends_it_at_once(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(30, "mine"))
    stage.taint("n1", MINE)
    stage.pass_time(5.0)
    stage.taint("n1", MINE, OTHER)
    assert stage.deleted() == ["p1"]


def test_a_pod_that_ends_by_itself_is_left_alone(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(30, "mine"))
    stage.taint("n1", MINE)
    stage.pass_time(5.0)
    stage.end_pod("p1")
    stage.pass_time(60.0)
    assert (stage.deleted(), stage.announced) == ([], [])


def test_pods_of_a_node_that_is_gone_are_not_its_business(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(30, "mine"))
    stage.taint("n1", MINE)
    stage.remove_node("n1")
    stage.pass_time(60.0)
    assert stage.deleted() == []


def test_a_deletion_that_failed_is_tried_again(stage: Stage) -> None:
    stage.pod("p1")
    stage.hold = True
    stage.taint("n1", MINE)
    stage.pass_time(5.0)
    assert len(stage.held) == 1
    stage.fail()
    stage.hold = False
    assert stage.deleted() == []
    stage.pass_time(1.1)
    assert stage.deleted() == ["p1"]


def test_a_pod_whose_deletion_is_under_way_is_not_deleted_again(stage: Stage) -> None:
    stage.pod("p1")
    stage.hold = True
    stage.taint("n1", MINE)
    stage.stream.put(stored.version("pods", stage.document("pods", "p1")))
    stage.pass_time(1.0)
    assert len(stage.held) == 1


def test_a_namesake_of_a_pod_whose_deletion_is_under_way_waits_for_it(stage: Stage) -> None:
    stage.pod("p1")
    stage.hold = True
    stage.taint("n1", MINE)
    (first,) = stage.held
    stage.end_pod("p1")
    stage.stream.put(stored.marker("pods", stage.document("pods", "p1")))
    stage.pod("p1", uid="another")
    stage.pass_time(3.0)
    assert stage.held == [first], "its owner tells works apart"
    stage.hold = False
    stage.release()
    stage.pass_time(1.1)
    assert stage.deleted() == ["p1", "p1"]
    assert "deletionTimestamp" in stage.document("pods", "p1")["metadata"]
    assert stage.core.wake_at > stage.now + 2 * POLL_S, "nothing is under way any more"


def test_pods_of_one_node_are_deleted_together(stage: Stage) -> None:
    for name in ("p1", "p2", "p3"):
        stage.pod(name)
    stage.hold = True
    stage.taint("n1", MINE)
    assert len(stage.held) == 1
    stage.pod("p4")
    assert len(stage.held) == 2, "one that comes later does not wait for them"
    stage.hold = False
    stage.release()
    assert stage.deleted() == ["p1", "p2", "p3", "p4"]


def test_pods_of_a_lost_node_have_the_grace_period_after_a_silence_of_ours(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(300))
    stage.alive.discard("n1")
    stage.pass_time(300.0)
    stage.step(Hearing(False))
    stage.pass_time(300.0)
    assert stage.deleted() == []
    stage.step(Hearing(True))
    stage.pass_time(49.0)
    assert stage.deleted() == []
    stage.pass_time(2.0)
    assert stage.deleted() == ["p1"]


def test_a_node_given_up_after_a_silence_of_ours_keeps_its_pods_for_the_grace_period(stage: Stage) -> None:
    """It waited for its taint when we heard nothing any more: it may be back since."""
    for name in ("n3", "n4", "n5"):
        stage.node(name)
    stage.pod("p1", "n1")
    stage.pod("p2", "n2")
    stage.beat(stage.alive)
    stage.alive -= {"n1", "n2"}
    stage.pass_time(56.0)
    assert stage.given_up() == {"n1"}
    assert stage.deleted() == ["p1"]
    stage.step(Hearing(False))
    stage.pass_time(300.0)
    stage.step(Hearing(True))
    stage.pass_time(49.0)
    assert stage.given_up() == {"n1", "n2"}
    assert stage.deleted() == ["p1"]
    stage.pass_time(2.0)
    assert stage.deleted() == ["p1", "p2"]


def test_after_a_take_over_a_toleration_begins_anew(stage: Stage) -> None:
    stage.pod("p1", "n1", tolerating(300))
    stage.alive.discard("n1")
    stage.pass_time(300.0)
    stage.begin()
    stage.pass_time(299.0)
    assert stage.deleted() == []
    stage.pass_time(2.0)
    assert stage.deleted() == ["p1"]


def test_times_that_count_no_more_are_forgotten(stage: Stage) -> None:
    evictions = TaintEviction(stage.view)
    stage.pod("p1", "n1", tolerating(10**9, "mine"))
    for _ in range(3 * SPARE):
        for taints in ((MINE,), ()):
            before = stage.seen("n1")
            stage.taint("n1", *taints)
            change = Change("nodes", "uid-n1", before, stage.seen("n1"), Origin())
            evictions.follow([change], stage.now)
    assert 0 < len(evictions) <= SPARE + 2


def test_a_step_walks_over_no_pods_whose_deletion_is_not_seen_yet(stage: Stage) -> None:
    """Thousands may be held when a zone is lost, and every step looks."""
    evictions = TaintEviction(stage.view)
    far, near = ObjectKey("pods", "default", "far"), ObjectKey("pods", "default", "near")

    class Unwalked(dict):
        def __iter__(self):
            raise AssertionError("walked over")

        items = keys = values = __iter__

    evictions._held = Unwalked()
    for owner, position in ((far, stage.view.position + 1), (near, stage.view.position)):
        evictions._asked[owner] = (owner.name,)
        evictions._held[owner.name] = 0
        evictions.settle(Done(owner, position), stage.now)
    evictions.due(stage.now)
    assert ("near" in evictions._held, "far" in evictions._held) == (False, True)
    assert evictions.wake_at(stage.now, POLL_S) == stage.now + POLL_S
    evictions.listed()
    assert "far" not in evictions._held
    assert evictions.wake_at(stage.now, POLL_S) == NEVER
