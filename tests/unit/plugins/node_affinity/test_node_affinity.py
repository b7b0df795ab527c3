"""NodeAffinity with what the scheduler adds, against a plain reading; PreScore. Without additions it is read
in tests/unit/framework."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.cycle_state import CycleState
from podyard.framework.status import Code
from podyard.plugins.node_affinity.args import Args
from podyard.plugins.node_affinity.plugin import REASON_ENFORCED, REASON_POD, NodeAffinity
from tests.unit.framework import builders, clusters, oracle
from tests.unit.plugins import worlds

weighted = st.lists(st.tuples(st.integers(1, 100), clusters.terms), max_size=2)
nodes = st.lists(st.sampled_from(clusters.NAMES).flatmap(clusters.nodes), unique_by=lambda node: node["name"])
required = st.none() | st.lists(clusters.terms, min_size=1, max_size=2)


def plugin(required: list[Any] | None, preferred: list[tuple[int, Any]]) -> NodeAffinity:
    added: dict[str, Any] = {}
    if required is not None:
        added |= builders.required(*required)["affinity"]["nodeAffinity"]
    if preferred:
        added |= builders.preferred(*preferred)["affinity"]["nodeAffinity"]
    return NodeAffinity(msgspec.convert({"addedAffinity": added} if added else {}, Args))


def view_of(required: list[Any] | None, preferred: list[tuple[int, Any]]) -> Any:
    rules: dict[str, Any] = {}
    if required is not None:
        rules |= builders.required(*required)["affinity"]["nodeAffinity"]
    if preferred:
        rules |= builders.preferred(*preferred)["affinity"]["nodeAffinity"]
    return builders.make_pod("p", spec={"affinity": {"nodeAffinity": rules}} if rules else {})


def holds(terms: list[Any] | None, node: oracle.Manifest) -> bool:
    return terms is None or any(oracle.term_holds(term, node["labels"], node["name"]) for term in terms)


@settings(max_examples=200, deadline=None)
@given(nodes=nodes, added=required, own=required)
def test_what_the_scheduler_demands_comes_before_what_the_pod_does(
    nodes: list[oracle.Manifest], added: list[Any] | None, own: list[Any] | None
) -> None:
    snapshot = builders.snapshot_of(*map(clusters.node_object, nodes))
    affinity, view = plugin(added, []), view_of(own, [])
    answer = affinity.pre_filter(CycleState(), view, snapshot).status
    if answer.code == Code.UNRESOLVABLE:
        return
    found = worlds.filtered(affinity, view, snapshot)
    assert (found is None) == (added is None and own is None)
    for node in nodes if found is not None else ():
        status = found[node["name"]]
        expected = REASON_ENFORCED if not holds(added, node) else REASON_POD if not holds(own, node) else None
        assert (None if status is None else status.message) == expected
        assert status is None or status.code == Code.UNRESOLVABLE


def liked(preferred: list[tuple[int, Any]], node: oracle.Manifest) -> int:
    return sum(weight for weight, term in preferred if oracle.term_holds(term, node["labels"], node["name"]))


@settings(max_examples=200, deadline=None)
@given(nodes=nodes, added=weighted, own=weighted)
def test_preferences_of_scheduler_and_pod_are_added_up_also_without_prescore(
    nodes: list[oracle.Manifest], added: list[tuple[int, Any]], own: list[tuple[int, Any]]
) -> None:
    snapshot = builders.snapshot_of(*map(clusters.node_object, nodes))
    affinity, view = plugin(None, added), view_of(None, own)
    found = worlds.scored(affinity, view, snapshot)
    assert (found is None) == (not added and not own)
    expected = {node["name"]: liked([*added, *own], node) for node in nodes}
    assert found is None or found == expected
    rows = snapshot.nodes.rows()
    alone = affinity.score(CycleState(), view, snapshot, rows).tolist()
    assert {snapshot.nodes.names[row]: score for row, score in zip(rows.tolist(), alone, strict=True)} == expected
