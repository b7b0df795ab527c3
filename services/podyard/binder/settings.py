"""What can be set of the binder."""

from typing import Annotated

import msgspec
from msgspec import Meta

from podyard.proto.streams import LEASE_TTL_S


class BinderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `binder` of the options file."""

    lease_ttl_s: Annotated[int, Meta(ge=1, le=60)] = LEASE_TTL_S
    """Seconds after which a standby takes over from a binder that does not renew; above NATS' own fail-over
    in a cluster."""
    commit_timeout_s: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Seconds to wait for the acknowledgement of a commit before the fence is moved to learn what became of
    it."""
