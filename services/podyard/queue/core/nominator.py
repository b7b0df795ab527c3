"""Nodes kept for pods that preempted.

Source: pkg/scheduler/backend/queue/nominator.go.
"""


class Nominator:
    """Which pod is nominated to which node; a pod has at most one."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}

    def node_of(self, uid: str) -> str:
        """The pod's nominated node, "" if it has none."""
        return self._node_of.get(uid, "")

    def set(self, uid: str, node: str) -> None:
        """Nominate, or with node "" end the nomination. A later nomination comes later in `by_node`."""
        self._node_of.pop(uid, None)
        if node:
            self._node_of[uid] = node

    def updated(self, uid: str, old_status: str, new_status: str) -> None:
        """The pod's object changed; its status named `old_status` and now names `new_status`.

        A status that named no node and names none keeps a nomination that only the queue knows yet.
        """
        if old_status or new_status:
            self.set(uid, new_status)

    def by_node(self) -> dict[str, list[str]]:
        """Node -> uids, in the order of their nomination."""
        found: dict[str, list[str]] = {}
        for uid, node in self._node_of.items():
            found.setdefault(node, []).append(uid)
        return found
