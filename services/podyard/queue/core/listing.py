"""What is where, since when, until when: the answer to `list`. Pure; sorts, so for people and not for hot
paths.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from podyard.proto import codec, streams
from podyard.proto.pools import Pool
from podyard.proto.queue_api import QueuedPodInfo, QueueListReply, QueueListRequest
from podyard.queue.core.leader import Leader
from podyard.queue.core.queued_pod import QueuedPod

LARGEST_BYTES: Final = streams.MAX_PAYLOAD_BYTES * 3 // 4
"""Of the pods in one answer: the largest message, and room for the rest of the answer."""

LONGEST_MESSAGE: Final = 1024
"""Characters of a pod's message in a list; its records have all of it."""


def reply(leader: Leader, request: QueueListRequest, *, position: int, instance: str) -> QueueListReply:
    """Counts of all pods, and those that the request asks for, pool by pool, in pop order."""
    pools: dict[Pool, list[QueuedPod]] = {pool: list(pods) for pool, pods in _pools(leader)}
    wanted: list[tuple[Pool, QueuedPod]] = [
        (pool, pod) for pool, pods in pools.items() for pod in pods if _is_wanted(pool, pod, request)
    ]
    listed = _within(LARGEST_BYTES, [_info(leader, pool, pod) for pool, pod in wanted[: request.limit]])
    return QueueListReply(
        epoch=leader.epoch,
        position=position,
        leader=instance,
        counts={pool.value: len(pods) for pool, pods in pools.items()},
        pods=listed,
        left_out=len(wanted) - len(listed),
        sessions=leader.sessions.open_attempts(),
        profiles=tuple(sorted(leader.profiles)),
    )


def _within(most_bytes: int, found: Sequence[QueuedPodInfo]) -> tuple[QueuedPodInfo, ...]:
    """The first of them that come to no more than so many bytes."""
    size = 0
    for count, info in enumerate(found):
        size += len(codec.encode(info)) + 1
        if size > most_bytes:
            return tuple(found[:count])
    return tuple(found)


def counts(leader: Leader) -> dict[str, int]:
    """How many pods are in each pool."""
    queue = leader.queue
    return {
        Pool.ACTIVE.value: len(queue.active),
        Pool.BACKOFF.value: len(queue.backing_off),
        Pool.ERROR_BACKOFF.value: len(queue.errors),
        Pool.UNSCHEDULABLE.value: len(queue.parked) - queue.parked.gated,
        Pool.GATED.value: queue.parked.gated,
        Pool.IN_FLIGHT.value: len(queue.in_flight),
        Pool.BINDING.value: len(leader.binding),
    }


IN_QUEUE: Final = frozenset({Pool.ACTIVE, Pool.BACKOFF, Pool.ERROR_BACKOFF, Pool.UNSCHEDULABLE, Pool.GATED})


def rejected(leader: Leader) -> dict[tuple[str, ...], int]:
    """Pods that wait in the queue, by plugin that rejected them and profile; some count for several plugins.

    From a rejection to the next pop, wherever they wait meanwhile. Source: kube-scheduler v1.36.2,
    pkg/scheduler/backend/queue (UnschedulableReason); there a pod that is deleted in backoffQ or activeQ is
    counted for ever.
    """
    found: dict[tuple[str, ...], int] = {}
    for pod in list(leader.queue.pods.values()):
        if (pod.unschedulable_plugins or pod.pending_plugins) and pod.pool in IN_QUEUE:
            for plugin in pod.rejectors:
                key = plugin, pod.profile
                found[key] = found.get(key, 0) + 1
    return found


def _pools(leader: Leader) -> Iterator[tuple[Pool, Iterable[QueuedPod]]]:
    queue = leader.queue
    yield Pool.ACTIVE, queue.active
    yield Pool.BACKOFF, queue.backing_off
    yield Pool.ERROR_BACKOFF, queue.errors
    yield Pool.UNSCHEDULABLE, [pod for pod in queue.parked if pod.pool is Pool.UNSCHEDULABLE]
    yield Pool.GATED, [pod for pod in queue.parked if pod.pool is Pool.GATED]
    yield Pool.IN_FLIGHT, [attempt.pod for attempt in leader.attempts.values() if attempt.state == "open"]
    yield Pool.BINDING, leader.binding.values()


def _is_wanted(pool: Pool, pod: QueuedPod, request: QueueListRequest) -> bool:
    namespace, name = pod.key
    return request.pool in ("", pool) and request.namespace in ("", namespace) and request.name in ("", name)


def _info(leader: Leader, pool: Pool, pod: QueuedPod) -> QueuedPodInfo:
    namespace, name = pod.key
    attempt = leader.attempts.get(pod.attempt)
    since, until = pod.timestamp, None
    if pool in (Pool.BACKOFF, Pool.ERROR_BACKOFF) and pod.backoff_expiry is not None:
        until = pod.backoff_expiry + 1.0
    elif attempt is not None:
        since, until = attempt.popped_at, pod.deadline
    return QueuedPodInfo(
        namespace=namespace,
        name=name,
        uid=pod.uid,
        pool=pool,
        priority=pod.priority,
        attempts=pod.attempts,
        since=since,
        until=until,
        unschedulable_plugins=tuple(sorted(pod.unschedulable_plugins)),
        pending_plugins=tuple(sorted(pod.pending_plugins)),
        gating_plugin=pod.gating_plugin,
        nominated_node=leader.queue.nominator.node_of(pod.uid),
        woken_by=pod.woken_by,
        session=attempt.session if attempt is not None else "",
        message=pod.message if len(pod.message) <= LONGEST_MESSAGE else f"{pod.message[:LONGEST_MESSAGE]}…",
    )
