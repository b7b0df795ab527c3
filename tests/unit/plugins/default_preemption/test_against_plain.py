"""Preemption against the plain reading of its rules, on random small clusters."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.pods import PodView
from podyard.framework.status import Status
from podyard.plugins.default_preemption.plugin import dry_run, potential_rows
from podyard.proto.facts import PodStatusFact
from tests.unit.framework.builders import make_node, make_pod, profile_of
from tests.unit.plugins.default_preemption import plain
from tests.unit.plugins.default_preemption.plain import Case
from tests.unit.plugins.default_preemption.scenes import Scene, budget, names, placed

PLUGINS = ("PrioritySort", "NodePorts", "NodeResourcesFit", "DefaultPreemption")
"""What the plain reading knows; the suite `preempt` holds the others."""
ROOM_ONLY = ("PrioritySort", "TaintToleration", "NodeResourcesFit", "DefaultPreemption")
"""Where only room counts, and the node itself."""
PORTS = (80, 443)
APPS = ("web", "db")


@st.composite
def pods(draw: st.DrawFn, name: str, nodes: int, *, most: int) -> Case:
    return {
        "name": name,
        "node": f"n{draw(st.integers(0, nodes - 1))}",
        "cpu": draw(st.sampled_from((0, 200, 500, 1000, 2000))),
        "ports": draw(st.sets(st.sampled_from(PORTS), max_size=1)),
        "priority": draw(st.sampled_from((-5, 0, 3, most))),
        "start": draw(st.none() | st.integers(0, 3)),
        "app": draw(st.sampled_from(APPS)),
    }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 3))
    nodes = [
        {"name": f"n{number}", "cpu": draw(st.sampled_from((1000, 2000, 3000))), "pods": draw(st.sampled_from((2, 5, 9)))}
        for number in range(count)
    ]  # fmt: skip
    found = [draw(pods(f"p{number}", count, most=10)) for number in range(draw(st.integers(1, 9)))]
    nominated = [draw(pods(f"w{number}", count, most=20)) for number in range(draw(st.integers(0, 2)))]
    budgets = [
        {
            "app": draw(st.sampled_from(APPS)),
            "allowed": draw(st.integers(-1, 2)),
            "disrupted": draw(st.sets(st.sampled_from([pod["name"] for pod in found]), max_size=2)),
        }
        for _ in range(draw(st.integers(0, 2)))
    ]
    me = draw(pods("me", count, most=10)) | {"priority": 10}
    return {"nodes": nodes, "pods": found, "nominated": nominated, "budgets": budgets, "me": me}


def arguments(pod: Case) -> dict[str, Any]:
    ports = [{"containerPort": port, "hostPort": port} for port in sorted(pod["ports"])]
    container = {
        "name": "c",
        "ports": ports,
        "resources": {"requests": {"cpu": f"{pod['cpu']}m"} if pod["cpu"] else {}},
    }
    return {"priority": pod["priority"], "labels": {"app": pod["app"]}, "spec": {"containers": [container]}}


def scene_of(case: Case, *plugins: str) -> Scene:
    return Scene(
        [make_node(node["name"], cpu=f"{node['cpu']}m", pods=node["pods"]) for node in case["nodes"]],
        [
            placed(pod["name"], pod["node"], start="" if pod["start"] is None else f"00:0{pod['start']}", **arguments(pod))
            for pod in case["pods"]
        ],
        budgets=[budget(one["allowed"], {"app": one["app"]}, disrupted=sorted(one["disrupted"])) for one in case["budgets"]],
        nominated=[make_pod(pod["name"], nominated=pod["node"], **arguments(pod)) for pod in case["nominated"]],
        use=profile_of(*(plugins or PLUGINS)),
    )  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(cases())
def test_preemption_is_the_one_of_the_plain_reading(case: Case) -> None:
    scene, me = scene_of(case), make_pod("me", **arguments(case["me"]))
    result = scene.run(me)
    found: dict[str, tuple[list[str], int]] = {}
    for node in case["nodes"]:
        standing = [pod for pod in case["pods"] if pod["node"] == node["name"]]
        if plain.passes(node, standing, case["me"], case["nominated"]):
            assert result.nominated_node is None
            continue
        expected = plain.on_node(node, case)
        got = scene.tried(me, node["name"])
        if isinstance(expected, str):
            assert isinstance(got, Status), (node, got)
        else:
            assert got == expected
            if case["me"]["cpu"] <= node["cpu"]:  # else no pods less would help, and the node is not tried
                found[node["name"]] = expected
    if result.node:
        return
    if not found:
        assert (result.nominated_node, result.victims) == ("", ())
        return
    assert result.nominated_node is not None
    costs = {name: plain.cost(case, *outcome) for name, outcome in found.items()}
    assert costs[result.nominated_node] == min(costs.values())
    assert names(result) == found[result.nominated_node][0]
    assert sum(victim.pdb_violation for victim in result.victims) == found[result.nominated_node][1]


@settings(max_examples=30, deadline=None)
@given(cases())
def test_the_same_cluster_gives_the_same_choice(case: Case) -> None:
    first, second = (scene_of(case).run(make_pod("me", **arguments(case["me"]))) for _ in range(2))
    assert (first.nominated_node, first.victims, first.message) == (
        second.nominated_node,
        second.victims,
        second.message,
    )


@st.composite
def changes(draw: st.DrawFn) -> list[Case]:
    """What happens between two preemptions: pods come, go, or start; a node gets larger, smaller, or goes;
    others are nominated."""
    kinds = ("come", "come", "go", "start", "resize", "leave", "nominate", "taint")
    return [
        {
            "kind": draw(st.sampled_from(kinds)),
            "pod": draw(pods(f"x{number}", 4, most=10)),
            "which": draw(st.integers(0, 9)),
            "cpu": draw(st.sampled_from((1000, 2000, 3000))),
        }
        for number in range(draw(st.integers(1, 12)))
    ]


def started_at(pod: PodView, time: str) -> PodView:
    fact = PodStatusFact(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, node=pod.node_name, phase="Running", start_time=time
    )
    return PodView(pod.stored, pod.key, pod.uid, pod.sequence, pod.bound, status=fact)


def change(scene: Scene, one: Case) -> None:
    table, pod = scene.snapshot.nodes, one["pod"]
    there = list(table.all_placed.values())
    match one["kind"]:
        case "come":
            start = "" if pod["start"] is None else f"00:0{pod['start']}"
            table.place(placed(pod["name"], pod["node"], start=start, **arguments(pod)))
        case "go" if there:
            table.remove(there[one["which"] % len(there)].uid)
        case "start" if there:
            started = there[one["which"] % len(there)]
            table.place(started_at(started, f"2026-01-01T00:0{one['which'] % 4}:00Z"))
        case "resize":
            table.set_node(make_node(pod["node"], cpu=f"{one['cpu']}m", pods=9))
        case "leave":
            table.remove_node(pod["node"])
        case "nominate":
            scene.snapshot.nominated.follow(pod["name"], make_pod(pod["name"], nominated=pod["node"], **arguments(pod)))
        case "taint":
            table.set_node(make_node(pod["node"], cpu=f"{one['cpu']}m", taints=[("k", "", "NoSchedule")]))
        case _:
            pass


@settings(max_examples=250, deadline=None)
@given(cases(), changes())
def test_what_is_kept_of_earlier_preemptions_is_what_a_fresh_look_finds(case: Case, later: list[Case]) -> None:
    """A search with all that is kept, and one that tries each node out."""
    scene, me = scene_of(case, *ROOM_ONLY), make_pod("me", **arguments({**case["me"], "ports": set()}))
    for one in later:
        for wanted in (1, 2, 9):
            feasibility = scene.cycle.judge(me)
            diagnosis = feasibility.diagnosis()
            rows = np.array(potential_rows(scene.snapshot, diagnosis), dtype=np.intp)
            run = dry_run(feasibility.state, me, scene.snapshot, diagnosis)
            by_sums, by_trial = run.search(rows, wanted), run._try_out(rows, wanted)  # pyright: ignore[reportPrivateUsage]
            assert by_sums.candidates == by_trial.candidates
            assert by_sums.costs.tolist() == by_trial.costs.tolist()
            assert by_sums.statuses == by_trial.statuses or by_sums.candidates
        change(scene, one)
