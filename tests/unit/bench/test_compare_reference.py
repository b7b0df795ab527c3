"""`bench compare`: what kube-scheduler's benchmark writes and logs of a run is read as it is meant."""

import json
import re
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from podyard.bench.compare import (
    data_items,
    reference_changes,
    reference_log,
    reference_run,
    rows,
    sampling,
    workloads,
)
from podyard.bench.compare.data_items import DataItemsError
from podyard.bench.compare.outcome import RunError
from podyard.bench.compare.reference_changes import Changes, ChangesError
from podyard.bench.compare.reference_log import Bound, Course, ReferenceLogError
from podyard.bench.compare.sampling import Sample
from podyard.bench.compare.workloads import Prepared

PACED = next(row for row in rows.ROWS if row.name == "pod-add")
NAME = "SchedulingBasic/5Nodes/namespace-2"
THROUGHPUT = {
    "data": {"Average": 250.5, "AverageThreshold": 270.0, "Perc50": 251.0, "Perc99": 300.0},
    "unit": "pods/s",
    "labels": {"Metric": "SchedulingThroughput", "Name": NAME},
}
UNPLACED = {
    "data": {"Average": 1.0, "Perc99": 2.0},
    "unit": "ms",
    "labels": {"Metric": data_items.ATTEMPT, "Name": NAME, "result": "unschedulable"},
}
PLACED = {
    "data": {"Average": 32.0, "Perc99": 183.0},
    "unit": "ms",
    "labels": {"Metric": data_items.ATTEMPT, "Name": NAME, "result": "scheduled"},
}
HEAP = {
    "data": {"Average": 900.0, "Max": 1100.0},
    "unit": "MB",
    "labels": {"Metric": "heap_memory_usage", "Name": NAME, "result": "not applicable"},
}
DURATION = {"data": {"Duration": 38.5}, "unit": "s", "labels": {"Metric": "SchedulingDuration", "Name": NAME}}

BOUND = 'I1128 00:45:%09.6f   12345 schedule_one.go:481] "Successfully bound pod to node" pod="%s/pod-x" node="node-1"'
RELEASED = Path("/go/pkg/mod/k8s.io/kubernetes@v1.36.2/test/integration/scheduler_perf")
MIDNIGHT = 1795824000.0  # 2026-11-28


def written(*items: dict[str, Any]) -> bytes:
    return json.dumps({"version": "v1", "dataItems": list(items)}).encode()


def bound(second: float, namespace: str) -> str:
    return BOUND % (second, namespace) + "\n"


def test_figures_are_taken_by_metric_and_label() -> None:
    measured = data_items.read(written(UNPLACED, PLACED, THROUGHPUT, HEAP, DURATION))
    assert measured.measured == "namespace-2"
    assert measured.pods_per_second == 250.5
    assert measured.percentiles == {"Perc50": 251.0, "Perc99": 300.0}
    assert (measured.attempt_mean_ms, measured.attempt_p99_ms) == (32.0, 183.0), "of attempts that placed a pod"
    assert (measured.heap_mib, measured.seconds) == (1100.0, 38.5)


def test_a_run_without_a_sample_has_no_rate() -> None:
    """The reference then writes an item without a metric and without data."""
    measured = data_items.read(written({"data": None, "unit": "", "labels": {"Name": NAME}}, DURATION))
    assert measured.pods_per_second is None
    assert measured.seconds == 38.5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "no data items"),
        (b"[]", "no data items"),
        (b'{"version": "v1", "dataItems": null}', "failed before it measured"),
        (written(THROUGHPUT), "no SchedulingDuration"),
        (written(DURATION, {**DURATION, "labels": {**DURATION["labels"], "Name": "Other"}}), NAME),
    ],
)
def test_what_is_no_result_of_one_workload_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(DataItemsError, match=re.escape(said)):
        data_items.read(content)


TOLD = [
    (MIDNIGHT + 45 * 60 + 1.5, '    executor.go:532: creating 5 pods in namespace "namespace-1"\n'),
    (MIDNIGHT + 45 * 60 + 2.0, "    executor.go:462: Started metrics collection\n"),
    (MIDNIGHT + 45 * 60 + 5.25, "    executor.go:485: Stopped metrics collection\n"),
]


def test_pods_of_the_measured_part_are_counted_to_the_last_binding() -> None:
    logged = [
        bound(1.0, "namespace-1"),
        bound(2.5, "namespace-2"),
        "I1128 no header\n",
        bound(4.5, "namespace-2"),
        bound(3.5, "churn"),
        bound(6.0, "namespace-2"),
    ]
    course = reference_log.read(TOLD, logged, 2026)
    assert [one.namespace for one in course.bound] == ["namespace-2", "churn", "namespace-2"]
    assert course.seconds == pytest.approx(2.5)
    assert {one.name for one in course.bound} == {"pod-x"}


def at(second: float, namespace: str, name: str) -> Bound:
    return Bound(MIDNIGHT + second, namespace, name)


def test_pods_of_one_op_count_by_its_namespace() -> None:
    measured = data_items.read(written(THROUGHPUT, DURATION))
    counts = reference_run.counting(measured, None, Changes([], {}))
    assert [counts(at(1, place, "a")) for place in ("namespace-2", "churn")] == [True, False]


def test_pods_of_several_ops_count_by_namespace_and_labels() -> None:
    """As the file says where it begins to measure."""
    cases = [
        {
            "name": PACED.case,
            "workloadTemplate": [
                {"opcode": "createNodes", "count": 2},
                {"opcode": "startCollectingMetrics", "namespaces": ["a"], "labelSelector": {"type": "unsched"}},
            ],
        }
    ]
    labels = {"a/one": {"type": "unsched"}, "a/two": {"type": "unblocker"}, "b/one": {"type": "unsched"}}
    several = workloads.measured(cases, PACED)
    counts = reference_run.counting(data_items.read(written(DURATION)), several, Changes([], labels))
    found = [counts(at(1, *name.split("/"))) for name in ("a/one", "a/two", "a/three", "b/one")]
    assert found == [True, False, False, False]
    assert workloads.measured([{"name": PACED.case}], PACED) is None


CHANGED = """\
10.000000 node added node-1 {"a":"b"}
10.100000 node added node-2 null
10.200000 pod added a/one {"type":"unsched"}
12.000000 node added node-3 {}
12.500000 pod changed a/one {"type":"unsched"}
13.000000 pod deleted a/one {"type":"unsched"}
"""


def test_what_an_op_adds_is_one_event() -> None:
    changes = reference_changes.read(CHANGED.splitlines())
    assert changes.events == [10.0, 10.2, 12.0, 12.5, 13.0], "node-2 comes with node-1, node-3 by another op"
    assert changes.labels == {"a/one": {"type": "unsched"}}
    with pytest.raises(ChangesError, match=r"not a line of changes: 10\.0 node"):
        reference_changes.read(["10.0 node"])


def test_a_reaction_is_the_last_binding_before_the_next_event() -> None:
    course = Course(10.0, 30.0, [Bound(at, "a", "x") for at in (10.5, 12.0, 20.25, 21.0)])
    measured = data_items.read(written(DURATION))
    samples = [Sample(0.0, {"etcd": 0.0}, {}), Sample(40.0, {"etcd": 4.0}, {})]
    found = reference_run.figures_of(measured, course, samples, [5.0, 10.0, 20.0, 35.0])
    assert (found.reaction_p50_ms, found.reaction_p99_ms) == (1000.0, 2000.0), "only events of the measured part"
    assert (found.pods, found.seconds) == (4, 11.0)
    assert found.cpu_us_per_pod == {"etcd": pytest.approx(1.1e6 / 4)}
    assert reference_run.figures_of(measured, course, samples, []).reaction_p99_ms is None


def test_changes_are_watched_only_where_they_count() -> None:
    """The watch costs the reference CPU."""
    paths = (Path("/b"), Path("/w/misc/c.yaml"), Path("/f"))
    several = workloads.Measured(frozenset(), {})
    assert "-changes=/f/changes" in reference_run.command(paths[0], Prepared(paths[1], several), PACED, paths[2])
    assert not [
        word
        for word in reference_run.command(paths[0], Prepared(paths[1], None), PACED, paths[2])
        if word.startswith("-changes")
    ]


@pytest.mark.parametrize("told", [TOLD[:1], TOLD[:2], TOLD[2:]])
def test_a_run_without_a_measured_part_is_refused(told: list[tuple[float, str]]) -> None:
    with pytest.raises(ReferenceLogError, match="when the measured part began"):
        reference_log.read(told, [bound(1.0, "namespace-1")], 2026)


def test_cpu_between_two_looks_lies_on_a_line() -> None:
    samples = [
        Sample(10.0, {"scheduler-perf": 1.0}, {}),
        Sample(11.0, {"scheduler-perf": 2.0, "etcd": 0.5}, {}),
        Sample(13.0, {"scheduler-perf": 6.0, "etcd": 1.5}, {}),
    ]
    spent = sampling.cpu_between(samples, 10.5, 12.0)
    assert spent == {"etcd": pytest.approx(0.5), "scheduler-perf": pytest.approx(2.5)}
    assert sampling.cpu_between(samples, 12.0, 20.0)["scheduler-perf"] == pytest.approx(2.0), "nothing is made up"


def test_memory_is_the_most_of_the_measured_part() -> None:
    mib = sampling.MIB
    samples = [Sample(float(at), {}, {"etcd": size * mib}) for at, size in enumerate((9, 3, 5, 4, 8))]
    assert sampling.most_memory(samples, 1.0, 3.0) == {"etcd": 5.0}


def test_a_workload_is_named_alone() -> None:
    """Go matches the parts between slashes one by one, each anywhere in a name unless it is anchored."""
    row = next(row for row in rows.ROWS if row.name == "unschedulable")
    parts = reference_run.pattern(row).split("/")
    name = ["BenchmarkPerfScheduling", "Unschedulable", "5kNodes", "100Init", "10kPods_QueueingHintsEnabled"]
    assert all(re.search(part, word) for part, word in zip(parts, name, strict=True))
    assert not re.search(parts[-1], "10kPods_QueueingHintsEnabled_2")
    assert not re.search(parts[2], "15kNodes")


def test_the_reference_has_its_own_etcd_and_the_time_of_the_log(tmp_path: Path) -> None:
    given = {"PATH": "/usr/bin", "ARTIFACTS": "/tmp/a", "KUBE_INTEGRATION_ETCD_URL": "http://127.0.0.1:2379"}
    found = reference_run.environment(given, tmp_path, RELEASED)
    assert found["PATH"] == f"{tmp_path}/bin:/usr/bin"
    assert found["TZ"] == "UTC"
    assert (found["TEST_SRCDIR"], found["TEST_WORKSPACE"]) == ("/go/pkg", "mod")
    assert "ARTIFACTS" not in found, "with it the log is not where it is read"
    assert "KUBE_INTEGRATION_ETCD_URL" not in found


def test_the_benchmark_reaches_its_etcd_wherever_results_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with reference_run.short_name(folder) as short, socket.socket(socket.AF_UNIX) as etcd:
        within = short / "integration_test_etcd_data0123456789"
        within.mkdir()
        etcd.bind(str(within / "etcd.sock"))
        assert (folder / within.name / "etcd.sock").exists()
    assert folder.exists(), "the results lie in there"


def test_a_name_too_long_for_a_socket_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / ("long" * 20)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with (
        pytest.raises(RunError, match="set TMPDIR to a folder with a shorter name"),
        reference_run.short_name(tmp_path),
    ):
        pass
