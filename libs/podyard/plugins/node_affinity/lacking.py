"""Which labels a node lacks for a pod, in words."""

from collections.abc import Iterable, Mapping

from podyard.cluster.node_table import NodeTable
from podyard.framework import details
from podyard.framework.interfaces import Detail, Rows
from podyard.objects.selectors import (
    EVERYTHING,
    FieldRequirement,
    NodeTerm,
    NodeTerms,
    RequiredNodeAffinity,
    Requirement,
)


def detail(wanted: RequiredNodeAffinity, nodes: NodeTable, rows: Rows) -> Detail | None:
    """Of the node that fulfils all but the fewest requirements, among the first by name."""
    best: Detail | None = None
    first: list[int] = rows[: details.MOST_LOOKED_AT].tolist()
    for row in first:
        node = nodes.nodes[row]
        if node is None:
            continue
        labels, name = node.metadata.labels, node.metadata.name
        missing = [one for one in wanted.selector.requirements if not one.matches(labels)]
        other = _fewest(wanted.affinity, labels, name) if wanted.affinity is not None else []
        lack = len(missing) + len(other)
        if lack and (best is None or lack < best.lack):
            best = Detail(_told([*missing, *other], labels), row, lack)
    return best


def of_terms(terms: NodeTerms, nodes: NodeTable, rows: Rows) -> Detail | None:
    """The same for a selector that is not the pod's own."""
    return detail(RequiredNodeAffinity(EVERYTHING, terms), nodes, rows)


def _fewest(terms: NodeTerms, labels: Mapping[str, str], name: str) -> list[Requirement | FieldRequirement]:
    """What is not fulfilled of the term that is nearest to be; a term that could not be compiled is passed
    over."""
    found = [_unmet(term, labels, name) for term in terms.terms if term.fault is None]
    return min(found, key=len) if found else []


def _unmet(term: NodeTerm, labels: Mapping[str, str], name: str) -> list[Requirement | FieldRequirement]:
    fields = [field for field in term.fields if not field.matches(name)]
    return [*fields, *(one for one in term.labels if not one.matches(labels))]


def _told(missing: Iterable[Requirement | FieldRequirement], labels: Mapping[str, str]) -> str:
    wants = details.listed([str(one) for one in missing])
    held = [
        f"{one.key}={labels[one.key]}" if one.key in labels else f"no label {one.key}"
        for one in missing
        if isinstance(one, Requirement)
    ]
    return f"wants {wants}" + (f", has {details.listed(held)}" if held else "")
