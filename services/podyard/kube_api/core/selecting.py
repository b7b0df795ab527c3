"""Which objects a request means: labelSelector and fieldSelector, as the reference reads them. Pure.

Sources: kubernetes v1.36.2, staging/src/k8s.io/apimachinery/pkg/fields/selector.go (ParseSelector), the field
labels of each kind in pkg/apis/*/*/conversion.go (AddFieldLabelConversionFunc), their values in
pkg/registry/*/*/strategy.go (GetAttrs).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from podyard.cluster.pods import PodView
from podyard.kube_api.core.errors import bad_request
from podyard.kube_api.core.items import Item
from podyard.kube_api.core.json_paths import Path
from podyard.objects import label_text, selectors
from podyard.objects.documents import Document
from podyard.objects.errors import LabelTextError
from podyard.objects.kinds import Kind
from podyard.objects.selectors import Selector

NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"
MOST_TERMS: Final = 256
"""Conditions of one field selector: each is asked of every object."""

_EVENT_LABELS: Final = (
    *("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid"),
    *("involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath"),
    *("reason", "reportingComponent", "source", "type", NAMESPACE, NAME),
)
_NEW_EVENT_LABELS: Final = {
    **{f"regarding.{name}": f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion")},
    **{f"regarding.{name}": f"involvedObject.{name}" for name in ("resourceVersion", "fieldPath")},
    "reason": "reason",
    "reportingController": "reportingComponent",
    "type": "type",
    NAMESPACE: NAMESPACE,
    NAME: NAME,
}


class _Labels(NamedTuple):
    """The fields that a kind is selected by."""

    names: Mapping[str, str]
    """What each is called, and what is looked up for it."""
    refusal: str = "field label not supported: {}"


def _labels(*names: str, refusal: str = "field label not supported: {}", **others: str) -> _Labels:
    return _Labels({**{name: name for name in names}, **others}, refusal)


_DEFAULT: Final = _labels(
    NAME, NAMESPACE, refusal=f'"{{}}" is not a known field selector: only "{NAME}", "{NAMESPACE}"'
)
_OF_KINDS: Final[Mapping[tuple[str, str], _Labels]] = {
    ("v1", "Pod"): _labels(
        *(NAME, NAMESPACE, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
        **{"spec.host": "spec.nodeName"},
    ),
    ("v1", "Node"): _labels(NAME, "spec.unschedulable"),
    ("v1", "ReplicationController"): _labels(NAME, NAMESPACE, "status.replicas"),
    ("v1", "Event"): _labels(*_EVENT_LABELS),
    ("events.k8s.io/v1", "Event"): _Labels(_NEW_EVENT_LABELS),
    ("v1", "Namespace"): _labels(NAME, "status.phase"),
    ("v1", "Secret"): _labels(NAME, NAMESPACE, "type"),
    ("v1", "Service"): _labels(NAME, NAMESPACE, "spec.clusterIP", "spec.type"),
    ("batch/v1", "Job"): _labels(
        NAME, NAMESPACE, "status.successful", refusal='field label "{}" not supported for Job'
    ),
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): _labels(NAME, "spec.signerName"),
    ("resource.k8s.io/v1", "ResourceSlice"): _labels(
        *(NAME, "spec.nodeName", "spec.driver"),
        refusal="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
    ),
}


class Term(NamedTuple):
    """One condition on one field."""

    label: str
    equal: bool
    value: str


class Fields(NamedTuple):
    """A field selector. Without terms it selects everything."""

    terms: tuple[Term, ...] = ()
    paths: Mapping[str, Path] = {}
    """Of the fields that a definition adds to its kind, where each lies."""

    @property
    def everything(self) -> bool:
        return not self.terms

    def required(self, label: str) -> str:
        """The value that a field must have; empty if it may have several."""
        return next((term.value for term in self.terms if term.label == label and term.equal), "")


EVERYTHING: Final = Fields()


class Selection(NamedTuple):
    """Both selectors of a request."""

    labels: Selector = selectors.EVERYTHING
    fields: Fields = EVERYTHING

    @property
    def everything(self) -> bool:
        return self.labels.everything and self.fields.everything

    def selects(self, item: Item) -> bool:
        """Whether an object is meant."""
        if self.labels.requirements and not self.labels.matches(item.labels):
            return False
        return not self.fields.terms or _fulfils(item, self.fields)


ALL: Final = Selection()


def parse(
    label_selector: str, field_selector: str, *, kind: Kind, api_version: str, added: Mapping[str, Path] | None = None
) -> Selection:
    """The parameters labelSelector and fieldSelector; either may be empty.

    :param api_version: under which the kind is asked for
    :param added: fields that the kind's definition adds (selectableFields), and where they lie
    :raises ApiError: as the reference refuses it, if it cannot be read, or a field is none to select by
    """
    try:
        labels = label_text.parse(label_selector)
    except LabelTextError as error:
        raise bad_request(str(error)) from error
    terms = parse_fields(field_selector)
    known = _known(kind, api_version, added or {})
    settled: list[Term] = []
    for term in terms:
        label = known.names.get(term.label)
        if label is None:
            raise bad_request(known.refusal.format(term.label))
        settled.append(term._replace(label=label))
    return Selection(labels, Fields(tuple(settled), added or {}))


def _known(kind: Kind, api_version: str, added: Mapping[str, Path]) -> _Labels:
    if kind.custom:
        scope = (NAMESPACE,) if kind.namespaced else ()
        return _labels(NAME, *scope, *added)
    return _OF_KINDS.get((api_version, kind.kind), _DEFAULT)


def parse_fields(text: str) -> list[Term]:
    """The terms of a field selector, as they are written.

    :raises ApiError: if one of them cannot be read
    """
    parts = [part for part in sorted(_split(text)) if part]
    if len(parts) > MOST_TERMS:
        raise bad_request(f"invalid selector: it has {len(parts)} terms, {MOST_TERMS} are read: ask for fewer")
    found: list[Term] = []
    for part in parts:
        at = next((at for at, letter in enumerate(part) if letter == "=" or part.startswith("!=", at)), -1)
        if at < 0:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        operator = next(one for one in ("!=", "==", "=") if part.startswith(one, at))
        found.append(Term(part[:at], operator != "!=", _unescaped(part[at + len(operator) :])))
    return found


def _split(text: str) -> Sequence[str]:
    """At commas before which no backslash stands."""
    parts: list[str] = []
    begin, escaped = 0, False
    for at, letter in enumerate(text):
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == ",":
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def _unescaped(text: str) -> str:
    """Source: fields.UnescapeValue."""
    found: list[str] = []
    escaped = False
    for letter in text:
        if escaped:
            if letter not in "\\,=":
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{letter}")
            found.append(letter)
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(letter)}")
        else:
            found.append(letter)
    if escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return "".join(found)


def _first_address(view: PodView) -> str:
    status = view.pod.status
    return status.pod_ips[0].ip if status.pod_ips else status.pod_ip


_POD_VALUES: Final[Mapping[str, Callable[[PodView], str]]] = {
    "spec.nodeName": lambda view: view.node_name,
    "spec.restartPolicy": lambda view: view.pod.spec.restart_policy,
    "spec.schedulerName": lambda view: view.pod.spec.scheduler_name,
    "spec.serviceAccountName": lambda view: view.pod.spec.service_account_name,
    "spec.hostNetwork": lambda view: _text(view.pod.spec.host_network),
    "status.phase": lambda view: view.pod.status.phase,
    "status.podIP": _first_address,
    "status.podIPs": lambda view: "",  # GetAttrs does not give it
    "status.nominatedNodeName": lambda view: view.pod.status.nominated_node_name,
}


def _fulfils(item: Item, fields: Fields) -> bool:
    """Whether an object fulfils all terms. What a pod's view says is not looked for in its document."""
    viewed = item.moment.viewed
    is_pod = isinstance(viewed, PodView)
    document: Document | None = None
    for term in fields.terms:
        label = term.label
        if label == NAME:
            value = item.key.name
        elif label == NAMESPACE:
            value = item.key.namespace
        elif is_pod and (known := _POD_VALUES.get(label)) is not None:
            value = known(viewed)
        else:
            document = item.moment.document({}) if document is None else document
            path = fields.paths.get(label)
            value = field_of(document, label) if path is None else _text(path.first(document))
        if (value == term.value) is not term.equal:
            return False
    return True


_DEFAULTS: Final = {
    "spec.unschedulable": "false",
    "status.replicas": "0",
    "status.successful": "0",
    "involvedObject.namespace": "",
}
_ELSEWHERE: Final = {"status.successful": "status.succeeded"}
_PLACES: Final = {
    label: Path(f".{_ELSEWHERE.get(label, label)}") for labels in _OF_KINDS.values() for label in labels.names.values()
}


def field_of(document: Document, label: str) -> str:
    """The value of a field that objects are selected by; empty if it is absent. For kinds that do not lie in
    the store, too: events.
    """
    if label == "source":
        component = _text(Path(".source.component").first(document))
        return component or field_of(document, "reportingComponent")
    return _text(_PLACES[label].first(document)) or _DEFAULTS.get(label, "")


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
