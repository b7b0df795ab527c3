"""`podyard bench scheduler-perf` on a real stack: a case that has every opcode, as small as it can be."""

import json
from pathlib import Path

import pytest

from podyard.cli.__main__ import main

CASES = """
- name: Everything
  featureGates: {SchedulerQueueingHints: true}
  defaultPodTemplatePath: pod.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - {opcode: createNamespaces, prefix: room, count: 2}
  - {opcode: createPods, count: 2, persistentVolumeTemplatePath: pv.yaml, persistentVolumeClaimTemplatePath: pvc.yaml}
  - opcode: createPodSets
    count: 2
    namespacePrefix: room
    createPodsOp: {opcode: createPods, count: 2, skipWaitToCompletion: true}
  - {opcode: barrier, namespaces: [room-0]}
  - opcode: barrier
  - {opcode: createAny, templatePath: service.yaml, namespace: room-0}
  - {opcode: churn, mode: recreate, number: 1, templatePaths: [waits.yaml, service.yaml], intervalMilliseconds: 50}
  - {opcode: createPods, count: 5, namespace: steady, steadyState: true, duration: 300ms, collectMetrics: true}
  - {opcode: startCollectingMetrics, namespaces: [late], labelSelector: {type: late}}
  - {opcode: createPods, count: 3, podTemplatePath: late.yaml, namespace: late, skipWaitToCompletion: true}
  - {opcode: barrier, stageRequirement: Attempted, labelSelector: {type: late}}
  - {opcode: updateAny, templatePath: late-goes.yaml, count: 3, updatePerSecond: 100, namespace: late}
  - {opcode: barrier, labelSelector: {type: late}}
  - {opcode: deletePods, namespace: late, deletePodsPerSecond: 100}
  - {opcode: sleep, duration: 100ms}
  - opcode: stopCollectingMetrics
  workloads:
  - {name: tiny, params: {nodes: 4}}
"""

POD = "{containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}], terminationGracePeriodSeconds: 0"
FILES = {
    "pod.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{generateName: pod-}}, spec: {POD}}}}}",
    "waits.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{generateName: waits-}}, spec: {POD}, nodeSelector: {{zone: c}}}}}}",
    "late.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{name: 'late-{{{{.Index}}}}', labels: {{type: late}}}}, "
    f"spec: {POD}, schedulingGates: [{{name: hold}}]}}}}",
    "late-goes.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{name: 'late-{{{{.Index}}}}', labels: {{type: late}}}}, spec: {POD}}}}}",
    "service.yaml": "{apiVersion: v1, kind: Service, metadata: {generateName: s-}, spec: {ports: [{port: 80}], selector: {a: b}}}",
    "pv.yaml": "{spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: d}}}",
    "pvc.yaml": "{metadata: {annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, "
    "spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}}",
}


@pytest.mark.parametrize("stack", ["headline", "api"])
def test_every_opcode_is_done_measured_and_judged(stack: str, tmp_path: Path, capsys):
    (tmp_path / "config.yaml").write_text(CASES)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    words = ["bench", "scheduler-perf", str(tmp_path / "config.yaml"), "--case", "Everything/tiny", "-o", "json"]
    words += ["--services", stack, "--tracing", "1"]
    code = main([*words, "--save", str(tmp_path / "kept"), "--sync-always"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    steady, late = json.loads(captured.out)
    assert steady["pods_bound"] >= 5
    assert steady["churn"]["paced_by"] == "the clock"
    assert late["pods_bound"] == 3
    assert late["churn"]["rounds"] >= 2
    assert late["reaction"]["count"] >= 1
    services = {"queue", "scheduler", "binder", *({"api"} if stack == "api" else ())}
    assert late["cpu_us_per_pod_by_process"].keys() == {*services, "nats-server", "client"}
    assert late["pss_mib"] > 0
    assert late["attempt"]["count"] >= 3
    assert (late["synchronous"], late["checked"]) == (True, "")
    assert late["streams"]["violations"] == []
    assert late["streams"]["judged"] >= 3
    assert late["streams"]["bound"] == late["streams"]["judged"] + sum(late["streams"]["unjudged"].values())
    assert late["spans_sent_per_pod"] > 0
    assert len(list((tmp_path / "kept").iterdir())) == 2


PACED = """
- name: Paced
  featureGates: {SchedulerQueueingHints: true}
  defaultPodTemplatePath: pod.yaml
  workloadTemplate:
  - {opcode: createNodes, count: 2}
  - {opcode: createPods, count: 20}
  - opcode: createPods
    count: 12
    persistentVolumeTemplatePath: pv.yaml
    persistentVolumeClaimTemplatePath: pvc.yaml
    collectMetrics: true
  workloads:
  - {name: tiny, params: {}}
"""


def test_pods_that_are_measured_are_created_at_the_pace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """12 at 8 a second: the last one after 1.5 s."""
    (tmp_path / "config.yaml").write_text(PACED)
    for name in ("pod.yaml", "pv.yaml", "pvc.yaml"):
        (tmp_path / name).write_text(FILES[name])
    words = ["bench", "scheduler-perf", str(tmp_path / "config.yaml"), "--case", "Paced/tiny", "-o", "json"]
    code = main([*words, "--pace", "8"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    result = json.loads(captured.out)
    assert (result["pods_bound"], result["pace"], result["checked"]) == (12, 8.0, "")
    assert result["seconds"] >= 1.5
    assert result["commits"] >= 10, "each came alone"
