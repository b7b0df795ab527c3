"""What the agent reads: the cluster's view, and which facts about pods are stored, whoever's pod it was."""

from typing import Final

from podyard.cluster.changes import Change, Delivered
from podyard.cluster.view import ClusterView
from podyard.node_agent.core.messages import StoredStatus
from podyard.proto import subjects
from podyard.shell.informer import Followed

_POD_STATUS: Final = subjects.ALL_POD_STATUS.removesuffix(">")
_NODE_STATUS: Final = subjects.ALL_NODE_STATUS.removesuffix(">")
_OBJECTS: Final = (subjects.objects(subjects.PODS), subjects.objects(subjects.NODES))
_PLACED: Final = (subjects.ALL_COMMITS, subjects.FENCE)


def followed(node_names: tuple[str, ...]) -> Followed:
    """Objects, placements and node statuses are followed; pod statuses only listed, since the agent writes
    them itself.

    :param node_names: the agent's nodes; empty means any
    """
    statuses = tuple(subjects.pod_statuses(name) for name in node_names) or (subjects.ALL_POD_STATUS,)
    nodes = tuple(subjects.node_status(name) for name in node_names) or (subjects.ALL_NODE_STATUS,)
    listed = (*_OBJECTS, *statuses, *nodes, subjects.ALL_BINDINGS, subjects.FENCE)
    return Followed(listed, (*_OBJECTS, *nodes, *_PLACED))


class AgentView(ClusterView):
    """Notes the listed facts about pods and nodes; the agent removes those whose object went while it did not
    look."""

    def __init__(self) -> None:
        super().__init__()
        self._listed: dict[str, StoredStatus] = {}
        self._reported: set[str] = set()

    def begin_listing(self) -> None:
        """As its base."""
        super().begin_listing()
        self._listed = {}
        self._reported = set()

    def apply(self, delivery: Delivered) -> list[Change]:
        """As its base."""
        subject = delivery.subject
        if subject.startswith(_POD_STATUS) and not delivery.deleted:
            tokens = subject.removeprefix(_POD_STATUS).split(".")
            if len(tokens) == len(StoredStatus._fields):
                self._listed[subject] = StoredStatus(*map(subjects.decode, tokens))
        elif subject.startswith(_NODE_STATUS) and not delivery.deleted:
            self._reported.add(subjects.decode(subject.removeprefix(_NODE_STATUS)))
        return super().apply(delivery)

    def take_orphans(self) -> list[StoredStatus]:
        """Listed facts whose pod's object is gone; each listing's once."""
        listed, self._listed = self._listed, {}
        return [status for status in listed.values() if self._is_gone(status.uid)]

    def take_node_orphans(self) -> list[str]:
        """Nodes that somebody reported about and whose object is gone; each listing's once."""
        reported, self._reported = self._reported, set()
        return [name for name in reported if name not in self.nodes]

    def _is_gone(self, uid: str) -> bool:
        view = self.pods_by_uid.get(uid)
        return view is None or view.gone
