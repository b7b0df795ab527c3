"""Which names, labels and annotations are allowed. Source: apimachinery/pkg/util/validation/validation.go and
apimachinery/pkg/api/validation/objectmeta.go.

Each function returns the sentence that says what is wrong, `""` if nothing is. What they say of names that
are not too long is cached, since names repeat: 16,384 of at most 317 letters take 8 MiB.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from podyard.objects import bounds
from podyard.objects.faults import Faults

LONGEST_LABEL: Final = bounds.LABEL_BYTES
LONGEST_SUBDOMAIN: Final = bounds.NAME_BYTES
LARGEST_ANNOTATIONS_BYTES: Final = 256 * 1024

LONGEST_QUALIFIED: Final = LONGEST_SUBDOMAIN + 1 + LONGEST_LABEL
"""Of a key with its domain: a longer one has a fault whatever it is."""

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def too_long(limit: int) -> str:
    """Of a name with more bytes than that."""
    return f"must be no more than {limit} bytes"


def subdomain_fault(name: str) -> str:
    """What keeps `name` from being a DNS-1123 subdomain: the rule for the names of most kinds."""
    return too_long(LONGEST_SUBDOMAIN) if len(name) > LONGEST_SUBDOMAIN else _subdomain_fault(name)


@lru_cache(maxsize=16384)
def _subdomain_fault(name: str) -> str:
    return "" if SUBDOMAIN.fullmatch(name) else SUBDOMAIN_RULE


def label_fault(name: str) -> str:
    """What keeps `name` from being a DNS-1123 label: the rule for namespaces, services, containers and
    volumes."""
    return too_long(LONGEST_LABEL) if len(name) > LONGEST_LABEL else _label_fault(name)


@lru_cache(maxsize=4096)
def _label_fault(name: str) -> str:
    return "" if _LABEL.fullmatch(name) else _LABEL_RULE


def path_segment_fault(name: str) -> str:
    """What keeps `name` from being a segment of a path: the rule for roles and their bindings. Source:
    apimachinery/pkg/api/validation/path/name.go, IsValidPathSegmentName; the length is Podyard's own."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    for letter in "/%":
        if letter in name:
            return f"may not contain '{letter}'"
    return too_long(LONGEST_SUBDOMAIN) if len(name.encode()) > LONGEST_SUBDOMAIN else ""


def qualified_fault(name: str) -> str:
    """What keeps `name` from being a key of a label: `[domain/]name`."""
    return _qualified_fault(name) if len(name) <= LONGEST_QUALIFIED else _find_qualified_fault(name)


@lru_cache(maxsize=16384)
def _qualified_fault(name: str) -> str:
    return _find_qualified_fault(name)


def _find_qualified_fault(name: str) -> str:
    parts = name.split("/")
    if len(parts) > 2:
        return f"a qualified name {QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    if len(parts) == 2:
        if not parts[0]:
            return "prefix part must be non-empty"
        if fault := subdomain_fault(parts[0]):
            return f"prefix part {fault}"
    last = parts[-1]
    if not last:
        return "name part must be non-empty"
    if len(last) > LONGEST_LABEL:
        return f"name part {too_long(LONGEST_LABEL)}"
    return "" if QUALIFIED.fullmatch(last) else f"name part {QUALIFIED_RULE}"


def label_value_fault(value: str) -> str:
    """What keeps `value` from being the value of a label."""
    return too_long(LONGEST_LABEL) if len(value) > LONGEST_LABEL else _label_value_fault(value)


@lru_cache(maxsize=16384)
def _label_value_fault(value: str) -> str:
    return "" if not value or QUALIFIED.fullmatch(value) else VALUE_RULE


def check_labels(faults: Faults, labels: Mapping[str, str], field: str) -> None:
    """Add what is wrong with keys and values of `labels`."""
    for key, value in labels.items():
        if fault := qualified_fault(key):
            faults.invalid(field, key, fault)
        if fault := label_value_fault(value):
            faults.invalid(field, value, fault)


def check_annotations(faults: Faults, annotations: Mapping[str, str], field: str) -> None:
    """Add what is wrong with keys and the total size of `annotations`."""
    for key in annotations:
        if fault := qualified_fault(key.lower()):
            faults.invalid(field, key, fault)
    total = sum(len(key) + len(value.encode()) for key, value in annotations.items())
    if total > LARGEST_ANNOTATIONS_BYTES:
        faults.too_long(field, LARGEST_ANNOTATIONS_BYTES)
