"""Which objects there were at which position of CLUSTER: their documents, as they were stored."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

Document: TypeAlias = dict[str, Any]

NODES: Final = "nodes"
PODS: Final = "pods"
CLAIMS: Final = "persistentvolumeclaims"
VOLUMES: Final = "persistentvolumes"
CLASSES: Final = "storageclasses"
CSI_NODES: Final = "csinodes"
NAMESPACES: Final = "namespaces"

LATEST: Final = 1 << 62
"""A position behind all that is stored."""
NO_BATCH: Final = range(0)


class UnknownError(Exception):
    """What stood there has been overwritten since; the text names it."""


class Version(NamedTuple):
    """What there is from a sequence on."""

    sequence: int
    document: Document | None
    """`None`: nothing."""
    known: bool = True
    """Else something was stored there that nobody can read any more."""


class Chosen(NamedTuple):
    """Some of the nodes, with their domains."""

    values: dict[str, str]
    """Of each node."""
    domains: frozenset[str]


class Nodes:
    """All nodes at one position."""

    def __init__(self, documents: dict[str, Document]) -> None:
        self.documents = documents
        """By name."""
        self.chosen: dict[bytes, Chosen] = {}
        """What rules have worked out of them, by what they went by."""
        self.values: Callable[[str], dict[str, str]] = cache(self._values)
        """By label: its value of each node that has it."""

    def _values(self, label: str) -> dict[str, str]:
        found = ((name, _labels(node).get(label)) for name, node in self.documents.items())
        return {name: value for name, value in found if value is not None}


class Namespaces:
    """All namespaces at one position."""

    def __init__(self, documents: dict[str, Document]) -> None:
        self.documents = documents
        """By name."""
        self.chosen: dict[bytes, frozenset[str]] = {}
        """What rules have worked out of them: names, by what they went by."""


class State:
    """All objects at one position. What is not known raises `UnknownError` once it is asked for."""

    def __init__(
        self,
        all_of: Callable[[str], dict[tuple[str, str], Document]],
        get: Callable[[str, str, str], Document | None],
        nodes: Callable[[], Nodes],
        namespaces: Callable[[], Namespaces],
    ) -> None:
        self.all = cache(all_of)
        """By resource: documents by namespace and name."""
        self.get = get
        """By resource, namespace (empty for what is in none) and name."""
        self._nodes = nodes
        self._namespaces = namespaces

    @property
    def nodes(self) -> Nodes:
        """Those that there are."""
        return self._nodes()

    @property
    def namespaces(self) -> Namespaces:
        """Those that there are."""
        return self._namespaces()


class History:
    """Every version of every object. Sequences begin anew when the stream is made again, and so must this."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[tuple[str, str], list[Version]]] = defaultdict(dict)
        """By resource, namespace and name."""
        self.end = 0
        """The last sequence that was noted."""
        self._node_changes: list[int] = []
        self._nodes: tuple[int, Nodes] = (0, Nodes({}))
        """The last that were asked for, after so many changes."""
        self._namespace_changes: list[int] = []
        self._namespaces: tuple[int, Namespaces] = (0, Namespaces({}))
        self._pod_changes: list[int] = []
        self._changed_pods: list[tuple[str, str]] = []

    def note(
        self, resource: str, namespace: str, name: str, sequence: int, document: Document | None, before: int = 0
    ) -> Version | None:
        """A version was stored, or (None) the marker of a deletion; returns the one before.

        :param before: sequence of the version before, as its writer named it
        """
        versions = self._versions[resource].setdefault((namespace, name), [])
        last = versions[-1].sequence if versions else 0
        if before > last:
            versions.append(Version(last + 1, None, known=False))
        previous = versions[-1] if versions else None
        versions.append(Version(sequence, document))
        self.end = max(self.end, sequence)
        if resource == NODES:
            self._node_changes.append(sequence)
        elif resource == NAMESPACES:
            self._namespace_changes.append(sequence)
        elif resource == PODS:
            self._pod_changes.append(sequence)
            self._changed_pods.append((namespace, name))
        return previous

    def at(self, position: int, batch: range = NO_BATCH) -> State:
        """What there is at a position, and in a batch that is judged by it.

        :param batch: sequences of the batch's messages: versions that are among them count too
        """

        def get(resource: str, namespace: str, name: str) -> Document | None:
            version = _pick(self._versions[resource].get((namespace, name), ()), position, batch)
            return _known(version, resource, name)

        def all_of(resource: str) -> dict[tuple[str, str], Document]:
            found = ((key, get(resource, *key)) for key in self._versions[resource])
            return {key: document for key, document in found if document is not None}

        return State(all_of, get, lambda: self._nodes_at(position), lambda: self._namespaces_at(position))

    def _nodes_at(self, position: int) -> Nodes:
        changes = bisect_right(self._node_changes, position)
        if self._nodes[0] != changes or not changes:
            documents = self.at(position).all(NODES)
            self._nodes = changes, Nodes({name: document for (_, name), document in documents.items()})
        return self._nodes[1]

    def _namespaces_at(self, position: int) -> Namespaces:
        changes = bisect_right(self._namespace_changes, position)
        if self._namespaces[0] != changes or not changes:
            documents = self.at(position).all(NAMESPACES)
            self._namespaces = changes, Namespaces({name: document for (_, name), document in documents.items()})
        return self._namespaces[1]

    def pod(self, namespace: str, name: str, uid: str, position: int) -> Document | None:
        """A pod that is there at a position.

        :raises UnknownError: something of its name is, which nobody can read any more
        """
        versions = self._versions[PODS].get((namespace, name), ())
        found = _known(_pick(versions, position), PODS, name)
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def last_of_pod(self, namespace: str, name: str, uid: str) -> Document | None:
        """The last version of a pod that may be gone: its binding takes room as long as it stands."""
        for version in reversed(self._versions[PODS].get((namespace, name), ())):
            found = version.document
            if found is not None and found["metadata"]["uid"] == uid:
                return found
        return None

    def pods_changed(self, one: int, other: int) -> Sequence[tuple[str, str]]:
        """Namespaces and names of the pods that differ between two positions."""
        first, last = sorted((one, other))
        changes = self._pod_changes
        return self._changed_pods[bisect_right(changes, first) : bisect_right(changes, last)]


def _pick(versions: Sequence[Version], position: int, batch: range = NO_BATCH) -> Version | None:
    for version in reversed(versions):
        if version.sequence <= position or version.sequence in batch:
            return version
    return None


def _known(version: Version | None, resource: str, name: str) -> Document | None:
    if version is None:
        return None
    if not version.known:
        raise UnknownError(f"{resource} {name} was overwritten since")
    return version.document


def _labels(document: Document) -> dict[str, str]:
    found: dict[str, str] = document["metadata"].get("labels") or {}
    return found
