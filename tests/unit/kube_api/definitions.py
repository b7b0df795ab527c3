"""CustomResourceDefinitions, as they are stored."""

from typing import Any

from podyard.objects.documents import Document

SCHEMA: Document = {
    "type": "object",
    "description": "A gateway.",
    "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
}
COLUMN: Document = {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}
SCALE: Document = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def version(name: str, **fields: Any) -> Document:
    """One that is served, with a schema."""
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}} | fields


def definition(kind: str = "Gateway", plural: str = "gateways", **fields: Any) -> Document:
    """Of one version that stores, in the group example.com.

    :param fields: of the spec; `name` and `created` are of the metadata, `names` are added to the names
    """
    group = fields.get("group", "example.com")
    metadata = {
        "name": fields.pop("name", f"{plural}.{group}"),
        "creationTimestamp": fields.pop("created", "2026-01-01T00:00:00Z"),
    }
    names = {"kind": kind, "plural": plural, **fields.pop("names", {})}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version("v1", storage=True)]}
    return {"metadata": metadata, "spec": spec | fields}
