"""Limits of local storage: of a volume, of a pod, of a container."""

from typing import Any

import pytest

from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.local_storage import excess, pod_limit
from podyard.node_agent.core.eviction.stats import ContainerStats, FsUsage, PodStats, VolumeStats
from podyard.objects.pod import Pod
from tests.support.objects import typed_pod


def container(name: str, limit: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": {"ephemeral-storage": limit} if limit else {}}, **more}


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    return typed_pod("web", containers=list(containers) or [container("main")], **spec)


def measured(name: str, rootfs: int = 0, logs: int = 0) -> ContainerStats:
    return ContainerStats(name=name, rootfs=FsUsage(used_bytes=rootfs), logs=FsUsage(used_bytes=logs))


def told(found: Pod, stats: PodStats, layout: Layout = Layout.SINGLE) -> str:
    exceeded = excess(found, stats, layout)
    return "" if exceeded is None else exceeded.message


def volume(**empty_dir: str) -> Pod:
    return pod(volumes=[{"name": "scratch", "emptyDir": empty_dir}])


def in_volume(used: int | None, name: str = "scratch") -> PodStats:
    return PodStats(volumes=(VolumeStats(name=name, usage=FsUsage(used_bytes=used)),))


def test_a_volume_may_use_all_of_its_limit_and_no_byte_more():
    assert told(volume(sizeLimit="1Ki"), in_volume(1024)) == ""
    assert told(volume(sizeLimit="1Ki"), in_volume(1025)) == (
        'Usage of EmptyDir volume "scratch" exceeds the limit "1Ki". '
    )


@pytest.mark.parametrize(
    ("found", "stats"),
    [
        pytest.param(volume(), in_volume(1), id="no limit"),
        pytest.param(volume(sizeLimit="0"), in_volume(1), id="a limit of 0 is none"),
        pytest.param(volume(sizeLimit="1"), in_volume(None), id="not measured"),
        pytest.param(volume(sizeLimit="1"), in_volume(9, "other"), id="another volume"),
        pytest.param(pod(container("main", "0")), PodStats(containers=(measured("main", 1),)), id="container's is 0"),
        pytest.param(pod(container("main")), PodStats(ephemeral_bytes=9), id="pod without limits"),
        pytest.param(
            pod(container("main", "9")), PodStats(containers=(measured("other", 99),)), id="no such container"
        ),
    ],
)
def test_what_exceeds_nothing(found: Pod, stats: PodStats):
    assert told(found, stats) == ""


def test_a_pod_of_which_one_container_has_a_limit_is_held_to_it_as_a_whole():
    found = pod(container("a", "10"), container("b"))
    assert told(found, PodStats(ephemeral_bytes=10)) == ""
    assert told(found, PodStats(ephemeral_bytes=11)) == (
        "Pod ephemeral local storage usage exceeds the total limit of containers 10. "
    )


def test_logs_count_against_a_containers_limit_and_its_layer_where_images_are_not_apart():
    found = pod(container("main", "10"))
    stats = PodStats(containers=(measured("main", rootfs=6, logs=5),))
    message = 'Container main exceeded its local ephemeral storage limit "10". '
    assert [told(found, stats, layout) for layout in (Layout.SINGLE, Layout.DEDICATED, Layout.SPLIT)] == [
        message,
        "",
        "",
    ]


def test_init_containers_have_no_limit_of_their_own_here():
    found = pod(container("main"), initContainers=[container("first", "10")])
    assert told(found, PodStats(containers=(measured("first", rootfs=11),))) == ""


@pytest.mark.parametrize(
    ("found", "limit"),
    [
        (pod(container("a", "1Gi"), container("b", "1G")), "2073741824"),
        (pod(container("a", "1G"), container("b", "1Gi")), "2073741824"),
        (pod(container("a", "0"), container("b", "1Gi")), "1Gi"),
        (pod(container("a", "1Gi"), container("b", "512Mi")), "1536Mi"),
        (pod(container("a", "1Gi"), initContainers=[container("i", "3Gi"), container("j", "2Gi")]), "3Gi"),
        (pod(container("a", "1Gi"), initContainers=[container("s", "1Gi", restartPolicy="Always")]), "2Gi"),
        (
            pod(
                container("a", "1Gi"),
                initContainers=[container("s", "1Gi", restartPolicy="Always"), container("i", "2Gi")],
            ),
            "3Gi",
        ),
        (pod(container("a", "1Gi"), overhead={"ephemeral-storage": "1Mi"}), "1025Mi"),
        (pod(container("a", "0"), overhead={"ephemeral-storage": "1Mi"}), "0"),
        (pod(container("a", "1Gi"), resources={"limits": {"ephemeral-storage": "9Gi", "memory": "1Gi"}}), "1Gi"),
    ],
)
def test_what_a_pods_containers_may_use_together(found: Pod, limit: str):
    assert str(pod_limit(found)) == limit


def test_a_pod_without_limits_has_none():
    assert pod_limit(pod(container("a"), overhead={"ephemeral-storage": "1Mi"})) is None
