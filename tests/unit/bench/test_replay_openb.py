"""The openb trace: what its rows become, and what is refused with its place."""

from pathlib import Path

import pytest

from podyard.bench.replay import objects, openb
from podyard.bench.replay.rows import NodeRow, PodRow
from podyard.cli.errors import InputError

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
NODE = "n-0,32000,262144,2,T4\n"
POD = "p-0,6000,12288,1,460,,LS,Running,10,90,20\n"


def pods(text: str) -> tuple[PodRow, ...]:
    return openb.pods_of("pods.csv", text)


def nodes(text: str) -> tuple[NodeRow, ...]:
    return openb.nodes_of("nodes.csv", text)


def test_rows_are_read_in_any_order_of_columns():
    assert nodes(NODES + NODE) == (NodeRow(name="n-0", cpu_milli=32000, memory_mib=262144, gpus=2, model="T4"),)
    turned = "model,gpu,memory_mib,cpu_milli,sn\r\n,0,8,7,a\r\n"
    assert nodes(turned) == (NodeRow(name="a", cpu_milli=7, memory_mib=8),)
    row = PodRow(
        name="p-0",
        cpu_milli=6000,
        memory_mib=12288,
        gpus=1,
        gpu_milli=460,
        qos="LS",
        phase="Running",
        created=10,
        deleted=90,
        scheduled=20,
    )
    assert pods(PODS + POD) == (row,)


def test_models_and_a_pod_that_was_never_scheduled():
    [row] = pods(PODS + "p,1,1,1,1000,V100M16|V100M32,BE,Pending,1,2,\n")
    assert (row.models, row.scheduled) == (("V100M16", "V100M32"), None)


@pytest.mark.parametrize(
    ("line", "place", "told"),
    [
        pytest.param("p,x,1,0,0,,LS,Running,1,2,", "cpu_milli: 'x'", "no whole number", id="no number"),
        pytest.param("p,-1,1,0,0,,LS,Running,1,2,", "cpu_milli: '-1'", "no whole number", id="below 0"),
        pytest.param("p,1.5,1,0,0,,LS,Running,1,2,", "cpu_milli: '1.5'", "no whole number", id="fraction"),
        pytest.param("p,\u0661,1,0,0,,LS,Running,1,2,", "cpu_milli: '\u0661'", "no whole number", id="other digits"),
        pytest.param("p,1,,0,0,,LS,Running,1,2,", "memory_mib: ''", "no whole number", id="empty"),
        pytest.param("p,99999999,1,0,0,,LS,Running,1,2,", "cpu_milli: '99999999'", "is not from 0 to", id="too large"),
        pytest.param("p,1,1,0,10,,LS,Running,1,2,", "gpu_milli: '10'", "num_gpu is 0", id="part of none"),
        pytest.param("p,1,1,1,0,,LS,Running,1,2,", "gpu_milli: '0'", "nothing of the GPU", id="nothing of one"),
        pytest.param("p,1,1,1,1001,,LS,Running,1,2,", "gpu_milli: '1001'", "is not from 0 to 1000", id="above one"),
        pytest.param("p,1,1,2,500,,LS,Running,1,2,", "gpu_milli: '500'", "several are whole", id="parts of two"),
        pytest.param("p,1,1,1,1000,A||B,LS,Running,1,2,", "gpu_spec: 'A||B'", "it is empty", id="empty model"),
        pytest.param("p,1,1,1,1000,A|A,LS,Running,1,2,", "gpu_spec: 'A|A'", "a model twice", id="model twice"),
        pytest.param("p,1,1,0,0,,,Running,1,2,", "qos: ''", "no value of a label", id="no qos"),
        pytest.param("p,1,1,0,0,,LS,Gone,1,2,", "pod_phase: 'Gone'", "is no phase", id="phase"),
        pytest.param("p,1,1,0,0,,LS,Running,3,2,", "deletion_time: '2'", "before creation_time, 3", id="ends first"),
        pytest.param("p,1,1,0,0,,LS,Running,1,2,3", "scheduled_time: '3'", "is not between", id="scheduled late"),
        pytest.param("P_,1,1,0,0,,LS,Running,1,2,", "name: 'P_'", "names no object", id="name"),
        pytest.param("p-0,1,1,0,0,,LS,Running,1,2,", "name: 'p-0'", "is the name of line 2 too", id="twice"),
    ],
)
def test_what_is_wrong_with_a_pod_is_told_with_line_column_and_value(line: str, place: str, told: str):
    with pytest.raises(InputError) as raised:
        pods(f"{PODS}{POD}{line}\n")
    assert raised.value.message.startswith(f"pods.csv, line 3, column {place} ")
    assert told in raised.value.message
    assert "bench trace --help" in raised.value.advice


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "line 1, column sn: is missing", id="empty file"),
        pytest.param(NODES, "nodes.csv: has no row", id="no row"),
        pytest.param("sn,cpu_milli,memory_mib,gpu\n", "line 1, column model: is missing", id="missing column"),
        pytest.param(NODES.strip() + ",rack\n", "line 1, column 'rack': is not known", id="unknown column"),
        pytest.param(NODES.strip() + ",gpu\n", "line 1, column gpu: is there twice", id="column twice"),
        pytest.param(NODES + "a,1,1,0\n", "line 2: has 4 fields, the header has 5 columns", id="short row"),
        pytest.param(NODES + "a,1,1,0,,\n", "line 2: has 6 fields", id="long row"),
        pytest.param(NODES + "\n", "line 2: has 0 fields", id="empty line"),
        pytest.param(
            NODES + f"{'a' * 300},1,1,0,\n", "column sn: has 300 characters, 253 are allowed", id="long field"
        ),
        pytest.param(NODES + f"a,{'1' * 200_000},1,0,\n", "line 2: no CSV: field larger than", id="huge field"),
        pytest.param(NODES + '"a,1,1,0,\n', "no CSV: unexpected end of data", id="open quote"),
        pytest.param(NODES + "a,1,1,0,T4\n", "column model: 'T4' is the model of GPUs, and gpu is 0", id="no GPU"),
        pytest.param(NODES + "a,1,1,2,\n", "column model: '' is no value of a label: it is empty", id="no model"),
        pytest.param(NODES + "a,0,1,0,\n", "column cpu_milli: '0' is not from 1 to", id="no CPU"),
        pytest.param(NODES + "a,1,1,65,T4\n", "column gpu: '65' is not from 0 to 64", id="too many GPUs"),
    ],
)
def test_what_is_wrong_with_a_file_of_nodes_is_told(text: str, told: str):
    with pytest.raises(InputError) as raised:
        nodes(text)
    assert told in raised.value.message


def test_all_faults_are_told_together_but_not_endlessly():
    with pytest.raises(InputError) as raised:
        nodes(NODES + "a,x,y,0,\n" + "b,1\n" * 1000)
    told = raised.value.message.splitlines()
    assert "column cpu_milli" in told[0]
    assert "column memory_mib" in told[1]
    assert "line 3: has 2 fields" in told[2]
    assert told[-1].endswith("and 80 more")


def test_rows_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(openb, "MOST_NODES", 2)
    assert len(nodes(NODES + "a,1,1,0,\nb,1,1,0,\n")) == 2
    with pytest.raises(InputError, match="line 4: there are more than 2 rows"):
        nodes(NODES + "a,1,1,0,\nb,1,1,0,\nc,1,1,0,\n")


def test_files_are_bounded_and_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    there = tmp_path / "nodes.csv"
    there.write_text(NODES + NODE)
    with pytest.raises(InputError, match="No such file"):
        openb.read(tmp_path / "pods.csv", there)
    monkeypatch.setattr(openb, "LARGEST_BYTES", 20)
    with pytest.raises(InputError, match="larger than 20 bytes"):
        openb.read(there, there)


def test_files_that_do_not_belong_together_are_told(tmp_path: Path):
    (tmp_path / "n").write_text(NODES + NODE)
    (tmp_path / "p").write_text(PODS + "p,1,1,8,1000,,LS,Running,1,2,\n")
    with pytest.raises(InputError, match=r"p asks for 8 GPUs .* no node of .* has more than 2"):
        openb.read(tmp_path / "p", tmp_path / "n")


def test_a_part_of_a_gpu_is_asked_for_in_thousandths_and_a_model_by_affinity():
    node = objects.node(NodeRow(name="n", cpu_milli=8000, memory_mib=64, gpus=2, model="T4"))
    assert node["metadata"]["labels"][objects.GPU_MODEL] == "T4"
    assert node["status"]["allocatable"] == {
        "cpu": "8000m",
        "memory": "64Mi",
        "pods": "1000",
        "alibabacloud.com/gpu-milli": "2000",
    }
    [row] = pods(PODS + "p,500,9,1,460,T4|P100,BE,Running,1,2,\n")
    pod = objects.pod(row)
    assert pod["metadata"]["labels"] == {"alibabacloud.com/qosClass": "BE"}
    [container] = pod["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "500m", "memory": "9Mi", "alibabacloud.com/gpu-milli": "460"},
        "limits": {"alibabacloud.com/gpu-milli": "460"},
    }
    [term] = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == [{"key": objects.GPU_MODEL, "operator": "In", "values": ["T4", "P100"]}]


def test_who_asks_for_no_gpu_names_none():
    [row] = pods(PODS + "p,500,9,0,0,,BE,Running,1,2,\n")
    pod = objects.pod(row)
    assert "affinity" not in pod["spec"]
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m", "memory": "9Mi"}}
    bare = objects.node(NodeRow(name="n", cpu_milli=1, memory_mib=1))
    assert bare["status"]["allocatable"].keys() == {"cpu", "memory", "pods"}
