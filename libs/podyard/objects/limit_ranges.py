"""Limit ranges (`v1`): what containers of a namespace get where they ask for nothing, and between what bounds
requests and limits may be.

Sources: api/core/v1/types.go; kubernetes v1.36.2, plugin/pkg/admission/limitranger/admission.go,
pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem), pkg/apis/core/validation/validation.go
(ValidateLimitRange).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from podyard.objects import quantity
from podyard.objects.core import PersistentVolumeClaim
from podyard.objects.documents import Document, child, fill, mapping, mappings
from podyard.objects.faults import Faults
from podyard.objects.meta import ObjectMeta, ResourceList, View
from podyard.objects.names import qualified_fault
from podyard.objects.pod import Pod
from podyard.objects.pod_requests import exact_limits, exact_requests, spelled
from podyard.objects.quantity import NANO
from podyard.objects.resource_validation import check_name, is_overcommit_allowed

ANNOTATION: Final = "kubernetes.io/limit-ranger"
"""Tells which requests and limits of a pod come from a limit range."""
CONTAINER: Final = "Container"
POD: Final = "Pod"
CLAIM: Final = "PersistentVolumeClaim"
_STORAGE: Final = "storage"
_NO_META: Final = ObjectMeta()


class LimitRangeItem(View, frozen=True, kw_only=True):
    """Bounds for things of one type: Container, Pod, PersistentVolumeClaim, or one that nobody enforces."""

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    """Limits of containers that have none."""
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(View, frozen=True, kw_only=True):
    """All must hold."""

    limits: tuple[LimitRangeItem, ...] = ()


_NO_SPEC: Final = LimitRangeSpec()


class LimitRange(View, frozen=True, kw_only=True):
    """What holds in its namespace for objects that are created."""

    metadata: ObjectMeta = _NO_META
    spec: LimitRangeSpec = _NO_SPEC


# ---- limit ranges themselves


def fill_limit_range(document: Document) -> None:
    """For containers: limits are at most what is allowed, requests the limits, or at least the least.

    Source: SetDefaults_LimitRangeItem.
    """
    for item in mappings(child(document, "spec"), "limits"):
        if item.get("type") != CONTAINER:
            continue
        default, request = child(item, "default"), child(item, "defaultRequest")
        fill(default, **mapping(item, "max"))
        fill(request, **default)
        fill(request, **mapping(item, "min"))


def check_limit_range(faults: Faults, limit_range: LimitRange) -> None:
    """Source: ValidateLimitRange."""
    seen: set[str] = set()
    for at, item in enumerate(limit_range.spec.limits):
        with faults.below(f"spec.limits[{at}]"):
            if item.type in seen:
                faults.duplicate("type", item.type)
            seen.add(item.type)
            _check_item(faults, item)


def _check_item(faults: Faults, item: LimitRangeItem) -> None:
    if fault := qualified_fault(item.type):
        faults.invalid("type", item.type, fault)
    elif "/" not in item.type and item.type not in (CONTAINER, POD, CLAIM):
        faults.invalid("type", item.type, "must be a standard limit type or fully qualified")
    if item.type == POD:
        for field, amounts in (("default", item.default), ("defaultRequest", item.default_request)):
            if amounts:
                faults.forbidden(field, "may not be specified when `type` is 'Pod'")
    if item.type == CLAIM and _STORAGE not in item.min and _STORAGE not in item.max:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        faults.required("limits", detail)
    amounts = {
        "max": item.max,
        "min": item.min,
        "default": item.default,
        "defaultRequest": item.default_request,
        "maxLimitRequestRatio": item.max_limit_request_ratio,
    }
    for field, one in amounts.items():
        for name in one:
            if item.type in (CONTAINER, POD):
                check_name(faults, f"{field}[{name}]", name)
            elif fault := qualified_fault(name):
                faults.invalid(f"{field}[{name}]", name, fault)
    for name in sorted({name for one in amounts.values() for name in one}):
        _check_order(faults, item, name)


def _check_order(faults: Faults, item: LimitRangeItem, name: str) -> None:
    least, most = item.min.get(name), item.max.get(name)
    default, request = (item.default.get(name), item.default_request.get(name)) if item.type != POD else (None, None)
    for field, shown, low, low_is, high, high_is in (
        ("min", least, least, "min value", most, "max value"),
        ("defaultRequest", request, least, "min value", request, "default request value"),
        ("defaultRequest", request, request, "default request value", most, "max value"),
        ("defaultRequest", request, request, "default request value", default, "default limit value"),
        ("default", least, least, "min value", default, "default value"),
        ("default", most, default, "default value", most, "max value"),
    ):
        if low is not None and high is not None and quantity.nano(low) > quantity.nano(high):
            faults.invalid(f"{field}[{name}]", shown, f"{low_is} {low} is greater than {high_is} {high}")
    ratio = item.max_limit_request_ratio.get(name)
    if ratio is not None:
        _check_ratio(faults, name, ratio, least, most)
    both = default is not None and request is not None
    if both and not is_overcommit_allowed(name) and quantity.nano(default) != quantity.nano(request):
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        faults.invalid(f"defaultRequest[{name}]", request, detail)


def _check_ratio(faults: Faults, name: str, ratio: str, least: str | None, most: str | None) -> None:
    field = f"maxLimitRequestRatio[{name}]"
    if quantity.nano(ratio) < NANO:
        faults.invalid(field, ratio, f"ratio {ratio} is less than 1")
    if least is None or most is None or quantity.nano(least) <= 0:
        return
    highest = quantity.nano(most) / quantity.nano(least)
    if quantity.nano(ratio) / NANO > highest:
        faults.invalid(field, ratio, f"ratio {ratio} is greater than max/min = {highest:f}")


# ---- what they make of others


def fill_from_limits(pod: Document, ranges: Iterable[LimitRange]) -> None:
    """Requests and limits of containers that have none, by the ranges of the pod's namespace; said in an
    annotation. Source: PodMutateLimitFunc."""
    spec = mapping(pod, "spec")
    for limit_range in ranges:
        items = [item for item in limit_range.spec.limits if item.type == CONTAINER]
        limits = {name: text for item in items for name, text in item.default.items()}
        requests = {name: text for item in items for name, text in item.default_request.items()}
        told: list[str] = []
        for field, called in (("containers", "container"), ("initContainers", "init container")):
            for container in mappings(spec, field):
                told += _fill_container(container, limits, requests, called)
        if told:
            child(child(pod, "metadata"), "annotations")[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"


def _fill_container(
    container: Document, limits: Mapping[str, str], requests: Mapping[str, str], called: str
) -> Iterator[str]:
    for field, what, amounts in (("requests", "request", requests), ("limits", "limit", limits)):
        there = mapping(container, "resources", field)
        missing = {name: text for name, text in amounts.items() if name not in there}
        if missing:
            child(child(container, "resources"), field).update(missing)
            yield f"{', '.join(sorted(missing))} {what} for {called} {container.get('name', '')}"


def check_pod_limits(faults: Faults, pod: Pod, ranges: Iterable[LimitRange]) -> None:
    """Whether a new pod and its containers keep within the ranges of its namespace. Source:
    PodValidateLimitFunc."""
    for limit_range in ranges:
        for item in limit_range.spec.limits:
            for path, requests, limits in _asked_for(pod, item.type):
                with faults.below(path):
                    _check(faults, limit_range, item, requests, limits)


def _asked_for(pod: Pod, type_: str) -> Iterator[tuple[str, Mapping[str, int], Mapping[str, int]]]:
    """Of things of that type in a pod: where they are, requests and limits in nano-units."""
    if type_ == POD:
        yield "spec", exact_requests(pod, overhead=False), exact_limits(pod)
    if type_ != CONTAINER:
        return
    for field, containers in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
        for at, one in enumerate(containers):
            resources = one.resources
            yield f"spec.{field}[{at}].resources", _exact(resources.requests), _exact(resources.limits)


def check_claim_limits(faults: Faults, claim: PersistentVolumeClaim, ranges: Iterable[LimitRange]) -> None:
    """Whether a claim asks for no less and no more than the ranges of its namespace allow. Source:
    PersistentVolumeClaimValidateLimitFunc."""
    requests = _exact(claim.spec.resources.requests)
    for limit_range in ranges:
        for item in limit_range.spec.limits:
            if item.type == CLAIM:
                with faults.below("spec.resources"):
                    _tell(faults, limit_range, _too_little(item, requests, {}))
                    _tell(faults, limit_range, _too_much(item, "request", requests, {}))


def _exact(amounts: Mapping[str, str]) -> dict[str, int]:
    return {name: quantity.nano(text) for name, text in amounts.items()}


def _check(
    faults: Faults,
    limit_range: LimitRange,
    item: LimitRangeItem,
    requests: Mapping[str, int],
    limits: Mapping[str, int],
) -> None:
    _tell(faults, limit_range, _too_little(item, requests, limits))
    _tell(faults, limit_range, _too_much(item, "limit", limits, requests))
    _tell(faults, limit_range, _too_far_apart(item, requests, limits))


def _tell(faults: Faults, limit_range: LimitRange, details: Iterable[str]) -> None:
    for detail in details:
        faults.forbidden("", f"{detail} (LimitRange {limit_range.metadata.name})")


def _too_little(item: LimitRangeItem, requests: Mapping[str, int], limits: Mapping[str, int]) -> Iterator[str]:
    """Source: minConstraint."""
    for name, text in sorted(item.min.items()):
        least, said = quantity.nano(text), f"minimum {name} usage per {item.type} is {text}"
        if name not in requests:
            yield f"{said}.  No request is specified"
        elif requests[name] < least:
            yield f"{said}, but request is {spelled(name, requests[name])}"
        elif name in limits and limits[name] < least:
            yield f"{said}, but limit is {spelled(name, limits[name])}"


def _too_much(item: LimitRangeItem, what: str, limits: Mapping[str, int], requests: Mapping[str, int]) -> Iterator[str]:
    """Source: maxConstraint, maxRequestConstraint (`what` is request then)."""
    for name, text in sorted(item.max.items()):
        most, said = quantity.nano(text), f"maximum {name} usage per {item.type} is {text}"
        if name not in limits:
            yield f"{said}.  No {what} is specified"
        elif limits[name] > most:
            yield f"{said}, but {what} is {spelled(name, limits[name])}"
        elif name in requests and requests[name] > most:
            yield f"{said}, but request is {spelled(name, requests[name])}"


def _too_far_apart(item: LimitRangeItem, requests: Mapping[str, int], limits: Mapping[str, int]) -> Iterator[str]:
    """Source: limitRequestRatioConstraint."""
    for name, text in sorted(item.max_limit_request_ratio.items()):
        said = f"{name} max limit to request ratio per {item.type} is {text}"
        request, limit = requests.get(name, 0), limits.get(name, 0)
        if request == 0:
            yield f"{said}, but no request is specified or request is 0"
        elif limit == 0:
            yield f"{said}, but no limit is specified or limit is 0"
        elif limit * NANO > quantity.nano(text) * request:
            yield f"{said}, but provided ratio is {limit / request:f}"
