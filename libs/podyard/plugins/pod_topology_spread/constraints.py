"""Spread constraints of a pod, compiled.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/podtopologyspread/common.go.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from podyard.objects import selectors
from podyard.objects.affinity import TopologySpreadConstraint
from podyard.objects.selectors import Requirement, Selector

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
"""For pods without constraints of their own, if the profile says nothing else. Source: plugin.go,
systemDefaultConstraints."""


class Constraint(NamedTuple):
    """One constraint, with defaults filled in."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    """Only nodes that match the pod's node selector and required affinity count."""
    honors_taints: bool
    """Only nodes whose hard taints the pod tolerates count."""

    @property
    def counted(self) -> Selector:
        """Which placed pods count. An empty selector matches every pod, yet counts none. Source:
        countPodsMatchSelector."""
        return selectors.NOTHING if self.selector.everything else self.selector


def compiled(
    listed: Iterable[TopologySpreadConstraint], action: str, labels: Mapping[str, str]
) -> tuple[Constraint, ...]:
    """The constraints with this `whenUnsatisfiable`, in their order. Source: filterTopologySpreadConstraints.

    :param labels: the pod's own, for matchLabelKeys
    :raises SelectorError: if a label selector cannot be compiled
    """
    return tuple(
        Constraint(
            max_skew=one.max_skew,
            topology_key=one.topology_key,
            selector=_merged(selectors.compile_labels(one.label_selector), one.match_label_keys, labels),
            min_domains=1 if one.min_domains is None else one.min_domains,
            honors_affinity=one.node_affinity_policy in (None, HONOR),
            honors_taints=one.node_taints_policy == HONOR,
        )
        for one in listed
        if one.when_unsatisfiable == action
    )


def with_selector(listed: Iterable[Constraint], selector: Selector) -> tuple[Constraint, ...]:
    """Default constraints for a pod to whose Services and controllers `selector` belongs. Source:
    buildDefaultConstraints."""
    return () if selector.everything else tuple(one._replace(selector=selector) for one in listed)


def _merged(selector: Selector, keys: Iterable[str], labels: Mapping[str, str]) -> Selector:
    """With the pod's own values of `keys`; admission has put them there already, except into old objects."""
    if selector.nothing:
        return selector
    own = [Requirement(key, selectors.IN, frozenset((labels[key],))) for key in keys if key in labels]
    more = [one for one in own if one not in selector.requirements]
    return Selector((*selector.requirements, *more)) if more else selector
