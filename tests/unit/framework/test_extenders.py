"""HTTP extenders as steps of the cycle: what they are asked, and what their answers do."""

from collections.abc import Generator, Mapping
from typing import Any

import pytest

from podyard.framework import extenders
from podyard.framework import status as statuses
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.extenders import (
    Calls,
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    FilterAnswer,
    FilterCall,
    MetaVictims,
    PreemptAnswer,
    PreemptCall,
    PrioritizeAnswer,
    PrioritizeCall,
)
from podyard.framework.interfaces import NodeVictims, PostFilterResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code
from podyard.plugins.node_affinity.args import Args as AffinityArgs
from podyard.plugins.node_affinity.plugin import NodeAffinity
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.unit.framework.builders import make_node, make_pod, on, required, snapshot_of, term

Answering = dict[tuple[str, type], Any]
"""By extender and kind of call: the answer, or what makes it."""


def play(
    snapshot: Snapshot, pod: Any, extenders: list[Extender], answers: Answering, *plugins: Any
) -> tuple[CycleResult, list[Calls]]:
    """Run a cycle to its end; returns also what was asked."""
    profile = resolve(
        "test", [Enabled(plugin=plugin) for plugin in (PrioritySort(), NodeResourcesFit(FitArgs()), *plugins)]
    )
    steps = Cycle(profile, snapshot, extenders=extenders).steps(pod)
    asked: list[Calls] = []
    try:
        calls = next(steps)
        while True:
            asked.append(calls)
            calls = steps.send(tuple(answer(answers, call) for call in calls))
    except StopIteration as end:
        return end.value, asked


def answer(answers: Answering, call: ExtenderCall) -> ExtenderAnswer:
    found = answers[call.extender.name, type(call)]
    return found(call) if callable(found) else found


def names(calls: list[Calls]) -> list[list[tuple[str, type]]]:
    return [[(call.extender.name, type(call)) for call in each] for each in calls]


NODES = [make_node(name, cpu=cpu) for name, cpu in (("a", "2"), ("b", "8"), ("c", "4"), ("d", "1"))]
FILTERS = Extender(name="http://one", filters=True)
SECOND = Extender(name="http://two", filters=True)


def test_without_extenders_nothing_is_asked_and_the_result_is_the_same() -> None:
    pod = make_pod("p", cpu="2")
    result, asked = play(snapshot_of(*NODES), pod, [], {})
    assert asked == []
    assert result.node == "b"


def test_each_extender_is_shown_what_the_one_before_left() -> None:
    answers: Answering = {
        ("http://one", FilterCall): FilterAnswer(nodes=("c", "a")),
        ("http://two", FilterCall): FilterAnswer(nodes=("a",), failed={"c": "no disk"}),
    }
    result, asked = play(snapshot_of(*NODES), make_pod("p", cpu="2"), [FILTERS, SECOND], answers)
    assert [call.nodes for (call,) in asked if isinstance(call, FilterCall)] == [("a", "b", "c"), ("a", "c")]
    assert (result.node, result.nodes_feasible) == ("a", 1)
    assert ("no disk", 1, False) in [(one.reason, one.nodes, one.unresolvable) for one in result.rejections]


def test_no_node_left_names_the_reasons_and_extenders_among_the_rejectors() -> None:
    answers: Answering = {
        ("http://one", FilterCall): FilterAnswer(
            failed={"a": "no disk", "b": "no disk"}, failed_and_unresolvable={"b": "wrong rack"}
        )
    }
    seen: list[Diagnosis] = []

    class Looking:
        name = "Looking"

        def post_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis) -> Any:
            seen.append(diagnosis)
            return PostFilterResult(status=statuses.unschedulable("nothing to be done"))

    snapshot = snapshot_of(*NODES)
    result, asked = play(snapshot, make_pod("p", cpu="2"), [FILTERS, SECOND], answers, Looking())
    assert len(asked) == 1
    assert result.message == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 no disk, 1 wrong rack. nothing to be done"
    )  # c was left out without a reason
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == ("Extender", "NodeResourcesFit")
    codes = {name: seen[0].code(row) for name, row in snapshot.nodes.row_of.items()}
    assert codes == {
        "a": Code.UNSCHEDULABLE,
        "b": Code.UNRESOLVABLE,
        "c": Code.UNRESOLVABLE,
        "d": Code.UNRESOLVABLE,
    }


def test_an_extender_that_fails_ends_the_attempt_unless_it_is_ignorable() -> None:
    for broken in (FilterAnswer(error="connection refused"), FilterAnswer(nodes=("elsewhere",))):
        answers: Answering = {
            ("http://one", FilterCall): broken,
            ("http://two", FilterCall): FilterAnswer(nodes=("c",)),
        }
        result, asked = play(snapshot_of(*NODES), make_pod("p", cpu="2"), [FILTERS, SECOND], answers)
        assert len(asked) == 1
        assert result.error == (
            broken.error
            or 'extender "http://one" claims a filtered node "elsewhere" which is not found in the input node list'
        )
        ignorable = Extender(name="http://one", filters=True, ignorable=True)
        result, asked = play(snapshot_of(*NODES), make_pod("p", cpu="2"), [ignorable, SECOND], answers)
        assert [call.nodes for (call,) in asked if isinstance(call, FilterCall)] == [("a", "b", "c")] * 2
        assert result.node == "c"


class Counted(str):
    """A name that counts how often names are compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_looking_for_unknown_nodes_costs_as_much_as_there_are_in_the_answer() -> None:
    asked = [f"n{number:04}" for number in range(500)]
    steps = extenders.filter_steps([FILTERS], make_pod("p"), asked)
    next(steps)
    Counted.compared = 0
    with pytest.raises(StopIteration):
        steps.send((FilterAnswer(nodes=tuple(map(Counted, reversed(asked)))),))
    assert Counted.compared < 30 * len(asked)


def test_a_node_or_victim_that_is_named_twice_counts_once() -> None:
    snapshot = snapshot_of(*NODES)
    answers: Answering = {("http://one", FilterCall): FilterAnswer(nodes=("b", "a", "b", "a"))}
    result, _ = play(snapshot, make_pod("p"), [FILTERS], answers)
    assert (result.nodes_feasible, sorted(score.node for score in result.scores)) == (2, ["a", "b"])
    victim = on(make_pod("v"), "a")
    snapshot.nodes.place(victim)
    steps = extenders.preempt_steps([PREEMPTS], make_pod("p"), {"a": NodeVictims(pods=(victim,))}, snapshot.nodes)
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send((PreemptAnswer(victims={"a": MetaVictims(uids=("uid-v", "uid-v"))}),))
    assert end.value.value["a"].pods == (victim,)


def test_points_stay_within_what_messages_bear() -> None:
    big = Extender(name="http://one", prioritizes=True, weight=2**31 - 1)
    scores = {"a": 2**63 - 1, "b": -(2**63)}
    answers: Answering = {("http://one", PrioritizeCall): PrioritizeAnswer(scores=scores)}
    result, _ = play(snapshot_of(*NODES), make_pod("p"), [big], answers)
    assert result.node == "a"
    assert all(abs(score.total) <= 2**53 + 400 for score in result.scores)


def test_scores_of_all_extenders_are_asked_for_at_once_and_weighted() -> None:
    extenders = [
        Extender(name="http://one", prioritizes=True, weight=3),
        Extender(name="http://two", prioritizes=True, weight=1),
        Extender(name="http://three", prioritizes=True, weight=1),
    ]
    answers: Answering = {
        ("http://one", PrioritizeCall): PrioritizeAnswer(scores={"a": 10, "b": 1, "elsewhere": 10}),
        ("http://two", PrioritizeCall): PrioritizeAnswer(scores={"a": 2}),
        ("http://three", PrioritizeCall): PrioritizeAnswer(error="time is up"),
    }
    result, asked = play(snapshot_of(*NODES), make_pod("p", cpu="1"), extenders, answers)
    assert names(asked) == [[(one.name, PrioritizeCall) for one in extenders]]
    best = result.scores[0]
    assert result.node == best.node == "a"
    assert best.plugins["http://one"] == 300
    assert best.plugins["http://two"] == 20
    assert best.total == sum(best.plugins.values())
    assert [score.node for score in result.scores] == ["a", "b", "c"]
    assert "http://three" not in best.plugins


def test_a_single_node_that_extenders_left_is_taken_without_scores() -> None:
    both = Extender(name="http://one", filters=True, prioritizes=True)
    answers: Answering = {("http://one", FilterCall): FilterAnswer(nodes=("c",))}
    result, asked = play(snapshot_of(*NODES), make_pod("p"), [both], answers)
    assert (result.node, result.scores, len(asked)) == ("c", (), 1)


def test_nodes_that_extenders_left_out_get_no_points_for_one_pod_only() -> None:
    snapshot = snapshot_of(*NODES)
    profile = resolve("test", [Enabled(plugin=plugin) for plugin in (PrioritySort(), NodeResourcesFit(FitArgs()))])
    cycle = Cycle(profile, snapshot, extenders=[FILTERS])
    steps = cycle.steps(make_pod("p", cpu="1"))
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send((FilterAnswer(nodes=("a", "c")),))
    assert {score.node for score in end.value.value.scores} == {"a", "c"}
    assert cycle.run(make_pod("q", cpu="1")).node == "b"


def test_an_extender_is_asked_about_its_resources_only() -> None:
    extender = Extender(name="http://one", filters=True, managed_resources=frozenset(("example.com/gpu",)))
    assert not extender.is_interested(make_pod("p", cpu="1"))
    assert extender.is_interested(make_pod("p", requests={"example.com/gpu": "1"}))
    container = {"name": "i", "resources": {"limits": {"example.com/gpu": "0"}}}
    assert extender.is_interested(make_pod("p", spec={"initContainers": [container]}))
    result, asked = play(snapshot_of(*NODES), make_pod("p", cpu="2"), [extender], {})
    assert (result.node, asked) == ("b", [])


def test_the_pods_own_nominated_node_is_asked_about_before_all_others() -> None:
    pod = make_pod("p", cpu="2", nominated="c")
    answers: Answering = {("http://one", FilterCall): lambda call: FilterAnswer(nodes=call.nodes)}
    result, asked = play(snapshot_of(*NODES), pod, [FILTERS], answers)
    assert [call.nodes for (call,) in asked if isinstance(call, FilterCall)] == [("c",)]
    assert result.node == "c"
    failing: Answering = {
        ("http://one", FilterCall): lambda call: (
            FilterAnswer(error="no") if call.nodes == ("c",) else FilterAnswer(nodes=("a",))
        )
    }
    assert play(snapshot_of(*NODES), pod, [FILTERS], failing)[0].node == "a"


class Offering:
    """PostFilter that offers all pods of nodes that may be helped, and takes the first of what is left."""

    name = "Offering"

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis) -> PostFilterResult:
        raise AssertionError("there are extenders")

    def post_filter_steps(
        self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis
    ) -> Generator[Mapping[str, NodeVictims], Mapping[str, NodeVictims], PostFilterResult]:
        nodes = [cluster.nodes.names[row] for row in diagnosis.rows(Code.UNSCHEDULABLE).tolist()]
        left = yield {node: NodeVictims(pods=tuple(cluster.nodes.pods_on(node).values())) for node in nodes}
        if not left:
            return PostFilterResult(status=statuses.unschedulable("nobody helps"), nominated_node="")
        node = min(left)
        said = statuses.Status(reasons=tuple(pod.name for pod in left[node].pods))
        return PostFilterResult(status=said, nominated_node=node)


def full() -> Snapshot:
    snapshot = snapshot_of(make_node("a", cpu="2"), make_node("b", cpu="2"))
    for name, node in (("v1", "a"), ("v2", "b"), ("v3", "b")):
        snapshot.nodes.place(on(make_pod(name, cpu="1"), node))
    return snapshot


PREEMPTS = Extender(name="http://one", preempts=True)


def test_extenders_look_through_the_candidates_of_preemption() -> None:
    answers: Answering = {
        ("http://one", PreemptCall): PreemptAnswer(victims={"b": MetaVictims(uids=("uid-v3",), pdb_violations=1)})
    }
    result, asked = play(full(), make_pod("p", cpu="2"), [PREEMPTS], answers, Offering())
    ((call,),) = asked
    assert isinstance(call, PreemptCall)
    assert {node: [pod.name for pod in one.pods] for node, one in call.victims.items()} == {
        "a": ["v1"],
        "b": ["v2", "v3"],
    }
    assert result.nominated_node == "b"
    assert result.post_filter is not None
    assert result.post_filter.reasons == ("v3",)


def test_a_failure_to_preempt_is_what_postfilter_says() -> None:
    faults = [
        (PreemptAnswer(error="time is up"), "time is up"),
        (PreemptAnswer(victims={"b": MetaVictims(uids=())}), 'expected at least one victim pod on node "b"'),
        (PreemptAnswer(victims={"z": MetaVictims(uids=("uid-v3",))}), 'nodeinfo not found for node name "z"'),
        (
            PreemptAnswer(victims={"a": MetaVictims(uids=("uid-v3",))}),
            "extender: http://one claims to preempt pod (UID: uid-v3) on node: a, but the pod is not found on that node",
        ),
    ]
    for said, text in faults:
        answers: Answering = {("http://one", PreemptCall): said}
        result, _ = play(full(), make_pod("p", cpu="2"), [PREEMPTS], answers, Offering())
        assert result.post_filter is not None
        assert (result.post_filter.code, result.post_filter.message) == (Code.ERROR, f"preemption: {text}")
        assert result.error == ""
        assert result.message == f"0/2 nodes are available: 2 Insufficient cpu. preemption: {text}"
    ignorable = Extender(name="http://one", preempts=True, ignorable=True)
    answers = {("http://one", PreemptCall): PreemptAnswer(error="time is up")}
    assert play(full(), make_pod("p", cpu="2"), [ignorable], answers, Offering())[0].nominated_node == "a"
    answers = {("http://one", PreemptCall): PreemptAnswer(victims={"b": MetaVictims(uids=())})}
    assert play(full(), make_pod("p", cpu="2"), [ignorable], answers, Offering())[0].nominated_node == ""


def test_nodes_that_prefilter_left_out_stay_so() -> None:
    pod = make_pod("p", spec=required(*[term("metadata.name", "In", name, field=True) for name in "ab"]))
    answers: Answering = {("http://one", FilterCall): FilterAnswer(failed={"a": "no", "b": "no"})}
    result, asked = play(snapshot_of(*NODES), pod, [FILTERS], answers, NodeAffinity(AffinityArgs()))
    assert result.error == ""
    assert [call.nodes for (call,) in asked if isinstance(call, FilterCall)] == [("a", "b")]
    assert result.message == "0/4 nodes are available: 2 no, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
