"""Names of objects."""

from typing import NamedTuple, TypeAlias

NamespacedName: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""


class ObjectKey(NamedTuple):
    """One object's place: at most one object lives there at a time; its uid tells namesakes apart."""

    resource: str
    """Plural of a core kind (`pods`), or `<plural>.<version>.<group>`."""
    namespace: str
    """Empty for cluster-scoped kinds."""
    name: str

    @property
    def namespaced_name(self) -> NamespacedName:
        """Namespace and name without the resource."""
        return self.namespace, self.name

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource} {place}"
