"""What the binder checks, by which view, and what the answer says
(docs/rules.md, binder-judges-in-one-order)."""

import msgspec
import pytest

from podyard.binder.core.node_takes_pod import taken_ports
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import from_binding
from podyard.framework.profile import Enabled, resolve
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.proto.binder_api import BindAnswer
from podyard.proto.placement import BoundPod, HostPort, Usage
from tests.unit.binder.stage import GATHER_S, Stage, Term, uid_of


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="2")
    return stage


def answer_of(binder: Term, stage: Stage, name: str, **more) -> BindAnswer:
    (answer,) = binder.answers(binder.ask(stage.decide(name, **more)))
    return answer


def test_an_unknown_pod_is_gone(stage: Stage):
    answer = answer_of(stage.serving(), stage, "nobody")
    assert (answer.result, answer.cause) == ("gone", "podGone")


def test_a_namesake_with_another_uid_is_not_the_pod(stage: Stage):
    stage.pod("a", uid="old")
    binder = stage.serving()
    stage.pod("a", uid="new")
    assert answer_of(binder, stage, "a", uid="old").result == "gone"
    assert answer_of(binder, stage, "a", uid="new").result == "bound"


def test_a_uid_under_another_name_is_not_the_pod(stage: Stage):
    stage.pod("a")
    assert answer_of(stage.serving(), stage, "b", uid=uid_of("a")).result == "gone"


def test_a_pod_that_is_being_deleted_is_not_bound(stage: Stage):
    stage.pod("a", deleting=True)
    answer = answer_of(stage.serving(), stage, "a")
    assert (answer.result, answer.reasons) == ("gone", ("the pod is being deleted",))


def test_a_pod_that_has_ended_is_not_bound(stage: Stage):
    stage.pod("a", phase="Failed")
    assert answer_of(stage.serving(), stage, "a").result == "gone"


def test_a_bound_pod_is_named_with_its_node(stage: Stage):
    stage.node("n2")
    stage.pod("a")
    binder = stage.serving()
    binder.bind(stage.decide("a", node="n1", attempt="1-1"))
    answer = answer_of(binder, stage, "a", node="n2", attempt="1-2")
    assert (answer.result, answer.node, answer.cause) == ("alreadyBound", "n1", "alreadyBound")


def test_a_released_uid_is_never_bound_again(stage: Stage):
    stage.pod("a")
    binder = stage.serving()
    binder.bind(stage.decide("a", attempt="1-1"))
    stage.status("a")
    stage.pass_time(GATHER_S)
    assert stage.stream.live() == {}
    answer = answer_of(binder, stage, "a", attempt="1-2")
    assert (answer.result, answer.node) == ("alreadyBound", "n1")
    successor = stage.serving("binder-b")
    assert answer_of(successor, stage, "a", attempt="1-3").result == "alreadyBound"


def test_a_node_that_is_gone_is_a_conflict(stage: Stage):
    stage.pod("a")
    binder = stage.serving()
    stage.remove("nodes", "n1")
    answer = answer_of(binder, stage, "a")
    assert (answer.result, answer.cause) == ("conflict", "nodeGone")


def test_room_is_judged_on_the_binders_own_table(stage: Stage):
    for name in "abc":
        stage.pod(name)
    binder = stage.serving()
    assert binder.bind(stage.decide("a")) == ["bound"]
    assert binder.bind(stage.decide("b")) == ["bound"]
    answer = answer_of(binder, stage, "c")
    assert (answer.result, answer.cause, answer.reasons) == ("conflict", "fit", ("Insufficient cpu",))


def test_accepted_mates_of_the_batch_count(stage: Stage):
    for name in "abc":
        stage.pod(name)
    binder = stage.serving()
    assert binder.bind(*(stage.decide(name) for name in "abc")) == ["bound", "bound", "conflict"]


def test_own_commits_count_before_the_view_shows_them(stage: Stage):
    """docs/rules.md, admitted-counts-before-it-is-durable: what was admitted counts before it is read
    back."""
    for name in "abc":
        stage.pod(name)
    binder = stage.serving()
    binder.pump = lambda: None  # the view stands still
    binder.bind(stage.decide("a", position=0), stage.decide("b", position=0))
    assert not binder.view.pods_on("n1")
    assert binder.bind(stage.decide("c", position=0)) == ["conflict"]


def test_the_number_of_pods_is_limited(stage: Stage):
    stage.node("small", cpu="64", pods="1")
    for name in "ab":
        stage.pod(name)
    binder = stage.serving()
    binder.bind(stage.decide("a", node="small"))
    assert answer_of(binder, stage, "b", node="small").reasons == ("Too many pods",)


def test_an_unknown_resource_does_not_fit(stage: Stage):
    stage.pod("a", containers=[{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}])
    assert answer_of(stage.serving(), stage, "a").reasons == ("Insufficient example.com/gpu",)


@pytest.mark.parametrize(
    ("ignored", "result"),
    [
        ({"ignoredResources": ["example.com/a"]}, "bound"),
        ({"ignoredResourceGroups": ["example.com"]}, "bound"),
        ({"ignoredResources": ["cpu"]}, "conflict"),
        ({}, "conflict"),
    ],
)
def test_a_resource_that_the_profile_is_told_to_ignore_is_ignored_here(
    stage: Stage, ignored: dict[str, list[str]], result: str
):
    """Resources that an extender looks after come to the plugin as ignored ones, too."""
    stage.pod("a", requests={"example.com/a": "1"})
    fit = NodeResourcesFit(msgspec.convert(ignored, FitArgs))
    profile = resolve("default-scheduler", [Enabled(plugin=PrioritySort()), Enabled(plugin=fit)])
    binder = stage.serving(profile=profile)
    assert answer_of(binder, stage, "a").result == result


def test_host_ports_are_judged(stage: Stage):
    stage.pod("a", host_port=80)
    stage.pod("b", host_port=80)
    binder = stage.serving()
    binder.bind(stage.decide("a"))
    answer = answer_of(binder, stage, "b")
    assert (answer.result, answer.cause, answer.reasons) == ("conflict", "ports", ("port 80/TCP is taken",))


@pytest.mark.parametrize(
    ("there", "wanted", "clash"),
    [
        pytest.param(HostPort(port=80), HostPort(port=80), True, id="same"),
        pytest.param(HostPort(port=80), HostPort(port=81), False, id="another port"),
        pytest.param(HostPort(port=80, protocol="UDP"), HostPort(port=80), False, id="another protocol"),
        pytest.param(HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.2"), False, id="another address"),
        pytest.param(HostPort(port=80, ip="10.0.0.1"), HostPort(port=80), True, id="any address wanted"),
        pytest.param(HostPort(port=80), HostPort(port=80, ip="10.0.0.2"), True, id="any address taken"),
    ],
)
def test_ports_clash_as_in_the_reference(there: HostPort, wanted: HostPort, clash: bool):
    table = NodeTable()
    table.place(from_binding(BoundPod(namespace="d", name="a", uid="u", node="n", usage=Usage(ports=(there,)))))
    assert bool(taken_ports(table, "n", Usage(ports=(wanted,)))) is clash


def test_the_filters_of_the_profile_are_asked(stage: Stage):
    stage.node("tainted", cpu="8", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    stage.pod("a")
    answer = answer_of(stage.serving(), stage, "a", node="tainted")
    assert (answer.result, answer.cause) == ("conflict", "TaintToleration")
    assert "untolerated taint" in answer.reasons[0]


def test_a_change_after_the_decision_counts(stage: Stage):
    stage.pod("a")
    binder = stage.serving()
    decision = stage.decide("a")
    stage.node(cpu="2", unschedulable=True)
    (answer,) = binder.answers(binder.ask(decision))
    assert (answer.result, answer.cause) == ("conflict", "NodeUnschedulable")


def test_a_decision_waits_until_the_view_has_reached_its_position(stage: Stage):
    binder = stage.serving()
    honest, binder.pump = binder.pump, lambda: None
    stage.pod("late")
    ticket = binder.ask(stage.decide("late"))
    stage.pass_time(0.5)
    assert ticket not in binder.replies
    binder.pump = honest
    stage.pass_time(0.02)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound"]


def test_a_position_that_is_never_reached_is_an_error_and_holds_nobody_up(stage: Stage):
    stage.pod("a")
    stage.pod("b")
    binder = stage.serving()
    far = binder.ask(stage.decide("a", position=10**9))
    assert binder.bind(stage.decide("b")) == ["bound"]
    assert far not in binder.replies
    stage.pass_time(5.0)
    stage.pass_time(0.02)
    (answer,) = binder.answers(far)
    assert (answer.result, answer.cause) == ("error", "position")


def test_the_reply_names_epoch_and_position(stage: Stage):
    stage.pod("a")
    binder = stage.serving()
    reply = binder.replies[binder.ask(stage.decide("a"))]
    assert reply.epoch == stage.stream.fence().epoch
    assert reply.position >= stage.stream.messages["cluster.pods.default.a"].sequence


def test_who_was_refused_for_a_mate_is_told_a_position_that_shows_the_mate(stage: Stage):
    """A retry on an older view would ask for the same node again."""
    stage.node("small", cpu="1")
    for name in ("a", "b"):
        stage.pod(name)
    binder = stage.serving()
    tickets = [binder.ask(stage.decide(name, "small"), session=name, wait=False) for name in ("a", "b")]
    follow, binder.pump = binder.pump, lambda: None  # the answers go out before the commit is seen
    stage.pass_time(GATHER_S)
    binder.pump = follow
    assert [binder.answers(ticket)[0].result for ticket in tickets] == ["bound", "conflict"]
    written = stage.stream.messages[f"placement.commits.{stage.stream.commits[-1].n}"].sequence
    assert binder.view.position < written
    assert binder.replies[tickets[1]].position >= written


def test_an_unknown_profile_is_an_error(stage: Stage):
    stage.pod("a")
    binder = stage.serving()
    import msgspec

    decision = msgspec.structs.replace(stage.decide("a"), profile="other")
    (answer,) = binder.answers(binder.ask(decision))
    assert (answer.result, answer.cause) == ("error", "profile")
