"""Random small clusters in which spread constraints matter."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.snapshot import Snapshot
from podyard.objects.core import Node, Pod
from podyard.proto.placement import BoundPod
from tests.support import objects
from tests.support.known_objects import KnownObjects
from tests.unit.plugins.pod_topology_spread.plain import HOST, ZONE, Owners, Place

NODES = [f"n{number}" for number in range(6)]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
KINDS = {"ReplicationController": "replicationcontrollers", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
API = {"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}

POD_LABELS = st.sampled_from([{"app": app} | rev for app in "aab" for rev in ({}, {"rev": "1"}, {"rev": "2"})] + [{}])
SELECTORS = st.one_of(
    st.none(),
    st.just({}),
    st.just({"matchLabels": {"app": "a"}}),
    st.just({"matchLabels": {"app": "b", "rev": "1"}}),
    st.just({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}),
    st.just({"matchExpressions": [{"key": "rev", "operator": "NotIn", "values": ["1"]}]}),
    st.just({"matchExpressions": [{"key": "rev", "operator": "Exists"}]}),
    st.just({"matchExpressions": [{"key": "rev", "operator": "DoesNotExist"}]}),
)
NODE_DOCUMENTS = st.builds(
    lambda zone, host, disk, taints: {"labels": zone | host | disk, "taints": taints},
    st.sampled_from([{ZONE: "z1"}, {ZONE: "z2"}, {ZONE: "z1"}, {ZONE: "z3"}, {ZONE: ""}, {}]),
    st.sampled_from([*({HOST: name} for name in NODES), {HOST: "n0"}, {}]),
    st.sampled_from([{"disk": "ssd"}, {"disk": "ssd"}, {"disk": "hdd"}, {}]),
    st.sampled_from([[], [], *([{"key": key, "effect": effect}] for key, effect in zip("ttu", EFFECTS, strict=True))]),
)
POLICIES = st.sampled_from(["Honor", "Ignore"])
SKEWS = st.integers(1, 3)
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
TOLERATIONS = st.lists(st.just({"key": "t", "operator": "Exists"}), max_size=1)
OWNERS = st.one_of(st.none(), st.tuples(st.sampled_from([*KINDS, "Job"]), st.sampled_from(["o1", "o2"])))


@st.composite
def constraints(draw: st.DrawFn, *, defaults: bool = False) -> list[dict[str, Any]]:
    """Constraints as manifests have them: topology keys differ within hard and soft ones."""
    found: list[dict[str, Any]] = []
    for key, action in draw(_keys_and_actions(0 if defaults else 1)):
        one: dict[str, Any] = {"maxSkew": draw(SKEWS), "topologyKey": key, "whenUnsatisfiable": action}
        found.append(one | draw(_optional(action, defaults)))
    return found


@cache
def _keys_and_actions(least: int) -> st.SearchStrategy[list[tuple[str, str]]]:
    both = st.tuples(st.sampled_from([ZONE, HOST, "disk"]), st.sampled_from([HARD, SOFT]))
    return st.lists(both, min_size=least, max_size=3, unique=True)


@cache
def _optional(action: str, defaults: bool) -> st.SearchStrategy[dict[str, Any]]:
    """What a constraint may say besides. Made once: to make it is dearer than to draw from it."""
    optional: dict[str, st.SearchStrategy[Any]] = {"nodeAffinityPolicy": POLICIES, "nodeTaintsPolicy": POLICIES}
    if action == HARD:
        optional["minDomains"] = st.integers(1, 4)
    if not defaults:
        optional["labelSelector"] = SELECTORS.filter(lambda given: given is not None)
        optional["matchLabelKeys"] = st.just(["rev"])
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def incoming(draw: st.DrawFn, *, own: bool = True) -> PodView:
    """A pod to place."""
    spec: dict[str, Any] = {"topologySpreadConstraints": draw(constraints())} if own else {}
    if draw(st.booleans()):
        spec["nodeSelector"] = {"disk": "ssd"}
    spec["tolerations"] = draw(TOLERATIONS)
    owner = draw(OWNERS)
    return make_pod("new", labels=draw(POD_LABELS), namespace=draw(NAMESPACES), spec=spec, owner=owner)


NAMESPACES = st.sampled_from(["one", "one", "one", "two"])
ENDING = st.sampled_from([False, False, False, True])
PLACED = st.tuples(st.integers(0, 9), st.sampled_from(NODES), NAMESPACES, POD_LABELS, ENDING)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), PLACED),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("node"), st.sampled_from(NODES), NODE_DOCUMENTS),
        st.tuples(st.just("no node"), st.sampled_from(NODES)),
    ),
    max_size=8,
)


class Cluster:
    """A table, other objects, and the same for the plain reading."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.known = KnownObjects()
        self.snapshot = Snapshot(self.table, self.known)

    def do(self, step: tuple[Any, ...]) -> None:
        """One change."""
        match step:
            case ("place", (number, node, namespace, labels, ending)):
                self.table.place(placed(number, node, namespace, labels, ending))
            case ("remove", number):
                self.table.remove(f"u-p{number}")
            case ("node", name, document):
                self.table.set_node(make_node(name, **document))
            case ("no node", name):
                self.table.remove_node(name)
            case _:
                raise AssertionError(step)

    def places(self) -> list[Place]:
        """Nodes with their pods."""
        found: list[Place] = []
        for name, row in self.table.row_of.items():
            node = self.table.nodes[row]
            assert node is not None
            found.append(Place(node, list(self.table.pods_on(name).values())))
        return found

    def owners(self) -> Owners:
        """Services and controllers."""
        controllers = {
            (kind, *key): found
            for kind, resource in KINDS.items()
            for key, found in self.known.objects(resource).items()
        }
        return Owners(self.known.objects("services"), controllers)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Up to six nodes, ten pods, and some Services and controllers."""
    cluster = Cluster()
    for name, document in zip(NODES, draw(st.lists(NODE_DOCUMENTS, min_size=2, max_size=len(NODES))), strict=False):
        cluster.table.set_node(make_node(name, **document))
    for step in draw(st.lists(PLACED, min_size=2, max_size=10)):
        cluster.do(("place", step))
    for number in range(draw(st.integers(0, 2))):
        selector = draw(st.sampled_from([{}, {"app": "a"}, {"app": "a", "rev": "1"}, {"rev": "2"}]))
        metadata = {"name": f"s{number}", "namespace": draw(NAMESPACES)}
        cluster.known.put("services", {"metadata": metadata, "spec": {"selector": selector}})
    for kind, resource in KINDS.items():
        if draw(st.booleans()):
            given = {"rev": "1"} if kind == "ReplicationController" else draw(SELECTORS)
            metadata = {"name": draw(st.sampled_from(["o1", "o2"])), "namespace": draw(NAMESPACES)}
            cluster.known.put(resource, {"metadata": metadata, "spec": {} if given is None else {"selector": given}})
    return cluster


def make_node(name: str, **more: Any) -> Node:
    """A node without a label but those given."""
    return objects.typed_node(name, bare=True, **more)


def make_pod(
    name: str, *, spec: Mapping[str, Any] | None = None, owner: tuple[str, str] | None = None, **more: Any
) -> PodView:
    """A pending pod in namespace `one`. `owner`: kind and name of its controller; `more` as of the builder of
    pods."""
    metadata: dict[str, Any] = {}
    if owner is not None:
        kind, owner_name = owner
        reference = {"apiVersion": API.get(kind, "batch/v1"), "kind": kind, "name": owner_name, "controller": True}
        metadata["ownerReferences"] = [reference]
    return objects.view(
        objects.pod(name, **{"uid": f"u-{name}", "namespace": "one", "metadata": metadata, **more, **(spec or {})})
    )


def placed(number: int, node: str, namespace: str, labels: Mapping[str, str], ending: bool) -> PodView:
    """A pod on a node."""
    pod = make_pod(f"p{number}", labels=labels, namespace=namespace, deleting=ending)
    bound = BoundPod(namespace=namespace, name=pod.name, uid=pod.uid, node=node, labels=pod.labels, usage=pod.usage)
    return pod.with_placement(bound, None)


ASPECTS = ["labels", "namespace", "owner", "nodes", "constraints", "uid"]


def varied(pod: PodView, other: PodView, aspect: str) -> PodView:
    """`pod` with one aspect as `other` has it, and a name and uid of its own."""
    metadata, spec = pod.stored.metadata, pod.stored.spec
    theirs = other.stored.metadata
    match aspect:
        case "labels":
            metadata = msgspec.structs.replace(metadata, labels=theirs.labels)
        case "namespace":
            metadata = msgspec.structs.replace(metadata, namespace=theirs.namespace)
        case "owner":
            metadata = msgspec.structs.replace(metadata, owner_references=theirs.owner_references)
        case "nodes":
            wanted, tolerations = other.stored.spec.node_selector, other.stored.spec.tolerations
            spec = msgspec.structs.replace(spec, node_selector=wanted, tolerations=tolerations)
        case "constraints":
            spread = other.stored.spec.topology_spread_constraints
            spec = msgspec.structs.replace(spec, topology_spread_constraints=spread)
        case _:
            pass
    metadata = msgspec.structs.replace(metadata, name="another", uid="u-another")
    return PodView(Pod(metadata=metadata, spec=spec), (metadata.namespace, "another"), "u-another", 1)
