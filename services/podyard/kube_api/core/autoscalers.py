"""HorizontalPodAutoscalers in both versions that the API server serves: stored as autoscaling/v2, shown as
either. What v1 has no field for stands in annotations there. Pure.

Source: kubernetes v1.36.2, pkg/apis/autoscaling/v1/conversion.go, annotations.go.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.objects import decoding
from podyard.objects.documents import Document, child, copy, is_list, is_mapping, mapping, mappings
from podyard.objects.errors import ObjectError

RESOURCE: Final = "horizontalpodautoscalers"
V1: Final = "autoscaling/v1"
V2: Final = "autoscaling/v2"
DEFAULT_UTILIZATION: Final = 80
"""Percent of CPU, where no metric is named."""

_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = f"{_ANNOTATION}metrics"
_CURRENT: Final = f"{_ANNOTATION}current-metrics"
_CONDITIONS: Final = f"{_ANNOTATION}conditions"
_BEHAVIOR: Final = f"{_ANNOTATION}behavior"
_TOLERANCES: Final = (f"{_ANNOTATION}scale-down-tolerance", f"{_ANNOTATION}scale-up-tolerance")
_ANNOTATIONS: Final = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR, *_TOLERANCES)
_PERCENT: Final = "targetCPUUtilizationPercentage"
_CURRENT_PERCENT: Final = "currentCPUUtilizationPercentage"
_IN_V1: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY: Final = ("type", "value", "periodSeconds")
_CPU_OF_V1: Final = "cpu"


class _Field(NamedTuple):
    short: str
    """In v1."""
    path: str
    """In v2, from the metric's own mapping."""
    zero: str = ""
    """What v1 says where v2 says nothing; empty: nothing."""


_NAME: Final = _Field("metricName", "metric.name")
_SELECTOR: Final = _Field("selector", "metric.selector")
_ABOUT: Final = _Field("target", "describedObject")
_FIELDS: Final[Mapping[str, Mapping[str, tuple[_Field, ...]]]] = {
    "target": {
        "resource": (
            _Field("name", "name"),
            _Field("targetAverageUtilization", "target.averageUtilization"),
            _Field("targetAverageValue", "target.averageValue"),
        ),
        "containerResource": (
            _Field("name", "name"),
            _Field("targetAverageUtilization", "target.averageUtilization"),
            _Field("targetAverageValue", "target.averageValue"),
            _Field("container", "container"),
        ),
        "pods": (_NAME, _Field("targetAverageValue", "target.averageValue", "0"), _SELECTOR),
        "object": (
            *(_ABOUT, _NAME, _Field("targetValue", "target.value", "0"), _SELECTOR),
            _Field("averageValue", "target.averageValue"),
        ),
        "external": (
            *(_NAME, _Field("metricSelector", "metric.selector"), _Field("targetValue", "target.value")),
            _Field("targetAverageValue", "target.averageValue"),
        ),
    },
    "current": {
        "resource": (
            _Field("name", "name"),
            _Field("currentAverageUtilization", "current.averageUtilization"),
            _Field("currentAverageValue", "current.averageValue", "0"),
        ),
        "containerResource": (
            _Field("name", "name"),
            _Field("currentAverageUtilization", "current.averageUtilization"),
            _Field("currentAverageValue", "current.averageValue", "0"),
            _Field("container", "container"),
        ),
        "pods": (_NAME, _Field("currentAverageValue", "current.averageValue", "0"), _SELECTOR),
        "object": (
            *(_ABOUT, _NAME, _Field("currentValue", "current.value", "0"), _SELECTOR),
            _Field("averageValue", "current.averageValue"),
        ),
        "external": (
            *(_NAME, _Field("metricSelector", "metric.selector"), _Field("currentValue", "current.value", "0")),
            _Field("currentAverageValue", "current.averageValue"),
        ),
    },
}
"""By what a metric tells (its target, how it stands now) and the field that has it."""


def converted(document: Document, api_version: str) -> Document:
    """The same autoscaler in another version, `V1` or `V2`; itself if it is of that one."""
    given = document.get("apiVersion")
    if given == api_version or {given, api_version} != {V1, V2}:
        return document
    found = copy(document)
    found["apiVersion"] = api_version
    (_to_v1 if api_version == V1 else _to_v2)(found)
    return found


# ---- to v1 -------------------------------------------------------------------------------------------------


def _to_v1(found: Document) -> None:
    spec, status = mapping(found, "spec"), mapping(found, "status")
    kept = _without_ours(found)
    metrics, others = mappings(spec, "metrics"), list[Document]()
    for metric in metrics:
        percent = _cpu_percent(metric, "target")
        if percent is None:
            others.append(_metric_to_v1(metric, "target"))
        else:
            spec.setdefault(_PERCENT, percent)
    current = mappings(status, "currentMetrics")
    for metric in current:
        percent = _cpu_percent(metric, "current")
        if percent is not None:
            status[_CURRENT_PERCENT] = percent
    behavior, conditions = spec.get("behavior"), mappings(status, "conditions")
    if others:
        kept[_METRICS] = _text(others)
    if current:
        kept[_CURRENT] = _text([_metric_to_v1(one, "current") for one in current])
    if is_mapping(behavior):
        kept[_BEHAVIOR] = _text({_go(rules): _rules_to_go(behavior.get(rules)) for rules in ("scaleUp", "scaleDown")})
    if conditions:
        kept[_CONDITIONS] = _text(conditions)
    for field in ("metrics", "behavior"):
        spec.pop(field, None)
    for field in ("currentMetrics", "conditions"):
        status.pop(field, None)
    _annotate(found, kept)


def _cpu_percent(metric: Document, what: str) -> Any:
    """How much CPU it is about, in percent; None: it is another metric."""
    resource = mapping(metric, "resource")
    if metric.get("type") != "Resource" or resource.get("name") != _CPU_OF_V1:
        return None
    return mapping(resource, what).get("averageUtilization")


def _metric_to_v1(metric: Document, what: str) -> Document:
    found: Document = {"type": metric.get("type", "")}
    for kind, fields in _FIELDS[what].items():
        if not is_mapping(metric.get(kind)):
            continue
        told = child(found, kind)
        for field in fields:
            *steps, last = field.path.split(".")
            value = mapping(metric, kind, *steps).get(last)
            if value is not None or field.zero:
                told[field.short] = field.zero if value is None else value
    return found


def _rules_to_go(rules: Any) -> Document | None:
    if not is_mapping(rules):
        return None
    found: Document = {_go(name): rules.get(name) for name in _RULES}
    if is_list(rules.get("policies")):
        found["Policies"] = [{_go(name): one.get(name) for name in _POLICY} for one in mappings(rules, "policies")]
    return found


def _go(name: str) -> str:
    """The name of a Go field without a name for JSON."""
    return name[0].upper() + name[1:]


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# ---- to v2 -------------------------------------------------------------------------------------------------


def _to_v2(found: Document) -> None:
    told = {name: value for name, value in mapping(found, "metadata", "annotations").items() if name in _ANNOTATIONS}
    _annotate(found, _without_ours(found))
    spec, status = child(found, "spec"), mapping(found, "status")
    metrics = [_metric_to_v2(one, "target") for one in _read_list(told, _METRICS)]
    percent = spec.pop(_PERCENT, None)
    if percent is not None or not metrics:
        metrics.append(_cpu("target", {"type": "Utilization"}, DEFAULT_UTILIZATION if percent is None else percent))
    spec["metrics"] = metrics
    behavior = _read(told, _BEHAVIOR)
    if is_mapping(behavior):
        rules = {name: _rules_from_go(behavior.get(_go(name))) for name in ("scaleUp", "scaleDown")}
        if any(rules.values()):
            spec["behavior"] = {name: value for name, value in rules.items() if value}
    percent = status.pop(_CURRENT_PERCENT, None)
    if percent is not None:
        status["currentMetrics"] = [_cpu("current", {}, percent)]
    if _CURRENT in told:
        status["currentMetrics"] = [_metric_to_v2(one, "current") for one in _read_list(told, _CURRENT)]
    if _CONDITIONS in told:
        status["conditions"] = _read_list(told, _CONDITIONS)
    if status:
        found["status"] = status


def _cpu(what: str, more: Document, percent: Any) -> Document:
    about = {**more, "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": _CPU_OF_V1, what: about}}


def _metric_to_v2(metric: Document, what: str) -> Document:
    found: Document = {"type": metric.get("type", "")}
    for kind, fields in _FIELDS[what].items():
        told = metric.get(kind)
        if not is_mapping(told):
            continue
        for field in fields:
            value = told.get(field.short)
            if value is None or (kind == "object" and field.short == "targetValue" and _is_zero(told)):
                continue
            place = child(found, kind)
            *steps, last = field.path.split(".")
            for step in steps:
                place = child(place, step)
            place[last] = value
        if what == "target":
            child(child(found, kind), what)["type"] = _target_type(kind, told)
    return found


def _is_zero(told: Document) -> bool:
    """Whether v1 says no value, since it cannot leave it out."""
    return told.get("averageValue") is not None and told.get("targetValue") in ("0", 0)


def _target_type(kind: str, told: Document) -> str:
    if kind in ("resource", "containerResource"):
        return "AverageValue" if told.get("targetAverageUtilization") is None else "Utilization"
    if kind == "object":
        return "Value" if told.get("averageValue") is None else "AverageValue"
    return "AverageValue" if kind == "pods" or told.get("targetValue") is None else "Value"


def _rules_from_go(rules: Any) -> Document | None:
    if not is_mapping(rules):
        return None
    found = {name: value for name in _RULES if (value := rules.get(_go(name))) is not None}
    if "policies" in found:
        policies = mappings(rules, "Policies")
        found["policies"] = [{name: one[_go(name)] for name in _POLICY if _go(name) in one} for one in policies]
    return found


def _read(told: Mapping[str, Any], name: str) -> Any:
    """An annotation's JSON; None if it is none: the reference passes over that, too."""
    text = told.get(name)
    if not isinstance(text, str):
        return None
    try:
        return decoding.document(b'{"value":%b}' % text.encode()).get("value")
    except ObjectError:
        return None


def _read_list(told: Mapping[str, Any], name: str) -> list[Document]:
    found = _read(told, name)
    return [one for one in found if is_mapping(one)] if is_list(found) else []


# ---- annotations -------------------------------------------------------------------------------------------


def _without_ours(found: Document) -> dict[str, Any]:
    given = mapping(found, "metadata", "annotations")
    return {name: value for name, value in given.items() if name not in _ANNOTATIONS}


def _annotate(found: Document, annotations: Mapping[str, Any]) -> None:
    metadata = child(found, "metadata")
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = dict(annotations)
