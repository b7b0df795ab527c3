"""How old something is, as the descheduler counts it: in whole seconds.

Source: Go's time.Time.Sub, which a missing time makes as long as a duration can be.
"""

from typing import Final

from podyard.objects import times
from podyard.objects.pod import Pod

OLDEST_S: Final = (2**63 - 1) / 1e9
"""Of what does not say since when: Go's longest duration."""


def age_s(since: str | None, now: float) -> int | None:
    """Whole seconds since then. None: it is a time to come, or no time."""
    if not since:
        return int(OLDEST_S)
    began = times.seconds_or(since, None)
    return None if began is None or began > now else int(now - began)


def pod_age_s(pod: Pod, now: float) -> int | None:
    """Whole seconds since the pod was created; None as of `age_s`."""
    return age_s(pod.metadata.creation_timestamp, now)


def created_at(pod: Pod) -> float:
    """For sorting by age: what does not say when is oldest."""
    return times.seconds_or(pod.metadata.creation_timestamp, -OLDEST_S)
