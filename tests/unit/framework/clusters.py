"""Random small clusters for Hypothesis: the same case for the oracle (dictionaries) and for the table
(objects)."""

from typing import Any

from hypothesis import strategies as st

from podyard.cluster.pods import PodView
from podyard.objects.core import Node
from tests.unit.framework import builders
from tests.unit.framework.oracle import Manifest

KEYS = ("zone", "disk", "rank")
VALUES = ("a", "b", "7", "12", "-3")
NAMES = tuple(f"n{number}" for number in range(6))
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
GPU = "example.com/gpu"

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
taints = st.lists(
    st.tuples(st.sampled_from(("k1", "k2", "node.kubernetes.io/unschedulable")), st.sampled_from(("", "v")), st.sampled_from(EFFECTS)),
    max_size=3,
    unique_by=lambda taint: (taint[0], taint[2]),
)  # fmt: skip


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Manifest:
    """A node as the oracle reads it; cpu in milli-CPU."""
    allocatable = {
        "cpu": draw(st.sampled_from((0, 500, 1000, 4000))),
        "memory": draw(st.sampled_from((0, 300 * 2**20, 2**30, 8 * 2**30))),
    }
    if draw(st.booleans()):
        allocatable[GPU] = draw(st.integers(0, 3))
    return {
        "name": name,
        "labels": draw(labels),
        "taints": draw(taints),
        "unschedulable": draw(st.booleans()),
        "pods": draw(st.sampled_from((0, 1, 3, 110))),
        "allocatable": allocatable,
    }


requests = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from((0, 1, 100, 400, 1000, 5000)),
        "memory": st.sampled_from((0, 1, 200 * 2**20, 2**30)),
        GPU: st.integers(0, 4),
    },
)
tolerations = st.lists(
    st.builds(
        builders.toleration,
        key=st.sampled_from(("", "k1", "k2", "node.kubernetes.io/unschedulable")),
        operator=st.sampled_from(("", "Equal", "Exists")),
        value=st.sampled_from(("", "v")),
        effect=st.sampled_from(("", *EFFECTS)),
    ),
    max_size=3,
)


@st.composite
def requirements(draw: st.DrawFn) -> Manifest:
    """A requirement that the API server would accept."""
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    values: list[str] = []
    if operator in ("In", "NotIn"):
        values = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=2))
    elif operator in ("Gt", "Lt"):
        values = [draw(st.sampled_from(("7", "-3", "0")))]
    return {"key": draw(st.sampled_from(KEYS)), "operator": operator, "values": values}


fields = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(("In", "NotIn")),
    st.sampled_from((*NAMES, "elsewhere")),
)
terms = st.builds(
    lambda expressions, named: {"matchExpressions": expressions, "matchFields": named},
    st.lists(requirements(), max_size=2),
    st.lists(fields, max_size=1),
)


@st.composite
def pods(draw: st.DrawFn) -> Manifest:
    """A pod as the oracle reads it."""
    pod: Manifest = {"requests": draw(requests), "tolerations": draw(tolerations)}
    if draw(st.booleans()):
        pod["nodeSelector"] = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1))
    if draw(st.booleans()):
        pod["required"] = draw(st.lists(terms, min_size=1, max_size=2))
    if draw(st.booleans()):
        pod["preferred"] = draw(st.lists(st.tuples(st.integers(1, 100), terms), max_size=2))
    if draw(st.integers(0, 5)) == 0:
        pod["nodeName"] = draw(st.sampled_from(NAMES))
    return pod


def node_object(node: Manifest) -> Node:
    """The same node for the table."""
    amounts = node["allocatable"]
    more = {GPU.replace("/", "__"): str(amounts[GPU])} if GPU in amounts else {}
    return builders.make_node(
        node["name"],
        cpu=f"{amounts['cpu']}m",
        memory=str(amounts["memory"]),
        pods=node["pods"],
        labels=node["labels"],
        taints=node["taints"],
        unschedulable=node["unschedulable"],
        **more,
    )


def pod_view(pod: Manifest, name: str) -> PodView:
    """The same pod for the table."""
    amounts = {key: f"{value}m" if key == "cpu" else str(value) for key, value in pod["requests"].items()}
    affinity: dict[str, Any] = {}
    if "required" in pod:
        affinity |= builders.required(*pod["required"])["affinity"]["nodeAffinity"]
    if pod.get("preferred"):
        affinity |= builders.preferred(*pod["preferred"])["affinity"]["nodeAffinity"]
    spec: dict[str, Any] = {"tolerations": pod.get("tolerations", []), "nodeSelector": pod.get("nodeSelector", {})}
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    if "nodeName" in pod:
        spec["nodeName"] = pod["nodeName"]
    return builders.make_pod(name, requests=amounts, spec=spec)


@st.composite
def roomy_nodes(draw: st.DrawFn, name: str) -> Manifest:
    """A node that takes most pods: differences are in points rather than in verdicts."""
    taint = st.tuples(st.just("k1"), st.just(""), st.sampled_from(("PreferNoSchedule",) * 4 + ("NoSchedule",)))
    return {
        "name": name,
        "labels": draw(labels),
        "taints": draw(st.lists(taint, max_size=1)),
        "unschedulable": False,
        "pods": draw(st.sampled_from((2, 110))),
        "allocatable": {"cpu": draw(st.sampled_from((1000, 2000))), "memory": 2**31},
    }


@st.composite
def modest_pods(draw: st.DrawFn) -> Manifest:
    """A pod that fits most nodes and likes some of them."""
    liked = st.builds(lambda key: {"matchExpressions": [{"key": key, "operator": "Exists"}]}, st.sampled_from(KEYS))
    return {
        "requests": {"cpu": draw(st.sampled_from((100, 500, 1000)))},
        "preferred": draw(st.lists(st.tuples(st.integers(1, 100), liked), max_size=2)),
    }
