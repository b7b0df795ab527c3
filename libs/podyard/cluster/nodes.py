"""One node as a reader sees it: the object of its creator joined with what its agent says, and with what
`workloads` says when the agent falls silent."""

from typing import Any

import msgspec

from podyard.cluster.conditions import joined_conditions
from podyard.objects.affinity import Taint
from podyard.objects.core import Node
from podyard.proto.facts import Condition, NodeLifeFact, NodeStatusFact


class NodeView:
    """A node at one moment. Never changed: every new fact makes a new view."""

    __slots__ = ("blind", "life", "name", "node", "reported", "sequence", "status", "stored", "uid")

    def __init__(
        self,
        stored: Node,
        name: str,
        uid: str,
        sequence: int,
        status: NodeStatusFact | None = None,
        blind: str = "",
        life: NodeLifeFact | None = None,
    ) -> None:
        """
        :param stored: the object as its creator wrote it
        :param sequence: CLUSTER sequence of the object's version
        :param status: what its agent says about this very node; None if nothing
        :param blind: why what its agent said last cannot be read; `status` is then what it said before
        :param life: what `workloads` says about this very node; None if it is content
        """
        self.stored = stored
        self.name = name
        self.uid = uid
        self.sequence = sequence
        self.status = status
        self.blind = blind
        self.life = life
        self.reported = stored if status is None else _join(stored, status)
        """The object as its creator and its agent say: conditions of the same type replaced by the agent's,
        its taints added."""
        self.node = self.reported if life is None else _join(self.reported, life)
        """The joined object: that, with what `workloads` says put in the same way."""

    @property
    def labels(self) -> dict[str, str]:
        return self.stored.metadata.labels

    @property
    def lost(self) -> Condition | None:
        """Its condition Ready as `workloads` says while nothing is heard of its agent; else None."""
        return None if self.life is None else self.life.lost

    def facts(self) -> tuple[Any, ...]:
        """All that makes two views of a node equal, for comparing what two readers see."""
        return self.name, self.uid, self.sequence, self.stored, self.status, self.blind, self.life

    def __repr__(self) -> str:
        return f"<NodeView {self.name} {self.uid} @{self.sequence}>"


def _join(node: Node, fact: NodeStatusFact | NodeLifeFact) -> Node:
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
