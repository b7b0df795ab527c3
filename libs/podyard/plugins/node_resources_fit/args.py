"""Arguments of NodeResourcesFit. Source: pkg/scheduler/apis/config/types_pluginargs.go
(NodeResourcesFitArgs)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A resource that counts in the score, and how much."""

    name: str
    weight: Annotated[int, Meta(ge=1, le=100)] = 1


class UtilizationShapePoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A point of a function from utilization in percent to a score of 0 to 10; straight lines in between."""

    utilization: Annotated[int, Meta(ge=0, le=100)]
    score: Annotated[int, Meta(ge=0, le=10)]


class RequestedToCapacityRatioParam(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The function of RequestedToCapacityRatio: points in strictly rising order of utilization."""

    shape: Annotated[tuple[UtilizationShapePoint, ...], Meta(min_length=1)]


class ScoringStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How a node's use of each resource makes a score.

    LeastAllocated: the larger the free share of the resources, the higher. MostAllocated: the larger the used
    share. RequestedToCapacityRatio: as its function says; only then `requested_to_capacity_ratio` is set.
    """

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: Annotated[tuple[ResourceSpec, ...], Meta(min_length=1)] = (
        ResourceSpec(name="cpu"),
        ResourceSpec(name="memory"),
    )
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Extended resources that Filter ignores (by name, or by what comes before the slash), and how Score
    counts."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()
