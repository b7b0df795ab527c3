"""What may help a pod that hard spread constraints kept off all nodes.

Source: kube-scheduler v1.36.2, podtopologyspread/plugin.go (isSchedulableAfterPodChange,
isSchedulableAfterNodeChange).
"""

from collections.abc import Mapping, Sequence
from functools import partial

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.framework.snapshot import Objects
from podyard.framework.status import PluginFault
from podyard.objects.core import Node, Pod
from podyard.plugins import hinted
from podyard.plugins.pod_topology_spread import constraints, owners, reading, spread_index
from podyard.plugins.pod_topology_spread.constraints import Constraint
from podyard.plugins.pod_topology_spread.reading import ReadOfPod
from podyard.proto.actions import ActionType


class HardConstraints:
    """The hard constraints of parked pods: their own or the default ones, whose selector Services and
    controllers give.

    :param defaults: without selectors
    """

    def __init__(self, defaults: Sequence[Constraint]) -> None:
        self._defaults = defaults
        self._owners = owners.OwnerSelectors()
        self.lookup: Objects | None = None

    def of(self, pod: Pod) -> Sequence[Constraint]:
        """Its constraints, in their order.

        :raises SelectorError: if a selector of its own cannot be compiled; counts as Queue
        :raises PluginFault: if it is not known where Services are found; counts as Queue
        """
        own = pod.spec.topology_spread_constraints
        if own:
            return constraints.compiled(own, constraints.DO_NOT_SCHEDULE, pod.metadata.labels)
        if not self._defaults:
            return ()
        if self.lookup is None:
            raise PluginFault("Services cannot be looked up here")
        return constraints.with_selector(self._defaults, self._owners.selector(pod, self.lookup))

    def read_of(self, pod: Pod) -> ReadOfPod:
        """What the hints read of `pod`."""
        by_default = bool(self._defaults) and not pod.spec.topology_spread_constraints
        return reading.read_of(pod, owners.identity(pod) if by_default else None)

    def of_read(self, read: ReadOfPod) -> Sequence[Constraint] | None:
        """As `of`, by what was read of a pod; `None` under default constraints, which depend on Services."""
        listed, labels = reading.constraints_of(read)
        if not listed and self._defaults:
            return None
        return constraints.compiled(listed, constraints.DO_NOT_SCHEDULE, labels)


def after_pod_change(hard: HardConstraints, pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if a pod that counts came, went, or counts differently now; or the pod itself tolerates more."""
    before, after = hinted.changed(Pod, old, new)
    for other in (before, after):
        if other is not None and not _involved(other, pod):
            return events.skip(f"{_name(other)} is on no node, or in another namespace: it does not count")
    listed = hard.of(pod)
    if before is not None and after is not None:
        return _after_update(listed, pod, before, after)
    other, verb = (before, "is gone") if after is None else (after, "came")
    assert other is not None
    matching = _matching(listed, other.metadata.labels)
    if matching:
        return events.queue(f"{_name(other)}, which counts for the spread over {matching[0]}, {verb}")
    return events.skip(f"{_name(other)} {verb}, but counts for none of the pod's hard spread constraints")


def _after_update(listed: Sequence[Constraint], pod: Pod, before: Pod, after: Pod) -> HintResult:
    itself = pod.metadata.uid == after.metadata.uid
    tolerates_more = itself and before.spec.tolerations != after.spec.tolerations
    if tolerates_more and any(one.honors_taints for one in listed):
        return events.queue("the pod has other tolerations, and a spread constraint that leaves out nodes with taints")
    if before.metadata.labels == after.metadata.labels:
        return events.skip(f"the labels of {_name(after)} are the same")
    for one in listed:
        then, now = one.selector.matches(before.metadata.labels), one.selector.matches(after.metadata.labels)
        if then != now:
            verb = "counts now" if now else "counts no more"
            return events.queue(f"{_name(after)} {verb} for the spread over {one.topology_key}")
    return events.skip(f"the labels of {_name(after)} changed, but it counts as before")


def after_node_change(hard: HardConstraints, pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if a node joined, left or changed its domain, or has other taints. A domain that goes may help as
    well (docs/rules.md, leaving-a-domain-helps)."""
    before, after = hinted.changed(Node, old, new)
    listed = hard.of(pod)
    keys = [one.topology_key for one in listed]
    then, now = _in_domains(keys, before), _in_domains(keys, after)
    if before is not None and after is not None:
        return _after_node_update(keys, before, after, then=then, now=now)
    node, verb = (before, "is gone") if after is None else (after, "is new")
    assert node is not None
    if then or now:
        return events.queue(f"{node.metadata.name}, a node of the pod's spread domains, {verb}")
    lacking = next(key for key in keys if key not in node.metadata.labels)
    return events.skip(
        f"{node.metadata.name} {verb}, but has no label {lacking}, so it is in no spread domain of the pod"
    )


def _after_node_update(keys: Sequence[str], before: Node, after: Node, *, then: bool, now: bool) -> HintResult:
    name = after.metadata.name
    if then != now:
        verb = "joined" if now else "left"
        return events.queue(
            f"{name} {verb} the pod's spread domains: it has {'all' if now else 'not all'} their labels now"
        )
    if not now:
        return events.skip(f"{name} is in no spread domain of the pod, as before")
    for key in keys:
        if before.metadata.labels.get(key, "") != after.metadata.labels.get(key, ""):
            return events.queue(f"{name} is in another domain of {key}")
    if before.spec.taints != after.spec.taints:
        return events.queue(f"{name} has other taints, and is in the pod's spread domains")
    return events.skip(f"{name} is in the spread domains where it was")


def registrations(hard: HardConstraints) -> tuple[Registration, ...]:
    """Pods that come, go or have other labels; the pod's own tolerations; nodes that come, go or have other
    labels or taints.
    """
    pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
    nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
    return (
        Registration(
            ClusterEvent(events.POD, pods), partial(after_pod_change, hard), partial(spread_index.of_pods, hard.of_read)
        ),
        Registration(
            ClusterEvent(events.NODE, nodes),
            partial(after_node_change, hard),
            partial(spread_index.of_nodes, hard.of_read),
        ),
    )


def _involved(other: Pod, pod: Pod) -> bool:
    """Source: involvedInTopologySpreading."""
    if other.metadata.uid == pod.metadata.uid:
        return True
    return bool(hinted.place_of(other)) and other.metadata.namespace == pod.metadata.namespace


def _matching(listed: Sequence[Constraint], labels: Mapping[str, str]) -> list[str]:
    """Topology keys of the constraints for which a pod of these labels counts."""
    return [one.topology_key for one in listed if one.selector.matches(labels)]


def _in_domains(keys: Sequence[str], node: Node | None) -> bool:
    """Whether the node has all labels; so without hard constraints every node has."""
    return node is not None and all(key in node.metadata.labels for key in keys)


def _name(pod: Pod) -> str:
    return "/".join(pod.key)
