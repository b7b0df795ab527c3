"""Names of objects. `ObjectKey` is what a subject says, so it is declared beside the subjects."""

from typing import TypeAlias

from podyard.proto.subjects import ObjectKey

__all__ = ["NamespacedName", "ObjectKey"]

NamespacedName: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""
