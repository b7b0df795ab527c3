"""Suite `rank`: the order in which pods are evicted for one signal."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec

from podyard.node_agent.core.eviction.ranking import rank, sort_key
from podyard.objects import decoding
from podyard.objects.pod import Pod
from tests.conformance import kubelet, shapes
from tests.conformance.differences import Difference, between


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A signal, the file systems, and pods with what they use."""

    signal: str
    dedicated_image_fs: bool = False
    split_container_fs: bool = False
    pods: list[dict[str, Any]]
    stats: list[dict[str, Any]] = []


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Groups of `namespace/name`; within a group any order is right."""

    groups: list[list[str]]


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """The order that Podyard finds, pods that compare equal as a group."""
    asked = msgspec.convert(given, Given)
    layout = kubelet.layout(asked.dedicated_image_fs, asked.split_container_fs)
    pods = [decoding.convert(Pod, one) for one in asked.pods]
    stats = kubelet.all_pod_stats(asked.stats)
    ranked = rank(asked.signal, pods, stats, layout)
    groups = groupby(ranked, key=lambda pod: sort_key(asked.signal, pod, stats.get(pod.metadata.uid), layout))
    return {"groups": [sorted("/".join(pod.key) for pod in group) for _, group in groups]}


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Group by group."""
    yield from between(expected, got)
