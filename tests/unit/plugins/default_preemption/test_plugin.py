"""The whole plugin in a cycle: who may preempt, what is nominated, what is said."""

from collections.abc import Callable, Mapping

import pytest

from podyard.cluster.pods import PodView
from podyard.framework import events
from podyard.framework.event_registry import EventRegistry, watched_resources
from podyard.framework.events import ClusterEvent, HintAnswer
from podyard.framework.interfaces import NodeVictims, PostFilterResult
from podyard.framework.status import Code
from podyard.plugins.default_preemption.args import Args
from podyard.plugins.default_preemption.plugin import DefaultPreemption
from podyard.proto.actions import ActionType
from podyard.proto.decisions import Victim
from tests.unit.framework.builders import make_node, make_pod, profile, profile_of, required, term
from tests.unit.plugins.default_preemption.scenes import PREEMPTED, Scene, budget, names, placed

PLUGINS = ("PrioritySort", "NodeUnschedulable", "NodeAffinity", "NodeResourcesFit", "DefaultPreemption")


def me(cpu: str = "2", *, nominated: str = "", policy: str = "", priority: int = 10) -> PodView:
    return make_pod(
        "me",
        cpu=cpu,
        priority=priority,
        nominated=nominated,
        spec={"preemptionPolicy": policy} if policy else None,
    )


def scene(*pods: PodView, nodes: str = "ab", **more: object) -> Scene:
    return Scene([make_node(name) for name in nodes], pods, use=profile_of(*PLUGINS), **more)  # pyright: ignore[reportArgumentType] - the scene's own


def full(node: str, priority: int = 0, **more: object) -> PodView:
    return placed(f"on-{node}", node, cpu="4", priority=priority, **more)  # pyright: ignore[reportArgumentType] - the pod's own


# ---- who may


def test_a_pod_that_fits_nowhere_preempts_where_it_costs_least() -> None:
    result = scene(full("a", 3), full("b", 1)).run(me())
    assert result.victims == (Victim(namespace="default", name="on-b", uid="uid-on-b", priority=1),)
    assert (result.node, result.nominated_node, result.error) == ("", "b", "")
    assert result.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert result.diagnosis is not None


def test_a_pod_with_policy_never_does_not_preempt_and_keeps_its_nomination() -> None:
    result = scene(full("a"), full("b")).run(me(policy="Never", nominated="a"))
    assert (result.victims, result.nominated_node) == ((), None)
    assert result.message == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    )


def test_a_pod_waits_while_its_victims_end() -> None:
    waiting = scene(full("a", deleting=True, conditions=(PREEMPTED,)), full("b")).run(me(nominated="a"))
    assert (waiting.victims, waiting.nominated_node) == ((), None)
    assert waiting.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")


@pytest.mark.parametrize(
    "on_a",
    [
        pytest.param(full("a", deleting=True), id="deleted for another reason"),
        pytest.param(full("a", 10, deleting=True, conditions=(PREEMPTED,)), id="not of lower priority"),
        pytest.param(full("a", conditions=(PREEMPTED,)), id="not ending"),
    ],
)
def test_other_pods_on_the_nominated_node_are_not_waited_for(on_a: PodView) -> None:
    assert scene(on_a, full("b", -5)).run(me(nominated="a")).nominated_node == "b"


def test_victims_on_a_node_that_cannot_take_the_pod_any_more_are_not_waited_for() -> None:
    nodes = [make_node("a", unschedulable=True), make_node("b")]
    pods = [full("a", deleting=True, conditions=(PREEMPTED,)), full("b")]
    assert Scene(nodes, pods, use=profile_of(*PLUGINS)).run(me(nominated="a")).nominated_node == "b"


def test_victims_on_a_node_that_is_gone_are_not_waited_for() -> None:
    assert scene(full("a"), full("b", -5)).run(me(nominated="gone")).nominated_node == "b"


# ---- where


def test_nodes_that_pods_less_cannot_help_are_not_tried() -> None:
    nodes = [make_node("a", unschedulable=True), make_node("b"), make_node("c", cpu="1")]
    result = Scene(nodes, [full("a", -9), full("b", 5)], use=profile_of(*PLUGINS)).run(me())
    assert (result.nominated_node, names(result)) == ("b", ["on-b"])


def test_nodes_that_prefilter_left_out_are_not_tried() -> None:
    pod = make_pod("me", cpu="2", priority=10, spec=required(term("metadata.name", "In", "b", field=True)))
    assert scene(full("a", -9), full("b", 5)).run(pod).nominated_node == "b"


def test_the_start_of_the_search_comes_from_the_pods_uid_and_all_nodes_get_their_turn() -> None:
    nodes = "abcdefgh"
    limited = profile_of(
        *PLUGINS, args={"DefaultPreemption": {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}}
    )

    def taken(uid: str) -> str:
        pods = [full(node, number) for number, node in enumerate(nodes)]
        found = Scene([make_node(node) for node in nodes], pods, use=limited)
        return found.run(make_pod("me", cpu="2", priority=10, uid=uid)).nominated_node or ""

    first = {uid: taken(uid) for uid in map(str, range(60))}
    assert first == {uid: taken(uid) for uid in map(str, range(60))}
    assert set(first.values()) == set(nodes)


def test_budgets_of_the_snapshot_count() -> None:
    pods = [full("a", -5, labels={"app": "web"}), full("b", 5)]
    guarded = scene(*pods, budgets=[budget(0, {"app": "web"})])
    assert names(guarded.run(me())) == ["on-b"]
    only = scene(pods[0], nodes="a", budgets=[budget(0, {"app": "web"})]).run(me())
    assert [victim.pdb_violation for victim in only.victims] == [True]


# ---- what is said


def test_a_nomination_ends_when_nothing_helps_and_all_nodes_are_told() -> None:
    nodes = [make_node("a", unschedulable=True), make_node("b"), make_node("c")]
    pods = [full("b", 10), placed("low", "c", cpu="1"), placed("high", "c", cpu="3", priority=10)]
    result = Scene(nodes, pods, use=profile_of(*PLUGINS)).run(me(nominated="b"))
    assert (result.victims, result.nominated_node) == ((), "")
    assert result.message == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: 0/3 nodes are available: "
        "1 Insufficient cpu, 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )


def test_without_a_potential_node_preemption_is_not_helpful() -> None:
    result = scene(full("a"), full("b")).run(me("100"))
    assert result.nominated_node == ""
    assert result.message.endswith("preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.")


# ---- with extenders


def steps(
    scene: Scene, pod: PodView, answer: Callable[[Mapping[str, NodeVictims]], Mapping[str, NodeVictims]]
) -> PostFilterResult:
    """Preemption with extenders that answer so."""
    feasibility = scene.cycle.judge(pod)
    plugin = DefaultPreemption(Args())
    run = plugin.post_filter_steps(feasibility.state.clone(), pod, scene.snapshot, feasibility.diagnosis())
    try:
        shown = next(run)
        run.send(answer(shown))
    except StopIteration as end:
        return end.value
    raise AssertionError("it asks twice")


def guarded() -> Scene:
    labels = {"app": "web"}
    return scene(full("a", 1, labels=labels), full("b", 3), full("c", 9), nodes="abc", budgets=[budget(0, labels)])


def test_extenders_see_all_candidates_and_without_a_change_nothing_changes() -> None:
    seen: dict[str, tuple[list[str], int]] = {}

    def look(victims: Mapping[str, NodeVictims]) -> Mapping[str, NodeVictims]:
        seen.update({node: ([pod.name for pod in one.pods], one.pdb_violations) for node, one in victims.items()})
        return victims

    found = steps(guarded(), me(), look)
    assert seen == {"a": (["on-a"], 1), "b": (["on-b"], 0), "c": (["on-c"], 0)}
    alone = guarded().run(me())
    assert (found.nominated_node, found.victims) == (alone.nominated_node, alone.victims) == ("b", alone.victims)


def test_extenders_may_take_nodes_away_and_the_rest_is_compared_as_usual() -> None:
    found = steps(guarded(), me(), lambda victims: {node: victims[node] for node in ("c", "a")})
    assert found.nominated_node == "c"
    last = steps(guarded(), me(), lambda victims: {"a": victims["a"]})
    assert [(one.name, one.pdb_violation) for one in last.victims] == [("on-a", True)]


def test_extenders_may_choose_other_victims_and_count_themselves() -> None:
    def other(victims: Mapping[str, NodeVictims]) -> Mapping[str, NodeVictims]:
        return {"b": NodeVictims(pods=victims["b"].pods, pdb_violations=2), "c": victims["c"]}

    assert steps(guarded(), me(), other).nominated_node == "c"


def test_extenders_that_leave_nothing_end_it_and_keep_the_nomination() -> None:
    found = steps(guarded(), me(), lambda _: {})
    assert (found.status.code, found.status.message) == (
        Code.UNSCHEDULABLE,
        "preemption: no candidate node for preemption",
    )
    assert (found.nominated_node, found.victims) == (None, ())


def test_extenders_are_not_asked_without_a_candidate() -> None:
    found = steps(scene(full("a"), full("b")), me(policy="Never"), lambda _: pytest.fail("asked"))
    assert found.status.message == "preemption: not eligible due to preemptionPolicy=Never."


# ---- what it needs of others


def test_it_registers_deletions_of_pods_with_a_hint_that_never_helps() -> None:
    [registration] = DefaultPreemption(Args()).events_to_register()
    assert registration.event == ClusterEvent(events.POD, ActionType.DELETE)
    assert registration.hint is not None
    assert registration.hint(make_pod("p").pod, make_pod("q").pod, None).answer is HintAnswer.SKIP


def test_budgets_are_followed_where_it_is_enabled_and_only_there() -> None:
    assert "poddisruptionbudgets" in watched_resources([EventRegistry.of_profile(profile())])
    without = profile_of("PrioritySort", "NodeResourcesFit")
    assert "poddisruptionbudgets" not in watched_resources([EventRegistry.of_profile(without)])
