"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/imagelocality/image_locality.go."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.cluster.node_table import NodeTable
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.interfaces import Rows, Scope, Scores
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.objects.core import Pod
from podyard.plugins.image_locality.images import ImageStates

NAME: Final = "ImageLocality"
MIB: Final = 1024 * 1024
LEAST_BYTES: Final = 23 * MIB
"""Up to so much the score is 0, for all images of the pod together."""
MOST_BYTES: Final = 1000 * MIB
"""For each container; from the sum on the score is 100."""
DEFAULT_TAG: Final = ":latest"

IMAGES: Final = StateKey[tuple[str, ...]]("ScoreImageLocality")
"""Ours only: the reference reads the names again for each node."""


def normalized(image: str) -> str:
    """The image's name as nodes report it: with a tag."""
    return image if image.rfind(":") > image.rfind("/") else image + DEFAULT_TAG


def images_of(pod: PodInfo) -> tuple[str, ...]:
    """Images of init containers, containers and image volumes; one that is used twice counts twice."""
    spec = pod.pod.spec
    found = [container.image for container in (*spec.init_containers, *spec.containers)]
    found += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(map(normalized, found))


def containers_of(pod: PodInfo) -> int:
    """How many containers the pod has. Image volumes are not among them, though their images count."""
    return len(pod.pod.spec.init_containers) + len(pod.pod.spec.containers)


def priority(points: int, containers: int) -> int:
    """0 to 100, between the two thresholds."""
    most = MOST_BYTES * containers
    return MAX_SCORE * (min(max(points, LEAST_BYTES), most) - LEAST_BYTES) // (most - LEAST_BYTES)


class ImageLocality:
    """Score."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "node"
    reads_template: ClassVar[bool] = True

    def __init__(self) -> None:
        self._last: tuple[Pod | None, NodeTable | None, int, tuple[int, ...]] = (None, None, 0, ())
        """The last token, with its pod, the table, and the version of the nodes there."""

    def signature(self, pod: PodInfo) -> Hashable:
        return containers_of(pod), images_of(pod)

    def score_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        """What each image is worth on nodes that have it: it changes as it spreads, and as nodes come and
        go."""
        joined, table = pod.pod, cluster.nodes
        known, looked_at, version, points = self._last
        if known is not joined or looked_at is not table or version != table.nodes_version:
            points = self._points(images_of(pod), cluster)
            self._last = joined, table, table.nodes_version, points
        return points

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        images = self._images(state, pod)
        states = cluster.nodes.column(ImageStates).states
        worth = [one for one in zip(images, self._points(images, cluster), strict=True) if one[1]]
        if not worth:
            return np.zeros(len(rows), dtype=np.int64)
        total = np.zeros(cluster.nodes.capacity, dtype=np.int64)
        for image, points in worth:
            total[states[image].listed] += points
        most = MOST_BYTES * containers_of(pod)
        return MAX_SCORE * (np.clip(total[rows], LEAST_BYTES, most) - LEAST_BYTES) // (most - LEAST_BYTES)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        images = self._images(state, pod)
        states, nodes_total = cluster.nodes.column(ImageStates).states, len(cluster.nodes)
        points = 0
        for image in images:
            one = states.get(image)
            if one is not None and row in one.rows:
                points += one.points(nodes_total)
        return priority(points, containers_of(pod))

    def _images(self, state: CycleState, pod: PodInfo) -> tuple[str, ...]:
        return state.find_or_make(IMAGES, images_of, pod)

    def _points(self, images: Sequence[str], cluster: Snapshot) -> tuple[int, ...]:
        """By image; 0 for one that no node has."""
        states, nodes_total = cluster.nodes.column(ImageStates).states, len(cluster.nodes)
        found = map(states.get, images)
        return tuple([0 if one is None else one.points(nodes_total) for one in found])
