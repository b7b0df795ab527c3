"""Which amounts a container or a pod may ask for. Source: pkg/apis/core/validation/validation.go,
ValidateResourceRequirements, ValidateContainerResourceName, validatePodResources.
"""

from collections.abc import Mapping
from typing import Final

from podyard.objects import bounds, quantity
from podyard.objects.containers import ResourceRequirements
from podyard.objects.faults import Faults
from podyard.objects.names import qualified_fault
from podyard.objects.pod import Pod, PodSpec
from podyard.objects.pod_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    exact_requests,
    is_pod_level,
    spelled,
)

_CONTAINER_RESOURCES: Final = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
_NATIVE_DOMAIN: Final = "kubernetes.io/"
_DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
_COMMON: Final = frozenset((CPU, MEMORY))


def is_extended(name: str) -> bool:
    """Whether it is a resource of somebody's own domain: counted in whole pieces. Source:
    helper.IsExtendedResourceName."""
    if name.startswith(_DEVICE_CLASS_PREFIX):
        return True
    return "/" in name and _NATIVE_DOMAIN not in name and not name.startswith("requests.")


def check_amount(faults: Faults, field: str, name: str, text: str) -> None:
    """Check one amount: no less than zero, whole if the resource comes in pieces."""
    nano = quantity.nano(text)
    if nano < 0:
        faults.invalid(field, text, "must be greater than or equal to 0")
    if (is_extended(name) or name == "pods") and nano % quantity.NANO:
        faults.invalid(field, text, "must be an integer")


def check_amounts(faults: Faults, field: str, amounts: dict[str, str]) -> None:
    """Check a list of amounts, such as a node's capacity."""
    for name, text in amounts.items():
        if fault := qualified_fault(name):
            faults.invalid(f"{field}[{name}]", name, fault)
        check_amount(faults, f"{field}[{name}]", name, text)


def check_number_of_resources(faults: Faults, field: str, *amounts: Mapping[str, str]) -> None:
    """Check how many resources are named in all, in a pod or by a node: a bound of Podyard, not of
    Kubernetes."""
    names = set[str]().union(*amounts)
    if len(names) > bounds.RESOURCES:
        faults.too_many(field, len(names), bounds.RESOURCES, "resources")


def check_requirements(faults: Faults, resources: ResourceRequirements, *, whole_pod: bool = False) -> None:
    """Check what one container, or the `whole_pod`, asks for."""
    requests, limits = resources.requests, resources.limits
    for name, text in limits.items():
        check_name(faults, f"limits[{name}]", name, whole_pod)
        check_amount(faults, f"limits[{name}]", name, text)
    for name, text in requests.items():
        if name not in limits or whole_pod:
            check_name(faults, f"requests[{name}]", name, whole_pod)
        check_amount(faults, f"requests[{name}]", name, text)
        _check_against_limit(faults, name, text, limits.get(name))
    named = requests.keys() | limits.keys()
    if not whole_pod and named.isdisjoint(_COMMON) and any(name.startswith(HUGEPAGES_PREFIX) for name in named):
        faults.forbidden("", "HugePages require cpu or memory")


def is_overcommit_allowed(name: str) -> bool:
    """Whether limits may be above requests. Source: helper.IsOvercommitAllowed."""
    return ("/" not in name or _NATIVE_DOMAIN in name) and not name.startswith(HUGEPAGES_PREFIX)


def check_name(faults: Faults, field: str, name: str, whole_pod: bool = False) -> None:
    """Check the name of a resource that a container, or the `whole_pod`, may ask for."""
    if whole_pod:
        if not is_pod_level(name):
            faults.unsupported(field, name, (CPU, MEMORY, HUGEPAGES_PREFIX))
    elif name in _CONTAINER_RESOURCES or name.startswith(HUGEPAGES_PREFIX):
        return
    elif fault := qualified_fault(name):
        faults.invalid(field, name, fault)
    elif "/" not in name:
        faults.invalid(field, name, "must be a standard resource for containers")
    elif not is_extended(name) and _NATIVE_DOMAIN not in name:
        faults.invalid(field, name, "doesn't follow extended resource name standard")


def _check_against_limit(faults: Faults, name: str, request: str, limit: str | None) -> None:
    field = f"requests[{name}]"
    fixed = is_extended(name) or name.startswith(HUGEPAGES_PREFIX)
    if limit is None:
        if fixed:
            faults.required("limits", "Limit must be set for non overcommitable resources")
        return
    wanted, most = quantity.nano(request), quantity.nano(limit)
    if fixed and wanted != most:
        faults.invalid(field, request, f"must be equal to {name} limit of {limit}")
    elif wanted > most:
        faults.invalid(field, request, f"must be less than or equal to {name} limit of {limit}")


def check_whole_pod(faults: Faults, spec: PodSpec) -> None:
    """Check the resources of the pod as a whole, and that they hold its containers. Source:
    validatePodResources."""
    resources = spec.resources
    parts = (one.resources for one in (*spec.containers, *spec.init_containers))
    asked = [amounts for one in (*parts, resources) if one is not None for amounts in (one.requests, one.limits)]
    check_number_of_resources(faults, "containers", spec.overhead, *asked)
    if resources is None:
        return
    with faults.below("resources"):
        if resources.claims:
            faults.forbidden("claims", "claims cannot be set for Resources at pod-level")
        check_requirements(faults, resources, whole_pod=True)
        parts = PodSpec(containers=spec.containers, init_containers=spec.init_containers)
        for name, nano in exact_requests(Pod(spec=parts)).items():
            requested = resources.requests.get(name)
            if requested is not None and quantity.nano(requested) < nano:
                detail = f"must be greater than or equal to aggregate container requests of {spelled(name, nano)}"
                faults.invalid(f"requests[{name}]", requested, detail)
