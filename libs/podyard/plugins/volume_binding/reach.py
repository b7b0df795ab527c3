"""From which nodes a volume can be reached.

Source: kube-scheduler v1.36.2, component-helpers/storage/volume/helpers.go (CheckNodeAffinity).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.objects import selectors
from podyard.objects.affinity import NodeSelector
from podyard.objects.selectors import NodeTerm, NodeTerms
from podyard.plugins import node_matching


class Reach(NamedTuple):
    """Compiled node affinity of a volume. `terms` None: it can be reached from everywhere."""

    terms: NodeTerms | None = None

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a node of these labels reaches the volume."""
        return self.terms is None or any(term.matches(labels, "") for term in self.terms.terms)

    def __str__(self) -> str:
        """`zone=a`, terms separated by `or`."""
        return "everywhere" if self.terms is None else " or ".join(map(str, self.terms.terms))

    def mask(self, nodes: NodeTable, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """The same for many nodes."""
        if self.terms is None:
            return np.ones(len(rows), dtype=np.bool_)
        return node_matching.terms(self.terms, nodes, rows)

    @property
    def one_label(self) -> tuple[str, frozenset[str]] | None:
        """Key and values if all that counts is the value of one label, as for the disks of one node."""
        if self.terms is None or len(self.terms.terms) != 1:
            return None
        term = self.terms.terms[0]
        if term.fault is not None or len(term.labels) != 1 or term.labels[0].operator != selectors.IN:
            return None
        return term.labels[0].key, term.labels[0].values


EVERYWHERE: Final = Reach()


def compiled(required: NodeSelector | None) -> Reach:
    """A volume's required node affinity, ready to be asked.

    The reference asks it of a node without a name, so `metadata.name` is compared with the empty string.
    """
    if required is None:
        return EVERYWHERE
    terms = (_without_name(term) for term in selectors.compile_nodes(required).terms)
    return Reach(NodeTerms(tuple(term for term in terms if term is not None)))


def _without_name(term: NodeTerm) -> NodeTerm | None:
    if not all(field.matches("") for field in term.fields):
        return None
    return term._replace(fields=())
