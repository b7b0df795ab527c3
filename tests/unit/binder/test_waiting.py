"""PreBind plugins that wait, whatever for: written first, room kept, asked again as things change, and not
counted as placed."""

from typing import Any, ClassVar

import msgspec
import pytest

from podyard.binder.core import effects
from podyard.cluster.keys import ObjectKey
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.interfaces import ObjectWrite, PreBindResult
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.plugins.defaults import default_profile
from podyard.plugins.inter_pod_affinity.plugin import InterPodAffinity
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.proto import subjects
from tests.support import stored
from tests.unit.binder.stage import Stage, Term, uid_of

ORDERS = "persistentvolumeclaims"
"""What the plugin writes and waits for; any resource would do."""
ASKED = StateKey[int]("asked")


class Device:
    """Orders a device by an object, and waits until somebody says `ready` in it, or `broken`."""

    name: ClassVar[str] = "Device"

    def __init__(self) -> None:
        self.calls = 0
        self.timeout_s = 30.0
        self.also: tuple[ObjectKey, ...] = ()

    def pre_bind(self, state: CycleState, pod: Any, cluster: Any, node_name: str) -> PreBindResult:
        self.calls += 1
        state.write(ASKED, (state.find(ASKED) or 0) + 1)
        key = ObjectKey(ORDERS, "default", pod.name)
        document = cluster.document(ORDERS, "default", pod.name)
        said = None if document is None else document["metadata"].get("annotations", {}).get("says")
        if said == "broken":
            return PreBindResult(status=statuses.error(f"broken, asked {state.read(ASKED)} times"))
        if said == "ready":
            return PreBindResult()
        writes: tuple[ObjectWrite, ...] = ()
        if said is None:
            order = {
                "metadata": {"name": pod.name, "namespace": "default", "uid": "o", "annotations": {"says": "wanted"}}
            }
            writes = (ObjectWrite(resource=ORDERS, namespace="default", name=pod.name, document=order),)
        return PreBindResult(
            status=statuses.wait("ordered"), writes=writes, timeout_s=self.timeout_s, waits_for=(key, *self.also)
        )


@pytest.fixture
def plugin() -> Device:
    return Device()


@pytest.fixture
def profile(plugin: Device) -> Profile:
    return resolve(
        "default-scheduler",
        [Enabled(plugin=PrioritySort()), Enabled(plugin=affinity()), Enabled(plugin=plugin)],
    )


def affinity() -> InterPodAffinity:
    return next(one for one in default_profile().filter if isinstance(one, InterPodAffinity))


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="2")
    for name in ("a", "b"):
        stage.pod(name, cpu="2")
    return stage


@pytest.fixture
def binder(stage: Stage, profile: Profile) -> Term:
    return stage.serving(profile=profile)


def say(stage: Stage, name: str, what: str, *, told: bool = True) -> None:
    document = {"metadata": {"name": name, "namespace": "default", "uid": "o", "annotations": {"says": what}}}
    if told:
        stage.put_object(ORDERS, document)
        stage.pass_time(0.011)
        return
    stage.stream.put(stored.version(ORDERS, document))


def later(stage: Stage, binder: Term) -> None:
    """Time to gather passes; the view stays where it is."""
    stage.now += 0.011
    binder.step(effects.Tick())


def follow_one(stage: Stage, binder: Term) -> None:
    """The next message of the stream reaches the view, those behind it do not."""
    delivery = next(stage.stream.after(binder.position))
    binder.position = delivery.sequence
    binder.step(effects.Changed(binder.view.apply(delivery)))


def results(binder: Term, *decisions: Any) -> list[str]:
    """What a request is answered; then time for all that follows, so that what waits is at rest."""
    ticket = binder.ask(*decisions)
    binder.stage.pass_time(0.05)
    return [answer.result for answer in binder.answers(ticket)]


def test_it_is_asked_again_only_when_something_it_waits_for_changes(stage: Stage, binder: Term, plugin: Device) -> None:
    assert results(binder, stage.decide("a")) == ["waiting"]
    stage.pass_time(0.05)
    calls = plugin.calls
    say(stage, "x", "wanted")
    stage.node("n9")
    stage.pod("c")
    stage.pass_time(5)
    assert plugin.calls == calls
    say(stage, "a", "on its way")
    assert plugin.calls == calls + 1
    say(stage, "a", "ready")
    assert stage.stream.live() == {"a": "n1"}


def test_it_keeps_what_it_remembers_of_the_decision(stage: Stage, binder: Term) -> None:
    decision = stage.decide("a")
    assert results(binder, decision) == ["waiting"]
    stage.pass_time(0.05)
    say(stage, "a", "broken")
    (answer,) = binder.answers(binder.ask(decision))
    assert answer.reasons == ("broken, asked 3 times",)  # first, when its order was seen, and now


def test_it_is_not_asked_before_the_view_shows_what_it_wrote(stage: Stage, binder: Term, plugin: Device) -> None:
    plugin.also = (ObjectKey(ORDERS, "default", "x"),)
    decision = stage.decide("a")
    ticket = binder.ask(decision, wait=False)
    say(stage, "x", "news", told=False)  # before the order in the stream; the view has seen neither
    later(stage, binder)
    follow_one(stage, binder)
    assert binder.view.objects(ORDERS).keys() == {("default", "x")}
    later(stage, binder)
    assert plugin.calls == 1
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["waiting"]
    say(stage, "a", "ready")
    assert results(binder, decision) == ["bound"]


def test_who_waits_does_not_count_as_placed(stage: Stage, binder: Term) -> None:
    stage.node(cpu="8")
    assert results(binder, stage.decide("a")) == ["waiting"]
    stage.pod("a", cpu="2")
    label = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [label]}}
    stage.pod("w", cpu="1", labels={"app": "a"})
    assert results(binder, stage.decide("w")) == ["waiting"]
    stage.pod("z", cpu="1", affinity=near)
    (answer,) = binder.answers(binder.ask(stage.decide("z")))
    assert (answer.result, answer.cause) == ("conflict", "InterPodAffinity")
    say(stage, "w", "ready")
    assert results(binder, stage.decide("z")) == ["waiting"]  # now it has its neighbour, and waits for its own device


def test_who_may_not_stand_beside_it_is_refused_meanwhile(stage: Stage, binder: Term) -> None:
    stage.node(cpu="8")
    stage.pod("w", containers=[], labels={"app": "a"})
    assert results(binder, stage.decide("w")) == ["waiting"]
    label = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [label]}}
    stage.pod("z", cpu="1", affinity=apart)
    (answer,) = binder.answers(binder.ask(stage.decide("z")))
    assert (answer.result, answer.cause) == ("conflict", "InterPodAffinity")


def test_its_time_begins_with_the_first_wait_and_is_its_own(stage: Stage, binder: Term, plugin: Device) -> None:
    decision = stage.decide("a")
    assert results(binder, decision) == ["waiting"]
    stage.pass_time(20)
    say(stage, "a", "on its way")
    stage.pass_time(9)
    assert results(binder, decision) == ["waiting"]
    stage.pass_time(1.1)
    stage.pass_time(0.011)
    (answer,) = binder.answers(binder.ask(decision))
    assert (answer.result, answer.cause, answer.reasons) == ("error", "Device", ("ordered", "not done within 30 s"))
    assert binder.core.world.kept == {}


def test_no_time_at_all_is_up_at_once_but_what_it_wrote_is_durable(stage: Stage, binder: Term, plugin: Device) -> None:
    plugin.timeout_s = 0
    decision = stage.decide("a")
    binder.ask(decision)
    for _ in range(4):
        stage.pass_time(0.05)
    assert results(binder, decision) == ["error"]
    assert subjects.object_(ORDERS, "default", "a") in stage.stream.messages


def test_the_attempt_that_came_last_takes_the_place_of_one_that_waits(stage: Stage, binder: Term) -> None:
    first, second = stage.decide("a", attempt="1-a"), stage.decide("a", attempt="2-a")
    assert results(binder, first) == ["waiting"]
    assert results(binder, second) == ["waiting"]
    (answer,) = binder.answers(binder.ask(first))
    assert (answer.result, answer.cause) == ("error", "overtaken")
    say(stage, "a", "ready")
    assert stage.stream.commits[-1].bindings[0].attempt == "2-a"


@pytest.mark.parametrize("ordered", [False, True])
def test_two_attempts_for_one_pod_at_once_leave_one(stage: Stage, binder: Term, ordered: bool) -> None:
    """Whether something is written first, or was written before."""
    if ordered:
        say(stage, "a", "wanted")
    first = stage.decide("a", attempt="1-a")
    ticket = binder.ask(first, stage.decide("a", attempt="2-a"))
    stage.pass_time(0.05)
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] in (["waiting", "waiting"], ["error", "waiting"])
    (answer,) = binder.answers(binder.ask(first))
    assert (answer.result, answer.cause) == ("error", "overtaken")
    say(stage, "a", "ready")
    assert [bound.attempt for record in stage.stream.commits for bound in record.bindings] == ["2-a"]


def test_what_its_scheduler_wants_no_more_is_refused_and_gives_its_room_back(stage: Stage, binder: Term) -> None:
    decision = stage.decide("a")
    assert results(binder, decision) == ["waiting"]
    (answer,) = binder.answers(binder.ask(msgspec.structs.replace(decision, withdrawn=True)))
    assert (answer.result, answer.cause) == ("error", "withdrawn")
    say(stage, "a", "ready")
    assert stage.stream.live() == {}
    assert results(binder, stage.decide("b")) == ["waiting"]
    assert results(binder, decision) == ["error"]  # sent once more, late


def test_withdrawn_too_late_is_bound(stage: Stage, binder: Term) -> None:
    decision = stage.decide("a")
    assert results(binder, decision) == ["waiting"]
    say(stage, "a", "ready")
    assert results(binder, msgspec.structs.replace(decision, withdrawn=True)) == ["bound"]


def test_a_successor_refuses_what_is_withdrawn(stage: Stage, binder: Term, profile: Profile) -> None:
    decision = stage.decide("a")
    assert results(binder, decision) == ["waiting"]
    say(stage, "a", "ready")
    successor = stage.term("binder-b", profile)
    stage.stream.expire(subjects.binding("default", "a", uid_of("a")))  # as if the first had never come to it
    successor.elect(9)
    assert results(successor, msgspec.structs.replace(decision, withdrawn=True)) == ["error"]


def test_a_table_made_anew_keeps_the_room(stage: Stage, binder: Term) -> None:
    assert results(binder, stage.decide("a")) == ["waiting"]
    binder.core.world.rebuild()
    (answer,) = binder.answers(binder.ask(stage.decide("b")))
    assert (answer.result, answer.cause) == ("conflict", "fit")


def test_a_listing_that_shows_the_end_of_the_wait_ends_it(stage: Stage, binder: Term) -> None:
    decision = stage.decide("a")
    assert results(binder, decision) == ["waiting"]
    say(stage, "a", "ready", told=False)
    binder.list_all()
    binder.step(effects.Listed(binder.tombstones()))
    stage.pass_time(0.011)
    assert results(binder, decision) == ["bound"]
