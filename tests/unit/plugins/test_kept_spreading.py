"""What a cycle keeps for equal pods under spread and affinity is what a new one computes, however pods and
nodes come and go.

Pods of one signature come one after the other, and are placed now and then, as in `run` of a scheduler.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.cycle import Cycle, CycleResult
from tests.unit.framework import builders
from tests.unit.plugins import worlds

PROFILE = builders.profile_of(
    "PrioritySort", "TaintToleration", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"
)
KEYS = ("zone", "host")
APPS = ("a", "b")


@st.composite
def nodes(draw: st.DrawFn) -> worlds.Manifest:
    labels = {"host": draw(st.sampled_from(worlds.NAMES)), "zone": draw(st.sampled_from(("z1", "z2", "")))}
    kept = {key: value for key, value in labels.items() if draw(st.integers(0, 4))}
    name = draw(st.sampled_from(worlds.NAMES))
    return worlds.node(name, labels=kept, allocatable={"cpu": "4", "memory": "4Gi", "pods": "6"})


def _term(key: str, app: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


@st.composite
def pods(draw: st.DrawFn) -> worlds.Manifest:
    key, app = draw(st.sampled_from(KEYS)), draw(st.sampled_from(APPS))
    term = _term(key, app)
    spread = {**term, "maxSkew": 1, "whenUnsatisfiable": draw(st.sampled_from(("DoNotSchedule", "ScheduleAnyway")))}
    preferred = [{"weight": 7, "podAffinityTerm": term}]
    required, liked = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    affinity: dict[str, Any] = {}
    match draw(st.sampled_from(("apart", "apart", "near", "liked", "disliked", "none"))):
        case "apart":
            affinity = {"podAntiAffinity": {required: [term, *([_term("zone", "b")] if draw(st.booleans()) else [])]}}
        case "near":
            affinity = {"podAffinity": {required: [term]}}
        case "liked":
            affinity = {"podAffinity": {liked: preferred}}
        case "disliked":
            affinity = {"podAntiAffinity": {liked: preferred}}
        case _:
            pass
    found = worlds.pod(
        containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
        affinity=affinity,
        topologySpreadConstraints=[spread] if draw(st.booleans()) else [],
    )
    return found | {"metadata": found["metadata"] | {"labels": {"app": draw(st.sampled_from(APPS))}}}


def told(result: CycleResult) -> Any:
    return result.node, result.scores, result.message, result.nodes_feasible, sorted(map(repr, result.rejections))


@settings(max_examples=300, deadline=None)
@given(
    first=st.lists(nodes(), min_size=3, max_size=6),
    history=st.lists(st.one_of(st.just("place"), worlds.steps(nodes(), pods())), max_size=10),
    incoming=st.lists(pods(), min_size=1, max_size=3),
)
def test_a_cycle_that_has_seen_such_pods_decides_as_a_new_one(
    first: list[worlds.Manifest], history: list[Any], incoming: list[worlds.Manifest]
) -> None:
    world = worlds.World()
    for node in first:
        world.set_node(node)
    kept = Cycle(PROFILE, world.snapshot)
    for number, step in enumerate(["place", "place", *history]):
        if step != "place":
            world.carry_out(step)
        for at, pod in enumerate(incoming):
            view = worlds.view_of(pod, f"incoming{number}-{at}")
            found = kept.run(view)
            assert told(found) == told(Cycle(PROFILE, world.snapshot).run(view))
            if step == "place" and found.node:
                world.place(pod, found.node)
