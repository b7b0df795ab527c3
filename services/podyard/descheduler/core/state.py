"""The cluster as one cycle sees it: read at its start, and kept up with what the cycle itself does.

So the second plugin knows what the first has evicted (docs/rules.md, a-cycle-sees-its-own-evictions). Pods
and nodes are joined views.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from podyard.cluster.view import ClusterView
from podyard.objects import times
from podyard.objects.core import Namespace, PersistentVolumeClaim
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.scheduling import PriorityClass

NamespacedName = tuple[str, str]
BUDGETS: Final = "poddisruptionbudgets"
CLAIMS: Final = "persistentvolumeclaims"
NAMESPACES: Final = "namespaces"
PRIORITY_CLASSES: Final = "priorityclasses"
ENDED: Final = frozenset({"Succeeded", "Failed"})


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
    ) -> None:
        """:param pods: all pods, also those without a node"""
        self.nodes = sorted(nodes, key=lambda node: node.metadata.name)
        self.pods: dict[NamespacedName, Pod] = {pod.key: pod for pod in sorted(pods, key=lambda pod: pod.key)}
        self.namespaces = namespaces or {}
        self.claims = claims or {}
        self.priority_classes = priority_classes or {}
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            self._budgets.setdefault(budget.metadata.namespace, []).append(budget)
        self._on_node: dict[str, dict[NamespacedName, Pod]] = {}
        self._by_owner: dict[str, int] = {}
        for pod in self.pods.values():
            self._index(pod)

    def _index(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._on_node.setdefault(pod.spec.node_name, {})[pod.key] = pod
        for uid in {owner.uid for owner in pod.metadata.owner_references}:
            self._by_owner[uid] = self._by_owner.get(uid, 0) + 1

    def ready_nodes(self) -> list[Node]:
        """Nodes that are ready, cordoned ones too, sorted by name. A node without the condition counts as
        ready."""
        return [node for node in self.nodes if is_ready(node)]

    def pods_on(self, node: str) -> list[Pod]:
        """The pods of a node that have not ended."""
        return [pod for pod in self._on_node.get(node, {}).values() if pod.status.phase not in ENDED]

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
            self.pods[pod.key] = self._on_node[current.spec.node_name][pod.key] = msgspec.structs.replace(
                current, metadata=metadata
            )
            return
        del self.pods[pod.key]
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
