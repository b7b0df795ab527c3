"""One node as a reader sees it: the object of its creator joined with what its agent says."""

from typing import Any

import msgspec

from podyard.cluster.conditions import joined_conditions
from podyard.objects.affinity import Taint
from podyard.objects.core import Node
from podyard.proto.facts import NodeStatusFact


class NodeView:
    """A node at one moment. Never changed: every new fact makes a new view."""

    __slots__ = ("blind", "name", "node", "sequence", "status", "stored", "uid")

    def __init__(
        self,
        stored: Node,
        name: str,
        uid: str,
        sequence: int,
        status: NodeStatusFact | None = None,
        blind: str = "",
    ) -> None:
        """
        :param stored: the object as its creator wrote it
        :param sequence: CLUSTER sequence of the object's version
        :param status: what its agent says about this very node; None if nothing
        :param blind: why what its agent said last cannot be read; `status` is then what it said before
        """
        self.stored = stored
        self.name = name
        self.uid = uid
        self.sequence = sequence
        self.status = status
        self.blind = blind
        self.node = stored if status is None else _join(stored, status)
        """The joined object: conditions of the same type replaced by the agent's, its taints added."""

    @property
    def labels(self) -> dict[str, str]:
        return self.stored.metadata.labels

    def facts(self) -> tuple[Any, ...]:
        """All that makes two views of a node equal, for comparing what two readers see."""
        return self.name, self.uid, self.sequence, self.stored, self.status, self.blind

    def __repr__(self) -> str:
        return f"<NodeView {self.name} {self.uid} @{self.sequence}>"


def _join(node: Node, fact: NodeStatusFact) -> Node:
    spec, status = node.spec, node.status
    if fact.taints:
        present = {(taint.key, taint.effect) for taint in spec.taints}
        added = tuple(
            Taint(key=taint.key, value=taint.value, effect=taint.effect, time_added=taint.time_added or None)
            for taint in fact.taints
            if (taint.key, taint.effect) not in present
        )
        spec = msgspec.structs.replace(spec, taints=spec.taints + added)
    if fact.conditions:
        status = msgspec.structs.replace(status, conditions=joined_conditions(status.conditions, fact.conditions))
    return msgspec.structs.replace(node, spec=spec, status=status)
