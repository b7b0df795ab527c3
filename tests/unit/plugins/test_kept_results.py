"""What a cycle keeps for equal pods and brings up to date row by row is what a new one computes: ports, room,
balance, images, features.

Images reach other rows as they spread, which only tokens tell the framework.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.cycle import Cycle, CycleResult
from tests.unit.framework import builders
from tests.unit.plugins import worlds

PLUGINS = (
    "PrioritySort", "NodePorts", "NodeResourcesFit", "DynamicResources", "NodeDeclaredFeatures",
    "NodeResourcesBalancedAllocation", "ImageLocality",
)  # fmt: skip
PROFILE = builders.profile_of(*PLUGINS)
MIB = 1024 * 1024


@st.composite
def nodes(draw: st.DrawFn) -> worlds.Manifest:
    images = draw(st.lists(st.sampled_from(("web:1", "huge:2")), max_size=2, unique=True))
    return worlds.node(
        draw(st.sampled_from(worlds.NAMES)),
        allocatable={"cpu": draw(st.sampled_from(("1", "4"))), "memory": "4Gi", "pods": "5"},
        images=[{"names": [image], "sizeBytes": 900 * MIB} for image in images],
        declaredFeatures=draw(st.sampled_from(([], ["RestartAllContainersOnContainerExits"]))),
    )


@st.composite
def pods(draw: st.DrawFn) -> worlds.Manifest:
    port = draw(st.sampled_from((0, 0, 80)))
    return worlds.pod(
        containers=[
            {
                "name": "c",
                "image": draw(st.sampled_from(("web:1", "huge:2", "unknown"))),
                "ports": [{"containerPort": 80, "hostPort": port}] if port else [],
                "restartPolicyRules": [
                    {"action": draw(st.sampled_from(("Restart", "Restart", "RestartAllContainers")))}
                ],
                "resources": {"requests": draw(st.sampled_from(({}, {"cpu": "500m"}, {"cpu": "1", "memory": "1Gi"})))},
            }
        ]
    )


def told(result: CycleResult) -> Any:
    return result.node, result.scores, result.message, result.nodes_feasible, sorted(map(repr, result.rejections))


@settings(max_examples=150, deadline=None)
@given(
    first=st.tuples(*[nodes() for _ in worlds.NAMES]),
    history=st.lists(worlds.steps(nodes(), pods()), max_size=8),
    incoming=st.lists(pods(), min_size=2, max_size=3),
)
def test_a_cycle_that_has_seen_such_pods_decides_as_a_new_one(
    first: tuple[worlds.Manifest, ...], history: list[Any], incoming: list[worlds.Manifest]
) -> None:
    world, views = worlds.World(), [worlds.view_of(pod, f"incoming{at}") for at, pod in enumerate(incoming)]
    for node in first:
        world.set_node(node)
    kept = Cycle(PROFILE, world.snapshot)
    for step in [None, *history]:
        if step is not None:
            world.carry_out(step)
        for view in views:
            assert told(kept.run(view)) == told(Cycle(PROFILE, world.snapshot).run(view))
