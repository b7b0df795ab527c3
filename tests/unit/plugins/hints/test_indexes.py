"""What a plugin's index leaves out, its hint would have skipped: for every default plugin that has one, on random pods and events."""

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.events import HintAnswer, Registration
from podyard.framework.hint_sharing import SharesHints
from podyard.objects import decoding
from podyard.objects.core import Node, Pod
from podyard.plugins.defaults import default_profile
from podyard.proto.actions import ActionType

PLUGINS = {plugin.name: plugin for plugin in default_profile().plugins}
KEYS = st.sampled_from(["zone", "disk"])
VALUES = st.sampled_from(["1", "2"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=2)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu", "example.com/fpga"]), st.integers(0, 4).map(str), max_size=4
)
NAMESPACES = st.sampled_from(["x", "y"])


def expressions(operators: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    def build(key: str, operator: str, values: list[str]) -> dict[str, Any]:
        one: dict[str, Any] = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            one["values"] = values
        elif operator in ("Gt", "Lt"):
            one["values"] = ["1"]
        return one

    return st.builds(build, KEYS, st.sampled_from(operators), st.lists(VALUES, min_size=1, max_size=2, unique=True))


NODE_EXPRESSIONS = st.lists(expressions(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd")), max_size=2)
POD_SELECTORS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "matchLabels": st.dictionaries(KEYS, VALUES, max_size=2),
            "matchExpressions": st.lists(expressions(("In", "NotIn", "Exists", "DoesNotExist")), max_size=2),
        },
    ),
)
NODE_TERMS = st.fixed_dictionaries(
    {"matchExpressions": NODE_EXPRESSIONS},
    optional={
        "matchFields": st.lists(
            st.builds(
                lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
                st.sampled_from(["In", "NotIn"]),
                st.sampled_from(["n1", "n2"]),
            ),
            max_size=1,
        )
    },
)
POD_TERMS = st.fixed_dictionaries(
    {"topologyKey": KEYS, "labelSelector": POD_SELECTORS},
    optional={"namespaces": st.lists(NAMESPACES, max_size=2), "namespaceSelector": st.just({})},
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def needs_nodes(terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


SPREADS = st.fixed_dictionaries(
    {
        "maxSkew": st.just(1),
        "topologyKey": KEYS,
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": POD_SELECTORS,
    },
    optional={"matchLabelKeys": st.lists(KEYS, max_size=1), "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"])},
)
AFFINITIES = st.fixed_dictionaries(
    {},
    optional={
        "nodeAffinity": st.lists(NODE_TERMS, min_size=1, max_size=2).map(
            lambda terms: needs_nodes(terms)["nodeAffinity"]
        ),
        "podAffinity": st.lists(POD_TERMS, max_size=2).map(lambda terms: {REQUIRED: terms}),
        "podAntiAffinity": st.lists(POD_TERMS, max_size=2).map(lambda terms: {REQUIRED: terms}),
    },
)
TAINTS = st.lists(
    st.builds(lambda key, value: {"key": key, "value": value, "effect": "NoSchedule"}, KEYS, VALUES), max_size=2
)
TOLERATIONS = st.lists(st.builds(lambda key: {"key": key, "operator": "Exists"}, KEYS), max_size=2)


FIT, NODE_AFFINITY, SPREAD, POD_AFFINITY = (
    "NodeResourcesFit",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
)


@st.composite
def pods(draw: Any, uid: str = "uid-p", about: str = "") -> Pod:
    """A pod with something of everything, or only with what one plugin's hints read."""

    def some(plugin: str, strategy: st.SearchStrategy[Any], nothing: Any) -> Any:
        return draw(strategy) if about in ("", plugin) else nothing

    affinity = draw(AFFINITIES) if about in ("", NODE_AFFINITY, POD_AFFINITY) else {}
    if about == NODE_AFFINITY:
        affinity = draw(st.lists(NODE_TERMS, min_size=1, max_size=2).map(needs_nodes))
    spec = {
        "containers": [{"name": "c", "resources": {"requests": some(FIT, AMOUNTS, {})}}],
        "nodeSelector": some(NODE_AFFINITY, st.dictionaries(KEYS, VALUES, max_size=1), {}),
        "affinity": affinity,
        "tolerations": draw(TOLERATIONS),
        "topologySpreadConstraints": some(SPREAD, st.lists(SPREADS, max_size=2), []),
        "nodeName": draw(st.sampled_from(["", "n1", "n2"])) if uid != "uid-p" else "",
    }
    metadata = {"name": uid.removeprefix("uid-"), "namespace": draw(NAMESPACES), "uid": uid, "labels": draw(LABELS)}
    return decoded("pods", {"metadata": metadata, "spec": spec})


@st.composite
def nodes(draw: Any, name: str) -> Node:
    document = {
        "metadata": {"name": name, "labels": draw(LABELS)},
        "spec": {"taints": draw(TAINTS), "unschedulable": draw(st.booleans())},
        "status": {"allocatable": draw(AMOUNTS) | {"pods": draw(st.sampled_from(["0", "3", "4"]))}},
    }
    return decoded("nodes", document)


def decoded(resource: str, document: Mapping[str, Any]) -> Any:
    return decoding.decode(resource, msgspec.json.encode(document))


@st.composite
def small_steps(draw: Any) -> tuple[Any, Any]:
    """A node with one label more, less or different, and maybe one resource."""
    labels, amounts = draw(LABELS), draw(AMOUNTS) | {"pods": "3"}
    other = dict(labels)
    key = draw(KEYS)
    if other.pop(key, None) is None or draw(st.booleans()):
        other[key] = draw(VALUES)
    more = amounts | draw(st.dictionaries(st.sampled_from([*amounts]), st.sampled_from(["2", "4"]), max_size=1))
    step = tuple(
        decoded("nodes", {"metadata": {"name": "n1", "labels": has}, "status": {"allocatable": size}})
        for has, size in ((labels, amounts), (other, more))
    )
    return step[0], step[1]


def node_steps() -> st.SearchStrategy[tuple[Any, Any]]:
    def of(name: str) -> st.SearchStrategy[tuple[Any, Any]]:
        return st.tuples(st.one_of(st.none(), nodes(name)), st.one_of(nodes(name), nodes(name), st.none()))

    return st.sampled_from(["n1", "n2"]).flatmap(of).filter(lambda step: step != (None, None))


def pod_steps() -> st.SearchStrategy[tuple[Any, Any]]:
    one = pods(uid="uid-other")
    return st.one_of(st.tuples(st.none(), one), st.tuples(one, st.none()), st.tuples(one, one))


def indexed() -> list[Any]:
    return [
        pytest.param(name, number, id=f"{name} {registration.event.label or registration.event.resource}")
        for name, plugin in PLUGINS.items()
        if isinstance(plugin, SharesHints) and hasattr(plugin, "events_to_register")
        for number, registration in enumerate(plugin.events_to_register())
        if registration.index is not None
    ]


STEPS = {"Node": st.one_of(node_steps(), small_steps(), small_steps()), "Pod": pod_steps()}


@pytest.mark.parametrize(("name", "number"), indexed())
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_what_an_index_leaves_out_would_be_skipped(name: str, number: int, data: st.DataObject) -> None:
    plugin: Any = PLUGINS[name]
    registration: Registration = plugin.events_to_register()[number]
    assert registration.hint is not None
    assert registration.index is not None
    index = registration.index()
    about = name if name in (FIT, NODE_AFFINITY, SPREAD, POD_AFFINITY) else ""
    parked = data.draw(st.lists(pods(about=about), min_size=1, max_size=4))
    gone = data.draw(st.sets(st.integers(0, len(parked) - 1)))
    signatures: dict[Hashable, list[Pod]] = {}
    for pod in parked:
        signatures.setdefault(plugin.hint_signature(pod), []).append(pod)
    for signature in signatures:
        index.add(signature)
    for number_gone in gone:
        signature = plugin.hint_signature(parked[number_gone])
        if signatures.pop(signature, None) is not None:
            index.remove(signature)
    for late in data.draw(st.lists(pods(about=about), max_size=2)):
        signature = plugin.hint_signature(late)
        if signature not in signatures:
            index.add(signature)
        signatures.setdefault(signature, []).append(late)
    old, new = data.draw(STEPS[registration.event.resource])
    if new is None and not registration.event.action & ActionType.DELETE:
        return
    found = index.candidates(old, new)
    asked = set(signatures) if found is None else set(found)
    assert asked <= set(signatures)
    for signature in signatures.keys() - asked:
        for pod in signatures[signature]:
            answer = registration.hint(pod, old, new)
            assert answer.answer == HintAnswer.SKIP, answer.reason


FIELDS = (
    "containers",
    "node_selector",
    "affinity",
    "tolerations",
    "topology_spread_constraints",
    "namespace",
    "labels",
)


def with_field(pod: Pod, field: str, other: Pod) -> Pod:
    """`pod` with one field of `other`."""
    part, owner = ("metadata", pod.metadata) if hasattr(pod.metadata, field) else ("spec", pod.spec)
    value = getattr(getattr(other, part), field)
    return msgspec.structs.replace(pod, **{part: msgspec.structs.replace(owner, **{field: value})})


@pytest.mark.parametrize("name", [name for name, plugin in PLUGINS.items() if isinstance(plugin, SharesHints)])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pods_of_equal_signature_are_answered_alike(name: str, data: st.DataObject) -> None:
    """A pod that differs in one field only: either its signature differs, or no answer does."""
    plugin: Any = PLUGINS[name]
    pod, other = data.draw(pods()), data.draw(pods())
    alike = [with_field(pod, field, other) for field in FIELDS]
    alike = [one for one in alike if plugin.hint_signature(one) == plugin.hint_signature(pod)]
    for registration in plugin.events_to_register():
        if registration.hint is None or registration.event.resource not in STEPS:
            continue
        old, new = data.draw(STEPS[registration.event.resource])
        assert {told(registration, one, old, new) for one in alike} <= {told(registration, pod, old, new)}


def told(registration: Registration, pod: Pod, old: Any, new: Any) -> Any:
    assert registration.hint is not None
    try:
        return registration.hint(pod, old, new)
    except Exception as fault:
        return type(fault)
