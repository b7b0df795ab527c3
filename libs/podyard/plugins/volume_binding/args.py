"""Arguments of VolumeBinding. Source: pkg/scheduler/apis/config/types_pluginargs.go (VolumeBindingArgs).

Its `shape` is refused, as the feature gate StorageCapacityScoring is off by default in v1.36.
"""

from typing import Annotated

import msgspec
from msgspec import Meta


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How long binding volumes may take."""

    bind_timeout_seconds: Annotated[int, Meta(ge=0)] = 600
