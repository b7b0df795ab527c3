"""Which objects there were at which position of CLUSTER: their documents, as they were stored."""

from collections.abc import Callable
from functools import cache
from typing import Any

Document = dict[str, Any]

NODES = "nodes"
PODS = "pods"
CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses"
CSI_NODES = "csinodes"

LATEST = 1 << 62
"""A position behind all that is stored."""


class State:
    """All objects at one position. Names are unique in a run: there is one namespace."""

    def __init__(
        self, all_of: Callable[[str], dict[str, Document]], get: Callable[[str, str], Document | None]
    ) -> None:
        self.all = cache(all_of)
        """By resource: documents by name."""
        self.get = get
        """By resource and name."""

    @property
    def nodes(self) -> dict[str, Document]:
        """By name."""
        return self.all(NODES)


class History:
    """Every version of every object. Sequences begin anew when the stream is made again, and so must this."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[str, list[tuple[int, Document | None]]]] = {}
        """By resource and name: what there is from a sequence on."""
        self._pods: dict[str, str] = {}
        """Uid -> name."""

    def note(self, resource: str, name: str, sequence: int, document: Document | None) -> Document | None:
        """A version was stored, or (None) the marker of a deletion; returns the one before."""
        versions = self._versions.setdefault(resource, {}).setdefault(name, [])
        before = versions[-1][1] if versions else None
        versions.append((sequence, document))
        if document is not None and resource == PODS:
            self._pods[document["metadata"]["uid"]] = name
        return before

    def at(self, position: int, batch_from: int = LATEST) -> State:
        """What there is at a position, and in a batch that is judged by it.

        :param batch_from: sequence of the batch's first message: versions from there on count too
        """

        def get(resource: str, name: str) -> Document | None:
            return _pick(self._versions.get(resource, {}).get(name, ()), position, batch_from)

        def all_of(resource: str) -> dict[str, Document]:
            found = ((name, get(resource, name)) for name in self._versions.get(resource, {}))
            return {name: document for name, document in found if document is not None}

        return State(all_of, get)

    def pod(self, uid: str, position: int) -> Document | None:
        """A pod that is there at a position."""
        found = _pick(self._versions.get(PODS, {}).get(self._pods.get(uid, ""), ()), position, LATEST)
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def last_of_pod(self, uid: str) -> Document | None:
        """The last version of a pod that may be gone: its binding takes room as long as it stands."""
        for _, found in reversed(self._versions.get(PODS, {}).get(self._pods.get(uid, ""), ())):
            if found is not None and found["metadata"]["uid"] == uid:
                return found
        return None


def _pick(versions: "list[tuple[int, Document | None]] | tuple[()]", position: int, batch_from: int) -> Document | None:
    for sequence, document in reversed(versions):
        if sequence <= position or sequence >= batch_from:
            return document
    return None
