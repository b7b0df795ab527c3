"""Objects of other kinds than pods and nodes, as plugins are shown them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podyard.objects import decoding


class KnownObjects:
    """What a view has of them, without a stream (`podyard.framework.snapshot.Objects`)."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, str], Any]] = {}
        self._versions: dict[str, int] = {}

    def objects(self, resource: str) -> Mapping[tuple[str, str], Any]:
        """By (namespace, name)."""
        return self._found.get(resource, {})

    def version(self, resource: str) -> int:
        """How many changes there were."""
        return self._versions.get(resource, 0)

    def put(self, resource: str, document: Mapping[str, Any], key: tuple[str, str] | None = None) -> Any:
        """An object comes or changes.

        :param key: where it lies, if its metadata do not say so
        """
        found: Any = decoding.decode(resource, msgspec.json.encode(document))
        place = (found.metadata.namespace, found.metadata.name) if key is None else key
        self._found.setdefault(resource, {})[place] = found
        self._versions[resource] = self.version(resource) + 1
        return found

    def drop(self, resource: str, key: tuple[str, str]) -> None:
        """An object goes."""
        self._found.get(resource, {}).pop(key, None)
        self._versions[resource] = self.version(resource) + 1
