"""What an object takes of a quota, and whether a quota counts it.

Sources: kubernetes v1.36.2, pkg/quota/v1/evaluator/core (pods.go, services.go, persistent_volume_claims.go,
resource_claims.go, registry.go), apiserver/pkg/quota/v1/generic/evaluator.go (Matches, objectCountEvaluator).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from podyard.objects import claims, quantity, quotas
from podyard.objects.affinity import Affinity, PodAffinityTerm
from podyard.objects.containers import Container, ResourceRequirements
from podyard.objects.core import PersistentVolumeClaim, Service
from podyard.objects.kinds import KEPT_KINDS, kind_of_resource
from podyard.objects.pod import Pod
from podyard.objects.pod_requests import Amounts, exact_limits, exact_requests
from podyard.objects.quantity import NANO, Format, Quantity
from podyard.objects.quotas import REQUESTS_PREFIX, ResourceQuota, ScopeRequirement, scopes_of
from podyard.objects.resource import ResourceClaim
from podyard.objects.resource_validation import is_extended

PODS: Final = "pods"
SERVICES: Final = "services"
CLAIMS: Final = claims.CLAIMS
DEVICE_CLAIMS: Final = "resourceclaims"
GROW: Final = frozenset((PODS, SERVICES, CLAIMS, DEVICE_CLAIMS))
"""Resources of which an object may take more when it is changed; all others are counted by number alone."""

MOST_DEVICES: Final = 32
"""Of a request for all devices. Source: resourceapi.AllocationResultsMaxSize."""

_COUNT: Final = "count/"
_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_HUGEPAGES: Final = "hugepages-"
_POD_RESOURCES: Final = frozenset(
    ("pods", *_COMPUTE, *(f"requests.{name}" for name in _COMPUTE), *(f"limits.{name}" for name in _COMPUTE))
)
_DEMANDED: Final = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
"""What each container must say where a quota limits it. Source: validationSet."""
_SERVICE_RESOURCES: Final = frozenset(("services", "services.nodeports", "services.loadbalancers"))
_CLAIM_RESOURCES: Final = ("persistentvolumeclaims", "requests.storage")
_BY_NUMBER: Final = frozenset(("configmaps", quotas.QUOTAS, "replicationcontrollers", "secrets"))
"""Resources whose number has a name without `count/`. Source: legacyObjectCountAliases."""
_BINARY: Final = ("memory", "storage", _HUGEPAGES)
"""What names contain of resources that are counted in bytes."""


@lru_cache(maxsize=KEPT_KINDS)
def count_name(resource: str) -> str:
    """Under which name the objects of a resource are counted: `count/deployments.apps`. Source:
    ObjectCountQuotaResourceNameFor."""
    kind = kind_of_resource(resource)
    plural = resource.partition(".")[0] if kind.custom else resource
    return f"{_COUNT}{plural}.{kind.group}" if kind.group else f"{_COUNT}{plural}"


def spelled(resource: str, nano: int) -> str:
    """An amount in nano-units: bytes by 1024, all else by thousands."""
    binary = any(part in resource for part in _BINARY)
    return str(Quantity(nano, Format.BINARY_SI if binary else Format.DECIMAL_SI))


# ---- what is counted


def counted(resource: str, names: Iterable[str]) -> list[str]:
    """Those of a quota's `names` by which objects of a resource are counted, sorted. Source:
    MatchingResources."""
    by_number = count_name(resource)
    is_counted = _COUNTED.get(resource) or _only_by_number(resource)
    return sorted(name for name in names if name == by_number or is_counted(name))


def is_counted_at_all(name: str) -> bool:
    """Whether there is anything that a quota's name may count."""
    if name.startswith(_COUNT) or name in _BY_NUMBER:
        return True
    return any(is_counted(name) for is_counted in _COUNTED.values())


def matches(quota: ResourceQuota, resource: str, item: Any) -> bool:
    """Whether a quota counts an object: one of its names does, and all its scopes match. Source:
    generic.Matches."""
    return bool(counted(resource, quota.spec.hard)) and all(
        _in_scope(scope, resource, item) for scope in scopes_of(quota)
    )


def usage(resource: str, item: Any, *, ended: bool = False) -> Amounts:
    """What an object takes, in nano-units by the names of quotas.

    :param ended: of a pod: nothing of it runs any more, so that only its object counts
    """
    found: Amounts = {count_name(resource): NANO}
    match item:
        case Pod() if not ended:
            found |= _of_pod(item)
        case Service():
            found |= _of_service(item)
        case PersistentVolumeClaim():
            found |= _of_claim(item)
        case ResourceClaim():
            for name, nano in _of_device_claim(item):
                found[name] = found.get(name, 0) + nano
        case _:
            if resource in _BY_NUMBER:
                found[resource] = NANO
    return found


def lacking(resource: str, item: Any, names: Iterable[str]) -> str:
    """What a quota with these names demands of an object and that does not say; empty if nothing is missing.
    Source: podEvaluator.Constraints."""
    if resource != PODS:
        return ""
    demanded = _DEMANDED.intersection(names)
    missing: dict[str, set[str]] = {}
    for container in (*item.spec.containers, *item.spec.init_containers):
        said = _compute(_parsed(container.resources.requests), _parsed(container.resources.limits))
        for name in demanded - said.keys():
            missing.setdefault(name, set()).add(container.name)
    parts = (f"{name} for: {','.join(sorted(containers))}" for name, containers in sorted(missing.items()))
    return f"must specify {'; '.join(parts)}" if missing else ""


def _is_of_pod(name: str) -> bool:
    if name in _POD_RESOURCES or name.startswith((_HUGEPAGES, REQUESTS_PREFIX + _HUGEPAGES)):
        return True
    return name.startswith(REQUESTS_PREFIX) and "/" in name and "kubernetes.io/" not in name


def _is_of_claim(name: str) -> bool:
    return name in _CLAIM_RESOURCES or name.endswith(tuple(_STORAGE_CLASS + one for one in _CLAIM_RESOURCES))


_COUNTED: Final[Mapping[str, Callable[[str], bool]]] = {
    PODS: _is_of_pod,
    SERVICES: lambda name: name in _SERVICE_RESOURCES,
    CLAIMS: _is_of_claim,
    DEVICE_CLAIMS: lambda name: name.endswith(_DEVICE_CLASS),
}


def _only_by_number(resource: str) -> Callable[[str], bool]:
    return lambda name: resource in _BY_NUMBER and name == resource


# ---- pods


def _of_pod(pod: Pod) -> Amounts:
    """Source: PodUsageFunc, component-helpers/resource/helpers.go (PodLimits)."""
    limits = exact_limits(pod)
    for name, text in pod.spec.overhead.items():
        if name in limits:
            limits[name] += quantity.nano(text)
    return {PODS: NANO, **_compute(exact_requests(pod), limits)}


def _compute(requests: Mapping[str, int], limits: Mapping[str, int]) -> Amounts:
    """Source: podComputeUsageHelper."""
    found: Amounts = {}
    for name, nano in requests.items():
        if name in _COMPUTE or name.startswith(_HUGEPAGES):
            found[name] = found[REQUESTS_PREFIX + name] = nano
        elif is_extended(name):
            found[REQUESTS_PREFIX + name] = nano
    found |= {f"limits.{name}": nano for name, nano in limits.items() if name in _COMPUTE}
    return found


def _parsed(texts: Mapping[str, str]) -> Amounts:
    return {name: quantity.nano(text) for name, text in texts.items()}


def _in_scope(scope: ScopeRequirement, resource: str, item: Any) -> bool:
    """Source: podMatchesScopeFunc, pvcMatchesScopeFunc, MatchesNoScopeFunc."""
    if resource == CLAIMS and scope.scope_name == quotas.VOLUME_ATTRIBUTES_CLASS:
        name = item.spec.volume_attributes_class_name or ""
        return _selects(scope, name)
    if resource != PODS:
        return False
    match scope.scope_name:
        case quotas.TERMINATING:
            return has_deadline(item)
        case quotas.NOT_TERMINATING:
            return not has_deadline(item)
        case quotas.BEST_EFFORT:
            return _is_best_effort(item)
        case quotas.NOT_BEST_EFFORT:
            return not _is_best_effort(item)
        case quotas.PRIORITY_CLASS:
            return _selects(scope, item.spec.priority_class_name)
        case quotas.CROSS_NAMESPACE_AFFINITY:
            return any(term.namespaces or term.namespace_selector is not None for term in _terms(item.spec.affinity))
        case _:
            return False


def _selects(scope: ScopeRequirement, name: str) -> bool:
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in scope.values
        case _:
            return name not in scope.values


def has_deadline(pod: Pod) -> bool:
    """Whether a pod is of the scope Terminating. Source: IsTerminating."""
    deadline = pod.spec.active_deadline_seconds
    return deadline is not None and deadline >= 0


def _is_best_effort(pod: Pod) -> bool:
    """Whether neither it nor a container of it asks for cpu or memory. Source: ComputePodQOS."""
    if pod.spec.resources is not None:
        return not _asks(pod.spec.resources)
    containers: tuple[Container, ...] = (*pod.spec.containers, *pod.spec.init_containers)
    return not any(_asks(one.resources) for one in containers)


def _asks(resources: ResourceRequirements) -> bool:
    amounts = (resources.requests, resources.limits)
    return any(quantity.nano(one[name]) > 0 for one in amounts for name in ("cpu", "memory") if name in one)


def _terms(affinity: Affinity | None) -> Iterator[PodAffinityTerm]:
    """Source: usesCrossNamespacePodAffinity."""
    if affinity is None:
        return
    for one in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if one is not None:
            yield from one.required_during_scheduling_ignored_during_execution
            yield from (
                weighted.pod_affinity_term for weighted in one.preferred_during_scheduling_ignored_during_execution
            )


# ---- services and claims


def _of_service(service: Service) -> Amounts:
    """Source: serviceEvaluator.Usage."""
    spec = service.spec
    found: Amounts = {"services": NANO, "services.loadbalancers": 0, "services.nodeports": 0}
    if spec.type == "LoadBalancer":
        found["services.loadbalancers"] = NANO
    if spec.type in ("NodePort", "LoadBalancer"):
        given = [port for port in spec.ports if port.node_port]
        suppressed = spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False
        found["services.nodeports"] = len(given if suppressed else spec.ports) * NANO
    return found


def _of_claim(claim: PersistentVolumeClaim) -> Amounts:
    """Source: pvcEvaluator.Usage."""
    found: Amounts = {"persistentvolumeclaims": NANO}
    wanted = claim.spec.resources.requests.get(claims.STORAGE)
    if wanted is not None:
        allocated = claim.status.allocated_resources.get(claims.STORAGE)
        largest = max(quantity.nano(text) for text in (wanted, allocated) if text is not None)
        found["requests.storage"] = -(-largest // NANO) * NANO
    class_name = claims.class_of_claim(claim)
    if class_name:
        found |= {f"{class_name}{_STORAGE_CLASS}{name}": nano for name, nano in found.items()}
    return found


def _of_device_claim(claim: ResourceClaim) -> Iterator[tuple[str, int]]:
    """Of several that would do, the most of each class. Source: claimEvaluator.Usage."""
    for request in claim.spec.devices.requests:
        alternatives = request.first_available or (() if request.exactly is None else (request.exactly,))
        most: dict[str, int] = {}
        for one in alternatives:
            wanted = MOST_DEVICES if one.allocation_mode == "All" else one.count or 1
            most[one.device_class_name] = max(wanted, most.get(one.device_class_name, 0))
        yield from ((f"{name}{_DEVICE_CLASS}", number * NANO) for name, number in most.items())
