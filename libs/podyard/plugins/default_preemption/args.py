"""Arguments of DefaultPreemption. Source: pkg/scheduler/apis/config/types_pluginargs.go
(DefaultPreemptionArgs)."""

from typing import Annotated

import msgspec
from msgspec import Meta


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How many candidate nodes a dry run looks for: the larger of the two numbers, at most all nodes. Not
    both may be 0."""

    min_candidate_nodes_percentage: Annotated[int, Meta(ge=0, le=100)] = 10
    """Percent of the nodes that could help."""
    min_candidate_nodes_absolute: Annotated[int, Meta(ge=0)] = 100
