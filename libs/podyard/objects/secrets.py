"""Secrets on their way in, in clear: what is allowed, and what stays out. The api encrypts what comes out of
here. No sentence shows a value (docs/rules.md, values-of-secrets-have-one-place).

Sources: Kubernetes v1.36.2, pkg/apis/core/validation/validation.go (ValidateSecret, ValidateSecretUpdate),
pkg/apis/core/v1/conversion.go (stringData), types.go (MaxSecretSize).
"""

import base64
import binascii
import re
from typing import Final

from podyard.objects.documents import Document, is_mapping, mapping
from podyard.objects.faults import Faults

RESOURCE: Final = "secrets"
HIDDEN: Final = "<encrypted>"
"""What stands in the place of a value that is not shown."""
HIDDEN_ENCODED: Final = base64.b64encode(HIDDEN.encode()).decode()
"""The same for client libraries, which decode every value."""

MOST_BYTES: Final = 1024 * 1024
"""Of all values together."""

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY: Final = 253
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OPAQUE: Final = "Opaque"


def settle(document: Document) -> None:
    """Put `stringData` into `data`, name the type, and leave out the copy of the whole object that kubectl
    keeps in an annotation: nothing here reads it, and it would be a second place of the values."""
    text = document.pop("stringData", None)
    if is_mapping(text):
        data = document.setdefault("data", {})
        for key, value in text.items():
            data[key] = base64.b64encode(str(value).encode()).decode()
    if not document.get("type"):
        document["type"] = _OPAQUE
    annotations = mapping(document, "metadata", "annotations")
    if annotations.pop(_LAST_APPLIED, None) is not None and not annotations:
        del document["metadata"]["annotations"]


def check(faults: Faults, document: Document, old: Document | None) -> None:
    """Add what is wrong with a secret; its values are base64.

    :param old: the version that it replaces, in clear
    """
    total = 0
    for key, value in mapping(document, "data").items():
        if key in (".", "..") or len(key) > _LONGEST_KEY or not _KEY.fullmatch(key):
            faults.invalid(
                f"data[{key}]", key, "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
            )
        if value in (HIDDEN, HIDDEN_ENCODED):
            faults.add(
                f"data[{key}]", "FieldValueInvalid", "the value was not shown to you: give it, or leave the key out"
            )
            continue
        try:
            total += len(base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError, TypeError):
            faults.add(f"data[{key}]", "FieldValueInvalid", "must be base64; put text into stringData")
    if total > MOST_BYTES:
        faults.too_long("data", MOST_BYTES)
    if old is not None:
        check_immutable(faults, document, old, ("data",))
        if document.get("type") != old.get("type"):
            faults.add("type", "FieldValueInvalid", "field is immutable")


def check_immutable(faults: Faults, new: Document, old: Document, fields: tuple[str, ...]) -> None:
    """A secret or ConfigMap that was declared so keeps its values."""
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        faults.forbidden("immutable", "field is immutable when `immutable` is set")
    for field in fields:
        if new.get(field) != old.get(field):
            faults.forbidden(field, "field is immutable when `immutable` is set")
