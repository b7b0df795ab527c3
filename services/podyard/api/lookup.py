"""What admission may ask of the cluster, earlier objects of the same request included. Pure."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from podyard.cluster import intents
from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Document, Stored
from podyard.cluster.keys import ObjectKey


class RequestLookup:
    """The cluster as it will be once the objects admitted so far are written: a pod may name a class that its
    own request brings."""

    def __init__(self, view: DocumentView) -> None:
        self._view = view
        self._known: dict[ObjectKey, Stored] = {}
        self._staged: dict[str, dict[ObjectKey, Document]] = {}
        """By resource: admission of each pod lists the priority classes, not the request's other pods."""

    def stage(self, key: ObjectKey, document: Document) -> None:
        """`document` was admitted and will be written."""
        self._staged.setdefault(key.resource, {})[key] = document

    def staged(self, key: ObjectKey) -> Document | None:
        """What the request brought for `key` so far."""
        return self._staged.get(key.resource, {}).get(key)

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """The object, None if there is none."""
        key = ObjectKey(resource, namespace, name)
        return self.staged(key) or self._view.typed(key)

    def written(self, key: ObjectKey) -> bytes | None:
        """The document of an object in JSON; None if there is none, or it is put aside and was not read."""
        document = self.staged(key)
        if document is not None:
            return msgspec.json.encode(document)
        stored = intents.living(self._known.get(key) or self._view.stored(key))
        return None if stored is None else bytes(stored.event.object)

    def know(self, key: ObjectKey, stored: Stored) -> None:
        """This is stored there: it was read for this request."""
        self._known[key] = stored

    def list(self, resource: str) -> Iterable[Any]:
        """All objects of a resource; of one that the request changes, both versions."""
        return chain(self._staged.get(resource, {}).values(), self._view.all(resource))
