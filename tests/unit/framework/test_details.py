"""What a failed attempt says of the node that is nearest to taking the pod: numbers and names."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import Detail, Rows, Scope
from podyard.framework.one_at_a_time import FilterOneNode
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status, unschedulable
from podyard.plugins.defaults import default_profile
from podyard.plugins.node_resources_fit import fit
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.support.known_objects import KnownObjects
from tests.support.objects import ZONE, decoded, node, pod, view
from tests.unit.framework.builders import on, table_of

Document = dict[str, Any]
NODES = [
    node("n1", cpu="2", labels={ZONE: "a", "disk": "hdd"}),
    node("n2", cpu="8", labels={ZONE: "a", "disk": "hdd"}),
    node("n3", cpu="4", labels={ZONE: "b"}),
]
"""n2 has most room."""
RUNS = {"labels": {"app": "web"}}
WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**WEB, "topologyKey": ZONE}]}}
NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**WEB, "topologyKey": ZONE}]}}
SPREAD = [{**WEB, "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
PORT = {"container": {"ports": [{"containerPort": 80, "hostPort": 8080}]}}


def named(*names: str) -> Document:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    terms = [{"matchFields": [field]} for field in fields]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def claim(**spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def attempted(
    incoming: Document,
    placed: Sequence[tuple[str, Document]] = (),
    *,
    nodes: Sequence[Document] = NODES,
    known: Any = (),
) -> CycleResult:
    """
    :param placed: pods with their nodes
    :param known: other objects, by resource
    """
    objects = KnownObjects()
    for resource, document in known:
        objects.put(resource, document)
    table = table_of(*(decoded("nodes", one) for one in nodes))
    for name, document in placed:
        table.place(on(view(document), name))
    return Cycle(default_profile(), Snapshot(table, objects)).run(view(incoming))


def told(result: CycleResult) -> list[tuple[str, str, str]]:
    return [(one.plugin, one.nearest, one.detail) for one in result.rejections if one.detail]


def test_of_an_amount_the_node_with_most_room_is_nearest() -> None:
    nodes, placed = [*NODES, node("n4", cpu="8")], [("n2", pod("b", cpu="500m")), ("n4", pod("c", cpu="1250m"))]
    result = attempted(pod(cpu="8"), placed, nodes=nodes)
    assert told(result) == [
        ("NodeResourcesFit", "n2", "wants 8 cpu, free 7.5 of 8"),
        ("NodeResourcesFit", "n3", "wants 8 cpu, the whole node has 4"),
    ]
    assert [(one.unresolvable, one.nodes) for one in result.rejections] == [(False, 2), (True, 2)]
    assert [one.lacks for one in result.rejections] == ["500m", "4"]
    assert result.nearest == "n2"


@pytest.mark.parametrize(
    ("incoming", "detail"),
    [
        (pod(memory="9Gi"), "wants 9Gi memory, the whole node has 8Gi"),
        (pod(requests={"example.com/gpu": "1"}), "wants 1 example.com/gpu, no node has any"),
        (pod(nodeSelector={"disk": "ssd"}), "wants disk=ssd, has disk=hdd"),
        (pod(nodeSelector={"gpu": "yes"}), "wants gpu=yes, has no label gpu"),
        (pod(affinity=named("n9")), "only n9 may take the pod, and there is no node n9"),
        (pod(affinity=NEAR), "no pod with app=web is in topology.kubernetes.io/zone=a"),
        (pod(node="n9"), "the pod's nodeName is n9, and there is no such node"),
        (
            pod(topologySpreadConstraints=[{**SPREAD[0], "topologyKey": "rack"}], **RUNS),
            "has no label rack",
        ),
    ],
)
def test_what_is_in_the_way_on_empty_nodes(incoming: Document, detail: str) -> None:
    assert [text for _, _, text in told(attempted(incoming))] == [detail]


def test_a_taint_is_named_and_the_node_with_fewest_is_nearest() -> None:
    taints = [{"key": "team", "value": "ml", "effect": "NoSchedule"}, {"key": "old", "effect": "NoExecute"}]
    nodes = [node("n1", taints=taints), node("n2", taints=taints[:1])]
    assert told(attempted(pod(), nodes=nodes)) == [
        ("TaintToleration", "n2", "does not tolerate taint team=ml:NoSchedule")
    ]


def test_a_cordoned_node_is_said_to_be_so() -> None:
    assert told(attempted(pod(), nodes=[node("n1", unschedulable=True)])) == [
        ("NodeUnschedulable", "n1", "is cordoned (spec.unschedulable)")
    ]


def test_a_node_that_is_full_of_pods_says_how_many() -> None:
    result = attempted(pod(), [("n1", pod("b"))], nodes=[node("n1", pods="1")])
    assert told(result) == [("NodeResourcesFit", "n1", "has 1 of at most 1 pods")]
    assert result.rejections[0].lacks == "room for 1 pod"


def test_a_port_names_who_has_it() -> None:
    result = attempted(pod(**PORT), [("n1", pod("b", **PORT))], nodes=NODES[:1])
    assert told(result) == [("NodePorts", "n1", "host port 8080/TCP is taken by default/b")]


def test_anti_affinity_names_the_pod_in_the_way_in_both_directions() -> None:
    mine = attempted(pod(affinity=APART), [("n2", pod("b", **RUNS))], nodes=NODES[:2])
    where = "topology.kubernetes.io/zone=a"
    assert [one[2] for one in told(mine)] == [f"must be apart from pods with app=web; default/b is in {where}"]
    theirs = attempted(pod(**RUNS), [("n2", pod("b", affinity=APART))], nodes=NODES[:2])
    assert [one[2] for one in told(theirs)] == [f"default/b is in {where} and must be apart from pods with app=web"]


def test_spread_says_how_many_pods_are_where() -> None:
    nodes = [NODES[0], node("n3", labels={ZONE: "b"}, unschedulable=True)]
    placed = [("n1", pod("b", **RUNS))]
    result = attempted(pod(topologySpreadConstraints=SPREAD, **RUNS), placed, nodes=nodes)
    detail = (
        "topology.kubernetes.io/zone=a has 1 of these pods, b has 0: with one more they would differ by more than 1"
    )
    assert ("PodTopologySpread", "n1", f"{detail} (maxSkew)") in told(result)
    assert result.nearest == "n1", "n1 passes more plugins than the cordoned node"


@pytest.mark.parametrize(
    ("spec", "detail"),
    [
        ({}, "claim data has no storage class, and no volume without one fits it"),
        ({"storageClassName": "fast"}, "claim data wants storage class fast, and there is no such class"),
        ({"volumeName": "pv"}, "claim data asks for volume pv and is not bound to it yet"),
    ],
)
def test_an_unbound_claim_is_named_with_why(spec: Document, detail: str) -> None:
    result = attempted(pod(**DATA), known=[("persistentvolumeclaims", claim(**spec))])
    assert told(result) == [("VolumeBinding", "", detail)]
    assert result.nearest == ""


def test_a_claim_for_one_pod_names_who_uses_it() -> None:
    known = [
        ("persistentvolumeclaims", claim(accessModes=["ReadWriteOncePod"], storageClassName="late")),
        (
            "storageclasses",
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "late"},
                "provisioner": "example.com/disk",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        ),
    ]
    result = attempted(pod(**DATA), [("n1", pod("b", **DATA))], nodes=NODES[:1], known=known)
    assert told(result) == [("VolumeRestrictions", "n1", "claim data (ReadWriteOncePod) is in use by default/b on n1")]


def test_a_node_that_is_kept_for_a_nominated_pod_says_for_whom() -> None:
    cluster = Snapshot(table_of(decoded("nodes", node("n1", cpu="2"))))
    rival = view(pod("rival", cpu="2", nominated="n1", priority=100))
    cluster.nominated.follow(rival.uid, rival)
    result = Cycle(default_profile(), cluster).run(view(pod(cpu="1")))
    assert told(result) == [("NodeResourcesFit", "n1", "judged as with default/rival, whose room is kept there")]


def test_a_pod_that_fits_somewhere_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError("a pod that is bound must cost nothing")

    monkeypatch.setattr(fit, "detail", never)
    result = attempted(pod(cpu="6"))
    assert result.node == "n2"
    assert {one.detail for one in result.rejections} == {""}


class Counting(FilterOneNode):
    """Rejects all, and counts how often it is asked for details."""

    name: ClassVar[str] = "Counting"
    scope: ClassVar[Scope] = "row"
    asked: ClassVar[int] = 0

    def signature(self, pod: PodInfo) -> None:
        return None

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return 1

    def verdict(self, state: CycleState, code: int) -> Status:
        return unschedulable("no")

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        type(self).asked += 1
        if self.asked > 1:
            raise ValueError("cannot say")
        return Detail("x" * 1000)


def test_equal_failures_are_looked_into_once_until_a_node_changes_and_a_fault_ends_no_attempt() -> None:
    table = table_of(*(decoded("nodes", one) for one in NODES))
    cluster = Snapshot(table)
    cycle = Cycle(resolve("test", [Enabled(plugin=PrioritySort()), Enabled(plugin=Counting())]), cluster)
    for uid in "abc":
        (rejection,) = cycle.run(view(pod(uid, uid=uid))).rejections
        assert (rejection.nearest, len(rejection.detail)) == ("n1", 400)
    assert Counting.asked == 1
    assert not cluster.take_faults()
    table.set_node(decoded("nodes", node("n1", cpu="3")))
    result = cycle.run(view(pod("d")))
    assert (Counting.asked, result.error, result.rejections[0].detail) == (2, "", "")
    assert [(fault.plugin, fault.point) for fault in cluster.take_faults()] == [("Counting", "detail")]
