"""What a new leader starts from: the pending pods of the view, and each pod's last attempt that did not bind.

Every pending pod that no PreEnqueue plugin gates goes to activeQ, backoffQ or errorBackoffQ, one more attempt
each: so no wake-up that the old leader had not carried out can be lost.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from podyard.cluster.pods import PodView
from podyard.objects import times
from podyard.proto.decisions import AttemptRecord
from podyard.queue.core import changes
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue


def fill(
    queue: SchedulingQueue,
    pods: Iterable[PodView],
    records: Mapping[str, AttemptRecord],
    profiles: Collection[str],
    now: float,
    begin: Callable[[PodView], None] = lambda view: None,
) -> int:
    """Put all pending pods into an empty queue.

    :param pods: of the view, each once
    :param records: the last record of each pod that has one, by uid
    :param begin: told of each pod before it is put in
    :return: how many pods there are
    """
    pending = changes.pending_pods({view.uid: view for view in pods}, profiles)
    for view in pending:
        begin(view)
        pod = changes.queued_pod(view, created_at(view, now))
        record = records.get(view.uid)
        if record is not None:
            remember(queue, pod, record, now)
        queue.restore(pod, now)
    return len(pending)


def created_at(view: PodView, now: float) -> float:
    """When the pod was made, in seconds since 1970, UTC; `now` if it does not say, or says a later time."""
    return min(now, times.seconds_or(view.stored.metadata.creation_timestamp, now))


def remember(queue: SchedulingQueue, pod: QueuedPod, record: AttemptRecord, now: float) -> None:
    """Take over counts and backoff from the pod's last record.

    The record does not tell rejections from errors further back, so all attempts count as what the last one
    was. Its time is by another process' clock: one that is yet to come is taken for now, or the pod would
    back off for as long as that clock is ahead.
    """
    if record.outcome == "gated" or record.number == 0:
        return
    pod.attempts = record.number
    pod.timestamp = min(record.at, now)
    pod.unschedulable_plugins = frozenset(record.unschedulable_plugins)
    pod.pending_plugins = frozenset(record.pending_plugins)
    pod.obstacles = record.obstacles
    pod.message = record.message
    pod.previous_trace = record.trace
    if pod.rejectors:
        pod.unschedulable_count = record.number
    else:
        pod.consecutive_errors = record.number
    queue.backoff.start(pod)
