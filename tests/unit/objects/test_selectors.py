import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.objects import selectors
from podyard.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from podyard.objects.errors import SelectorError
from podyard.objects.meta import LabelSelector, LabelSelectorRequirement

LABELS = {"app": "web", "tier": "front", "cores": "16", "odd": "x16"}


def label_selector(**fields):
    return selectors.compile_labels(msgspec.convert(fields, LabelSelector))


@pytest.mark.parametrize(
    ("key", "operator", "values", "matches"),
    [
        ("app", "In", ["web", "db"], True),
        ("app", "In", ["db"], False),
        ("gone", "In", ["web"], False),
        ("app", "NotIn", ["db"], True),
        ("app", "NotIn", ["web"], False),
        ("gone", "NotIn", ["web"], True),
        ("app", "Exists", [], True),
        ("gone", "Exists", [], False),
        ("app", "DoesNotExist", [], False),
        ("gone", "DoesNotExist", [], True),
    ],
)
def test_label_operators(key, operator, values, matches):
    selector = label_selector(matchExpressions=[{"key": key, "operator": operator, "values": values}])
    assert selector.matches(LABELS) is matches


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything():
    assert not selectors.compile_labels(None).matches({})
    assert label_selector().matches({})
    assert label_selector().everything
    assert not selectors.compile_labels(None).everything
    assert selectors.compile_map({}).matches(LABELS)


def test_all_parts_of_a_selector_must_hold():
    both = label_selector(matchLabels={"app": "web"}, matchExpressions=[{"key": "tier", "operator": "Exists"}])
    assert both.matches(LABELS)
    assert not both.matches({"app": "web"})
    assert not both.matches({"tier": "front"})


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ({"key": "a", "operator": "Gt", "values": ["1"]}, "matchExpressions[0].operator"),
        ({"key": "a", "operator": "In"}, "matchExpressions[0].values"),
        ({"key": "a", "operator": "NotIn"}, "matchExpressions[0].values"),
        ({"key": "a", "operator": "Exists", "values": ["x"]}, "matchExpressions[0].values"),
    ],
)
def test_a_faulty_label_selector_says_where(expression, field):
    with pytest.raises(SelectorError) as caught:
        label_selector(matchExpressions=[expression])
    assert caught.value.field == field


keys = st.sampled_from("abc")
values = st.sampled_from(["", "x", "y", "z"])
expressions = st.builds(
    lambda key, operator, chosen: LabelSelectorRequirement(
        key=key, operator=operator, values=tuple(chosen) if operator in ("In", "NotIn") else ()
    ),
    keys,
    st.sampled_from(selectors.LABEL_OPERATORS),
    st.lists(values, min_size=1),
)


def oracle(expression, labels):
    present = expression.key in labels
    return {
        "In": present and labels[expression.key] in expression.values,
        "NotIn": not present or labels[expression.key] not in expression.values,
        "Exists": present,
        "DoesNotExist": not present,
    }[expression.operator]


@given(st.dictionaries(keys, values), st.lists(expressions), st.dictionaries(keys, values))
def test_label_selectors_agree_with_their_definition(match_labels, listed, labels):
    selector = LabelSelector(match_labels=match_labels, match_expressions=tuple(listed))
    wanted = match_labels.items() <= labels.items() and all(oracle(item, labels) for item in listed)
    assert selectors.compile_labels(selector).matches(labels) is wanted


def node_terms(*terms):
    return selectors.compile_nodes(msgspec.convert({"nodeSelectorTerms": list(terms)}, NodeSelector))


def labelled(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (labelled("cores", "Gt", "8"), True),
        (labelled("cores", "Gt", "16"), False),
        (labelled("cores", "Lt", "17"), True),
        (labelled("cores", "Lt", "-1"), False),
        (labelled("odd", "Gt", "1"), False),
        (labelled("gone", "Lt", "1"), False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}, False),
        ({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["n1"]}]}, False),
        (
            {
                **labelled("app", "In", "db"),
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
            },
            False,
        ),
        ({}, False),
    ],
)
def test_node_selector_terms(term, matches):
    assert node_terms(term).matches(LABELS, "n1") is matches


def test_one_matching_term_is_enough_and_none_matches_no_node():
    assert node_terms(labelled("app", "In", "db"), labelled("app", "In", "web")).matches(LABELS, "n1")
    assert not node_terms().matches(LABELS, "n1")


@pytest.mark.parametrize(
    "term",
    [
        labelled("cores", "Gt", "eight"),
        labelled("cores", "Gt", "1", "2"),
        labelled("cores", "Gt", "99999999999999999999"),
        labelled("cores", "Near", "1"),
        {"matchFields": [{"key": "metadata.name", "operator": "Exists"}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]},
    ],
)
def test_a_faulty_term_matches_nothing_but_does_not_spoil_the_others(term):
    assert node_terms(term, labelled("app", "In", "web")).matches(LABELS, "n1")
    with pytest.raises(SelectorError):
        node_terms(term, labelled("app", "In", "db")).matches(LABELS, "n1")


def test_node_selector_and_required_affinity_must_both_hold(typed_pod):
    required = {"nodeSelectorTerms": [labelled("tier", "In", "front")]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    needed = selectors.required_node_affinity(typed_pod(nodeSelector={"app": "web"}, affinity=affinity))
    assert needed.matches(LABELS, "n1")
    assert not needed.matches({"app": "web"}, "n1")
    assert not needed.matches({"tier": "front"}, "n1")
    assert selectors.required_node_affinity(typed_pod()).matches({}, "n1")


def test_preferences_without_weight_or_content_are_left_out_and_faulty_ones_refused():
    good = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="app", operator="Exists"),))
    bad = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="app", operator="Near"),))
    listed = [(0, good), (5, NodeSelectorTerm()), (7, good)]
    terms = [PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in listed]
    assert [term.weight for term in selectors.compile_preferred(terms)] == [7]
    with pytest.raises(SelectorError):
        selectors.compile_preferred([PreferredSchedulingTerm(weight=1, preference=bad)])
