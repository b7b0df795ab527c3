"""What can be set of the binder."""

from typing import Annotated

from msgspec import Meta

from podyard.runtime.leases import LeaseSettings


class BinderSettings(LeaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `binder` of the options file."""

    commit_timeout_s: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Seconds to wait for the acknowledgement of a commit before the fence is moved to learn what became of
    it."""
