"""What admission may ask of the cluster, earlier objects of the same request included. Pure."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Document
from podyard.cluster.keys import ObjectKey


class RequestLookup:
    """The cluster as it will be once the objects admitted so far are written: a pod may name a class that its own request brings."""

    def __init__(self, view: DocumentView) -> None:
        self._view = view
        self._staged: dict[ObjectKey, Document] = {}

    def stage(self, key: ObjectKey, document: Document) -> None:
        """`document` was admitted and will be written."""
        self._staged[key] = document

    def staged(self, key: ObjectKey) -> Document | None:
        """What the request brought for `key` so far."""
        return self._staged.get(key)

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """The object, None if there is none."""
        key = ObjectKey(resource, namespace, name)
        return self._staged.get(key) or self._view.typed(key)

    def list(self, resource: str) -> Iterable[Any]:
        """All objects of a resource; of one that the request changes, both versions."""
        staged = [document for key, document in self._staged.items() if key.resource == resource]
        return chain(staged, self._view.all(resource))
