"""How each CustomResourceDefinition stands beside the others, and what its status says of that. Pure.

Nobody stores it: whoever has the definitions knows it. Of a definition it changes when an older one goes that
had its names.

Source: kubernetes v1.36.2, staging/src/k8s.io/apiextensions-apiserver/pkg/controller/status/
naming_controller.go (calculateNamesAndConditions), pkg/controller/establish/establishing_controller.go.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core.custom import Standing, added
from podyard.objects.documents import Document, is_list, mapping, mappings
from podyard.telling.objects import Moment
from podyard.telling.pod_conditions import Evidence

OWN: Final = frozenset(("Established", "NamesAccepted"))
"""Conditions that are told here; others are those that are stored."""


class Defined(NamedTuple):
    """A definition at one moment, and how it stands."""

    moment: Moment
    standing: Standing | None
    """None: it cannot be read."""

    @property
    def key(self) -> ObjectKey:
        return self.moment.key

    @property
    def stored(self) -> Stored:
        return self.moment.stored

    @property
    def viewed(self) -> Any:
        return self.moment.viewed

    @property
    def fault(self) -> str:
        return self.moment.fault

    @property
    def evidence(self) -> Evidence:
        return self.moment.evidence

    def document(self, shown: Mapping[str, str]) -> Document:
        document = self.moment.document(shown)
        if self.standing is not None:
            document["status"] = status_of(document, self.standing)
        return document


class Definitions:
    """The definitions of one store, as far as their standing goes by them: without schemas."""

    def __init__(self) -> None:
        self._known: dict[str, Document] = {}
        self._standings: Mapping[str, Standing] = {}

    def standing(self, name: str) -> Standing | None:
        """Of the definition of that name; None: it is not there, or cannot be read."""
        return self._standings.get(name)

    def changed(self, name: str, moment: Moment | None) -> set[str]:
        """One was written, or is gone (None); returns the names of all that stand otherwise now."""
        self._put(name, moment)
        before, self._standings = self._standings, added(self._known.values()).standings
        names = before.keys() | self._standings.keys()
        return {one for one in names if before.get(one) != self._standings.get(one)}

    def listed(self, moments: Iterable[Moment]) -> None:
        """These are all."""
        self._known.clear()
        for moment in moments:
            self._put(moment.key.name, moment)
        self._standings = added(self._known.values()).standings

    def _put(self, name: str, moment: Moment | None) -> None:
        self._known.pop(name, None)
        if moment is not None and not moment.fault:
            document = moment.document({})
            for version in mappings(mapping(document, "spec"), "versions"):
                version.pop("schema", None)
            self._known[name] = document


def status_of(document: Document, standing: Standing) -> Document:
    """The status of a definition: what is stored of it, and how it stands."""
    stored = mapping(document, "status")
    conditions = [one for one in mappings(stored, "conditions") if one.get("type") not in OWN]
    metadata = mapping(document, "metadata")
    # when a definition came to stand so is kept nowhere; that of one which nobody changed, when it was made
    since = metadata.get("creationTimestamp") if (metadata.get("generation") or 1) == 1 else None
    names = _condition("NamesAccepted", "NoConflicts", "no conflicts found", since)
    established = _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", since)
    if standing.why:
        told = standing.why if standing.reason == "NotAccepted" else "not all names are accepted"
        names = _condition("NamesAccepted", standing.reason, standing.why, since, status="False")
        established = _condition("Established", "NotAccepted", told, since, status="False")
    elif standing.left:
        established["message"] = "; ".join((established["message"], *standing.left))
    found = stored.get("storedVersions")
    versions = [*found] if is_list(found) else []
    if standing.stores and standing.stores not in versions:
        versions.append(standing.stores)
    return {
        **stored,
        "conditions": [*conditions, names, established],
        "acceptedNames": standing.accepted,
        "storedVersions": versions,
    }


def _condition(type_: str, reason: str, message: str, since: Any, *, status: str = "True") -> Document:
    at = {"lastTransitionTime": since} if since else {}
    return {"type": type_, "status": status, **at, "reason": reason, "message": message}
