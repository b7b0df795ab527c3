"""How many pods may go in a cycle. Checked before an eviction; only those that succeeded count
(docs/rules.md, limits-come-before-the-call).

Source: pkg/descheduler/evictions/evictions.go, EvictPod; errors.go.
"""

from collections import Counter
from typing import Final

from podyard.descheduler.core.framework import Answer
from podyard.descheduler.core.policy import Policy
from podyard.objects.pod import Pod

SENTENCES: Final[dict[Answer, str]] = {
    Answer.TOTAL_LIMIT: "maximum number of evicted pods per a descheduling cycle reached",
    Answer.NODE_LIMIT: "maximum number of evicted pods per node reached",
    Answer.NAMESPACE_LIMIT: "maximum number of evicted pods per namespace reached",
}


class Limits:
    """Counts of one cycle, over all profiles and plugins. A limit of None is none; 0 allows nothing."""

    def __init__(self, policy: Policy) -> None:
        self._per_node = policy.max_no_of_pods_to_evict_per_node
        self._per_namespace = policy.max_no_of_pods_to_evict_per_namespace
        self._in_total = policy.max_no_of_pods_to_evict_total
        self.total = 0
        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()

    def reached(self, pod: Pod) -> Answer | None:
        """The limit that forbids evicting `pod`, in the order total, node, namespace; None if none does."""
        if _reached(self.total, self._in_total):
            return Answer.TOTAL_LIMIT
        if pod.spec.node_name and _reached(self._nodes[pod.spec.node_name], self._per_node):
            return Answer.NODE_LIMIT
        if _reached(self._namespaces[pod.metadata.namespace], self._per_namespace):
            return Answer.NAMESPACE_LIMIT
        return None

    def count(self, pod: Pod) -> None:
        """The pod was evicted."""
        self.total += 1
        self._namespaces[pod.metadata.namespace] += 1
        if pod.spec.node_name:
            self._nodes[pod.spec.node_name] += 1


def _reached(count: int, limit: int | None) -> bool:
    return limit is not None and count + 1 > limit
