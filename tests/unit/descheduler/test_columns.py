"""Columns say of all nodes what the plain rule says of each, whatever has gone meanwhile; what they keep is
bounded."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.descheduler.core import anti_affinity, columns
from podyard.descheduler.core.anti_affinity import Repelled, repelling
from podyard.descheduler.core.columns import Columns
from podyard.descheduler.core.node_fit import NodeFit
from podyard.descheduler.core.plugins import duplicates
from podyard.descheduler.core.state import CycleState
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from tests.support.objects import typed_node
from tests.unit.descheduler import plain_fit
from tests.unit.descheduler.make import NOW, pod

NAMES: Final = ("n1", "n2", "n3", "n4")
HARD: Final = {"key": "dedicated", "value": "3", "effect": "NoSchedule"}
SOFT: Final = {"key": "spot", "value": "", "effect": "PreferNoSchedule"}

NODES: Final = st.tuples(
    *(
        st.builds(
            lambda name, zone, taints, unschedulable, sizes: typed_node(
                name,
                taints=taints,
                unschedulable=unschedulable,
                metadata={"labels": {} if zone is None else {"zone": zone}},
                status={"allocatable": sizes},
            ),
            st.just(name),
            st.sampled_from([None, "1", "2", "x"]),
            st.lists(st.sampled_from([HARD, SOFT]), unique_by=lambda one: one["key"], max_size=2),
            st.integers(0, 5).map(lambda drawn: drawn == 0),
            st.fixed_dictionaries(
                {"pods": st.sampled_from(["1", "3", "9"])},
                optional={
                    "cpu": st.sampled_from(["1", "2500m", "4"]),
                    "memory": st.sampled_from(["1", "1500m", "2Gi"]),
                    "example.com/card": st.sampled_from(["0", "1"]),
                },
            ),
        )
        for name in NAMES
    )
)


def _term(key: str, *namespaces: str, **labels: str) -> dict[str, Any]:
    selector = {"matchLabels": labels} if labels else {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    return {"topologyKey": key, "namespaces": list(namespaces), "labelSelector": selector}


def _zones(operator: str, *values: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


AFFINITIES: Final = (
    _zones("In", "1", "2"),
    _zones("NotIn", "1"),
    _zones("Exists"),
    _zones("DoesNotExist"),
    _zones("Gt", "1"),
    _zones("In"),
    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}},
)  # fmt: skip
PODS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "on": st.sampled_from([*NAMES, "elsewhere", ""]),
            "name": st.sampled_from(["a", "b", "c", "d", "e"]),
            "namespace": st.sampled_from(["default", "prod"]),
            "app": st.sampled_from(["web", "db"]),
            "phase": st.sampled_from(["Running", "Running", "Running", "Succeeded"]),
            "requests": st.fixed_dictionaries(
                {},
                optional={
                    "cpu": st.sampled_from(["0", "1", "1500m", "0.0001", "4"]),
                    "memory": st.sampled_from(["1", "100m", "1Gi"]),
                    "example.com/card": st.sampled_from(["0", "1"]),
                },
            ),
            "tolerations": st.sampled_from(
                [[], [{"operator": "Exists"}], [{"key": "dedicated", "operator": "Gt", "value": "2"}]]
            ),
            "selector": st.sampled_from([{}, {}, {"zone": "1"}]),
            "affinity": st.none() | st.sampled_from(AFFINITIES),
            "apart": st.lists(
                st.sampled_from(
                    [_term("zone", app="web"), _term("rack", app="web"), _term("zone", "default", "prod", app="db")]
                ),
                max_size=2,
            )
            | st.just([_term("zone")]),
        }
    ),
    max_size=10,
    unique_by=lambda one: (one["namespace"], one["name"]),
)


def _made(one: dict[str, Any]) -> Pod:
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": one["apart"]}}
    if one["affinity"] is not None:
        affinity["nodeAffinity"] = one["affinity"]
    return pod(
        one["name"],
        one["on"],
        namespace=one["namespace"],
        phase=one["phase"],
        labels={"app": one["app"]},
        spec={
            "containers": [{"name": "c", "resources": {"requests": one["requests"]}}],
            "tolerations": one["tolerations"],
            "nodeSelector": one["selector"],
            "affinity": affinity,
        },
    )


@given(NODES, PODS, st.sets(st.sampled_from(NAMES)), st.lists(st.tuples(st.integers(0, 9), st.booleans())))
def test_all_nodes_at_once_say_what_each_says(
    nodes: tuple[Node, ...], drawn: list[dict[str, Any]], among: set[str], going: list[tuple[int, bool]]
) -> None:
    pods = [_made(one) for one in drawn]
    state = CycleState(nodes=nodes, pods=pods)
    asked = [node for node in nodes if node.metadata.name in among]
    fit = NodeFit(asked, state)
    for at, gone in [(len(pods), True), *going]:
        for one in pods[at : at + 1]:
            state.evicted(one, NOW, gone=gone)
        for one in pods:
            assert fit.elsewhere(one) is plain_fit.elsewhere(one, asked, state)
            assert fit.somewhere(one) is plain_fit.somewhere(one, asked, state)


@given(NODES, PODS, st.sets(st.sampled_from(NAMES)))
def test_duplicates_may_go_to_the_nodes_that_each_would_take_them(
    nodes: tuple[Node, ...], drawn: list[dict[str, Any]], among: set[str]
) -> None:
    asked = [node for node in nodes if node.metadata.name in among]
    usable = duplicates._Usable(asked, CycleState(nodes=nodes, pods=[]))
    for one in map(_made, drawn):
        count = sum(plain_fit.allowed_but_for_faults(one, node) for node in asked)
        assert usable.count([one]) == (count if count > 1 else 0)


def test_a_node_of_which_nobody_can_say_what_is_left_does_not_stand_in_the_way_of_others() -> None:
    garbled = typed_node("n1", metadata={}, status={"allocatable": {"cpu": "lots", "pods": "9"}})
    state = CycleState(nodes=[garbled, typed_node("n2", pods="9")], pods=[pod("a", "n3")])
    assert NodeFit(state.nodes, state).elsewhere(pod("a", "n3"))


def test_answers_that_are_kept_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "KEPT_BYTES", 4096)
    pods = [pod(f"p{at}", "n1", spec={"nodeSelector": {"rack": str(at)}}) for at in range(200)]
    state = CycleState(nodes=[typed_node(name) for name in NAMES], pods=pods)
    fit = NodeFit(state.nodes, state)
    assert not any(map(fit.elsewhere, pods))
    found = state.index(Columns)
    assert 0 < found._allowed.bytes <= 4096
    assert 0 < found._rooms.bytes <= 4096


def test_places_of_terms_that_are_kept_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anti_affinity, "KEPT_BYTES", 4096)
    apart = [
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term("zone", app=str(at))]}}
        for at in range(200)
    ]
    pods = [pod(f"p{at}", "n1", labels={"app": str(at)}, spec={"affinity": one}) for at, one in enumerate(apart)]
    state = CycleState(nodes=[typed_node("n1")], pods=pods)
    found = state.index(Repelled)
    for one in pods:
        (term,) = repelling(one)
        assert list(found.nodes(term, pod("other"))) == ["n1"]
        assert list(found.nodes(term, one)) == []
    assert 0 < found._near.bytes <= 4096
