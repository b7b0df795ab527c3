"""Between the words of the kubelet's data, those of its Summary API included, and what the eviction manager
reads."""

from typing import Any

import msgspec

from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.stats import (
    ContainerStats,
    FsUsage,
    Observation,
    PodStats,
    Summary,
    VolumeStats,
)
from podyard.node_agent.core.eviction.thresholds import Limit, Threshold
from podyard.objects import times


def threshold(one: Threshold) -> dict[str, Any]:
    """A threshold as the data show it, but for its operator."""
    return {
        "signal": one.signal,
        "value": _limit(one.value),
        "gracePeriodSeconds": one.grace_s,
        "minReclaim": None if one.min_reclaim is None else _limit(one.min_reclaim),
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return {"quantity": limit.quantity} if limit.fraction is None else {"percentage": limit.fraction}


def as_text(value: Any) -> bytes:
    """Something to sort by: equal for equal JSON values, numbers being numbers."""
    return msgspec.json.encode(_plain(value), order="deterministic")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def pod_stats(shown: dict[str, Any]) -> PodStats:
    """One pod of a summary."""
    memory = shown.get("memory")
    return PodStats(
        memory_bytes=None if memory is None else memory.get("workingSetBytes") or 0,
        processes=shown.get("process_stats", {}).get("process_count") or 0,
        containers=tuple(
            ContainerStats(
                name=one["name"],
                memory_bytes=one.get("memory", {}).get("workingSetBytes"),
                rootfs=_fs_usage(one.get("rootfs")),
                logs=_fs_usage(one.get("logs")),
            )
            for one in shown.get("containers") or ()
        ),
        volumes=tuple(
            VolumeStats(name=one["name"], usage=FsUsage(used_bytes=one.get("usedBytes"), inodes=one.get("inodesUsed")))
            for one in shown.get("volume") or ()
        ),
        ephemeral_bytes=shown.get("ephemeral-storage", {}).get("usedBytes"),
    )


def all_pod_stats(shown: list[dict[str, Any]]) -> dict[str, PodStats]:
    """The pods of a summary by uid."""
    return {one["podRef"]["uid"]: pod_stats(one) for one in shown}


def _fs_usage(shown: dict[str, Any] | None) -> FsUsage | None:
    return None if shown is None else FsUsage(used_bytes=shown.get("usedBytes"), inodes=shown.get("inodesUsed"))


def summary(node: dict[str, Any], pods: list[dict[str, Any]]) -> Summary:
    """A Summary API answer; the signals are derived as the kubelet derives them.

    Source: pkg/kubelet/eviction/helpers.go, makeSignalObservations (v1.36.2).
    """
    runtime = node.get("runtime") or {}
    systems = {"nodefs": node.get("fs"), "imagefs": runtime.get("imageFs"), "containerfs": runtime.get("containerFs")}
    containers = {one["name"]: one for one in reversed(node.get("systemContainers") or [])}
    found = {
        "memory.available": _memory(node.get("memory")),
        "allocatableMemory.available": _memory(containers.get("pods", {}).get("memory")),
        "pid.available": _processes(node.get("rlimit")),
    }
    for name, shown in systems.items():
        found[f"{name}.available"] = _observed(shown, "availableBytes", "capacityBytes")
        found[f"{name}.inodesFree"] = _observed(shown, "inodesFree", "inodes")
    return Summary(
        signals={name: observed for name, observed in found.items() if observed is not None}, pods=all_pod_stats(pods)
    )


def _memory(shown: dict[str, Any] | None) -> Observation | None:
    if not _has(shown, "availableBytes", "workingSetBytes"):
        return None
    available = shown["availableBytes"]
    return Observation(available=available, capacity=available + shown["workingSetBytes"], observed_at=_at(shown))


def _processes(shown: dict[str, Any] | None) -> Observation | None:
    if not _has(shown, "maxpid", "curproc"):
        return None
    return Observation(available=shown["maxpid"] - shown["curproc"], capacity=shown["maxpid"], observed_at=_at(shown))


def _observed(shown: dict[str, Any] | None, available: str, capacity: str) -> Observation | None:
    if not _has(shown, available, capacity):
        return None
    return Observation(available=shown[available], capacity=shown[capacity], observed_at=_at(shown))


def _has(shown: dict[str, Any] | None, *names: str) -> bool:
    return shown is not None and all(shown.get(name) is not None for name in names)


def _at(shown: dict[str, Any]) -> float | None:
    """UTC seconds; None if it is missing."""
    text = shown.get("time")
    return None if not text else times.seconds_of(text)


def layout(dedicated_image_fs: bool, split_container_fs: bool) -> Layout:
    """The layout of a node that answers these two questions so."""
    if not dedicated_image_fs:
        return Layout.SINGLE
    return Layout.SPLIT if split_container_fs else Layout.DEDICATED
