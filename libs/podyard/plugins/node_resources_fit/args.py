"""Arguments of NodeResourcesFit. Source: pkg/scheduler/apis/config/types_pluginargs.go (NodeResourcesFitArgs)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A resource that counts in the score, and how much."""

    name: Annotated[str, Meta(min_length=1)]
    weight: Annotated[int, Meta(ge=1, le=100)] = 1


class ScoringStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """LeastAllocated: the larger the free share of the resources, the higher the score."""

    type: Literal["LeastAllocated"] = "LeastAllocated"
    resources: Annotated[tuple[ResourceSpec, ...], Meta(min_length=1)] = (
        ResourceSpec(name="cpu"),
        ResourceSpec(name="memory"),
    )


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Extended resources that Filter ignores (by name, or by what comes before the slash), and how Score counts."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()
