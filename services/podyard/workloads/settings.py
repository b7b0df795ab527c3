"""What can be set of workloads."""

from typing import Annotated

import msgspec
from msgspec import Meta

from podyard.proto.streams import LEASE_TTL_S


class WorkloadsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `workloads` of the options file."""

    lease_ttl_s: Annotated[int, Meta(ge=1, le=60)] = LEASE_TTL_S
    """Seconds after which a standby takes over from a leader that does not renew."""
