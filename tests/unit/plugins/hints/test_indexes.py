"""What a plugin's index leaves out, its hint would have skipped: for every default plugin that has one, on
random pods and events."""

from collections.abc import Callable, Hashable, Mapping
from functools import cache
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
NAMESPACES = st.sampled_from(["x", "x", "x", "y"])


def expressions(operators: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    def build(key: str, operator: str, values: list[str]) -> dict[str, Any]:
        one: dict[str, Any] = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            one["values"] = values
        elif operator in ("Gt", "Lt"):
            one["values"] = ["1"]
        return one

    return st.builds(build, KEYS, st.sampled_from(operators), st.lists(VALUES, min_size=1, max_size=2, unique=True))


NODE_EXPRESSIONS = st.one_of(
    st.lists(expressions(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd")), max_size=2),
    st.just([{"key": "zone", "operator": "In", "values": ["1", "2"]}]),
)
POD_SELECTORS = st.one_of(
    st.sampled_from(
        [
            {"matchLabels": {"zone": "1"}},
            {"matchLabels": {"disk": "2"}},
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1", "2"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
            {},
            None,
        ]
    ),
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
POD_AFFINITIES = st.builds(
    lambda kind, terms: {kind: {REQUIRED: terms}},
    st.sampled_from(["podAffinity", "podAntiAffinity"]),
    st.one_of(st.lists(POD_TERMS, min_size=1, max_size=1), st.lists(POD_TERMS, max_size=2)),
)
TAINTS = st.lists(
    st.builds(lambda key, value: {"key": key, "value": value, "effect": "NoSchedule"}, KEYS, VALUES), max_size=2
)
TOLERATIONS = st.lists(st.builds(lambda key: {"key": key, "operator": "Exists"}, KEYS), max_size=2)


FIT, NODE_AFFINITY, SPREAD, POD_AFFINITY, PORTS, TAINTS_OF_NODES, VOLUMES = (
    "NodeResourcesFit",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodePorts",
    "TaintToleration",
    "volumes",
)
RICH = {FIT, NODE_AFFINITY, SPREAD, POD_AFFINITY}
"""Their indexes look at more than one thing."""
VOLUME_PLUGINS = {"VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"}
SOURCES: tuple[dict[str, Any], ...] = (
    {"persistentVolumeClaim": {"claimName": "c1"}},
    {"persistentVolumeClaim": {"claimName": "c2"}},
    {"persistentVolumeClaim": {"claimName": "p-v0"}},
    {"ephemeral": {}},
    {"csi": {"driver": "d1"}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"awsElasticBlockStore": {"volumeID": "aws://somewhere/else"}},
    {"gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
    {"gcePersistentDisk": {"pdName": "disk"}},
    {"rbd": {"image": "i", "pool": "rbd", "monitors": ["m1"]}},
    {"rbd": {"image": "i", "pool": "rbd", "monitors": ["m1", "m2"]}},
    {"emptyDir": {}},
)
HOST_PORTS = st.lists(
    st.sampled_from(
        [
            {"containerPort": 80, "hostPort": 80},
            {"containerPort": 80, "hostPort": 80, "protocol": "UDP"},
            {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"},
            {"containerPort": 81, "hostPort": 81},
        ]
    ),
    max_size=2,
)


def volumes(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": f"v{number}", **source} for number, source in enumerate(sources)]


SOME_VOLUMES = st.one_of(st.lists(st.sampled_from(SOURCES), max_size=2), st.just([*SOURCES[:2]])).map(volumes)

NODE_AFFINITIES = st.lists(NODE_TERMS, min_size=1, max_size=2).map(needs_nodes)
NODE_SELECTORS = st.dictionaries(KEYS, VALUES, max_size=1)
SOME_SPREADS = st.lists(SPREADS, max_size=2)
PLACES = st.sampled_from(["", "n1", "n1"])


@st.composite
def pods(draw: Any, uid: str = "uid-p", about: str = "") -> Pod:
    """A pod with something of everything, or only with what one plugin's hints read."""

    def some(plugin: str, strategy: st.SearchStrategy[Any], nothing: Any) -> Any:
        return draw(strategy) if about in ("", plugin) else nothing

    affinity: dict[str, Any] = {}
    if about == NODE_AFFINITY:
        affinity = draw(NODE_AFFINITIES)
    elif about in ("", POD_AFFINITY):
        affinity = draw(POD_AFFINITIES)
    container = {"name": "c", "resources": {"requests": some(FIT, AMOUNTS, {})}, "ports": some(PORTS, HOST_PORTS, [])}
    placed = uid != "uid-p"
    spec = {
        "containers": [container],
        "nodeSelector": some(NODE_AFFINITY, NODE_SELECTORS, {}),
        "affinity": affinity,
        "tolerations": some(TAINTS_OF_NODES, TOLERATIONS, []),
        "topologySpreadConstraints": some(SPREAD, SOME_SPREADS, []),
        "volumes": some(VOLUMES, SOME_VOLUMES, []),
        "nodeName": draw(PLACES) if placed else "",
    }
    status = {"nominatedNodeName": draw(PLACES)} if placed else {}
    labels = some(POD_AFFINITY, LABELS, {}) if about != SPREAD else draw(LABELS)
    metadata = {"name": uid.removeprefix("uid-"), "namespace": draw(NAMESPACES), "uid": uid, "labels": labels}
    return decoded("pods", {"metadata": metadata, "spec": spec, "status": status})


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
    @cache
    def of(name: str) -> st.SearchStrategy[tuple[Any, Any]]:
        return st.tuples(st.one_of(st.none(), nodes(name)), st.one_of(nodes(name), nodes(name), st.none()))

    return st.sampled_from(["n1", "n2"]).flatmap(of).filter(lambda step: step != (None, None))


def pod_steps(about: str, action: ActionType) -> st.SearchStrategy[tuple[Any, Any]]:
    one, nothing = pods(uid="uid-other", about=about), st.none()
    kinds = [
        (ActionType.ADD, st.tuples(nothing, one)),
        (ActionType.DELETE, st.tuples(one, nothing)),
        (ActionType.UPDATE, st.tuples(one, one)),
        (ActionType.UPDATE, st.tuples(one, one).map(lambda step: (step[0], with_field(step[0], "labels", step[1])))),
    ]
    return st.one_of([steps for kind, steps in kinds if action & kind])


class Objects:
    """Any of these before, or nothing, and another one of that name after."""

    def __init__(self, resource: str, *documents: dict[str, Any]) -> None:
        self._found = [decoded(resource, document) for document in documents]

    def __call__(self, action: ActionType) -> st.SearchStrategy[tuple[Any, Any]]:
        first, nothing = st.sampled_from(self._found), st.none()
        kinds = [
            (ActionType.ADD, st.tuples(nothing, first)),
            (ActionType.DELETE, st.tuples(first, nothing)),
            (ActionType.UPDATE, first.flatmap(self._after)),
        ]
        return st.one_of([steps for kind, steps in kinds if action & kind])

    def _after(self, before: Any) -> st.SearchStrategy[tuple[Any, Any]]:
        same = [one for one in self._found if one.metadata.name == before.metadata.name]
        return st.tuples(st.just(before), st.sampled_from(same))


def named(name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


def zoned(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "pv", "labels": {f"topology.kubernetes.io/{key}": labels[key] for key in labels}}}


def csi_node(migrated: str, **counts: int | None) -> dict[str, Any]:
    drivers = [{"name": name, "allocatable": {"count": count}} for name, count in counts.items()]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    return {"metadata": {"name": "n1", "annotations": annotations}, "spec": {"drivers": drivers}}


NODE_STEPS = st.one_of(node_steps(), small_steps(), small_steps())
CLASSES = [
    named("c", provisioner="x", volumeBindingMode=mode, allowedTopologies=topologies)
    for mode in ("Immediate", "WaitForFirstConsumer")
    for topologies in ([], [{"matchLabelExpressions": [{"key": "zone", "values": ["1"]}]}])
]
STEPS: dict[str, Callable[[ActionType], st.SearchStrategy[tuple[Any, Any]]]] = {
    "Node": lambda action: NODE_STEPS.filter(lambda step: bool(action & happened(*step))),
    "PersistentVolumeClaim": Objects(
        "persistentvolumeclaims", *(named(name, ns) for name in ("c1", "c2", "p-v0") for ns in ("x", "y"))
    ),
    "PersistentVolume": Objects("persistentvolumes", zoned(), zoned(zone="a"), zoned(zone="a", region="r")),
    "storage.k8s.io/CSINode": Objects("csinodes", csi_node(""), csi_node("a", d1=1), csi_node("a", d1=2, d2=None)),
    "storage.k8s.io/CSIDriver": Objects(
        "csidrivers", *(named(name, spec={"storageCapacity": told}) for name in ("d1", "d2") for told in (True, False))
    ),
    "storage.k8s.io/CSIStorageCapacity": Objects(
        "csistoragecapacities",
        *(named("c", "x", storageClassName="s", **size) for size in ({}, {"capacity": "1Gi"}, {"capacity": "2Gi"})),
    ),
    "storage.k8s.io/StorageClass": Objects("storageclasses", *CLASSES),
    "storage.k8s.io/VolumeAttachment": Objects(
        "volumeattachments",
        *(
            named("a", spec={"attacher": driver, "nodeName": "n1", "source": {}})
            for driver in ("d1", "ebs.csi.aws.com", "pd.csi.storage.gke.io")
        ),
    ),
    "resource.k8s.io/DeviceClass": Objects(
        "deviceclasses", *(named("gpu", spec={"extendedResourceName": f"example.com/{name}"}) for name in ("gpu", "x"))
    ),
}


def steps_of(registration: Registration, about: str) -> st.SearchStrategy[tuple[Any, Any]] | None:
    """Changes that the event can stand for."""
    resource, action, _ = registration.event
    if resource == "Pod":
        return pod_steps(about, action)
    found = STEPS.get(resource)
    return None if found is None else found(action)


def happened(old: Any, new: Any) -> ActionType:
    if old is None:
        return ActionType.ADD
    return ActionType.DELETE if new is None else ActionType.UPDATE


def indexed(rich: bool) -> list[Any]:
    return [
        pytest.param(name, number, id=f"{name} {registration.event.label or registration.event.resource}")
        for name, plugin in PLUGINS.items()
        if isinstance(plugin, SharesHints) and hasattr(plugin, "events_to_register") and (name in RICH) is rich
        for number, registration in enumerate(plugin.events_to_register())
        if registration.new_index is not None
    ]


@pytest.mark.parametrize(("name", "number"), indexed(rich=True))
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_an_index_leaves_out_would_be_skipped(name: str, number: int, data: st.DataObject) -> None:
    check_index(name, number, data)


@pytest.mark.parametrize(("name", "number"), indexed(rich=False))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_a_plain_index_leaves_out_would_be_skipped(name: str, number: int, data: st.DataObject) -> None:
    check_index(name, number, data)


Drawn = tuple[st.SearchStrategy[list[Pod]], st.SearchStrategy[list[Pod]], st.SearchStrategy[tuple[Any, Any]]]


@cache
def drawn_for(name: str, number: int) -> Drawn:
    """Pods parked first, pods parked later, and steps, for a plugin's registration: made once, not for each
    example."""
    about = VOLUMES if name in VOLUME_PLUGINS else name
    steps = steps_of(PLUGINS[name].events_to_register()[number], about)
    assert steps is not None
    return st.lists(pods(about=about), min_size=1, max_size=4), st.lists(pods(about=about), max_size=2), steps


def check_index(name: str, number: int, data: st.DataObject) -> None:
    plugin: Any = PLUGINS[name]
    registration: Registration = plugin.events_to_register()[number]
    assert registration.hint is not None
    assert registration.new_index is not None
    index = registration.new_index()
    parked_pods, late_pods, steps = drawn_for(name, number)
    parked = data.draw(parked_pods)
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
    for late in data.draw(late_pods):
        signature = plugin.hint_signature(late)
        if signature not in signatures:
            index.add(signature)
        signatures.setdefault(signature, []).append(late)
    old, new = data.draw(steps)
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
    "volumes",
    "namespace",
    "labels",
)


def with_field(pod: Pod, field: str, other: Pod) -> Pod:
    """`pod` with one field of `other`."""
    part, owner = ("metadata", pod.metadata) if hasattr(pod.metadata, field) else ("spec", pod.spec)
    value = getattr(getattr(other, part), field)
    return msgspec.structs.replace(pod, **{part: msgspec.structs.replace(owner, **{field: value})})


@pytest.mark.parametrize("name", [name for name, plugin in PLUGINS.items() if isinstance(plugin, SharesHints)])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_pods_of_equal_signature_are_answered_alike(name: str, data: st.DataObject) -> None:
    """A pod that differs in one field only: either its signature differs, or no answer does."""
    plugin: Any = PLUGINS[name]
    about = VOLUMES if name in VOLUME_PLUGINS else name
    pod, other = data.draw(pods(about=about)), data.draw(pods(about=about))
    alike = [with_field(pod, field, other) for field in FIELDS]
    alike = [one for one in alike if plugin.hint_signature(one) == plugin.hint_signature(pod)]
    for registration in plugin.events_to_register():
        steps = steps_of(registration, about)
        if registration.hint is None or steps is None:
            continue
        old, new = data.draw(steps)
        assert {told(registration, one, old, new) for one in alike} <= {told(registration, pod, old, new)}


def told(registration: Registration, pod: Pod, old: Any, new: Any) -> Any:
    assert registration.hint is not None
    try:
        return registration.hint(pod, old, new)
    except Exception as fault:
        return type(fault)


def test_own_labels_tell_pods_apart_that_others_must_be_apart_from() -> None:
    plugin: Any = PLUGINS[POD_AFFINITY]
    meant, other = (
        decoded("pods", {"metadata": {"name": zone, "namespace": "x", "labels": {"zone": zone}}, "spec": {}})
        for zone in ("1", "2")
    )
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"zone": "1"}}}]
    spec = {"nodeName": "n1", "affinity": {"podAntiAffinity": {REQUIRED: terms}}}
    gone = decoded("pods", {"metadata": {"name": "gone", "namespace": "x"}, "spec": spec})
    registration: Registration = plugin.events_to_register()[0]
    assert told(registration, meant, gone, None).answer is HintAnswer.QUEUE
    assert told(registration, other, gone, None).answer is HintAnswer.SKIP
    assert plugin.hint_signature(meant) != plugin.hint_signature(other)


def test_a_pod_that_counts_no_more_concerns_those_that_counted_it() -> None:
    plugin: Any = PLUGINS[SPREAD]
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"zone": "1"}},
    }
    parked = decoded(
        "pods", {"metadata": {"name": "p", "namespace": "x"}, "spec": {"topologySpreadConstraints": [constraint]}}
    )
    old, new = (
        decoded(
            "pods", {"metadata": {"name": "o", "namespace": "x", "labels": {"zone": zone}}, "spec": {"nodeName": "n1"}}
        )
        for zone in ("1", "2")
    )
    registration: Registration = plugin.events_to_register()[0]
    assert registration.new_index is not None
    index, signature = registration.new_index(), plugin.hint_signature(parked)
    index.add(signature)
    assert list(index.candidates(old, new) or ()) == [signature]
    assert list(index.candidates(new, old) or ()) == [signature]
    assert not list(index.candidates(new, new) or ())
