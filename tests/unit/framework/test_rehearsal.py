"""Where a pod would go: what a cycle would find, told of every node, and nothing is changed."""

from typing import Any, ClassVar

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.extenders import Answers, Extender, FilterAnswer, FilterCall
from podyard.framework.interfaces import Scope
from podyard.framework.one_node import filter_one
from podyard.framework.plugin_times import PluginTimes
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.rehearsal import LEFT_OUT, Rehearsed, Verdict, rehearse
from podyard.framework.snapshot import Snapshot
from podyard.proto.facts import Nomination
from tests.unit.framework import builders, clusters, oracle
from tests.unit.framework.test_against_oracle import Cluster, carry_out, steps

DEFAULT = builders.profile()
PLAIN = builders.profile_of(*oracle.PLUGINS)


def run(cluster: Snapshot, pod: PodView, profile: Profile = DEFAULT) -> Rehearsed:
    """Without extenders nothing is asked."""
    try:
        next(rehearse(profile, cluster, pod))
    except StopIteration as end:
        return end.value
    raise AssertionError("it asks")


def told(result: CycleResult) -> tuple[Any, ...]:
    """What an attempt is made of."""
    return (
        result.node,
        result.nominated_node,
        result.victims,
        result.rejections,
        result.nearest,
        result.scores[:3],
        result.message,
        result.error,
        result.nodes_total,
        result.nodes_feasible,
    )


def books(cluster: Snapshot) -> tuple[Any, ...]:
    """All that a cycle could leave behind in the table."""
    nodes = cluster.nodes
    placed = {name: list(nodes.pods_on(name)) for name in nodes.row_of}
    return nodes.version, placed, list(nodes.all_placed), nodes.pod_count.tolist(), dict(nodes.row_of), nodes.broken


def verdicts(found: Rehearsed) -> dict[str, tuple[Verdict, ...]]:
    return {name: alike.verdicts for alike in found.rejected for name in alike.names}


@settings(max_examples=150, deadline=None)
@given(history=st.lists(steps, max_size=14), pod=clusters.pods(), priority=st.sampled_from((0, 10)))
def test_it_finds_what_a_cycle_finds_and_changes_nothing(
    history: list[Any], pod: oracle.Manifest, priority: int
) -> None:
    """With victims too: a pod of higher priority preempts."""
    cluster = Cluster()
    for step in history:
        carry_out(cluster, step)
    plain = clusters.pod_view(pod, "incoming")
    view = builders.make_pod("incoming", priority=priority, spec=spec_of(plain))
    before = books(cluster.snapshot)
    found = run(cluster.snapshot, view)
    assert books(cluster.snapshot) == before
    assert told(found.result) == told(Cycle(DEFAULT, cluster.snapshot).run(view))
    fits = {name for name in cluster.nodes if filter_one(DEFAULT, name, view, cluster.snapshot).ok}
    assert set(verdicts(found)) == (set() if found.result.error else set(cluster.nodes) - fits)
    assert found.result.nodes_feasible == len(fits)


def spec_of(view: PodView) -> dict[str, Any]:
    """The spec of a pod, to be given another priority."""
    spec = msgspec.to_builtins(view.stored.spec)
    spec.pop("priority", None)
    return spec


@settings(max_examples=100, deadline=None)
@given(history=st.lists(steps, max_size=12), pod=clusters.pods())
def test_each_plugin_says_of_each_node_what_it_says_alone(history: list[Any], pod: oracle.Manifest) -> None:
    """Not only the first one that rejects: a profile of one plugin alone says the same of the node."""
    cluster = Cluster()
    for step in history:
        carry_out(cluster, step)
    view = clusters.pod_view(pod, "incoming")
    found = run(cluster.snapshot, view, PLAIN)
    said = verdicts(found)
    for name in cluster.nodes:
        here = {verdict.plugin: verdict.reasons for verdict in said.get(name, ())}
        for plugin in PLAIN.filter:
            alone = resolve("alone", [*enabled("PrioritySort"), *enabled(plugin.name)])
            status = filter_one(alone, name, view, cluster.snapshot)
            assert here.get(plugin.name, ()) == status.reasons or absent(found), (name, plugin.name)


def absent(found: Rehearsed) -> bool:
    """PreFilter left nodes out, or rejected the pod: those are not judged by all."""
    return any(
        "didn't satisfy plugin" in reason for one in found.rejected for v in one.verdicts for reason in v.reasons
    )


def enabled(name: str) -> list[Enabled]:
    return [Enabled(plugin=plugin) for plugin in DEFAULT.plugins if plugin.name == name]


def test_all_who_reject_a_node_are_told_and_nodes_alike_stand_together() -> None:
    cluster = builders.snapshot_of(
        builders.make_node("a", cpu="1", taints=[("k", "", "NoSchedule")]),
        builders.make_node("b", cpu="1", taints=[("k", "", "NoSchedule")]),
        builders.make_node("c", cpu="1"),
        builders.make_node("d", cpu="4"),
    )
    found = run(cluster, builders.make_pod("p", cpu="2"))
    assert [(one.names, [(v.plugin, v.unresolvable) for v in one.verdicts]) for one in found.rejected] == [
        (("a", "b"), [("TaintToleration", True), ("NodeResourcesFit", True)]),
        (("c",), [("NodeResourcesFit", True)]),
    ]
    assert found.result.node == "d"


def test_all_nodes_that_fit_have_their_scores_best_first() -> None:
    nodes = [builders.make_node(f"n{at}", cpu=str(2 + at % 3)) for at in range(9)]
    found = run(builders.snapshot_of(*nodes), builders.make_pod("p", cpu="1"))
    totals = [score.total for score in found.result.scores]
    assert len(totals) == 9
    assert totals == sorted(totals, reverse=True)
    assert found.equals == totals.count(totals[0])
    assert found.result.scores[0].node == found.result.node


def test_room_that_is_kept_for_a_nominated_pod_is_said() -> None:
    table = builders.table_of(builders.make_node("a", cpu="2"))
    important = builders.make_pod("important", cpu="2", priority=5)
    fact = Nomination(namespace="default", name="important", uid=important.uid, node="a", priority=5)
    waits = PodView(important.stored, important.key, important.uid, 1, nomination=fact)
    cluster = Snapshot(table, nominated=Nominations([waits], frozenset({"default-scheduler"})))
    found = run(cluster, builders.make_pod("p", cpu="1"))
    [(verdict,)] = verdicts(found).values()
    assert verdict.plugin == "NodeResourcesFit"
    assert verdict.reasons == ("Insufficient cpu, with the room that is kept for default/important",)


def test_a_plugin_that_cannot_judge_nodes_it_is_never_shown_says_so_and_ends_nothing() -> None:
    class Delicate:
        name: ClassVar[str] = "Delicate"
        scope: ClassVar[Scope] = "row"

        def signature(self, pod: Any) -> None:
            return None

        def filter(self, state: Any, pod: Any, cluster: Any, rows: Any) -> Any:
            if len(rows) == 2:
                raise RuntimeError("what is a node without a label?")
            return np.zeros(len(rows), dtype=np.int64)

        def filter_one(self, state: Any, pod: Any, cluster: Any, row: int) -> int:
            return 0

        def verdict(self, state: Any, code: int) -> Any:
            raise AssertionError

    profile = resolve(
        "default-scheduler",
        [*enabled("PrioritySort"), *enabled("NodeResourcesFit"), Enabled(plugin=Delicate())],
    )
    cluster = builders.snapshot_of(builders.make_node("a", cpu="1"), builders.make_node("b", cpu="4"))
    found = run(cluster, builders.make_pod("p", cpu="2"), profile)
    assert found.result.node == "b"
    assert {name: [v.plugin for v in said] for name, said in verdicts(found).items()} == {
        "a": ["NodeResourcesFit", "Delicate"]
    }
    assert not cluster.take_faults()


def test_what_extenders_leave_out_is_said_and_they_are_asked_as_in_a_cycle() -> None:
    cluster = builders.snapshot_of(builders.make_node("a"), builders.make_node("b"), builders.make_node("c", cpu="1"))
    pod = builders.make_pod("p", cpu="2")
    dialogue = rehearse(DEFAULT, cluster, pod, (Extender(name="http://x", filters=True),))
    (call,) = next(dialogue)
    assert isinstance(call, FilterCall)
    assert call.nodes == ("a", "b")
    said: Answers = (FilterAnswer(nodes=("b",), failed={"a": "too loud"}),)
    try:
        dialogue.send(said)
    except StopIteration as end:
        found: Rehearsed = end.value
    else:
        raise AssertionError("it asks again")
    assert found.result.node == "b"
    assert {name: [(v.plugin, v.reasons) for v in each] for name, each in verdicts(found).items()} == {
        "a": [("Extender", (LEFT_OUT,))],
        "c": [("NodeResourcesFit", ("Insufficient cpu",))],
    }


def test_it_is_not_timed_and_leaves_no_kept_result() -> None:
    cluster = builders.snapshot_of(builders.make_node("a"), builders.make_node("b"))
    times = PluginTimes(lambda: 1.0)
    cycle = Cycle(DEFAULT, cluster, plugin_times=times)
    cycle.run(builders.make_pod("p"))
    assert times.take()
    run(cluster, builders.make_pod("p"))
    assert not times.take()


def test_without_nodes_nobody_can_say() -> None:
    found = run(builders.snapshot_of(), builders.make_pod("p"))
    assert found.result.error == "no nodes available to schedule pods"
    assert not found.rejected
