"""Each plugin's rule on one or two nodes. Source of the expectations: kube-scheduler v1.36.2, the plugin's
own tests."""

from typing import Any

import msgspec
import pytest

from podyard.framework.cycle import Cycle
from podyard.framework.cycle_state import CycleState, StateMissingError
from podyard.framework.one_node import NODE_GONE, filter_one
from podyard.framework.status import Code
from podyard.plugins import registry
from podyard.plugins.defaults import default_profile
from podyard.plugins.node_affinity.plugin import named_nodes
from podyard.plugins.node_resources_fit.args import Args
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.node_unschedulable.plugin import NodeUnschedulable
from tests.unit.framework.builders import (
    make_node,
    make_pod,
    on,
    preferred,
    profile,
    required,
    snapshot_of,
    term,
    toleration,
)

CORDON = "node.kubernetes.io/unschedulable"
GPU = "example.com/gpu"


def verdict(node: Any, pod: Any, args: Any = None, placed: tuple[Any, ...] = ()) -> tuple[str, str, tuple[str, ...]]:
    """What the default profile says about one pod on one node."""
    snapshot = snapshot_of(node)
    for other in placed:
        snapshot.nodes.place(on(other, node.metadata.name))
    status = filter_one(profile(args), node.metadata.name, pod, snapshot)
    return status.plugin, status.code.label, status.reasons


PASSES = ("", "Success", ())


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param(
            [], ("NodeUnschedulable", "UnschedulableAndUnresolvable", ("node(s) were unschedulable",)), id="no"
        ),
        pytest.param([toleration(CORDON, "Exists", effect="NoSchedule")], PASSES, id="by-key"),
        pytest.param([toleration("", "Exists")], PASSES, id="everything"),
        pytest.param(
            [toleration(CORDON, "Exists", effect="NoExecute")],
            ("NodeUnschedulable", "UnschedulableAndUnresolvable", ("node(s) were unschedulable",)),
            id="other-effect",
        ),
    ],
)
def test_cordoned_nodes(tolerations: list[dict[str, str]], expected: Any) -> None:
    assert verdict(make_node("a", unschedulable=True), make_pod("p", spec={"tolerations": tolerations})) == expected


@pytest.mark.parametrize(
    ("taint", "tolerations", "passes"),
    [
        pytest.param(("k", "v", "NoSchedule"), [], False, id="hard"),
        pytest.param(("k", "v", "NoExecute"), [], False, id="evicting"),
        pytest.param(("k", "v", "PreferNoSchedule"), [], True, id="soft"),
        pytest.param(("k", "v", "NoSchedule"), [toleration("k", "Equal", "v")], True, id="tolerated"),
        pytest.param(("k", "v", "NoSchedule"), [toleration("k", "Equal", "w")], False, id="other-value"),
        pytest.param(
            ("k", "v", "NoSchedule"), [toleration("k", "Exists", effect="NoExecute")], False, id="other-effect"
        ),
    ],
)
def test_taints(taint: tuple[str, str, str], tolerations: list[dict[str, str]], passes: bool) -> None:
    expected = ("TaintToleration", "UnschedulableAndUnresolvable", ("node(s) had untolerated taint(s)",))
    pod = make_pod("p", spec={"tolerations": tolerations})
    assert verdict(make_node("a", taints=[taint]), pod) == (PASSES if passes else expected)


def test_soft_taints_cost_points_in_proportion() -> None:
    soft = [(f"k{number}", "", "PreferNoSchedule") for number in range(3)]
    nodes = [make_node(f"n{number}", taints=soft[:number]) for number in range(4)]
    pod = make_pod("p", spec={"tolerations": [toleration("k0", "Exists", effect="NoSchedule")]})
    cycle = Cycle(default_profile(), snapshot_of(*nodes))
    result = cycle.run(pod)
    assert result.node == "n0"
    assert [score.plugins["TaintToleration"] for score in result.scores] == [300, 201, 102]


def test_the_named_node() -> None:
    pod = make_pod("p", spec={"nodeName": "b"})
    reasons = ("node(s) didn't match the requested node name",)
    assert verdict(make_node("a"), pod) == ("NodeName", "UnschedulableAndUnresolvable", reasons)
    assert verdict(make_node("b"), pod) == PASSES


NOT_MATCHED = (
    "NodeAffinity",
    "UnschedulableAndUnresolvable",
    ("node(s) didn't match Pod's node affinity/selector",),
)


@pytest.mark.parametrize(
    ("spec", "passes"),
    [
        pytest.param({"nodeSelector": {"zone": "a"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"zone": "b"}}, False, id="selector-other"),
        pytest.param(required(term("zone", "In", "b"), term("rank", "Gt", "5")), True, id="second-term"),
        pytest.param(required(term("rank", "Lt", "5")), False, id="lt"),
        pytest.param(required(term("gone", "NotIn", "x")), True, id="not-in-absent"),
        pytest.param(required(term("gone", "Gt", "1")), False, id="gt-absent"),
        pytest.param(required({}), False, id="empty-term"),
        pytest.param(required(), False, id="no-terms"),
        pytest.param(required(term("rank", "Gt", "x")), False, id="not-a-number"),
        pytest.param({"nodeSelector": {"zone": "a"}, **required(term("zone", "In", "b"))}, False, id="both-must-hold"),
    ],
)
def test_node_affinity(spec: dict[str, Any], passes: bool) -> None:
    node = make_node("a", labels={"zone": "a", "rank": "7"})
    pod = make_pod("p", spec=spec)
    assert verdict(node, pod) == (PASSES if passes else NOT_MATCHED)
    assert bool(Cycle(default_profile(), snapshot_of(node)).run(pod).node) is passes


def test_what_the_profile_adds_holds_for_every_pod_and_comes_first() -> None:
    rules = required(term("zone", "In", "a"))["affinity"]["nodeAffinity"]
    likes = preferred((5, term("zone", "In", "a")))["affinity"]["nodeAffinity"]
    args = {"NodeAffinity": {"addedAffinity": rules | likes}}
    enforced = (
        "NodeAffinity",
        "UnschedulableAndUnresolvable",
        ("node(s) didn't match scheduler-enforced node affinity",),
    )
    other = make_node("b", labels={"zone": "b"})
    assert verdict(other, make_pod("p"), args) == enforced
    assert verdict(other, make_pod("p", spec={"nodeSelector": {"zone": "x"}}), args) == enforced
    assert verdict(make_node("a", labels={"zone": "a"}), make_pod("p"), args) == PASSES
    nodes = snapshot_of(make_node("a", labels={"zone": "a"}), make_node("c", labels={"zone": "a"}))
    assert Cycle(profile(args), nodes).run(make_pod("p")).scores[0].plugins["NodeAffinity"] == 200


def test_preferences_are_added_up_and_scaled() -> None:
    likes = preferred((10, term("zone", "In", "a")), (20, term("disk", "Exists")), (0, term("zone", "Exists")))
    nodes = [
        make_node("a", labels={"zone": "a", "disk": "x"}),
        make_node("b", labels={"disk": "x"}),
        make_node("c", labels={"zone": "a"}),
    ]
    result = Cycle(default_profile(), snapshot_of(*nodes)).run(make_pod("p", spec=likes))
    assert [(one.node, one.plugins["NodeAffinity"]) for one in result.scores] == [("a", 200), ("b", 132), ("c", 66)]


def _terms(*names: tuple[str, ...]) -> Any:
    spec = required(
        *[
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]} for n in term_]}
            for term_ in names
        ]
    )
    rules = make_pod("p", spec=spec).pod.spec.affinity.node_affinity  # pyright: ignore[reportOptionalMemberAccess]
    return rules.required_during_scheduling_ignored_during_execution.node_selector_terms  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param([("a",), ("b",)], {"a", "b"}, id="terms-are-ored"),
        pytest.param([("a", "b")], set[str](), id="requirements-are-anded"),
        pytest.param([("a", "b"), ("c",)], {"c"}, id="one-contradicts-itself"),
        pytest.param([("a",), ()], None, id="one-names-none"),
    ],
)
def test_named_nodes(names: list[tuple[str, ...]], expected: set[str] | None) -> None:
    """docs/rules.md, terms-that-name-nodes-are-ored."""
    assert named_nodes(_terms(*names)) == expected


FIT = "NodeResourcesFit"


@pytest.mark.parametrize(
    ("requests", "code", "reasons"),
    [
        pytest.param({"cpu": "1"}, "Success", (), id="just-fits"),
        pytest.param({"cpu": "1001m"}, "Unschedulable", ("Insufficient cpu",), id="free-room"),
        pytest.param({"cpu": "2001m"}, "UnschedulableAndUnresolvable", ("Insufficient cpu",), id="whole-node"),
        pytest.param(
            {"cpu": "1500m", "memory": "5Gi"},
            "UnschedulableAndUnresolvable",
            ("Insufficient cpu", "Insufficient memory"),
            id="one-of-two-is-above-the-node",
        ),
        pytest.param({GPU: "1"}, "UnschedulableAndUnresolvable", (f"Insufficient {GPU}",), id="no-such-resource"),
        pytest.param({GPU: "0"}, "Success", (), id="none-of-an-unknown-resource"),
        pytest.param({"storage": "1Gi"}, "Success", (), id="a-resource-that-nodes-do-not-count"),
    ],
)
def test_room(requests: dict[str, str], code: str, reasons: tuple[str, ...]) -> None:
    node = make_node("a", cpu="2", memory="4Gi")
    pod = make_pod("p", requests=requests)
    found = verdict(node, pod, placed=(make_pod("q", cpu="1"),))
    assert found == (FIT if reasons else "", code, reasons)


def test_too_many_pods_is_told_beside_other_reasons() -> None:
    node = make_node("a", cpu="2", pods=1)
    mates = (make_pod("q", cpu="1500m"),)
    assert verdict(node, make_pod("p"), placed=mates) == (FIT, "Unschedulable", ("Too many pods",))
    assert verdict(node, make_pod("p", cpu="1"), placed=mates) == (
        FIT,
        "Unschedulable",
        ("Too many pods", "Insufficient cpu"),
    )


@pytest.mark.parametrize(
    ("args", "passes"),
    [
        pytest.param({}, False, id="not-ignored"),
        pytest.param({"ignoredResources": [GPU]}, True, id="by-name"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, True, id="by-group"),
        pytest.param({"ignoredResourceGroups": ["example"]}, False, id="other-group"),
    ],
)
def test_ignored_extended_resources(args: dict[str, Any], passes: bool) -> None:
    found = verdict(make_node("a"), make_pod("p", requests={GPU: "1"}), {FIT: args})
    assert (found == PASSES) is passes


def test_only_extended_resources_can_be_ignored() -> None:
    found = verdict(make_node("a"), make_pod("p", cpu="64"), {FIT: {"ignoredResources": ["cpu"]}})
    assert found[2] == ("Insufficient cpu",)


def fit_points(node: Any, pod: Any, resources: list[dict[str, Any]] | None = None) -> int:
    """NodeResourcesFit's points for a node among two."""
    args = {} if resources is None else {FIT: {"scoringStrategy": {"type": "LeastAllocated", "resources": resources}}}
    cycle = Cycle(profile(args), snapshot_of(node, make_node("zz", cpu="1", memory="1Gi")))
    judged = {score.node: score.plugins[FIT] for score in cycle.run(pod).scores}
    return judged[node.metadata.name]


def test_what_requests_nothing_is_scored_as_if_it_requested_a_little() -> None:
    """docs/rules.md, empty-requests-are-not-balanced: or such pods pile up on one node."""
    assert fit_points(make_node("a", cpu="1", memory="1000Mi"), make_pod("p")) == 85  # (90 + 80) / 2


def test_a_resource_the_node_does_not_have_is_left_out_of_the_score() -> None:
    assert fit_points(make_node("a", cpu="1", memory="0"), make_pod("p")) == 90


def test_an_extended_resource_counts_only_for_pods_that_request_it() -> None:
    resources = [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 3}]
    node = make_node("a", cpu="1", memory="1Gi")
    with_gpu = msgspec.structs.replace(
        node, status=msgspec.structs.replace(node.status, allocatable={**node.status.allocatable, GPU: "4"})
    )
    assert fit_points(with_gpu, make_pod("p"), resources) == 90
    snapshot = snapshot_of(with_gpu)
    plugin = NodeResourcesFit(msgspec.convert({"scoringStrategy": {"resources": resources}}, Args))
    state, pod = CycleState(), make_pod("p", requests={GPU: "1"})
    plugin.pre_score(state, pod, snapshot, snapshot.nodes.rows())
    assert plugin.score(state, pod, snapshot, snapshot.nodes.rows()).tolist() == [(90 + 3 * 75) // 4]
    assert plugin.score_one(state, pod, snapshot, 0) == (90 + 3 * 75) // 4


def test_requests_of_the_pod_as_a_whole_count_in_the_filter_and_not_in_the_score() -> None:
    """The conformance data's quirk `pod-level-resources-fit-score`."""
    pod = make_pod("p", spec={"resources": {"requests": {"cpu": "500m"}}})
    assert verdict(make_node("a", cpu="400m"), pod)[2] == ("Insufficient cpu",)
    assert fit_points(make_node("a", cpu="1", memory="1000Mi"), pod) == 85


def test_filter_without_prefilter_says_what_is_missing() -> None:
    plugin, snapshot = NodeResourcesFit(Args()), snapshot_of(make_node("a"))
    expected = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    with pytest.raises(StateMissingError, match=expected):
        plugin.filter(CycleState(), make_pod("p"), snapshot, snapshot.nodes.rows())


def test_an_unknown_node_is_gone() -> None:
    status = filter_one(default_profile(), "nowhere", make_pod("p"), snapshot_of(make_node("a")))
    assert (status.code, status.reasons, status.plugin) == (Code.UNRESOLVABLE, (NODE_GONE,), "")


@pytest.mark.parametrize(
    ("name", "args", "path"),
    [
        pytest.param(FIT, {"ignoredResource": []}, "ignoredResource", id="unknown-field"),
        pytest.param(FIT, {"scoringStrategy": {"type": "Most"}}, "scoringStrategy.type", id="unknown-strategy"),
        pytest.param(
            FIT,
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}},
            "scoringStrategy.resources[0].weight",
            id="weight-out-of-range",
        ),
        pytest.param("NodeAffinity", {"addedAffinity": 1}, "addedAffinity", id="wrong-type"),
    ],
)
def test_wrong_arguments_are_refused_with_their_path(name: str, args: dict[str, Any], path: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=path.replace("[", r"\[").replace("]", r"\]")):
        registry.create(registry.by_name()[name], args)


def test_two_plugins_of_one_name_are_refused() -> None:
    twice = (registry.Entry("A", NodeUnschedulable), registry.Entry("A", NodeUnschedulable))
    with pytest.raises(registry.DuplicatePluginError, match="'A'"):
        registry.by_name(twice)


@pytest.mark.parametrize("entry", registry.IN_TREE, ids=lambda entry: entry.name)
def test_every_plugin_is_called_what_the_registry_says(entry: registry.Entry) -> None:
    assert registry.create(entry).name == entry.name
