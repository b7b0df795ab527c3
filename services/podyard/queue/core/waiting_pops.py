"""Pops that found nothing: each waits for pods until its deadline."""

from typing import Final, NamedTuple

from podyard.proto.queue_api import PopRequest

NEVER: Final = float("inf")


class WaitingPop(NamedTuple):
    """A request that waits."""

    ticket: int
    request: PopRequest
    deadline: float
    """Seconds since 1970, UTC: then it is answered, with pods or without."""


class WaitingPops:
    """In the order in which they came.

    :param linger_s: how long pods that come are left lying for more of them: batches are cheaper than single
        pods
    """

    def __init__(self, linger_s: float) -> None:
        self._linger_s = linger_s
        self._pops: list[WaitingPop] = []
        self._hand_out_at = NEVER
        self.wake_at = NEVER
        """When `take_due` is to be asked: the first deadline, or the end of lingering."""

    def __bool__(self) -> bool:
        return bool(self._pops)

    def add(self, ticket: int, request: PopRequest, now: float) -> None:
        """It waits from now on, as long as the request says."""
        one = WaitingPop(ticket, request, now + request.wait_s)
        self._pops.append(one)
        self.wake_at = min(self.wake_at, one.deadline)

    def pods_came(self, now: float) -> None:
        """There are pods: they are handed out when lingering is over."""
        if self._hand_out_at == NEVER and self._pops:
            self._hand_out_at = now + self._linger_s
            self.wake_at = min(self.wake_at, self._hand_out_at)

    def take_due(self, now: float) -> list[WaitingPop]:
        """Take out those that are to be looked at now: all of them after lingering, else those whose deadline
        has come.
        """
        everybody = now >= self._hand_out_at
        taken = [one for one in self._pops if everybody or one.deadline <= now]
        self._pops = [] if everybody else [one for one in self._pops if one.deadline > now]
        if everybody:
            self._hand_out_at = NEVER
        self._set_alarm()
        return taken

    def end(self, session: str, now: float) -> None:
        """Their session has ended: they wait no longer."""
        self._pops = [one._replace(deadline=now) if one.request.session == session else one for one in self._pops]
        self._set_alarm()

    def put_back(self, pops: list[WaitingPop]) -> None:
        """There was nothing for them: they go on waiting, in front of those that came later."""
        self._pops = [*pops, *self._pops]
        self._set_alarm()

    def _set_alarm(self) -> None:
        self.wake_at = min((one.deadline for one in self._pops), default=NEVER)
        self.wake_at = min(self.wake_at, self._hand_out_at)
