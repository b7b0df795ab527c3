"""NodePorts against a plain reading, after any changes; its hint."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.cycle_state import CycleState, StateMissingError
from podyard.framework.events import HintAnswer
from podyard.framework.status import Code
from podyard.plugins.hinted import UnexpectedObjectError
from podyard.plugins.node_ports import hints
from podyard.plugins.node_ports.plugin import REASON, NodePorts
from podyard.plugins.node_ports.ports import PortsInUse
from tests.unit.plugins import worlds
from tests.unit.plugins.node_ports import plain

ADDRESSES = ("", "0.0.0.0", "10.0.0.1", "10.0.0.2")
ports = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.just(80), "hostPort": st.sampled_from((0, 80, 443)), "protocol": st.sampled_from(("TCP", "UDP"))},
        optional={"hostIP": st.sampled_from(ADDRESSES)},
    ),
    max_size=2,
)  # fmt: skip
containers = st.builds(lambda ports: {"name": "c", "ports": ports}, ports)
sidecars = st.builds(
    lambda one, always: one | ({"restartPolicy": "Always"} if always else {}), containers, st.booleans()
)
pods = st.builds(
    lambda main, init: worlds.pod(containers=[main], initContainers=init), containers, st.lists(sidecars, max_size=1)
)
nodes = st.sampled_from(worlds.NAMES).map(worlds.node)
PLUGIN = NodePorts()


def check(world: worlds.World, incoming: worlds.Manifest) -> None:
    found = worlds.filtered(PLUGIN, worlds.view_of(incoming), world.snapshot)
    if not plain.wanted(incoming):
        assert found is None
        return
    assert found is not None
    assert {name: status is None for name, status in found.items()} == {
        name: plain.fits(incoming, world.on(name)) for name in world.nodes
    }
    rejected = [status for status in found.values() if status is not None]
    assert all((status.code, status.reasons) == (Code.UNSCHEDULABLE, (REASON,)) for status in rejected)


@settings(max_examples=200, deadline=None)
@given(history=worlds.histories(nodes, pods), incoming=pods)
def test_every_node_is_judged_as_the_plain_reading_says_after_every_change(history: list[Any], incoming: Any) -> None:
    world = worlds.World()
    world.snapshot.nodes.index(PortsInUse)
    for step in history:
        world.carry_out(step)
        check(world, incoming)


@settings(max_examples=100, deadline=None)
@given(history=worlds.histories(nodes, pods), added=pods, incoming=pods, choice=st.integers(0, 100))
def test_a_trial_on_one_node_counts_its_changes(history: list[Any], added: Any, incoming: Any, choice: int) -> None:
    world = worlds.World()
    for step in history:
        world.carry_out(step)
    table = world.snapshot.nodes
    view = worlds.view_of(incoming)
    if not table.row_of or not view.usage.ports:
        return
    name, row = list(table.row_of.items())[choice % len(table.row_of)]
    state = CycleState()
    PLUGIN.pre_filter(state, view, world.snapshot)
    with table.trial(row) as trial:
        left = world.on(name)
        if left:
            gone = next(uid for uid, (_, where) in world.placed.items() if where == name)
            trial.remove(gone)
            left.remove(world.placed[gone][0])
        trial.add(worlds.view_of(added, "added"))
        taken = PLUGIN.filter_one(state, view, world.snapshot, row)
    assert (not taken) == plain.fits(incoming, [*left, added])


def test_filter_without_prefilter_says_what_is_missing() -> None:
    world = worlds.World()
    world.set_node(worlds.node("n0"))
    with pytest.raises(StateMissingError, match=r'^reading "PreFilterNodePorts" from cycleState: not found$'):
        PLUGIN.filter(
            CycleState(), worlds.view_of(worlds.pod(containers=[])), world.snapshot, world.snapshot.nodes.rows()
        )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([], id="none"),
        pytest.param([{"containerPort": 80, "hostPort": 443}], id="number"),
        pytest.param([{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}], id="protocol"),
        pytest.param([{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}], id="address"),
    ],
)
def test_pods_that_want_other_ports_are_told_apart(other: list[Any]) -> None:
    first, second = (
        worlds.view_of(worlds.pod(containers=[{"name": "c", "ports": wanted}]))
        for wanted in ([{"containerPort": 80, "hostPort": 80}], other)
    )
    assert PLUGIN.signature(first) != PLUGIN.signature(second)


def with_port(number: int, **more: Any) -> Any:
    port = {"containerPort": 80, "hostPort": number, "hostIP": more.pop("ip", "")}
    return worlds.view_of(worlds.pod(containers=[{"name": "c", "ports": [port]}], **more), "other").pod


@pytest.mark.parametrize(
    ("gone", "answer", "reason"),
    [
        pytest.param(
            with_port(80, nodeName="n1"),
            HintAnswer.QUEUE,
            "default/other freed port 80/TCP on n1, the pod needs 10.0.0.1:80/TCP",
            id="same",
        ),
        pytest.param(with_port(80), HintAnswer.SKIP, "default/other was on no node", id="nowhere"),
        pytest.param(with_port(0, nodeName="n1"), HintAnswer.SKIP, "default/other had no host port", id="no-port"),
        pytest.param(
            with_port(80, nodeName="n1", ip="10.0.0.2"),
            HintAnswer.SKIP,
            "default/other freed 10.0.0.2:80/TCP on n1, none of which the pod needs",
            id="other-address",
        ),
    ],
)
def test_a_pod_that_leaves_helps_if_it_had_a_wanted_port(gone: Any, answer: HintAnswer, reason: str) -> None:
    assert hints.after_pod_deleted(with_port(80, ip="10.0.0.1"), gone, None) == (answer, reason)


def test_an_event_without_the_deleted_pod_is_an_error_which_counts_as_queue() -> None:
    with pytest.raises(UnexpectedObjectError):
        hints.after_pod_deleted(with_port(80), None, None)
