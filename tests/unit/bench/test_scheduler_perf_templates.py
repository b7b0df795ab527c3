"""Files of objects: the part of Go's templates that they use, and what becomes of the objects."""

from pathlib import Path
from typing import Any

import pytest

from podyard.bench.scheduler_perf import documents
from podyard.bench.scheduler_perf.config import (
    CreateNodes,
    CreatePods,
    LabelNodes,
    NodeAllocatable,
    UniqueLabel,
    VolumeLimits,
)
from podyard.bench.scheduler_perf.documents import Files
from podyard.bench.scheduler_perf.moulds import INDEX, NAME, UID, Admitter, Names
from podyard.bench.scheduler_perf.templates import MOST_NESTED, Template
from podyard.cli.errors import InputError
from podyard.objects.decoding import document as decoded
from podyard.proto import codec
from podyard.proto.events import ClusterEvent


class Nothing:
    """A cluster without objects."""

    def get(self, resource: str, namespace: str, name: str) -> Any:
        return None

    def list(self, resource: str) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a {{.Index}} b {{ .Count }}", "a 7 b 20"),
        ("{{ DivideInt 30000 .Count }}Mi", "1500Mi"),
        ("{{ Mod .Index 4 }}", "3"),
        ("{{ DivideFloat .Index 2 }}", "3.5"),
        ("{{ MultiplyFloat .Index 2 }}", "14"),
        ("{{ AddInt .Index 1 2.9 }}", "10"),
        ("{{ SubtractInt 1 .Index }}", "-6"),
        ("{{ AddInt (MultiplyInt .Index 10) (Mod .Count 3) }}", "72"),
        ("x  {{- .Index -}}  y", "x7y"),
    ],
)
def test_what_stands_in_braces_is_filled_in(text: str, shown: str):
    assert Template("t.yaml", text).render(7, 20) == shown


@pytest.mark.parametrize(
    "inner",
    [
        ".Name",
        "Index",
        "DivideInt 1",
        "AddInt",
        ".Index | Mod 2",
        "if .Index",
        "Mod (.Index 2",
        "Mod .Index 2)",
        "",
        "$x",
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(inner: str):
    with pytest.raises(InputError) as raised:
        Template("t.yaml", f"a\nb {{{{{inner}}}}}")
    assert raised.value.message.startswith("t.yaml:2: ")


def test_braces_that_do_not_end_and_division_by_zero_are_refused():
    with pytest.raises(InputError, match=r"t\.yaml:1"):
        Template("t.yaml", "a {{ .Index")
    with pytest.raises(InputError, match=r"t\.yaml:1: DivideInt"):
        Template("t.yaml", "{{ DivideInt 1 .Index }}").render(0, 1)


def test_calls_may_be_nested_so_deep_and_no_deeper():
    def nested(depth: int) -> str:
        return "{{" + "AddInt 1 (" * depth + "AddInt 1 1" + ")" * depth + "}}"

    assert Template("f.yaml", nested(MOST_NESTED)).render(0, 1) == str(MOST_NESTED + 2)
    with pytest.raises(InputError, match="not understood"):
        Template("f.yaml", nested(MOST_NESTED + 1))


def test_a_template_without_braces_does_not_vary():
    assert [Template("t", text).varies for text in ("a", "{{.Index}}")] == [False, True]


def made(op: CreateNodes, tmp_path: Path) -> list[documents.Document]:
    return list(documents.nodes(op, Files(tmp_path), 3, UID, NAME))


def test_nodes_have_their_name_as_a_label_and_take_turns(tmp_path: Path):
    found = made(CreateNodes(count=3, label_node_prepare_strategy=LabelNodes("zone", ("a", "b"))), tmp_path)
    assert [one["metadata"]["labels"] for one in found] == [
        {"kubernetes.io/hostname": NAME, "zone": zone} for zone in ("a", "b", "a")
    ]
    assert found[0]["metadata"]["generateName"] == "node-3-"


def test_a_unique_label_stands_for_a_value_of_its_own(tmp_path: Path):
    [node] = made(CreateNodes(count=1, unique_node_label_strategy=UniqueLabel("host")), tmp_path)
    mould = Admitter(Nothing(), lambda: 0.0).mould(node)
    one, other = (
        decoded(codec.decode(ClusterEvent, mould.cast(n, u).payload).object) for n, u in (("a", "1"), ("b", "2"))
    )
    assert [found["metadata"]["labels"]["host"] for found in (one, other)] == ["1", "2"]
    assert one["metadata"]["labels"]["kubernetes.io/hostname"] == one["metadata"]["name"] == "a"


def test_allocatable_and_drivers_of_nodes(tmp_path: Path):
    strategy = NodeAllocatable({"attachable-volumes": "20"}, {"ebs": VolumeLimits(39)}, ("p", "q"))
    node, csi_node = made(CreateNodes(count=1, node_allocatable_strategy=strategy), tmp_path)
    assert node["status"]["allocatable"] == {"pods": "110", "cpu": "4", "memory": "32Gi", "attachable-volumes": "20"}
    assert csi_node["kind"] == "CSINode"
    assert csi_node["spec"]["drivers"] == [{"name": "ebs", "nodeID": NAME, "allocatable": {"count": 39}}]
    assert csi_node["metadata"]["annotations"] == {documents.MIGRATED: "p,q"}


def test_fields_may_be_spelt_as_go_reads_them(tmp_path: Path):
    (tmp_path / "pod.yaml").write_text(
        "metadata: {generateName: p-}\n"
        "spec: {topologySpreadConstraints: [{MaxSkew: 1, topologyKey: zone, WhenUnsatisfiable: DoNotSchedule}]}\n"
    )
    pod = documents.pod(CreatePods(pod_template_path="pod.yaml"), Files(tmp_path), None, 0)
    assert pod["spec"]["topologySpreadConstraints"] == [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ]
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")


def test_another_kind_than_the_op_creates_is_refused(tmp_path: Path):
    (tmp_path / "x.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: a}}")
    with pytest.raises(InputError, match="expected a Pod"):
        documents.pod(CreatePods(pod_template_path="x.yaml"), Files(tmp_path), None, 0)


def test_pods_get_volumes_that_are_bound_to_their_claims(tmp_path: Path):
    (tmp_path / "pv.yaml").write_text(
        "{spec: {csi: {driver: d}, capacity: {storage: 1Gi}, accessModes: [ReadOnlyMany]}}"
    )
    (tmp_path / "pvc.yaml").write_text("{spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}}")
    op = CreatePods(
        count=2, persistent_volume_template_path="pv.yaml", persistent_volume_claim_template_path="pvc.yaml"
    )
    pod = documents.base_pod()
    found = documents.claimed(op, Files(tmp_path), "room", 1, pod)
    assert found is not None
    assert found.claim["spec"]["volumeName"] == found.volume["metadata"]["name"] == "room-vol-1"
    assert found.volume["spec"]["csi"]["volumeHandle"] == "room-vol-1"
    assert found.volume["spec"]["claimRef"]["name"] == found.claim["metadata"]["name"] == "pvc-1"
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "pvc-1"}


def test_pods_of_one_mould_differ_in_name_uid_and_number():
    pod = documents.base_pod()
    pod["metadata"]["namespace"] = "kube-system"
    pod["metadata"]["annotations"] = {"number": INDEX}
    pod["spec"]["priority"] = 10
    mould = Admitter(Nothing(), lambda: 0.0).mould(pod)
    message = mould.cast("pod-a", "uid-a", 4)
    assert (message.subject, message.expect) == ("cluster.pods.kube-system.pod-a", 0)
    event = codec.decode(ClusterEvent, message.payload)
    found = decoded(event.object)
    assert (event.name, event.uid, found["metadata"]["uid"]) == ("pod-a", "uid-a", "uid-a")
    assert found["metadata"]["annotations"] == {"number": "4"}
    assert found["spec"]["priority"] == 10


def test_what_the_api_server_would_refuse_is_refused():
    pod = documents.base_pod()
    pod["metadata"]["namespace"] = "kube-system"
    pod["spec"]["containers"][0]["nonsense"] = 1
    with pytest.raises(InputError, match="nonsense"):
        Admitter(Nothing(), lambda: 0.0).mould(pod)


def test_no_name_is_given_twice():
    names = Names()
    found = [names.after("pod-") for _ in range(1000)]
    assert len(set(found)) == 1000
    assert {len(one) for one in found} == {9}
