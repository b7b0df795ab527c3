"""What an event would do to one pod of the queue, had it happened now. Changes nothing."""

from collections.abc import Iterable
from typing import Final

from podyard.proto.pools import Pool
from podyard.proto.queue_api import WouldReply, WouldVerdict
from podyard.queue.core.backoff import is_backing_off
from podyard.queue.core.hints import Strategy
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue

GATED: Final = "{plugin} gates the pod and has not registered this event"
NOBODY_LISTENS: Final = "none of the plugins that rejected the pod has registered this event"
NO_REJECTORS: Final = "no plugin rejected the pod: any event retries it"
TRIED_ANYWAY: Final = "the pod is in {pool}: it will be tried without an event"
IN_FLIGHT: Final = "the pod is being tried: should that fail, it is judged by this event too"


def verdicts(queue: SchedulingQueue, key: tuple[str, str], events: Iterable[Incoming], now: float) -> WouldReply:
    """What each event would do to the pod of this namespace and name; `epoch` and `position` are the caller's
    to fill in.
    """
    pod = next((one for one in queue.pods.values() if one.key == key), None)
    if pod is None:
        return WouldReply(epoch=0)
    return WouldReply(
        epoch=0,
        pool=pod.pool,
        unschedulable_plugins=tuple(sorted(pod.unschedulable_plugins)),
        pending_plugins=tuple(sorted(pod.pending_plugins)),
        verdicts=tuple(_verdict(queue, pod, incoming, now) for incoming in events),
    )


def _verdict(queue: SchedulingQueue, pod: QueuedPod, incoming: Incoming, now: float) -> WouldVerdict:
    label = incoming.event.label
    if pod not in queue.parked:
        note = IN_FLIGHT if pod.pool is Pool.IN_FLIGHT else TRIED_ANYWAY.format(pool=pod.pool)
        return WouldVerdict(event=label, moves=False, note=note)
    listeners = queue.hints.listeners(incoming.event, incoming.missed).get(pod.profile, {})
    if pod.gating_plugin and pod.gating_plugin not in listeners:
        return WouldVerdict(event=label, moves=False, note=GATED.format(plugin=pod.gating_plugin))
    verdict = queue.hints.verdict(pod, incoming)
    if verdict.strategy is Strategy.SKIP:
        return WouldVerdict(event=label, moves=False, hints=verdict.calls, note="" if verdict.calls else NOBODY_LISTENS)
    backing_off = verdict.strategy is Strategy.AFTER_BACKOFF and is_backing_off(pod, now)
    return WouldVerdict(
        event=label,
        moves=True,
        to=Pool.BACKOFF if backing_off else Pool.ACTIVE,
        plugin=verdict.plugin,
        hints=verdict.calls,
        note="" if verdict.calls else NO_REJECTORS,
    )
