"""Nominations: a folded index is what one would make of the view."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.changes import Change, Origin
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.proto import subjects
from tests.unit.framework import builders

STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["", "n1", "n2", "bound", "gone"])), min_size=1, max_size=20
)


def view_of(name: str, state: str) -> PodView | None:
    if state == "gone":
        return None
    if state == "bound":
        return builders.on(builders.make_pod(name, nominated="n1"), "n1")
    return builders.make_pod(name, nominated=state)


@settings(max_examples=200)
@given(STEPS)
def test_what_is_nominated_is_what_the_view_says(steps: list[tuple[str, str]]) -> None:
    """docs/rules.md, gone-pod-leaves-no-nomination: nothing is left of a pod that is bound, gone or nominated
    elsewhere."""
    nominations, pods = Nominations(), dict[str, PodView]()
    states: dict[str, str] = {}
    for name, state in steps:
        old, new = pods.pop(name, None), view_of(name, state)
        if new is not None:
            pods[name] = new
        version, before = nominations.version, shown(nominations)
        nominations.apply(Change(subjects.PODS, f"uid-{name}", old, new, Origin()))
        states[name] = state
        there = {(node, uid) for node in nominations.nodes() for uid in nominations.on(node)}
        assert there == {(at, f"uid-{one}") for one, at in states.items() if at in ("n1", "n2")}
        assert shown(nominations) == shown(Nominations(pods.values()))
        assert shown(nominations) == before or nominations.version > version
        assert bool(nominations) == any(state for state in shown(nominations).values())


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, True),
        ({"schedulerName": "ours"}, True),
        ({"schedulerName": "another"}, False),
        ({"schedulingGates": [{"name": "example.com/wait"}]}, False),
    ],
)
def test_who_is_not_scheduled_here_keeps_nobody_out(more: dict[str, Any], counts: bool) -> None:
    pod = builders.make_pod("a", nominated="n1", spec=more)
    assert bool(Nominations([pod], schedulers={"ours"})) is counts


def test_a_nomination_counts_once_the_last_gate_is_gone() -> None:
    gated = builders.make_pod("a", nominated="n1", spec={"schedulingGates": [{"name": "example.com/wait"}]})
    nominations, free = Nominations([gated]), builders.make_pod("a", nominated="n1")
    nominations.apply(Change(subjects.PODS, free.uid, gated, free, Origin()))
    assert list(nominations.on("n1")) == [free.uid]


def shown(nominations: Nominations) -> dict[str, dict[str, int]]:
    return {node: {uid: id(pod) for uid, pod in nominations.on(node).items()} for node in nominations.nodes()}
