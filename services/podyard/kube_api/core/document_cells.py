"""Cells of the kinds of which readers know the metadata alone: out of their documents. Pure.

Each function gives the cells of a row in the order of `columns.OF_RESOURCES`, those of name and age apart.

Source: kubernetes v1.36.2, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from podyard.kube_api.core import autoscalers
from podyard.objects.decoding import convert
from podyard.objects.documents import Document, copy, is_list, is_mapping, mapping, mappings
from podyard.objects.errors import ObjectError
from podyard.objects.meta import LabelSelector
from podyard.objects.times import age
from podyard.telling.cells import selector_text

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
_MOST: Final = 3
"""Of several in one cell."""
_MOST_METRICS: Final = 2

Cells: TypeAlias = tuple[Any, ...]
CellsOf: TypeAlias = Callable[[Document, float], Cells]


def _text(document: Document, key: str, default: str = "") -> str:
    found = document.get(key)
    return default if found is None else str(found)


def _count(document: Document, key: str) -> int:
    found = document.get(key)
    return len(found) if is_mapping(found) or is_list(found) else 0


def _number(document: Document, key: str) -> int:
    found = document.get(key)
    return found if isinstance(found, int) else 0


def _strings(document: Document, key: str) -> list[str]:
    found = document.get(key)
    return [str(one) for one in found] if is_list(found) else []


def _several(shown: Sequence[str], most: int = _MOST, mark: str = ",") -> str:
    listed = mark.join(shown[:most])
    return f"{listed} + {len(shown) - most} more..." if len(shown) > most else listed


def _config_map(item: Document, now: float) -> Cells:
    return (_count(item, "data") + _count(item, "binaryData"),)


def _secret(item: Document, now: float) -> Cells:
    return _text(item, "type"), _count(item, "data")


def _nothing(item: Document, now: float) -> Cells:
    return ()


def _endpoints(item: Document, now: float) -> Cells:
    shown: list[str] = []
    for subset in mappings(item, "subsets"):
        addresses = [_text(one, "ip") for one in mappings(subset, "addresses")]
        ports = mappings(subset, "ports")
        shown += addresses if not ports else []
        for port in ports:
            shown += [_host_port(address, _number(port, "port")) for address in addresses]
    return (_several(shown) if mappings(item, "subsets") else NONE,)


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _endpoint_slice(item: Document, now: float) -> Cells:
    ports = [_text(port, "port") or _text(port, "name", "*") for port in mappings(item, "ports")]
    addresses = [address for one in mappings(item, "endpoints") for address in _strings(one, "addresses")]
    return _text(item, "addressType"), _several(ports) or UNSET, _several(addresses) or UNSET


def _ingress(item: Document, now: float) -> Cells:
    spec = mapping(item, "spec")
    rules = mappings(spec, "rules")
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == _MOST
        host = _text(rule, "host")
        hosts += [host] if host and not more else []
    shown = ",".join(hosts) or "*"
    if more:
        shown = f"{shown} + {len(rules) - _MOST} more..."
    entries = mappings(mapping(item, "status", "loadBalancer"), "ingress")
    addresses = {_text(one, "ip") or _text(one, "hostname") for one in entries} - {""}
    ports = "80, 443" if _count(spec, "tls") else "80"
    return _text(spec, "ingressClassName", NONE), shown, ",".join(sorted(addresses)), ports


def _ingress_class(item: Document, now: float) -> Cells:
    spec = mapping(item, "spec")
    parameters = mapping(spec, "parameters")
    shown = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        shown = f"{_text(parameters, 'kind')}{group}/{_text(parameters, 'name')}"
    return _text(spec, "controller"), shown


def _network_policy(item: Document, now: float) -> Cells:
    try:
        selector = convert(LabelSelector, copy(mapping(item, "spec", "podSelector")))
    except ObjectError:
        return (None,)
    return (selector_text(selector),)


def _role_binding(item: Document, now: float) -> Cells:
    role = mapping(item, "roleRef")
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in mappings(item, "subjects"):
        kind, name = _text(subject, "kind"), _text(subject, "name")
        if kind in by_kind:
            by_kind[kind].append(f"{_text(subject, 'namespace')}/{name}" if kind == "ServiceAccount" else name)
    return f"{_text(role, 'kind')}/{_text(role, 'name')}", *map(", ".join, by_kind.values())


def _lease(item: Document, now: float) -> Cells:
    return (_text(mapping(item, "spec"), "holderIdentity"),)


def _runtime_class(item: Document, now: float) -> Cells:
    return (_text(item, "handler"),)


def _attributes_class(item: Document, now: float) -> Cells:
    return (_text(item, "driverName"),)


def _webhooks(item: Document, now: float) -> Cells:
    return (_count(item, "webhooks"),)


def _service_cidr(item: Document, now: float) -> Cells:
    return (",".join(_strings(mapping(item, "spec"), "cidrs")),)


def _pod_template(item: Document, now: float) -> Cells:
    template = mapping(item, "template")
    containers = mappings(mapping(template, "spec"), "containers")
    labels = mapping(template, "metadata", "labels")
    return (
        ",".join(_text(one, "name") for one in containers),
        ",".join(_text(one, "image") for one in containers),
        ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE,
    )


def _csi_driver(item: Document, now: float) -> Cells:
    spec = mapping(item, "spec")
    tokens = UNSET
    if spec.get("tokenRequests") is not None:
        tokens = ",".join(_text(one, "audience") for one in mappings(spec, "tokenRequests"))
    return (
        spec.get("attachRequired") is not False,
        spec.get("podInfoOnMount") is True,
        spec.get("storageCapacity") is True,
        tokens,
        spec.get("requiresRepublish") is True,
        ",".join(_strings(spec, "volumeLifecycleModes")) or NONE,
    )


def _csi_capacity(item: Document, now: float) -> Cells:
    return _text(item, "storageClassName"), _text(item, "capacity", UNSET)


def _autoscaler(item: Document, now: float) -> Cells:
    item = autoscalers.converted(item, autoscalers.V2)
    spec, status = mapping(item, "spec"), mapping(item, "status")
    target = mapping(spec, "scaleTargetRef")
    wanted, current = mappings(spec, "metrics"), mappings(status, "currentMetrics")
    shown = [_metric(one, current[at] if at < len(current) else {}) for at, one in enumerate(wanted)]
    return (
        f"{_text(target, 'kind')}/{_text(target, 'name')}",
        _several(shown, _MOST_METRICS, ", ") or NONE,
        _text(spec, "minReplicas", UNSET),
        _number(spec, "maxReplicas"),
        _number(status, "currentReplicas"),
    )


_METRIC_FIELDS: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _metric(wanted: Document, current: Document) -> str:
    """Source: formatHPAMetrics."""
    type_ = _text(wanted, "type")
    field = _METRIC_FIELDS.get(type_)
    if field is None:
        return "<unknown type>"
    target, now = mapping(wanted, field, "target"), mapping(current, field, "current")
    average = target.get("averageValue")
    if type_ in ("Resource", "ContainerResource"):
        name = _text(mapping(wanted, field), "name")
        if average is not None:
            return f"{name}: {_text(now, 'averageValue', UNKNOWN)}/{average}"
        used, aim = now.get("averageUtilization"), target.get("averageUtilization")
        shown = UNKNOWN if used is None else f"{used}%"
        return f"{name}: {shown}/{'<auto>' if aim is None else f'{aim}%'}"
    if type_ == "Pods":
        return f"{_text(now, 'averageValue', UNKNOWN)}/{_text(target, 'averageValue')}"
    if average is not None:
        return f"{_text(now, 'averageValue', UNKNOWN)}/{average} (avg)"
    return f"{_text(now, 'value', UNKNOWN)}/{_text(target, 'value')}"


def event(item: Document, now: float) -> Cells:
    """All cells of an event (v1), its name too."""
    about, source, series = mapping(item, "involvedObject"), mapping(item, "source"), mapping(item, "series")
    first = age(_text(item, "firstTimestamp") or _text(item, "eventTime") or None, now)
    last = age(item["lastTimestamp"], now) if item.get("lastTimestamp") else first
    count = _number(item, "count") or 1
    if series:
        last, count = age(_text(series, "lastObservedTime") or None, now), _number(series, "count")
    kind, name = _text(about, "kind").lower(), _text(about, "name")
    component = _text(source, "component") or _text(item, "reportingComponent")
    host = _text(source, "host") or _text(item, "reportingInstance")
    return (
        last,
        _text(item, "type"),
        _text(item, "reason"),
        f"{kind}/{name}" if name else kind,
        _text(about, "fieldPath"),
        f"{component}, {host}" if host else component,
        _text(item, "message").strip(),
        first,
        count,
        _text(mapping(item, "metadata"), "name"),
    )


OF_RESOURCES: Final[Mapping[str, CellsOf]] = {
    "clusterrolebindings": _role_binding,
    "configmaps": _config_map,
    "csidrivers": _csi_driver,
    "csistoragecapacities": _csi_capacity,
    "deviceclasses": _nothing,
    "endpoints": _endpoints,
    "endpointslices": _endpoint_slice,
    "horizontalpodautoscalers": _autoscaler,
    "ingressclasses": _ingress_class,
    "ingresses": _ingress,
    "leases": _lease,
    "mutatingwebhookconfigurations": _webhooks,
    "networkpolicies": _network_policy,
    "podtemplates": _pod_template,
    "resourceclaimtemplates": _nothing,
    "rolebindings": _role_binding,
    "runtimeclasses": _runtime_class,
    "secrets": _secret,
    "serviceaccounts": _nothing,
    "servicecidrs": _service_cidr,
    "validatingwebhookconfigurations": _webhooks,
    "volumeattributesclasses": _attributes_class,
}
_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"


def name_of(resource: str, item: Document) -> str:
    """The cell Name."""
    metadata = mapping(item, "metadata")
    name = _text(metadata, "name")
    default = resource == "ingressclasses" and mapping(metadata, "annotations").get(_DEFAULT_CLASS) == "true"
    return f"{name} (default)" if default else name
