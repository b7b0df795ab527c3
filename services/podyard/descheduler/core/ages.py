"""How old something is, as the descheduler counts it: in whole seconds.

Source: Go's time.Time.Sub, which a missing time makes as long as a duration can be.
"""

from typing import Final

from podyard.objects import times
from podyard.objects.pod import Pod

OLDEST_S: Final = (2**63 - 1) / 1e9
"""Of what does not say since when: Go's longest duration."""


def age_s(since: str | None, now: float) -> float | None:
    """Seconds since then, negative for a time to come. None: nobody can say, since it is no time."""
    if not since:
        return OLDEST_S
    began = times.seconds_or(since, None)
    return None if began is None else now - began


def pod_age_s(pod: Pod, now: float) -> float | None:
    """Seconds since the pod was created."""
    return age_s(pod.metadata.creation_timestamp, now)


def created_at(pod: Pod) -> float:
    """For sorting by age: what does not say when is oldest."""
    return times.seconds_or(pod.metadata.creation_timestamp, -OLDEST_S)
