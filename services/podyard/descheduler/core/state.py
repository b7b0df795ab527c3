"""The cluster as one cycle sees it: read at its start, and kept up with what the cycle itself does.

So the second plugin knows what the first has evicted (docs/rules.md, a-cycle-sees-its-own-evictions). Pods
and nodes are joined views.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from podyard.cluster.keys import NamespacedName
from podyard.cluster.view import ClusterView
from podyard.descheduler.core.measured import NOTHING_MEASURED, Amounts, Measured
from podyard.objects import pod_requests, times
from podyard.objects.core import Namespace, PersistentVolumeClaim
from podyard.objects.node import Node
from podyard.objects.pod import ENDED, Pod, PodStatus
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.scheduling import PriorityClass

BUDGETS: Final = "poddisruptionbudgets"
CLAIMS: Final = "persistentvolumeclaims"
NAMESPACES: Final = "namespaces"
PRIORITY_CLASSES: Final = "priorityclasses"

_NO_STATUS: Final = PodStatus()
_NONE: Final[Sequence[Pod]] = ()

Index = TypeVar("Index")


class Taken:
    """What the pods of a node that have not ended take of it: kept up, so that nobody adds it up again."""

    __slots__ = ("amounts", "pods")

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        """Nano-units by resource."""
        self.pods = 0

    def add(self, amounts: Amounts, sign: int = 1) -> None:
        """A pod came, or with -1 went."""
        self.pods += sign
        for name, amount in amounts.items():
            self.amounts[name] = self.amounts.get(name, 0) + sign * amount


class CycleState:
    """Changed by `evicted` only."""

    def __init__(
        self,
        *,
        nodes: Iterable[Node],
        pods: Iterable[Pod],
        namespaces: Mapping[str, Namespace] | None = None,
        budgets: Iterable[PodDisruptionBudget] = (),
        claims: Mapping[NamespacedName, PersistentVolumeClaim] | None = None,
        priority_classes: Mapping[str, PriorityClass] | None = None,
        measured: Measured = NOTHING_MEASURED,
    ) -> None:
        """
        :param pods: all pods, also those without a node
        :param measured: what is really used, for plugins that ask for it
        """
        self.nodes = sorted(nodes, key=lambda node: node.metadata.name)
        self._nodes = {node.metadata.name: node for node in self.nodes}
        self.pods: dict[NamespacedName, Pod] = {pod.key: pod for pod in sorted(pods, key=lambda pod: pod.key)}
        self.namespaces = namespaces or {}
        self.claims = claims or {}
        self.priority_classes = priority_classes or {}
        self.measured = measured
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            self._budgets.setdefault(budget.metadata.namespace, []).append(budget)
        self._on_node: dict[str, dict[NamespacedName, Pod]] = {}
        self._by_owner: dict[str, int] = {}
        self._taken: dict[str, Taken] = {}
        self._requests: dict[NamespacedName, Amounts] = {}
        self._in_namespace: dict[str, dict[NamespacedName, Pod]] = {}
        self._gone: dict[str, list[Pod]] = {}
        self._indexes: dict[Callable[..., Any], Any] = {}
        self.freed: list[str] = []
        """The nodes of pods that have gone in this cycle, in order."""
        for pod in self.pods.values():
            self._index(pod)

    def index(self, kind: "Callable[[CycleState], Index]") -> Index:
        """What this class makes of the state: made when it is first asked for, the same from then on. It
        keeps itself up by `freed` and `gone`."""
        found = self._indexes.get(kind)
        if found is None:
            found = self._indexes[kind] = kind(self)
        return found

    def _index(self, pod: Pod) -> None:
        self._in_namespace.setdefault(pod.metadata.namespace, {})[pod.key] = pod
        if pod.spec.node_name:
            self._on_node.setdefault(pod.spec.node_name, {})[pod.key] = pod
        for uid in {owner.uid for owner in pod.metadata.owner_references}:
            self._by_owner[uid] = self._by_owner.get(uid, 0) + 1

    def ready_nodes(self) -> list[Node]:
        """Nodes that are ready, cordoned ones too, sorted by name. A node without the condition counts as
        ready."""
        return [node for node in self.nodes if is_ready(node)]

    def node(self, name: str) -> Node | None:
        """The node of this name; None if there is none."""
        return self._nodes.get(name)

    def pods_on(self, node: str) -> list[Pod]:
        """The pods of a node that have not ended, sorted by namespace and name."""
        return [pod for pod in self._on_node.get(node, {}).values() if pod.status.phase not in ENDED]

    def all_pods_on(self, node: str) -> list[Pod]:
        """The pods of a node, those that have ended too, sorted by namespace and name."""
        return list(self._on_node.get(node, {}).values())

    def pods_in(self, namespace: str) -> list[Pod]:
        """The pods of a namespace, those that have ended and those without a node too, sorted by name."""
        return list(self._in_namespace.get(namespace, {}).values())

    def gone(self, namespace: str) -> Sequence[Pod]:
        """The pods of a namespace that have gone in this cycle, in order."""
        return self._gone.get(namespace, _NONE)

    def requests(self, pod: Pod) -> Amounts:
        """What the pod requests, in nano-units: by its spec alone. How far a resize in place is plays no
        part.

        Source: pkg/utils/pod.go, PodRequestsAndLimits (no option of resourcehelper.PodRequests is set).

        :raises QuantityError: if a request is no quantity
        """
        found = self._requests.get(pod.key)
        if found is None:
            found = pod_requests.exact_requests(msgspec.structs.replace(pod, status=_NO_STATUS))
            self._requests[pod.key] = found
        return found

    def taken(self, node: str) -> Taken:
        """What the pods of a node that have not ended request.

        :raises QuantityError: if a request of one of them is no quantity
        """
        found = self._taken.get(node)
        if found is None:
            found = Taken()
            for pod in self.pods_on(node):
                found.add(self.requests(pod))
            self._taken[node] = found  # only now: a sum that broke off would be taken for the whole
        return found

    def replicas(self, owner_uid: str) -> int:
        """How many pods name this owner."""
        return self._by_owner.get(owner_uid, 0)

    def budgets(self, namespace: str) -> list[PodDisruptionBudget]:
        """The disruption budgets of a namespace."""
        return self._budgets.get(namespace, [])

    def evicted(self, pod: Pod, now: float, *, gone: bool) -> None:
        """The pod was evicted in this cycle.

        :param gone: it takes no room any more (in a dry run, as if it were gone); else it is on its way out
        """
        current = self.pods.get(pod.key)
        if current is None:
            return
        if not gone:
            metadata = msgspec.structs.replace(current.metadata, deletion_timestamp=times.rfc3339(now))
            leaving = self.pods[pod.key] = self._in_namespace[pod.key[0]][pod.key] = msgspec.structs.replace(
                current, metadata=metadata
            )
            if current.spec.node_name:
                self._on_node[current.spec.node_name][pod.key] = leaving
            return
        if current.status.phase not in ENDED and current.spec.node_name in self._taken:
            self._taken[current.spec.node_name].add(self.requests(current), -1)
        self.freed.append(current.spec.node_name)
        self._gone.setdefault(current.metadata.namespace, []).append(current)
        del self.pods[pod.key]
        del self._in_namespace[current.metadata.namespace][pod.key]
        self._on_node.get(current.spec.node_name, {}).pop(pod.key, None)
        for uid in {owner.uid for owner in current.metadata.owner_references}:
            self._by_owner[uid] -= 1


def state_of(view: ClusterView) -> CycleState:
    """All nodes and pods of a view, joined with what their agents say."""
    return CycleState(
        nodes=[one.node for one in view.nodes.values()],
        pods=[one.pod for one in view.pods.values()],
        namespaces={name: one for (_, name), one in view.objects(NAMESPACES).items()},
        budgets=view.objects(BUDGETS).values(),
        claims=view.objects(CLAIMS),
        priority_classes={name: one for (_, name), one in view.objects(PRIORITY_CLASSES).items()},
    )


def is_ready(node: Node) -> bool:
    """Whether no condition says that it is not. Source: pkg/descheduler/node/node.go, IsReady."""
    return all(one.type != "Ready" or one.status == "True" for one in node.status.conditions)
