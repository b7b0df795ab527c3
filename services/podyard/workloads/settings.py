"""What can be set of workloads."""

from typing import Annotated

from msgspec import Meta

from podyard.runtime import leases
from podyard.runtime.leases import LeaseSettings
from podyard.runtime.service import Effective
from podyard.runtime.settings import ServiceSettings
from podyard.workloads.core.ended_pods import THRESHOLD
from podyard.workloads.core.node_life import Periods
from podyard.workloads.core.zones import Rates

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Rate = Annotated[float, Meta(ge=0, le=1_000)]


class WorkloadsSettings(LeaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `workloads` of the options file."""

    terminated_pod_gc_threshold: Annotated[int, Meta(ge=0)] = THRESHOLD
    """Ended pods that are kept; of more, the evicted ones and then the oldest go. 0: all are kept. As all
    below: kube-controller-manager's flag of that name, and its default."""

    node_monitor_period_s: Seconds = Periods().monitor_s
    """Seconds between two looks at which nodes are lost."""
    node_monitor_grace_period_s: Seconds = Periods().grace_s
    """Seconds without a sign of life after which a node is lost; several heartbeats (10 s) must fit in."""
    node_startup_grace_period_s: Seconds = Periods().startup_s
    """The same for a node of which nobody has said yet whether it is ready."""
    node_eviction_rate: Rate = Rates().usual
    """Nodes a second of one zone that are tainted NoExecute since they are not ready."""
    secondary_node_eviction_rate: Rate = Rates().reduced
    """The same in a large zone of which much is not ready."""
    large_cluster_size_threshold: Annotated[int, Meta(ge=0)] = Rates().large
    """Nodes of a zone above which it is large; in a smaller one of which much is not ready none is
    tainted."""
    unhealthy_zone_threshold: Annotated[float, Meta(ge=0, le=1)] = Rates().unhealthy
    """Share of a zone's nodes that are not ready from which on that is much; three nodes at the least."""

    def periods(self) -> Periods:
        """How long is waited for a node."""
        return Periods(self.node_monitor_period_s, self.node_monitor_grace_period_s, self.node_startup_grace_period_s)

    def rates(self) -> Rates:
        """How fast nodes are given up."""
        return Rates(
            self.node_eviction_rate,
            self.secondary_node_eviction_rate,
            self.large_cluster_size_threshold,
            self.unhealthy_zone_threshold,
        )


def check(process: ServiceSettings, own: WorkloadsSettings) -> None:
    """Before the service is started: whether its lease can be had.

    :raises SettingsError: with everything that is wrong with it
    """
    del process
    leases.check(own.lease_times())


def in_force(process: ServiceSettings, own: WorkloadsSettings) -> Effective:
    """What the service runs by."""
    del process
    return Effective(leases.filled_in(own))
