"""Random small clusters with pod affinity, as manifests and as what the plugin reads."""

from hypothesis import strategies as st

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.snapshot import Snapshot
from podyard.objects.core import Node
from podyard.proto.placement import BoundPod, Usage
from tests.support import objects
from tests.support.known_objects import KnownObjects
from tests.unit.plugins.inter_pod_affinity.plain import Cluster, Labels, Manifest

NODES = ("n0", "n1", "n2", "n3", "n4")
SPACES = ("one", "two", "three")
UNKNOWN_SPACE = "four"
KEYS = ("zone", "host")

node_labels = st.one_of(
    st.fixed_dictionaries({"zone": st.sampled_from(("z1", "z2"))}),
    st.fixed_dictionaries({}, optional={"zone": st.sampled_from(("z1", "z2")), "host": st.sampled_from((*NODES, ""))}),
)
space_labels = st.fixed_dictionaries({}, optional={"env": st.sampled_from(("prod", "dev")), "team": st.just("t")})
pod_labels = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(("a", "b")), "tier": st.sampled_from(("x", "y")), "ver": st.sampled_from("12")}
)


def _expressions(keys: tuple[str, ...], values: tuple[str, ...]) -> st.SearchStrategy[Manifest]:
    listed = st.fixed_dictionaries(
        {
            "key": st.sampled_from(keys),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True),
        }
    )
    bare = st.fixed_dictionaries(
        {"key": st.sampled_from(keys), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
    )
    return st.one_of(listed, bare)


pod_selectors = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": pod_labels,
        "matchExpressions": st.lists(_expressions(("app", "tier"), ("a", "b", "x", "y")), max_size=2),
    },
)
space_selectors = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"matchLabels": space_labels}),
    st.fixed_dictionaries({"matchExpressions": st.lists(_expressions(("env", "team"), ("prod", "t")), max_size=2)}),
)
often: st.SearchStrategy[Manifest] = st.sampled_from(
    ({}, {"matchLabels": {"app": "a"}}, {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]})
)
terms = st.one_of(
    st.fixed_dictionaries({"topologyKey": st.sampled_from(KEYS), "labelSelector": often}),
    st.fixed_dictionaries(
        {"topologyKey": st.sampled_from(KEYS)},
        optional={
            "labelSelector": st.one_of(often, pod_selectors),
            "namespaces": st.lists(st.sampled_from(SPACES), max_size=2, unique=True),
            "namespaceSelector": space_selectors,
            "matchLabelKeys": st.just(["ver"]),
            "mismatchLabelKeys": st.just(["tier"]),
        },
    ),
)
weighted = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": terms})
rules = st.one_of(
    st.fixed_dictionaries({"requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, min_size=1, max_size=2)}),
    st.fixed_dictionaries(
        {},
        optional={
            "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, max_size=2),
            "preferredDuringSchedulingIgnoredDuringExecution": st.lists(weighted, min_size=1, max_size=2),
        },
    ),
)
affinities = st.one_of(
    st.none(),
    st.fixed_dictionaries({"podAntiAffinity": rules}),
    st.fixed_dictionaries({}, optional={"podAffinity": rules, "podAntiAffinity": rules}),
)


simple_terms = st.fixed_dictionaries({"topologyKey": st.sampled_from(KEYS), "labelSelector": often})
REQUIRED, PREFERRED = (f"{need}DuringSchedulingIgnoredDuringExecution" for need in ("required", "preferred"))
simple_affinities = st.one_of(
    st.none(),
    st.builds(
        lambda kind, term: {kind: {REQUIRED: [term]}}, st.sampled_from(("podAffinity", "podAntiAffinity")), simple_terms
    ),
    st.builds(
        lambda kind, weight, term: {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}},
        st.sampled_from(("podAffinity", "podAntiAffinity")),
        st.integers(1, 3),
        simple_terms,
    ),
)


def _kind(space: str, labels: Labels, affinity: Manifest | None) -> Manifest:
    return {
        "metadata": {"namespace": space, "labels": dict(labels)},
        "spec": {} if affinity is None else {"affinity": affinity},
    }


kinds = st.one_of(
    st.builds(_kind, st.just("one"), st.sampled_from(({"app": "a"}, {"app": "b"})), simple_affinities),
    st.builds(_kind, st.sampled_from((*SPACES, UNKNOWN_SPACE)), pod_labels, affinities),
)
"""What pods of one workload have in common: often such that they mean each other."""


def _meeting() -> tuple[Manifest, ...]:
    by_zone = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    chosen = by_zone | {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
    liked = {"weight": 2, "podAffinityTerm": by_zone}
    rules: tuple[Manifest, ...] = (
        {"podAntiAffinity": {REQUIRED: [by_zone]}},
        {"podAntiAffinity": {REQUIRED: [chosen]}},
        {"podAffinity": {REQUIRED: [by_zone]}},
        {"podAffinity": {REQUIRED: [chosen]}},
        {"podAffinity": {PREFERRED: [liked]}},
        {"podAntiAffinity": {PREFERRED: [liked | {"weight": 3, "podAffinityTerm": chosen}]}},
    )
    return tuple(_kind(space, {"app": "a"}, affinity) for space in ("one", "two") for affinity in (None, *rules))


MEETING_KINDS = _meeting()
"""Pods of two namespaces that all mean each other, if only by the labels of a namespace."""


def named(kind: Manifest, uid: str) -> Manifest:
    """A pod of a kind, without a node."""
    return kind | {"metadata": kind["metadata"] | {"name": uid, "uid": uid}}


def pods(uid: str) -> st.SearchStrategy[Manifest]:
    """A pod without a node."""
    return kinds.map(lambda kind: named(kind, uid))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Up to five nodes and seven pods of up to three kinds, some of these on nodes that are not there."""
    names = draw(st.one_of(st.just(NODES), st.lists(st.sampled_from(NODES), unique=True, min_size=1)))
    nodes = {name: draw(node_labels) for name in names}
    some = st.sampled_from(draw(st.lists(kinds, min_size=1, max_size=3)))
    placed = {
        uid: (named(draw(some), uid), draw(st.sampled_from(NODES)))
        for uid in [f"p{number}" for number in range(draw(st.integers(0, 7)))]
    }
    return Cluster(nodes, {name: draw(space_labels) for name in SPACES}, placed)


class Spaces(KnownObjects):
    """The other objects of a snapshot: namespaces only."""

    def __init__(self, labels: dict[str, Labels]) -> None:
        super().__init__()
        for name, held in labels.items():
            self.set(name, held)

    def set(self, name: str, labels: Labels) -> None:
        self.put("namespaces", {"metadata": {"name": name, "labels": dict(labels)}})


def node(name: str, labels: Labels) -> Node:
    return objects.typed_node(name, bare=True, labels=labels)


def view(pod: Manifest, on: str = "") -> PodView:
    """The pod as readers see it, on a node or pending."""
    meta = pod["metadata"]
    bound = BoundPod(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], node=on, usage=Usage())
    return objects.view(pod, bound=bound if on else None)


def snapshot(cluster: Cluster) -> Snapshot:
    """What the plugin reads of a cluster."""
    table = NodeTable()
    for name, labels in cluster.nodes.items():
        table.set_node(node(name, labels))
    for pod, name in cluster.placed.values():
        table.place(view(pod, name))
    return Snapshot(table, Spaces(cluster.namespaces))
