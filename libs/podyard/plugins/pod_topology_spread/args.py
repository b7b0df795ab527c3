"""Arguments of PodTopologySpread. Source: pkg/scheduler/apis/config/types_pluginargs.go
(PodTopologySpreadArgs)."""

from typing import Literal

import msgspec

from podyard.objects.affinity import TopologySpreadConstraint


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Constraints for pods that have none of their own, with selectors from the Services and controllers that
    they belong to."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """With defaulting type List; none has a label selector."""
    defaulting_type: Literal["System", "List"] = "System"
    """System: constraints that Kubernetes defines (zone 5, hostname 3, ScheduleAnyway). List: those of
    `default_constraints`."""
