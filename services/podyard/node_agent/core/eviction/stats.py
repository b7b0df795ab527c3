"""What was measured: the node's signals and what its pods use.

The shape is that of the kubelet's Summary API (k8s.io/kubelet/pkg/apis/stats/v1alpha1), as far as evictions
read it.
"""

import msgspec

from podyard.node_agent.core.eviction.signals import ALL


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One signal. `observed_at` is in UTC seconds; None means unknown, which counts as always new."""

    available: int
    capacity: int
    observed_at: float | None = None


class FsUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Use of a file system; None = not measured, counts as 0 in sums."""

    used_bytes: int | None = None
    inodes: int | None = None


class ContainerStats(msgspec.Struct, frozen=True, kw_only=True):
    """Use of one container; `rootfs` is its writable layer."""

    name: str
    memory_bytes: int | None = None
    rootfs: FsUsage | None = None
    logs: FsUsage | None = None


class VolumeStats(msgspec.Struct, frozen=True, kw_only=True):
    """Use of one volume of the pod."""

    name: str
    usage: FsUsage


class PodStats(msgspec.Struct, frozen=True, kw_only=True):
    """Use of one pod. `memory_bytes` is the working set of the whole pod, not the sum of its containers; None
    = not measured, counts as 0."""

    memory_bytes: int | None = None
    processes: int = 0
    containers: tuple[ContainerStats, ...] = ()
    volumes: tuple[VolumeStats, ...] = ()
    ephemeral_bytes: int | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One reading: signals by name, pods by uid. A pod that is missing has no stats, and is evicted first
    (docs/rules.md, rank-by-overrun-then-priority)."""

    signals: dict[str, Observation] = {}
    pods: dict[str, PodStats] = {}

    def known_signals(self) -> dict[str, Observation]:
        """The signals that the eviction manager knows; others are ignored."""
        return {name: value for name, value in self.signals.items() if name in ALL}
