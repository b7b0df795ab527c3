"""Small changes of raw documents. Those named `with` return a new document, those named `set` change
theirs."""

import copy
from collections.abc import Sequence
from typing import Any

from podyard.objects import times
from podyard.workloads.core.actions import Document


def copied(document: Document) -> Document:
    """A deep copy."""
    return copy.deepcopy(document)


def with_label(template: Document, key: str, value: str) -> Document:
    """A copy of a pod template with one more label."""
    found = copied(template)
    metadata: dict[str, Any] = found.setdefault("metadata", {})
    labels: dict[str, str] = metadata.setdefault("labels", {})
    labels[key] = value
    return found


def selector_with(selector: Document, key: str, value: str) -> Document:
    """A copy of a label selector that also asks for this label."""
    found = copied(selector)
    labels: dict[str, str] = found.setdefault("matchLabels", {})
    labels[key] = value
    return found


def set_status(document: Document, fields: Document, conditions: Sequence[Document] = (), now: float = 0.0) -> bool:
    """Replace the status; conditions of other types stay, and one whose status stays keeps its transition
    time.

    :return: whether anything changed
    """
    before: Document = document.get("status") or {}
    wished = dict(fields)
    kept = _merged(before.get("conditions") or [], conditions, now)
    if kept:
        wished["conditions"] = kept
    if wished == before:
        return False
    document["status"] = wished
    return True


def _merged(before: Sequence[Document], wished: Sequence[Document], now: float) -> list[Document]:
    found = {condition["type"]: condition for condition in before}
    for condition in wished:
        old = found.get(condition["type"])
        if old is not None and all(old.get(key) == value for key, value in condition.items()):
            continue
        since = times.rfc3339(now)
        if old is not None and old.get("status") == condition["status"]:
            since = old.get("lastTransitionTime", since)
        found[condition["type"]] = {**condition, "lastTransitionTime": since}
    return list(found.values())
