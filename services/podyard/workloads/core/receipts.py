"""When we heard of something that, by another's clock, is yet to come.

Agents say by their own clocks when a pod became ready and when it ended. A time that is yet to come when it
is heard counts from then: else a rollout, and a Job's next pod, would wait for as long as that clock is
ahead.
"""


class Receipts:
    """Of the pods that live. A time that is past counts as it is said: how long ago it was heard, a new
    leader could not know."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[float, float]] = {}
        """The time that was said, and when that was heard, by uid; only of those that were yet to come."""

    def since(self, uid: str, said: float, now: float) -> float:
        """From when on something counts of which another said the time.

        :param uid: of the pod
        :param said: seconds since 1970, UTC
        """
        if said <= now:
            return said
        found = self._heard.get(uid)
        if found is None or found[0] != said:
            found = self._heard[uid] = (said, now)
        return found[1]

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._heard.pop(uid, None)
