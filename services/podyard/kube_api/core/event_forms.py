"""Events in their two groups: the same event as an Event of v1 and of events.k8s.io/v1. Pure.

Source: kubernetes v1.36.2, pkg/apis/events/v1/conversion.go; which fields are written though they are empty:
k8s.io/api v0.36.2, core/v1/types.go and events/v1/types.go.
"""

from typing import Final

from podyard.objects.documents import Document, fill

CORE: Final = "v1"
NEW: Final = "events.k8s.io/v1"
KIND: Final = "Event"

_NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES: Final = {new: core for core, new in _NEW_NAMES.items()}
_LEFT_OUT: Final = ("reportingController", "reportingInstance", "note")
"""Not written in events.k8s.io/v1 if they are empty."""


def shown(document: Document, api_version: str) -> Document:
    """An Event of v1 in the version that was asked for."""
    if api_version == CORE:
        return document
    found = {_NEW_NAMES.get(key, key): value for key, value in document.items()}
    fill(found, regarding={}, deprecatedSource={}, deprecatedFirstTimestamp=None, deprecatedLastTimestamp=None)
    for name in _LEFT_OUT:
        if not found.get(name):
            found.pop(name, None)
    return {**found, **_said(api_version, document)}


def stored(document: Document, api_version: str) -> Document:
    """The same the other way: as an Event of v1."""
    if api_version == CORE:
        return document
    found = {_CORE_NAMES.get(key, key): value for key, value in document.items()}
    return {**found, **_said(CORE, document)}


def _said(api_version: str, document: Document) -> Document:
    """That it is of a version, if it says of which it is."""
    return {"apiVersion": api_version} if "apiVersion" in document else {}
