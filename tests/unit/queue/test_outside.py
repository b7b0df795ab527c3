"""Pods without a node that are in no pool: whom they wait for."""

from types import SimpleNamespace
from typing import Any

import pytest

from podyard.cluster.pods import PodView
from podyard.proto.placement import BoundPod
from podyard.proto.queue_api import OutsidePod, QueueListRequest
from podyard.queue.core import outside
from tests.support import objects

EVERYTHING = QueueListRequest()
BOUND = BoundPod(namespace="default", name="p", uid="uid-p", node="n1")


def found(*pods: PodView, request: QueueListRequest = EVERYTHING) -> outside.Outside:
    view: Any = SimpleNamespace(pods_by_uid={pod.uid: pod for pod in pods}, nodes={"n1": None})
    return outside.found(view, {"default-scheduler", "gpu"}, request)


def pod(name: str = "p", *, bound: BoundPod | None = None, **more: Any) -> PodView:
    return objects.view(objects.pod(name, **more), bound=bound)


def test_a_pod_that_asks_for_a_scheduler_that_is_not_here() -> None:
    waits = OutsidePod(namespace="default", name="p", uid="uid-p", scheduler="batch")
    assert found(pod(schedulerName="batch")) == outside.Outside((waits,), 1)


def test_a_pod_whose_node_there_is_not() -> None:
    waits = OutsidePod(namespace="default", name="p", uid="uid-p", node="n9")
    assert found(pod(node="n9", schedulerName="batch")) == outside.Outside((waits,), 1)


@pytest.mark.parametrize(
    "other",
    [
        pod(),
        pod(schedulerName="gpu"),
        pod(node="n1", schedulerName="batch"),
        pod(schedulerName="batch", bound=BOUND),
        pod(schedulerName="batch", phase="Succeeded"),
        pod(schedulerName="batch", deleting=True),
    ],
    ids=["ours", "of a further profile", "of a node that is there", "bound", "ended", "being deleted"],
)
def test_pods_that_wait_for_nobody(other: PodView) -> None:
    assert found(other) == outside.Outside()


def test_what_was_asked_for_is_listed_by_name_up_to_the_limit() -> None:
    pods = [pod(f"p{number:03}", schedulerName="batch") for number in range(300)]
    listed, total = found(*reversed(pods))
    assert ([one.name for one in listed[:2]], len(listed), total) == (["p000", "p001"], outside.MOST, 300)
    listed, total = found(*pods, request=QueueListRequest(limit=2))
    assert ([one.name for one in listed], total) == (["p000", "p001"], 300)
    assert found(*pods, request=QueueListRequest(name="p007")).total == 1
    assert found(*pods, request=QueueListRequest(namespace="other")).total == 0
    assert found(*pods, request=QueueListRequest(pool="gated")).total == 0
