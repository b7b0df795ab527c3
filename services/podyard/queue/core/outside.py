"""Pods without a node that are in no pool, since nobody is to schedule them. Pure; looks at every pod, so for
people and not for hot paths.
"""

from collections.abc import Collection, Iterator
from heapq import nsmallest
from typing import Final, NamedTuple

from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.proto.queue_api import OutsidePod, QueueListRequest
from podyard.queue.core.changes import profile_of

MOST: Final = 256
"""Pods in one answer; semi-arbitrary."""


class Outside(NamedTuple):
    """The first by namespace and name, and how many there are."""

    pods: tuple[OutsidePod, ...] = ()
    total: int = 0


def found(view: ClusterView, profiles: Collection[str], request: QueueListRequest) -> Outside:
    """Those that a request asks for, unless it asks for a pool.

    :param profiles: names of the profiles that are scheduled here
    """
    if request.pool:
        return Outside()
    pods = list(_wanted(view, profiles, request))
    first = nsmallest(min(request.limit, MOST), pods, key=lambda one: (one.namespace, one.name))
    return Outside(tuple(first), len(pods))


def _wanted(view: ClusterView, profiles: Collection[str], request: QueueListRequest) -> Iterator[OutsidePod]:
    for pod in view.pods_by_uid.values():
        if pod.bound is None and request.namespace in ("", pod.namespace) and request.name in ("", pod.name):
            scheduler, node = _nobody(pod, profiles), _nowhere(pod, view)
            if scheduler or node:
                yield OutsidePod(
                    namespace=pod.namespace, name=pod.name, uid=pod.uid, scheduler="" if node else scheduler, node=node
                )


def _nobody(pod: PodView, profiles: Collection[str]) -> str:
    """The scheduler that the pod asks for, if it waits for one that is not here."""
    profile = profile_of(pod)
    return profile if _waits(pod) and not pod.stored.spec.node_name and profile not in profiles else ""


def _nowhere(pod: PodView, view: ClusterView) -> str:
    """The node that the pod was created with, if it waits for that one
    (docs/rules.md, forced-pod-is-bound-unjudged)."""
    node = pod.stored.spec.node_name
    return node if node and node not in view.nodes and _waits(pod) else ""


def _waits(pod: PodView) -> bool:
    return not (pod.release or pod.unknown_place or pod.deleting or pod.ended)
