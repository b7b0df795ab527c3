"""What client-side apply left on an object: kubectl, once it applies on the server, takes over what is as
it said there.

Source: apimachinery v0.36.2, pkg/util/managedfields/internal: lastappliedmanager.go, lastappliedupdater.go,
lastapplied.go; pkg/api/validation/objectmeta.go (ValidateAnnotationsSize).
"""

from typing import Final

import msgspec

from podyard.kube_api.core.patching.field_sets import escaped
from podyard.kube_api.core.patching.refusals import too_deep
from podyard.kube_api.core.patching.shapes import Root
from podyard.kube_api.core.patching.typed_values import compare, fields, problems
from podyard.objects.documents import Document, copy, is_mapping, mapping

KUBECTL: Final = "kubectl"
"""The one manager that upgrades client-side apply."""

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_BYTES: Final = 256 * 1024
"""Keys and values of an object's annotations together."""


def allowed_paths(live: Document, root: Root, api_version: str) -> frozenset[str]:
    """Fields that the annotation has, as they are now: kubectl may take them from whom they belong to."""
    text = mapping(live, "metadata", "annotations").get(ANNOTATION)
    if not text or not isinstance(text, str):
        return frozenset()
    try:
        applied = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return frozenset()
    if not is_mapping(applied) or too_deep(applied) or applied.get("apiVersion") != api_version:
        return frozenset()
    if problems(applied, root, duplicates=False) or problems(live, root, duplicates=False):
        return frozenset()
    change = compare(applied, live, root)
    return frozenset((fields(applied, root) - change.modified - change.added - change.removed).paths())


def renewed(document: Document, wanted: Document) -> None:
    """Write what is applied into the annotation of `document`, if it has one and not too long a one."""
    annotations = mapping(document, "metadata", "annotations")
    if not annotations.get(ANNOTATION):
        return
    told = copy(wanted)
    mapping(told, "metadata", "annotations").pop(ANNOTATION, None)
    text = escaped(msgspec.json.encode(told, order="sorted").decode()) + "\n"
    sizes = (len(key.encode()) + len(str(value).encode()) for key, value in annotations.items() if key != ANNOTATION)
    if sum(sizes) + len(ANNOTATION) + len(text.encode()) > ANNOTATIONS_BYTES:
        del annotations[ANNOTATION]
    else:
        annotations[ANNOTATION] = text
