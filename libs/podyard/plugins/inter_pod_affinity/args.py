"""Arguments of InterPodAffinity. Source: pkg/scheduler/apis/config/types_pluginargs.go
(InterPodAffinityArgs)."""

from typing import Annotated

import msgspec
from msgspec import Meta


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What counts in the score besides the incoming pod's own preferences."""

    hard_pod_affinity_weight: Annotated[int, Meta(ge=0, le=100)] = 1
    """Weight of placed pods' required affinity terms that the incoming pod matches."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether placed pods' preferences do not count."""
