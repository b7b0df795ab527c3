"""How the pods of a workload are, in one sentence and with all causes."""

from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from podyard.cli.render import workload as rendered
from podyard.cluster.pods import PodView
from podyard.objects.kinds import resource_for
from podyard.proto.decisions import AttemptRecord, Rejection
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.proto.placement import BoundPod
from podyard.proto.queue_api import QueueListReply
from podyard.telling import workload
from podyard.telling.moves import MoveStory
from podyard.telling.workload import WorkloadStory
from tests.support import objects

NO_MOVES = MoveStory(namespace="default", kind="Deployment", name="web")
QUEUE = QueueListReply(epoch=1, profiles=("default-scheduler",))
CPU = Rejection(
    plugin="NodeResourcesFit",
    reason="Insufficient cpu",
    nodes=3,
    nearest="n2",
    detail="wants 1 cpu, free 500m of 2",
    lacks="500m",
)
TAINT = Rejection(plugin="TaintToleration", reason="node(s) had untolerated taint(s)", nodes=3)


def owned(name: str, owner: str, kind: str, *, phase: str = "", node: str = "", **more: Any) -> PodView:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    bound = BoundPod(namespace="default", name=name, uid=f"uid-{name}", node=node) if node else None
    said = PodStatusFact(namespace="default", name=name, uid=f"uid-{name}", node=node, phase=phase) if phase else None
    document = objects.pod(name, metadata={"ownerReferences": [reference]}, **more)
    return objects.view(document, bound=bound, status=said)


def made(resource: str, name: str, owner: str = "", **spec: Any) -> Any:
    reference = [{"apiVersion": "apps/v1", "kind": "Any", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    references = {"ownerReferences": reference} if owner else {}
    status = spec.pop("status", {})
    return objects.decoded(resource, {"metadata": {**metadata, **references}, "spec": spec, "status": status})


def told(
    kind: str,
    name: str,
    items: dict[str, list[Any]],
    *pods: PodView,
    rejected: dict[str, Rejection] | None = None,
    events: tuple[K8sEvent, ...] = (),
) -> WorkloadStory:
    kept = {resource: {("default", one.metadata.name): one for one in found} for resource, found in items.items()}
    view: Any = SimpleNamespace(objects=lambda of: kept.get(of, {}), pods={pod.key: pod for pod in pods})
    meant = resource_for(kind)
    attempts = {
        f"uid-{pod}": AttemptRecord(
            namespace="default",
            name=pod,
            uid=f"uid-{pod}",
            attempt="1",
            at=1.0,
            outcome="unschedulable",
            nodes_total=3,
            rejections=(rejection,),
        )
        for pod, rejection in (rejected or {}).items()
    }
    found = workload.family(view, meant, "default", name)
    return workload.story(meant, "default", name, found, attempts=attempts, queue=QUEUE, events=events, moves=NO_MOVES)


WEB = {"deployments": [made("deployments", "web", replicas=6)], "replicasets": [made("replicasets", "web-1", "web")]}
RUNNING = [owned(f"web-1-{at}", "web-1", "ReplicaSet", phase="Running", node="n1") for at in "abc"]
WAITING = [owned(f"web-1-{at}", "web-1", "ReplicaSet") for at in "xyz"]
STRANGER = owned("other", "other", "ReplicaSet")


def test_three_of_six_wait_all_for_cpu() -> None:
    rejected = {pod.name: CPU for pod in WAITING}
    story = told("deployment", "web", WEB, *RUNNING, *WAITING, STRANGER, rejected=rejected)
    assert story.state == "3 of 6 wait, all for cpu; the nearest node lacks 500m"
    assert (story.wanted, story.pods, story.running, story.starting, story.waiting) == (6, 6, 3, 0, 3)
    assert [one.examples for one in story.causes] == [("default/web-1-x", "default/web-1-y", "default/web-1-z")]


def test_several_causes_are_counted() -> None:
    story = told("deploy", "web", WEB, *RUNNING, *WAITING, rejected={"web-1-x": CPU, "web-1-y": TAINT, "web-1-z": CPU})
    assert story.state == "3 of 6 wait: 2 for cpu, 1 for a node without such taints"


def test_those_that_run_start_end_or_are_not_made() -> None:
    starting = owned("web-1-s", "web-1", "ReplicaSet", node="n1")
    ended = owned("web-1-e", "web-1", "ReplicaSet", phase="Failed", node="n1")
    leaving = owned("web-1-l", "web-1", "ReplicaSet", phase="Running", node="n1", deleting=True)
    event = K8sEvent(
        regarding=ObjectRef(resource="replicasets", namespace="default", name="web-1"),
        type="Warning",
        reason="FailedCreate",
        message='pods "web-1-q" is forbidden: exceeded quota: few, requested: pods=1',
        reporter="workloads",
        at=5.0,
    )
    story = told("deployment", "web", WEB, *RUNNING, starting, ended, leaving, events=(event,))
    assert story.state == "3 of 6 run, 1 start; 2 of 6 are not made"
    assert [one.reason for one in story.warnings] == ["FailedCreate"]
    assert story.help == ("raise the quota, or end what uses it in this namespace",)
    whole = told(
        "deployment",
        "web",
        WEB,
        *RUNNING,
        *(owned(f"m{at}", "web-1", "ReplicaSet", phase="Running", node="n1") for at in range(3)),
        events=(event,),
    )
    assert (whole.state, whole.warnings, whole.help) == ("6 of 6 run", (), ())


@pytest.mark.parametrize(
    ("resource", "item", "pods", "state"),
    [
        ("replicasets", made("replicasets", "w", replicas=0), 0, "has no pods"),
        (
            "deployments",
            made("deployments", "w", replicas=0, paused=True),
            0,
            "has no pods; it is paused (spec.paused)",
        ),
        ("jobs", made("jobs", "w", suspend=True, parallelism=3), 0, "has no pods; it is suspended (spec.suspend)"),
        ("jobs", made("jobs", "w", parallelism=3, completions=5, status={"succeeded": 4}), 1, "1 of 1 run"),
        ("jobs", made("jobs", "w", parallelism=3), 1, "1 of 3 run; 2 of 3 are not made"),
        ("daemonsets", made("daemonsets", "w", status={"desiredNumberScheduled": 2}), 2, "2 of 2 run"),
        ("cronjobs", made("cronjobs", "w", schedule="* * * * *"), 0, "has no pods"),
        (
            "statefulsets",
            made("statefulsets", "w", replicas=3),
            1,
            "1 of 3 run; 2 of 3 are not made: each waits until the one before is ready",
        ),
        (
            "statefulsets",
            made("statefulsets", "w", replicas=3, podManagementPolicy="Parallel"),
            1,
            "1 of 3 run; 2 of 3 are not made",
        ),
    ],
)
def test_how_many_each_kind_wants(resource: str, item: Any, pods: int, state: str) -> None:
    running = [owned(f"w-{at}", "w", "Any", phase="Running", node="n1") for at in range(pods)]
    assert told(resource, "w", {resource: [item]}, *running).state == state


def test_of_more_than_are_looked_at_that_is_said() -> None:
    many = [owned(f"web-1-{at:03}", "web-1", "ReplicaSet") for at in range(300)]
    story = told("deployment", "web", WEB, *many, rejected={pod.name: CPU for pod in many})
    assert (story.waiting, story.looked_at) == (300, 256)
    assert story.state == "300 of 300 wait, all for cpu (of 256 that were looked at); the nearest node lacks 500m"


def test_one_that_is_not_there() -> None:
    assert told("deployment", "nope", WEB).state == "is not there"


def test_as_text_it_fits_80_columns() -> None:
    out = StringIO()
    story = told("deployment", "web", WEB, *RUNNING, *WAITING, rejected={pod.name: CPU for pod in WAITING})
    Console(file=out, width=80, no_color=True).print(rendered.view(story))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == [
        "Deployment default/web  3 of 6 wait, all for cpu; the nearest node lacks 500m",
        "  3 run, 0 start, 3 wait",
        "3 for cpu  web-1-x, web-1-y, web-1-z",
        "    NodeResourcesFit: Insufficient cpu  (3 of 3 nodes)",
        "    nearest is n2: wants 1 cpu, free 500m of 2",
        "    what would help: ask for less, add a node, or end pods on a node that is",
        "    large enough",
    ]
