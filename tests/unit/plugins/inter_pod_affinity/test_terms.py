"""Which pods a term means, and when terms are the same."""

from collections.abc import Mapping
from typing import Any

import pytest

from podyard.cluster.node_table import NodeTable
from podyard.plugins.inter_pod_affinity import terms
from podyard.plugins.inter_pod_affinity.placed_terms import PlacedTerms
from podyard.plugins.inter_pod_affinity.terms import Subject
from tests.support import objects
from tests.unit.plugins.inter_pod_affinity import cases
from tests.unit.plugins.inter_pod_affinity.cases import PREFERRED, REQUIRED


def pod(
    term: dict[str, Any] | None, *, labels: dict[str, str] | None = None, kind: str = "podAffinity", uid: str = "p"
) -> Any:
    """A manifest with one required term."""
    affinity = {} if term is None else {kind: {REQUIRED: [{"topologyKey": "zone"} | term]}}
    return objects.pod(uid, uid=uid, namespace="one", labels=labels, affinity=affinity)


def term_of(term: dict[str, Any], labels: dict[str, str] | None = None) -> terms.Term:
    (only,) = terms.of_pod(cases.view(pod(term, labels=labels)).pod).affinity
    return only


APP = {"matchLabels": {"app": "a"}}


@pytest.mark.parametrize(
    ("term", "space", "space_labels", "meant"),
    [
        pytest.param({}, "one", {}, True, id="own namespace"),
        pytest.param({}, "two", {}, False, id="own namespace only"),
        pytest.param({"namespaces": ["two"]}, "two", {}, True, id="listed"),
        pytest.param({"namespaces": ["two"]}, "one", {}, False, id="own not listed"),
        pytest.param({"namespaceSelector": {}}, "two", {}, True, id="all"),
        pytest.param({"namespaceSelector": {"matchLabels": {"env": "x"}}}, "one", {}, False, id="own not chosen"),
        pytest.param({"namespaceSelector": {"matchLabels": {"env": "x"}}}, "two", {"env": "x"}, True, id="chosen"),
        pytest.param(
            {"namespaces": ["one"], "namespaceSelector": {"matchLabels": {"env": "x"}}}, "one", {}, True, id="or listed"
        ),
    ],
)
def test_namespaces(term: dict[str, Any], space: str, space_labels: dict[str, str], meant: bool) -> None:
    compiled = term_of(term | {"labelSelector": APP})
    assert compiled.matches(space, {"app": "a"}, space_labels) == meant


def test_an_absent_selector_means_nobody_an_empty_one_everybody() -> None:
    assert not term_of({}).matches("one", {"app": "a"}, {})
    assert term_of({"labelSelector": {}}).matches("one", {}, {})


def test_keys_to_match_mean_the_same_merged_or_not() -> None:
    keys = {"matchLabelKeys": ["ver"], "mismatchLabelKeys": ["tier"]}
    merged = APP | {
        "matchExpressions": [
            {"key": "ver", "operator": "In", "values": ["1"]},
            {"key": "tier", "operator": "NotIn", "values": ["x"]},
        ]
    }
    labels = {"ver": "1", "tier": "x"}
    older = term_of(keys | {"labelSelector": APP}, labels)
    assert older == term_of(keys | {"labelSelector": merged}, labels)
    assert older.matches("one", {"app": "a", "ver": "1"}, {})
    assert not older.matches("one", {"app": "a", "ver": "2"}, {})
    assert not older.matches("one", {"app": "a", "ver": "1", "tier": "x"}, {})


def test_a_merged_key_keeps_the_value_it_had_when_the_pod_was_created() -> None:
    merged = {"matchExpressions": [{"key": "ver", "operator": "In", "values": ["1"]}]}
    relabelled = term_of({"matchLabelKeys": ["ver"], "labelSelector": merged}, {"ver": "2"})
    assert relabelled.matches("one", {"ver": "1"}, {})


def test_keys_that_the_pod_does_not_have_are_not_matched() -> None:
    assert term_of({"matchLabelKeys": ["ver"], "labelSelector": APP}) == term_of({"labelSelector": APP})


def test_terms_that_say_the_same_in_another_order_are_equal() -> None:
    one = [
        {"key": "app", "operator": "In", "values": ["a", "b"]},
        {"key": "app", "operator": "Exists"},
        {"key": "app", "operator": "In", "values": ["b"]},
    ]
    other = [line | ({"values": line["values"][::-1]} if "values" in line else {}) for line in (*one[::-1], one[0])]
    assert term_of({"labelSelector": {"matchExpressions": one}}) == term_of(
        {"labelSelector": {"matchExpressions": other}}
    )


def test_a_selector_that_cannot_be_read_is_a_fault_of_the_pod() -> None:
    broken = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}}
    found = terms.of_pod(cases.view(pod(broken)).pod)
    assert found.fault
    assert not found.affinity


def test_anti_affinity_repels() -> None:
    manifest = pod(None)
    line = {"weight": 7, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": APP}}
    manifest["spec"] = {"affinity": {"podAffinity": {PREFERRED: [line]}, "podAntiAffinity": {PREFERRED: [line]}}}
    found = terms.of_pod(cases.view(manifest).pod)
    assert [preference.weight for preference in found.preferences] == [7, -7]


def subject(space: str, labels: Mapping[str, str]) -> Subject:
    return Subject(space, labels, frozenset(labels.items()), {}, 0)


def index_with(*manifests: Any) -> PlacedTerms:
    table = NodeTable()
    table.set_node(cases.node("n0", {"zone": "z1"}))
    for manifest in manifests:
        table.place(cases.view(manifest, "n0"))
    return table.index(PlacedTerms)


def test_equal_terms_of_placed_pods_are_one_group() -> None:
    index = index_with(*[pod({"labelSelector": APP}, kind="podAntiAffinity", uid=f"p{n}") for n in range(3)])
    (group,) = index.anti_affinity.meaning(subject("one", {"app": "a"}))
    assert group.pods == 3
    assert index.anti_affinity.meaning(subject("two", {"app": "a"})) == ()


def test_a_group_ends_with_its_last_pod() -> None:
    table = NodeTable()
    table.set_node(cases.node("n0", {"zone": "z1"}))
    index = table.index(PlacedTerms)
    for uid in ("p0", "p1"):
        table.place(cases.view(pod({"labelSelector": APP}, kind="podAntiAffinity", uid=uid), "n0"))
    table.remove("p0")
    assert len(index.anti_affinity) == 1
    table.remove("p1")
    assert len(index.anti_affinity) == 0
    assert index.anti_affinity.meaning(subject("one", {"app": "a"})) == ()


def test_a_pod_looks_only_into_the_files_of_its_own_labels() -> None:
    index = index_with(
        *[
            pod({"labelSelector": {"matchLabels": {"app": f"a{n}", "tier": "x"}}}, kind="podAntiAffinity", uid=f"p{n}")
            for n in range(50)
        ]
    )
    looked: list[str] = []

    class Watched(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            looked.append(key)
            return super().get(key, default)

    (group,) = index.anti_affinity.meaning(subject("one", Watched(app="a7", tier="x")))
    assert group.term.selector.matches({"app": "a7", "tier": "x"})
    assert len(looked) < 8, "labels were compared with many groups"


def test_another_version_of_a_placed_pod_has_its_own_terms() -> None:
    term = {"labelSelector": APP, "matchLabelKeys": ["ver"]}
    index = index_with(pod(term, labels={"ver": "1"}))
    newer = cases.view(pod(term, labels={"ver": "2"}))
    assert index.terms_of(newer) == terms.of_pod(newer.pod)
