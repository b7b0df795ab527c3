"""Plans tried without a bus: what the files of a workload describe is what somebody would take."""

import json
from pathlib import Path

import msgspec
import pytest

from podyard.bench.scheduler_perf import config, moulds, planning, rehearsing
from podyard.bench.scheduler_perf.documents import Files
from podyard.bench.scheduler_perf.moulds import NAME
from podyard.bench.scheduler_perf.written import Written
from podyard.cli.errors import InputError

SPEC = "{containers: [{name: c, image: i}]"
FILES = {
    "pod.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{generateName: pod-}}, spec: {SPEC}}}}}",
    "high.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{generateName: high-}}, spec: {SPEC}, priority: 10}}}}",
    "secret-pod.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{generateName: s-}}, "
    f"spec: {SPEC}, volumes: [{{name: v, secret: {{secretName: s}}}}]}}}}",
    "named.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{name: 'p-{{{{.Index}}}}'}}, spec: {SPEC}}}}}",
    "nameless.yaml": f"{{apiVersion: v1, kind: Pod, metadata: {{generateName: p-}}, spec: {SPEC}}}}}",
    "wrong.yaml": "{apiVersion: v1, kind: Pod, metadata: {generateName: p-}, spec: {containers: [{image: i}]}}",
    "strange.yaml": "{apiVersion: v1, kind: Strange, metadata: {generateName: p-}}",
    "node.yaml": "{apiVersion: v1, kind: Node, metadata: {generateName: n-}, spec: {taints: [{key: a, effect: NoSchedule}]}, "
    "status: {capacity: {cpu: 4, 'foo.com/bar-{{.Index}}': 1}}}",
    "room.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: room, labels: {team: devops}}}",
    "service.yaml": "{apiVersion: v1, kind: Service, metadata: {generateName: s-}, spec: {ports: [{port: 80}], selector: {a: b}}}",
    "secret.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {password: secret}}",
    "class.yaml": "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}",
    "pv.yaml": "{spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, awsElasticBlockStore: {volumeID: v}}}",
    "pvc.yaml": "{metadata: {annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, "
    "spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}}",
}
MEASURED = "{opcode: createPods, count: 1, collectMetrics: true}"


@pytest.fixture
def rehearse(tmp_path: Path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def run(op: str, *, by_api: bool = False) -> frozenset[int]:
        [case] = config.decode(
            "c.yaml", f"[{{name: A, workloadTemplate: [{op}, {MEASURED}], workloads: [{{name: w, params: {{}}}}]}}]"
        )
        steps = planning.plan(case, case.workloads[0])
        return rehearsing.rehearse(case, steps, Files(tmp_path), by_api=by_api)

    return run


GOOD = (
    "{opcode: createNodes, count: 500}",
    "{opcode: createNodes, count: 2, nodeTemplatePath: node.yaml}",
    "{opcode: createNodes, count: 2, uniqueNodeLabelStrategy: {labelKey: kubernetes.io/hostname}}",
    (
        "{opcode: createNodes, count: 2, nodeAllocatableStrategy: {nodeAllocatable: {foo.com/x: '9'}, "
        "csiNodeAllocatable: {ebs.csi.aws.com: {count: 39}}, migratedPlugins: [kubernetes.io/aws-ebs]}}"
    ),
    "{opcode: createNamespaces, prefix: room, count: 2, namespaceTemplatePath: room.yaml}",
    "{opcode: createPods, count: 50000}",
    "{opcode: createPods, count: 2, podTemplatePath: named.yaml, namespace: room}",
    "{opcode: createPods, count: 2, podTemplatePath: secret-pod.yaml}",
    "{opcode: createPods, count: 2, persistentVolumeTemplatePath: pv.yaml, persistentVolumeClaimTemplatePath: pvc.yaml}",
    "{opcode: createPodSets, count: 2, namespacePrefix: room, createPodsOp: {opcode: createPods, count: 2}}",
    "{opcode: createAny, templatePath: service.yaml, namespace: room}",
    "{opcode: createAny, templatePath: class.yaml}",
    "{opcode: updateAny, templatePath: named.yaml, namespace: room, count: 2}",
    "{opcode: churn, mode: create, templatePaths: [high.yaml, service.yaml], intervalMilliseconds: 10}",
    "{opcode: createPods, count: 0, podTemplatePath: none.yaml}",
)


@pytest.mark.parametrize("op", GOOD)
@pytest.mark.parametrize("by_api", [False, True])
def test_forms_that_occur_can_be_run(op: str, by_api: bool, rehearse):
    rehearse(op, by_api=by_api)


BAD = (
    ("{opcode: createPods, count: 1, podTemplatePath: none.yaml}", "none.yaml: No such file"),
    ("{opcode: createPods, count: 1, podTemplatePath: wrong.yaml}", 'Pod "p-" is invalid: spec.containers[0]: misses'),
    ("{opcode: createPods, count: 1, podTemplatePath: service.yaml}", "expected a Pod, this is v1 Service"),
    ("{opcode: createAny, templatePath: strange.yaml}", "Strange"),
    ("{opcode: createAny, templatePath: service.yaml}", "a Service lives in a namespace"),
    ("{opcode: createAny, templatePath: class.yaml, namespace: room}", "a DeviceClass lives in no namespace"),
    ("{opcode: updateAny, templatePath: nameless.yaml, namespace: room}", "needs a name"),
    ("{opcode: churn, mode: create, templatePaths: [named.yaml]}", "nothing may stand in"),
)


@pytest.mark.parametrize(("op", "told"), BAD)
def test_what_nobody_would_take_is_told_with_its_op_before_anything_runs(op: str, told: str, rehearse):
    with pytest.raises(InputError) as raised:
        rehearse(op)
    assert told in raised.value.message
    assert raised.value.message.startswith("op 0 (")


def test_a_secret_needs_an_api_that_seals_it(rehearse):
    op = "{opcode: createAny, templatePath: secret.yaml, namespace: room}"
    with pytest.raises(InputError, match="Secret: the api seals them") as raised:
        rehearse(op)
    assert "--services api" in raised.value.advice
    rehearse(op, by_api=True)


def test_priorities_that_pods_say_by_number_are_found(rehearse):
    assert rehearse("{opcode: createPods, count: 2, podTemplatePath: high.yaml}") == {10}


def test_an_api_gets_what_a_client_sends_and_a_class_for_a_priority():
    written = Written(lambda: 0.0, by_api=True)
    written.cast(written.mould({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "room"}}), "room")
    container = {"name": "c", "image": "i"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {"containers": [container]}}
    pod["spec"] |= {"priority": -5}
    message = written.cast(written.mould(pod, "room"), "p-1")
    assert json.loads(message.payload) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p-1", "namespace": "room"},
        "spec": {"containers": [container], "priorityClassName": "podyard-bench-minus-5"},
    }
    assert written.pods == {"room": {"p-1": {}}}
    assert moulds.priority_class(-5)["metadata"]["name"] == "podyard-bench-minus-5"
    assert pod["spec"]["priority"] == -5, "the file's document is as it was"
    assert NAME.encode() not in msgspec.json.encode(json.loads(message.payload))
