"""`leaderElection` of a configuration and the leases of queue and binder, which go by it."""

from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from podyard.configuration.reading import NO_DURATION
from podyard.configuration.wire import LeaderElection
from podyard.objects import go_syntax
from podyard.proto.streams import LeaseTimes
from podyard.runtime.leases import FIELDS, LeaseSettings

S = TypeVar("S", bound=LeaseSettings)

NAMES: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
"""Fields of leaderElection, in the order of `LeaseTimes`."""


class GivenLease(NamedTuple):
    """What a file says of a lease, seconds, in the order of `LeaseTimes`. None: it says nothing, and
    Podyard's default holds, not the reference's."""

    duration_s: float | None = None
    renew_deadline_s: float | None = None
    retry_period_s: float | None = None

    @classmethod
    def of(cls, given: LeaderElection) -> "GivenLease":
        """
        :param given: as the file has it, without defaults
        """
        if given.leader_elect is False:
            return cls()
        return cls(*map(_seconds, (given.lease_duration, given.renew_deadline, given.retry_period)))

    @property
    def fault(self) -> str:
        """Why it cannot be a lease here; empty if it can."""
        if self.duration_s is None or self.duration_s.is_integer():
            return ""
        shown = go_syntax.duration_text(self.duration_s)
        return f"leaderElection.leaseDuration: {shown}: NATS keeps leases for whole seconds"

    def completing(self, own: S) -> S:
        """A service's settings, with what they leave open as the file says."""
        unset = {
            name: said
            for name, said in zip(FIELDS, self, strict=True)
            if said is not None and getattr(own, name) is None
        }
        if (duration := unset.get(FIELDS[0])) is not None:
            unset[FIELDS[0]] = int(duration)
        return msgspec.structs.replace(own, **unset)


def written(times: LeaseTimes, document: dict[str, Any]) -> dict[str, Any]:
    """The written configuration of a service that leads with these times."""
    texts = dict(zip(NAMES, map(go_syntax.duration_text, times), strict=True))
    return {**document, "leaderElection": {**document["leaderElection"], "leaderElect": True, **texts}}


def _seconds(duration: str) -> float | None:
    return None if duration == NO_DURATION else go_syntax.parse_duration(duration)
