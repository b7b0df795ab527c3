"""Pods that only the safety flush brought onto a node: some hint said Skip, or some registration is missing
(docs/rules.md, flush-is-the-safety-net).
"""

from typing import Any, Final

import msgspec

from podyard.framework import events
from podyard.queue.core.attempts import Attempt
from podyard.queue.core.recent import Recent

IN_FLIGHT_S: Final = 10.0
"""Events from so long before the parking are told too: they came while the attempt was made that ended in it.
An attempt takes less.
"""

NAMED_EVENTS: Final = 256
"""Events that are told, the last ones; semi-arbitrary: a log line that can be read."""


def is_rescue(attempt: Attempt) -> bool:
    """Whether this attempt, which bound its pod, is the very one that the flush led to.

    A gated pod is marked by the flush too, and stays: what brings it out later is no rescue.
    """
    woken_by = attempt.woken_by
    return attempt.pod.was_flushed and woken_by is not None and woken_by.event == events.UNSCHEDULABLE_TIMEOUT.label


def story(attempt: Attempt, node: str, recent: Recent, digest: str) -> dict[str, Any]:
    """All that is needed to reproduce it: judge the pod's rejectors by each of the events, on the objects at
    its position.

    :param node: on which it was bound
    :param digest: of the profile: plugins and arguments
    """
    pod = attempt.pod
    since = attempt.put_back_at - IN_FLIGHT_S
    found = recent.events(since)
    return {
        "pod": "/".join(pod.key),
        "uid": pod.uid,
        "rejectors": sorted(pod.rejectors),
        "pending_plugins": sorted(pod.pending_plugins),
        "rejection": pod.message,
        "profile": pod.profile,
        "digest": digest,
        "attempt": attempt.id,
        "previous_attempt": attempt.previous,
        "previous_trace": attempt.previous_trace,
        "trace": attempt.trace,
        "node": node,
        "parked_at": attempt.put_back_at,
        "events": [msgspec.to_builtins(one) for one in found[-NAMED_EVENTS:]],
        "events_unnamed": max(0, len(found) - NAMED_EVENTS),
        "all_events_known": recent.reaches(since),
        "object": msgspec.to_builtins(pod.pod),
    }
