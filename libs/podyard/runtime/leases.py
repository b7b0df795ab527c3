"""What can be set of a service's lease, and which times go together."""

from collections.abc import Iterator
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from podyard.proto.streams import LEASE_TIMES, LeaseTimes
from podyard.runtime.settings import SettingsError

JITTER: Final = 1.2
"""By what client-go stretches the pause between two tries. Source: client-go v0.36.2,
tools/leaderelection/leaderelection.go (JitterFactor)."""
LONGEST_S: Final = 3600
_NS: Final = 10**9

Seconds = Annotated[float, Meta(gt=0, le=LONGEST_S)]
WholeSeconds = Annotated[int, Meta(ge=1, le=LONGEST_S)]


class LeaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of every service that has a leader. What is not set is what `leaderElection` of the scheduler
    configuration says, of queue and binder; else the default."""

    lease_ttl_s: WholeSeconds | None = None
    """Seconds after which a standby takes over from a leader that does not renew: 10; above the 6 s that NATS
    needs to elect a leader of its own."""
    lease_renew_deadline_s: Seconds | None = None
    """Seconds without a good renewal after which a leader steps down: four fifths of `lease_ttl_s`."""
    lease_retry_period_s: Seconds | None = None
    """Seconds between two renewals, and at most between two looks of a standby: a third of `lease_ttl_s`."""

    def lease_times(self) -> LeaseTimes:
        """Its times; `faults` says what is wrong with them."""
        share = 1 if self.lease_ttl_s is None else self.lease_ttl_s / LEASE_TIMES.duration_s
        deadline, period = self.lease_renew_deadline_s, self.lease_retry_period_s
        return LeaseTimes(
            LEASE_TIMES.duration_s if self.lease_ttl_s is None else self.lease_ttl_s,
            LEASE_TIMES.renew_deadline_s * share if deadline is None else deadline,
            LEASE_TIMES.retry_period_s * share if period is None else period,
        )


S = TypeVar("S", bound=LeaseSettings)
FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(LeaseSettings))
"""Settings of a lease, in the order of `LeaseTimes`."""


def filled_in(own: S) -> S:
    """The settings with those of the lease as they are in force."""
    return msgspec.structs.replace(own, **dict(zip(FIELDS, own.lease_times(), strict=True)))


def check(times: LeaseTimes) -> None:
    """Whether the times of a lease go together.

    Source: client-go v0.36.2, tools/leaderelection/leaderelection.go (NewLeaderElector).

    :raises SettingsError: with everything that is wrong with them
    """
    found = tuple(_faults(times))
    if found:
        raise SettingsError(found)


def _faults(times: LeaseTimes) -> Iterator[str]:
    duration, deadline, period = times
    if duration <= deadline:
        yield f"{FIELDS[0]}: {duration:g} s must be more than the renew deadline, {deadline:g} s"
    least = int(JITTER * round(period * _NS)) / _NS
    if deadline <= least:
        yield f"{FIELDS[1]}: {deadline:g} s must be more than {JITTER} times the retry period, {least:g} s"
