"""Times of a lease: what is left open, and what does not go together."""

import msgspec
import pytest

from podyard.proto.streams import LEASE_TIMES, LeaseTimes
from podyard.runtime import leases
from podyard.runtime.leases import LeaseSettings
from podyard.runtime.settings import SettingsError


def test_what_is_left_open_is_a_share_of_the_duration():
    assert LeaseSettings().lease_times() == LEASE_TIMES == (10, 8.0, 10 / 3)
    assert LeaseSettings(lease_ttl_s=30).lease_times() == (30, 24.0, 10.0)
    assert LeaseSettings(lease_renew_deadline_s=7.5, lease_retry_period_s=2).lease_times() == (10, 7.5, 2)


@pytest.mark.parametrize("times", [LEASE_TIMES, (15, 10, 2), (137, 107, 26), (1, 0.8, 1 / 3)])
def test_the_references_own_times_go_together(times):
    """Of kube-scheduler, of the descheduler, and the shortest."""
    leases.check(LeaseTimes(*times))


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((10, 10.0, 2.0), ["lease_ttl_s: 10 s must be more than the renew deadline, 10 s"]),
        ((10, 2.4, 2.0), ["lease_renew_deadline_s: 2.4 s must be more than 1.2 times the retry period, 2.4 s"]),
        (
            (5, 6.0, 7.0),
            [
                "lease_ttl_s: 5 s must be more than the renew deadline, 6 s",
                "lease_renew_deadline_s: 6 s must be more than 1.2 times the retry period, 8.4 s",
            ],
        ),
    ],
)
def test_times_that_client_go_refuses_are_refused(times, told):
    with pytest.raises(SettingsError) as caught:
        leases.check(LeaseTimes(*times))
    assert list(caught.value.problems) == told


def test_just_above_the_limit_is_taken():
    leases.check(LeaseTimes(10, 2.400001, 2.0))


@pytest.mark.parametrize("value", [0, 3601, 1.5])
def test_a_lease_lives_for_whole_seconds_from_one_to_an_hour(value):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"lease_ttl_s": value}, LeaseSettings)
