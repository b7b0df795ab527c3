"""Pods that differ by their names only are admitted once a request. Pure.

Admission looks at a new pod's name in one place (is it a DNS subdomain) and writes it in none, so what was
admitted for one pod holds for its sisters, with another name and uid. A request of 256 pods of one template
then costs a tenth.
"""

from collections.abc import Callable

import msgspec

from podyard.cluster.intents import Document
from podyard.objects import names
from podyard.objects.documents import mapping


class PodTemplates:
    """Admitted new pods of one request, by what they are without their name. Forget them when the cluster
    changes."""

    def __init__(self, new_uid: Callable[[], str]) -> None:
        self._new_uid = new_uid
        self._admitted: dict[bytes, Document] = {}

    def forget(self) -> None:
        """Something that admission looks at has changed."""
        self._admitted.clear()

    def admit(self, document: Document, admit: Callable[[], Document]) -> Document:
        """The pod as it is to be stored. Parts of it are shared with its sisters: it must not be changed.

        :param admit: full admission of this document, which raises what is wrong with it
        """
        metadata = mapping(document, "metadata")
        name = metadata.get("name")
        if not isinstance(name, str) or not name or names.subdomain_fault(name):
            return admit()
        try:
            key = msgspec.json.encode({**document, "metadata": {**metadata, "name": ""}})
        except (RecursionError, OverflowError, ValueError):
            return admit()
        sister = self._admitted.get(key)
        if sister is None:
            admitted = self._admitted[key] = admit()
            return admitted
        return {**sister, "metadata": {**sister["metadata"], "name": name, "uid": self._new_uid()}}
