"""Where pods of files would go: which pods those are, and how people are told."""

from typing import Any

import pytest

from podyard.cli.commands import would_go as command
from podyard.cli.errors import InputError
from podyard.cli.explain import candidates
from podyard.cli.explain.candidates import Claim
from podyard.cli.explain.would_go import Answers, WouldGo
from podyard.cli.render import would_go as rendered
from podyard.objects.manifests import Manifest, read
from podyard.proto.decisions import NodeScore, Rejection, Victim
from podyard.proto.scheduler_api import NodesVerdict, PluginVerdict, WouldGoReply

WORKLOAD = """
apiVersion: {version}
kind: {kind}
metadata: {{name: w, namespace: shop}}
spec:
  template: {template}
"""
TEMPLATE = "{metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: i}]}}"


def manifest(text: str) -> Manifest:
    found = read("file.yaml", f"---\n{text}")
    assert not found.faults
    [one] = found.manifests
    return one


def workload(kind: str, version: str = "apps/v1", template: str = TEMPLATE) -> Manifest:
    return manifest(WORKLOAD.format(kind=kind, version=version, template=template))


def made(one: Manifest, taken: Any = (), stored: Any = ()) -> candidates.Candidate:
    found = candidates.of(one, taken, stored)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "version"),
    [("Deployment", "apps/v1"), ("ReplicaSet", "apps/v1"), ("ReplicationController", "v1"), ("Job", "batch/v1")],
)
def test_a_workload_means_the_pod_of_its_template(kind: str, version: str) -> None:
    found = made(workload(kind, version))
    assert found.about == f"{kind} w"
    assert found.document["metadata"]["namespace"] == "shop"
    assert found.document["metadata"]["generateName"] == "w-"
    assert found.document["metadata"]["labels"] == {"app": "w"}
    assert found.document["spec"] == {"containers": [{"name": "c", "image": "i"}]}
    owners = found.document["metadata"].get("ownerReferences", [])
    assert [(one["kind"], one["name"]) for one in owners] == ([(kind, "w")] if kind.startswith("Replica") else [])


def test_a_cron_job_means_the_pod_of_its_jobs() -> None:
    text = WORKLOAD.replace("  template: {template}", "  jobTemplate: {{spec: {{template: {template}}}}}")
    found = made(manifest(text.format(kind="CronJob", version="batch/v1", template=TEMPLATE)))
    assert found.document["spec"]["containers"][0]["name"] == "c"


def test_a_daemon_set_s_pod_tolerates_what_its_controller_lets_it() -> None:
    found = made(workload("DaemonSet"))
    assert "node.kubernetes.io/unschedulable" in [one["key"] for one in found.document["spec"]["tolerations"]]
    assert found.notes == ("a DaemonSet puts one on each node that takes it",)


def test_a_stateful_set_s_pod_has_the_claims_that_are_there_and_the_others_are_told() -> None:
    text = (
        WORKLOAD
        + "  ordinals: {{start: 3}}\n  volumeClaimTemplates: [{{metadata: {{name: data}}}}, {{metadata: {{name: log}}}}]"
    )
    one = manifest(text.format(kind="StatefulSet", version="apps/v1", template=TEMPLATE))
    assert candidates.claims([one]) == [Claim("shop", "data-w-3"), Claim("shop", "log-w-3")]
    found = made(one, stored=[Claim("shop", "data-w-3")])
    assert found.document["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-w-3"}},
        {"name": "log", "emptyDir": {}},
    ]
    assert found.notes == ("judged without its claim log-w-3, which is made with the pod",)


def test_of_a_pod_that_is_there_one_more_is_meant() -> None:
    one = manifest("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}, spec: {}}")
    assert made(one).document["metadata"]["name"] == "p"
    more = made(one, taken=[("shop", "p")])
    assert more.document["metadata"] == {"namespace": "shop", "generateName": "p-"}
    assert "there is a pod of this name already" in more.notes[0]
    assert one.name == "p"


def test_what_makes_no_pods_is_none_and_a_workload_without_template_is_told() -> None:
    assert candidates.of(manifest("{apiVersion: v1, kind: Service, metadata: {name: s}}"), (), ()) is None
    with pytest.raises(InputError, match=r"spec\.template.*is missing"):
        candidates.of(manifest("{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}}"), (), ())


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["explain", "-f", "a", "--would"], ["explain", "-f", "a", "--would="]),
        (["explain", "--would", "-f", "-"], ["explain", "--would=", "-f", "-"]),
        (["explain", "pod", "p", "--would", "Node/Add"], ["explain", "pod", "p", "--would", "Node/Add"]),
        (["explain", "pod", "p", "--would=Node/Add"], ["explain", "pod", "p", "--would=Node/Add"]),
        (["explain"], ["explain"]),
    ],
)
def test_would_without_an_event_means_where(given: list[str], meant: list[str]) -> None:
    assert command.spelled_out(given) == meant


def asks(**given: Any) -> command.Asks:
    return command.Asks(
        **{"kind": "", "name": "", "would": None, "files": (), "old": "", "nodes": False, "every": False, **given}
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "explain what?"),
        ({"files": ("a",)}, "what about the file?"),
        ({"files": ("a",), "kind": "pod", "name": "p", "would": ""}, "one of them"),
        ({"kind": "pod", "would": ""}, "which pod?"),
        ({"kind": "deployment", "name": "d", "nodes": True}, "about a pod, not about a deployment"),
        ({"kind": "pod", "name": "p", "nodes": True, "would": "Node/Add"}, "--nodes is about nodes as they are"),
        ({"files": ("a",), "would": "Node/Add"}, "of which pod?"),
        ({"files": ("a",), "would": "", "old": "b"}, "--old belongs to --would EVENT"),
        ({"files": ("a",), "would": "", "every": True}, "--all shows each node with --nodes"),
    ],
)
def test_what_does_not_go_together_is_told(given: dict[str, Any], told: str) -> None:
    one = asks(**given)
    assert one.where
    with pytest.raises(InputError, match=told):
        command.run(one, None, "text", "nats://127.0.0.1:1")


def reply(**more: Any) -> WouldGoReply:
    return WouldGoReply(**{"scheduler": "s", "position": 7, "namespace": "shop", "name": "p", "profile": "d"} | more)


def shown(one: WouldGoReply, width: int = 80, *, nodes: bool = False, every: bool = False) -> str:
    return "\n".join(rendered.of_stored(one, width, nodes=nodes, every=every))


SCORES = (
    NodeScore(node="n1", total=150, plugins={"NodeResourcesFit": 90, "NodeResourcesBalancedAllocation": 60}),
    NodeScore(node="ip-10-0-12-34.eu-west-1.compute.internal", total=140, plugins={"NodeResourcesFit": 140}),
)
TAINT = PluginVerdict(plugin="TaintToleration", reasons=("untolerated taint",), unresolvable=True)
ROOM = PluginVerdict(plugin="NodeResourcesFit", reasons=("Insufficient cpu",))


def test_the_best_nodes_stand_side_by_side_by_plugin_within_80_columns() -> None:
    text = shown(reply(node="n1", nodes_total=9, nodes_feasible=2, equals=1, scores=SCORES))
    assert text == (
        "Pod shop/p\n"
        "  would go to n1: 2 of 9 nodes fit\n"
        "\n"
        "  BEST NODES                    n1    ip-10-…nternal\n"
        "  total                         150   140\n"
        "  NodeResourcesFit              90    140\n"
        "  NodeResources…cedAllocation   60    -"
    )


def test_nowhere_has_reasons_the_nearest_node_and_who_would_have_to_go() -> None:
    text = shown(
        reply(
            nodes_total=3,
            rejections=(
                Rejection(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=2, examples=("a", "b"),
                    nearest="a", detail="wants 2 cpu, free 1 of 4"),
                Rejection(plugin="TaintToleration", reason="untolerated taint", nodes=1, examples=("c",)),
            ),
            nearest="a",
            nominated_node="a",
            victims=(Victim(namespace="shop", name="old", uid="u", priority=3, pdb_violation=True),),
        )
    )  # fmt: skip
    assert text.splitlines()[1:] == [
        "  would go nowhere: 0 of 3 nodes fit",
        "  NodeResourcesFit rejects 2 nodes: Insufficient cpu  (a, b)",
        "    a: wants 2 cpu, free 1 of 4",
        "  TaintToleration rejects 1 node: untolerated taint  (c)",
        "  a is nearest to taking it",
        "  would take room on a, where 1 pod would have to go:",
        "    shop/old (priority 3, against its disruption budget)",
    ]


def test_why_nobody_makes_room_is_told_unless_it_could_not_help() -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes: no victims"
    soft = Rejection(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=1)
    firm = Rejection(plugin="TaintToleration", reason="untolerated taint", nodes=1, unresolvable=True)
    assert "  preemption: 0/1 nodes: no victims" in shown(reply(nodes_total=1, rejections=(soft,), message=message))
    assert "preemption" not in shown(reply(nodes_total=1, rejections=(firm,), message=message))


def test_gates_a_place_and_errors_are_told() -> None:
    gate = PluginVerdict(plugin="SchedulingGates", reasons=("waits for a licence",))
    text = shown(reply(gates=(gate,), placed_on="n3", node="n1", nodes_total=1, nodes_feasible=1))
    assert text.splitlines()[1:] == [
        "  is on n3; one more like it",
        "  is not tried as long as SchedulingGates says: waits for a licence; once it is:",
        "  would go to n1: 1 of 1 node fits",
    ]
    assert "nobody can say where it would go: a bug" in shown(reply(error="a bug"))


def test_nodes_stand_together_or_each_by_itself() -> None:
    found = reply(
        node="n1",
        nodes_total=6,
        nodes_feasible=2,
        scores=SCORES,
        verdicts=(
            NodesVerdict(nodes=3, verdicts=(TAINT, ROOM), names=("a", "b", "c")),
            NodesVerdict(nodes=1, verdicts=(ROOM,), names=("z",)),
        ),
    )
    summary = shown(found, nodes=True).splitlines()
    assert summary[summary.index("what plugins say of nodes") :] == [
        "what plugins say of nodes",
        "  2 nodes: fit",
        "    best: n1 150, ip-10-0-12-34.eu-west-1.compute.internal 140",
        "  3 nodes: a, b, c",
        "    TaintToleration: untolerated taint",
        "    NodeResourcesFit: Insufficient cpu",
        "  1 node: z",
        "    NodeResourcesFit: Insufficient cpu",
        "each node by itself: --all",
    ]
    each = shown(found, 10_000, nodes=True, every=True).splitlines()
    assert [line.split()[0] for line in each[-6:]] == ["n1", SCORES[1].node, "a", "b", "c", "z"]
    assert each[-3].split(maxsplit=1)[1] == "TaintToleration: untolerated taint; NodeResourcesFit: Insufficient cpu"
    assert max(map(len, shown(found, 80, nodes=True, every=True).splitlines())) <= 80


def test_nodes_that_the_answer_had_no_room_for_are_counted() -> None:
    some = NodesVerdict(nodes=3, verdicts=(ROOM,), names=("a",))
    assert "  4,997 nodes more, which the answer had no room for" in shown(
        reply(nodes_total=5000, verdicts=(some,)), nodes=True
    )
    assert "4,999 nodes more, which the answer had no room for" in shown(
        reply(nodes_total=5000, verdicts=(some,), left_out=4999), nodes=True, every=True
    )


def test_of_files_each_pod_what_is_wrong_with_one_and_what_is_not_counted() -> None:
    found = Answers(
        pods=(
            WouldGo(about="Deployment w", namespace="shop", notes=("a note",), reply=reply(node="n1", nodes_total=1, nodes_feasible=1)),
            WouldGo(about="Pod bad", namespace="shop", refused=("spec.x: wrong",)),
            WouldGo(about="Pod named", namespace="shop", reply=reply(placed_on="n7", node="n1", nodes_total=1, nodes_feasible=1)),
        ),
        not_pods=("Service s",),
    )  # fmt: skip
    assert rendered.of_files(found, 100, nodes=False, every=False) == [
        "Deployment w in namespace shop",
        "  note: a note",
        "  would go to n1: 1 of 1 node fits",
        "",
        "Pod bad in namespace shop",
        "  would not be scheduled:",
        "    spec.x: wrong",
        "",
        "Pod named in namespace shop",
        "  is put on n7, which it names, and no scheduler is asked; if it named none:",
        "  would go to n1: 1 of 1 node fits",
        "",
        "told of the cluster as it is, without what else is in the file: Service s",
    ]
