"""What the plugin does for a pod: its constraints with the pods and nodes that count for them. Depends on the
pod only."""

from collections.abc import Hashable
from typing import Final, NamedTuple

from podyard.cluster.domain_sums import Among
from podyard.cluster.pod_columns import PodSelection
from podyard.framework.pod_info import PodInfo
from podyard.objects import selectors
from podyard.objects.affinity import Toleration
from podyard.objects.selectors import RequiredNodeAffinity
from podyard.plugins.pod_topology_spread import reading
from podyard.plugins.pod_topology_spread.constraints import Constraint
from podyard.plugins.pod_topology_spread.nodes import CountingNodes


class Planned(NamedTuple):
    """One constraint of one pod."""

    constraint: Constraint
    itself: int
    """1 if the selector matches the pod itself, else 0."""
    pods: PodSelection
    among: Among | None
    """Nodes that count; `None`: all that have the topology label."""
    chosen: bool = False
    """Whether only nodes count that match the pod's node selector and affinity, and it has some."""


class Plan(NamedTuple):
    """All constraints of one pod: the hard ones in their order, the soft ones in theirs."""

    hard: tuple[Planned, ...] = ()
    soft: tuple[Planned, ...] = ()
    all_labels: bool = True
    """Whether a node must have the labels of all soft constraints to get points. Not so for the system's
    defaults."""
    hard_fault: str = ""
    soft_fault: str = ""
    """Why the constraints cannot be compiled."""


NO_PLAN: Final = Plan()


def of_node(pod: PodInfo) -> tuple[Hashable, tuple[Toleration, ...]]:
    """What the pod says about nodes, as far as it decides which nodes count: for signatures."""
    return reading.needs_of(pod.pod), pod.pod.spec.tolerations


def planned(pod: PodInfo, listed: tuple[Constraint, ...], *, all_labels: bool) -> tuple[Planned, ...]:
    """The constraints of one kind, hard or soft.

    :param all_labels: nodes that lack the label of one of them count for none
    """
    if not listed:
        return ()
    keys = frozenset(one.topology_key for one in listed) if all_labels else frozenset[str]()
    required = selectors.required_node_affinity(pod.pod)
    if required.selector.everything and required.affinity is None:
        required = None
    return tuple(_planned(pod, one, keys, required) for one in listed)


def _planned(
    pod: PodInfo, constraint: Constraint, keys: frozenset[str], required: RequiredNodeAffinity | None
) -> Planned:
    affinity = required if constraint.honors_affinity else None
    tolerations = pod.pod.spec.tolerations if constraint.honors_taints else None
    plain = affinity is None and tolerations is None and keys <= {constraint.topology_key}
    return Planned(
        constraint=constraint,
        itself=int(constraint.selector.matches(pod.labels)),
        pods=PodSelection(constraint.counted, frozenset((pod.namespace,)), ending=False),
        among=None if plain else CountingNodes(keys, affinity, tolerations),
        chosen=affinity is not None,
    )
