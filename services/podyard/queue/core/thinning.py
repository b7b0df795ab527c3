"""Of equal failures of one pod the first few have traces, then fewer and fewer: the fourth, the eighth, the
sixteenth. The rest is counted, and what follows links to the last that has one.

A pod that fails for days would fill a store of traces with one story, told again and again
(docs/rules.md, equal-failures-are-thinned).
"""

from typing import Final

from podyard.queue.core.queued_pod import QueuedPod

KEPT_ALIKE: Final = 3
"""Equal failures in a row that have traces, whatever comes."""


def not_kept(pod: QueuedPod) -> str:
    """The failure that would have no trace if the pod's next attempt ended so; empty: any would have one."""
    return pod.failure if pod.failure and _is_thinned(pod.failures + 1) else ""


def failed(pod: QueuedPod, failure: str) -> None:
    """An attempt of the pod ended so.

    :param failure: as `queue_api.failure_of` names it
    """
    pod.failures = pod.failures + 1 if failure == pod.failure else 1
    pod.failure = failure


def _is_thinned(number: int) -> bool:
    return number > KEPT_ALIKE and number & (number - 1) != 0
