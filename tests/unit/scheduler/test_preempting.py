"""What the core makes of a preemption: nominations that count at once, victims that go back, the others for
the shell."""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from podyard.cluster.changes import Change, Origin
from podyard.cluster.pods import PodView
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PermitResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status
from podyard.objects.meta import Condition
from podyard.plugins import registry
from podyard.proto.facts import Nomination
from podyard.scheduler.core.effects import Done, Preempt, Record
from tests.unit.framework.builders import make_node, make_pod, on, profile_of
from tests.unit.scheduler.play import Play

PLUGINS = ("PrioritySort", "NodeUnschedulable", "NodeResourcesFit", "DefaultPreemption")


def low(name: str = "low", cpu: str = "4", **more: Any) -> PodView:
    return make_pod(name, cpu=cpu, priority=1, **more)


def high(name: str = "high", cpu: str = "4", priority: int = 10) -> PodView:
    return make_pod(name, cpu=cpu, priority=priority)


def stand(*nodes: str, use: Profile | None = None) -> Play:
    """A play with nodes of 4 cpu."""
    return Play(*(make_node(name) for name in nodes or ("a",)), use=use or profile_of(*PLUGINS))


def bound(play: Play, *pods: PodView) -> None:
    """Schedule pods and show their bindings."""
    play.add(*pods)
    for decision in play.schedule(*pods):
        play.bind(decision)
        play.answer(decision, "bound")


def preempt(play: Play, pod: PodView) -> Preempt:
    """The pod is tried and preempts."""
    before = len(play.of(Preempt))
    play.add(pod)
    assert play.schedule(pod) == []
    [found] = play.of(Preempt)[before:]
    return found


def say(play: Play, pod: PodView, node: str) -> None:
    """The queue's fact about a nomination shows in the view."""
    old = play.view.pods[pod.key]
    fact = Nomination(namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node)
    new = PodView(old.stored, old.key, old.uid, old.sequence, old.bound, old.release, old.status, fact)
    play.view.pods[pod.key] = new
    play.core_changed(Change("pods", pod.uid, old, new, Origin()))


def tried(play: Play, name: str, cpu: str = "4", priority: int = 5) -> str:
    """Where a pod of middle priority would go now; empty: nowhere. It is taken back."""
    pod = make_pod(name, cpu=cpu, priority=priority)
    play.add(pod)
    decisions = play.schedule(pod)
    for decision in decisions:
        play.answer(decision, "error")
    play.delete(pod)
    return decisions[0].node if decisions else ""


# ---- what is told


def test_a_preemption_is_told_with_its_victims_and_before_its_result() -> None:
    play = stand()
    bound(play, low())
    found = preempt(play, high())
    assert ([victim.name for victim in found.victims], found.node, found.sent_back) == (["low"], "a", ())
    result = found.result
    assert (result.outcome, result.nominated_node, result.unschedulable_plugins) == (
        "unschedulable", "a", ("NodeResourcesFit",),
    )  # fmt: skip
    assert play.results("high") == [], "the result goes with the preemption, or an event may hand the pod out between"
    assert (found.session, found.profile) == ("s1", "default-scheduler")
    record = play.of(Record)[-1].record
    assert (record.nominated_node, [victim.name for victim in record.victims]) == ("a", ["low"])


def test_victims_that_end_already_need_no_push() -> None:
    play = stand()
    going = low()
    bound(play, going)
    play.delete(play.view.pods[going.key])
    found = preempt(play, high())
    assert (found.victims, found.result.nominated_node) == ((), "a")
    assert [victim.name for victim in play.of(Record)[-1].record.victims] == ["low"]


def test_a_conflict_whose_retry_would_preempt_preempts_nobody() -> None:
    play = stand()
    pod, other = high(cpu="2"), low()
    play.add(pod)
    [decision] = play.schedule(pod)
    play.answer(decision, "conflict", ahead=1, cause="fit", reasons=("no room",))
    play.core_changed(Change("pods", other.uid, None, on(other, "a"), Origin(), bound=True))
    assert play.work() == []
    assert play.of(Preempt) == []
    record = play.of(Record)[-1].record
    assert (record.outcome, record.victims, record.nominated_node) == ("bindError", (), "")


def test_two_pods_that_preempt_one_after_the_other_take_different_victims() -> None:
    play = stand("a", "b")
    bound(play, low("one"), low("two"))
    first, second = high("first"), high("second")
    play.add(first, second)
    assert play.schedule(first, second) == []
    found = play.of(Preempt)
    assert {one.node for one in found} == {"a", "b"}
    assert {victim.name for one in found for victim in one.victims} == {"one", "two"}


# ---- nominations


def test_room_that_victims_free_is_kept_before_the_queue_says_so() -> None:
    play = stand()
    victim = low()
    bound(play, victim)
    winner = high()
    preempt(play, winner)
    play.release(victim)
    assert tried(play, "thief") == ""
    assert tried(play, "equal", priority=10) == ""
    assert tried(play, "small", cpu="1") == ""
    assert tried(play, "higher", priority=11) == "a", "a nomination holds nothing against higher priority"
    assert [one.node for one in play.schedule(winner)] == ["a"]


def test_an_own_nomination_lasts_through_other_changes_of_the_pod() -> None:
    play = stand()
    victim = low()
    bound(play, victim)
    winner = high()
    preempt(play, winner)
    changed = make_pod("high", cpu="4", priority=10, labels={"new": "label"})
    play.view.pods[winner.key] = changed
    play.core_changed(Change("pods", winner.uid, winner, changed, Origin()))
    play.release(victim)
    assert tried(play, "thief") == ""


def test_what_the_queue_says_later_takes_the_place_of_what_was_decided() -> None:
    play = stand()
    victim = low()
    bound(play, victim)
    winner = high()
    preempt(play, winner)
    play.release(victim)
    say(play, winner, "a")
    assert tried(play, "thief") == ""
    say(play, winner, "")
    assert tried(play, "next") == "a"


def test_an_end_that_came_before_its_beginning_was_seen_counts() -> None:
    """The queue wrote only the last of two wishes: nomination and end."""
    play = stand()
    victim = low()
    bound(play, victim)
    winner = high()
    preempt(play, winner)
    play.release(victim)
    say(play, winner, "")
    assert tried(play, "next") == "a"


def test_a_nomination_that_nothing_can_fulfil_ends_at_once() -> None:
    play = stand("a", "b")
    hopeless = make_pod("hopeless", cpu="5", priority=10, nominated="a")
    play.add(hopeless)
    assert tried(play, "before", cpu="1") == "b"
    assert play.schedule(hopeless) == []
    assert play.results("hopeless")[-1].nominated_node == ""
    assert {tried(play, f"after-{number}") for number in range(20)} == {"a", "b"}


def test_a_pod_that_is_deleted_holds_no_room() -> None:
    play = stand()
    victim = low()
    bound(play, victim)
    winner = high()
    preempt(play, winner)
    play.release(victim)
    play.delete(winner)
    assert tried(play, "next") == "a"


def test_a_bound_pod_holds_its_room_once() -> None:
    play = stand()
    victim = low()
    bound(play, victim)
    winner = high(cpu="2")
    preempt(play, winner)
    play.release(victim)
    [decision] = play.schedule(winner)
    assert tried(play, "beside", cpu="2") == "a"
    play.bind(decision)
    play.answer(decision, "bound")
    assert tried(play, "beside", cpu="2") == "a"


def test_nominations_that_a_dead_session_decided_are_forgotten() -> None:
    play = stand()
    victim = low()
    bound(play, victim)
    preempt(play, high())
    play.release(victim)
    play.session("s2")
    assert tried(play, "next") == "a"


def test_a_pod_that_is_tried_again_knows_its_own_nomination_before_the_fact() -> None:
    """Popped again at once, while its victims end: it must wait for them and not look for others."""
    play = stand("a", "b")
    bound(play, low("one"), low("two"))
    winner = high()
    node = preempt(play, winner).node
    [victim] = play.of(Preempt)[-1].victims
    old = play.view.pods["default", victim.name]
    ending = make_pod(victim.name, cpu="4", priority=1, deleting=True).stored
    target = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    status = msgspec.structs.replace(ending.status, conditions=(target,))
    new = PodView(msgspec.structs.replace(ending, status=status), old.key, old.uid, 2, old.bound)
    play.view.pods[old.key] = new
    play.core_changed(Change("pods", old.uid, old, new, Origin()))
    assert play.schedule(winner) == []
    last = play.results("high")[-1]
    assert (last.nominated_node, len(play.of(Preempt))) == (None, 1), node
    assert "terminating pod on the nominated node" in last.message


def test_lower_nominations_to_the_node_end() -> None:
    play = stand()
    victim = low()
    bound(play, victim)
    middle, equal = (
        make_pod("middle", cpu="4", priority=5, nominated="a"),
        make_pod("equal", priority=10, nominated="a"),
    )
    elsewhere = make_pod("elsewhere", cpu="4", priority=5, nominated="b")
    play.add(middle, equal, elsewhere)
    found = preempt(play, high())
    assert [reference.name for reference in found.result.cleared] == ["middle"]
    play.release(victim)
    assert tried(play, "higher", priority=11) == "a"
    play.delete(play.view.pods["default", "high"])
    assert tried(play, "next", priority=4) == "a", "middle's nomination counts no more"


# ---- victims that are only assumed


def test_a_victim_that_the_binder_was_not_asked_for_goes_back_to_backoff() -> None:
    play = stand("a", "b")
    first, victim, later, winner = high("first", "1"), low(), high("later", "1", 2), high("high", "4")
    play.add(first, victim, later, winner)
    play.pop(first, victim, later, winner)
    decided = play.work()
    assert {one.name for one in decided} == {"first", "later"}
    [found] = play.of(Preempt)
    assert ([one.name for one in found.sent_back], found.victims, found.node) == (["low"], (), found.node)
    results = play.results("low")
    assert [one.outcome for one in results] == ["scheduled", "bindError"]
    assert (results[-1].assumed, results[-1].message) == (found.node, f"preempted by default/high on {found.node}")
    numbers = {one.name: one.number for one in decided}
    asked = {one.decisions[0].name: one for one in play.requests()}
    claimed = [(one.first, one.last) for one in asked["later"].outstanding]
    assert claimed == [(numbers["first"], numbers["later"] - 1)], "who counted on the victim still says so"


def test_a_victim_that_the_binder_was_asked_for_is_left_to_the_shell() -> None:
    play = stand()
    victim = low()
    play.add(victim)
    [decision] = play.schedule(victim)
    found = preempt(play, high())
    assert [one.name for one in found.victims] == ["low"]
    assert play.core.is_unsettled(victim.uid)
    play.bind(decision)
    play.answer(decision, "bound")
    assert not play.core.is_unsettled(victim.uid)


class Patience:
    """Lets every pod of priority 1 wait."""

    name: ClassVar[str] = "Patience"

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        waits = Status(code=Code.WAIT) if pod.priority == 1 else statuses.SUCCESS
        return PermitResult(status=waits, timeout_s=60)


def patient() -> Profile:
    entries: Mapping[str, registry.Entry] = registry.by_name()
    plugins = [registry.create(entries[name]) for name in PLUGINS]
    return resolve("default-scheduler", [Enabled(plugin=plugin) for plugin in (*plugins, Patience())])


def test_a_victim_that_waits_at_permit_goes_back_to_backoff() -> None:
    play = stand(use=patient())
    victim = low()
    play.add(victim)
    assert play.schedule(victim) == []
    found = preempt(play, high())
    assert ([one.name for one in found.sent_back], found.victims) == (["low"], ())
    [result] = play.results("low")
    assert (result.outcome, result.assumed, result.unschedulable_plugins) == ("bindError", "a", ())
    assert play.core.wake_at is None
    assert len([one for one in play.of(Done) if one.result.name == "low"]) == 1
