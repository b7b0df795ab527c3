"""Resource quotas (`v1`): how much a namespace may have of what.

Sources: api/core/v1/types.go; kubernetes v1.36.2, pkg/apis/core/validation/validation.go
(ValidateResourceQuota, validateResourceQuotaScopes, validateScopedResourceSelectorRequirement),
pkg/apis/core/helper/helpers.go (IsStandardQuotaResourceName, IsResourceQuotaScopeValidForResource).
"""

from collections.abc import Iterator
from typing import Final

from podyard.objects import quantity
from podyard.objects.documents import Document
from podyard.objects.faults import Faults
from podyard.objects.meta import ObjectMeta, ResourceList, View
from podyard.objects.names import qualified_fault
from podyard.objects.pod_requests import HUGEPAGES_PREFIX
from podyard.objects.quantity import NANO
from podyard.objects.resource_validation import is_extended

QUOTAS: Final = "resourcequotas"
REQUESTS_PREFIX: Final = "requests."

TERMINATING: Final = "Terminating"
NOT_TERMINATING: Final = "NotTerminating"
BEST_EFFORT: Final = "BestEffort"
NOT_BEST_EFFORT: Final = "NotBestEffort"
PRIORITY_CLASS: Final = "PriorityClass"
CROSS_NAMESPACE_AFFINITY: Final = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES_CLASS: Final = "VolumeAttributesClass"

MOST_LIMITS: Final = 256
"""Resources that one quota limits: a bound of Podyard, not of Kubernetes."""

_SCOPES: Final = frozenset(
    (
        *(TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT),
        *(PRIORITY_CLASS, CROSS_NAMESPACE_AFFINITY, VOLUME_ATTRIBUTES_CLASS),
    )
)
_POD_COUNTS: Final = frozenset(("pods",))
_POD_COMPUTE: Final = frozenset(("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"))
_CLAIMS: Final = frozenset(("persistentvolumeclaims", "requests.storage"))
_WHOLE: Final = frozenset(
    (
        *("pods", QUOTAS, "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims"),
        *("services.nodeports", "services.loadbalancers"),
    )
)
"""Counted in whole pieces. Source: integerResources."""
_STANDARD: Final = (
    _WHOLE | _POD_COMPUTE | _CLAIMS | {"ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"}
)
"""Source: standardQuotaResources."""
_EXISTS: Final = "Exists"
_CONFLICTS: Final = ({BEST_EFFORT, NOT_BEST_EFFORT}, {TERMINATING, NOT_TERMINATING})
_ONLY_EXISTS: Final = frozenset((TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT, CROSS_NAMESPACE_AFFINITY))


class ScopeRequirement(View, frozen=True, kw_only=True):
    """One scope: operator is In, NotIn, Exists or DoesNotExist."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(View, frozen=True, kw_only=True):
    """All must hold."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(View, frozen=True, kw_only=True):
    """Limits, and of which objects: those that all scopes match."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(View, frozen=True, kw_only=True):
    """What is used, and the limits when it was counted. Never stored: readers join the fact."""

    hard: ResourceList = {}
    used: ResourceList = {}


_NO_META: Final = ObjectMeta()
_NO_SPEC: Final = ResourceQuotaSpec()
_NO_STATUS: Final = ResourceQuotaStatus()


class ResourceQuota(View, frozen=True, kw_only=True):
    """What holds in its namespace for objects that are created."""

    metadata: ObjectMeta = _NO_META
    spec: ResourceQuotaSpec = _NO_SPEC
    status: ResourceQuotaStatus = _NO_STATUS


def scopes_of(quota: ResourceQuota) -> Iterator[ScopeRequirement]:
    """All scopes of a quota. Source: apiserver/pkg/admission/plugin/resourcequota/controller.go,
    getScopeSelectorsFromQuota."""
    for scope in quota.spec.scopes:
        yield ScopeRequirement(scope_name=scope, operator=_EXISTS)
    if quota.spec.scope_selector is not None:
        yield from quota.spec.scope_selector.match_expressions


def fill_resource_quota(document: Document) -> None:
    """Its status is nobody's wish: what is used is a fact of its own."""
    document.pop("status", None)


def check_resource_quota(faults: Faults, quota: ResourceQuota) -> None:
    """Source: ValidateResourceQuotaSpec."""
    hard = quota.spec.hard
    with faults.below("spec"):
        if len(hard) > MOST_LIMITS:
            faults.too_many("hard", len(hard), MOST_LIMITS, "resources")
        for name, text in hard.items():
            _check_limit(faults, f"hard[{name}]", name, text)
        _check_scopes(faults, quota)
        _check_scope_selector(faults, quota)


def _check_limit(faults: Faults, field: str, name: str, text: str) -> None:
    if fault := qualified_fault(name):
        faults.invalid(field, name, fault)
    elif "/" not in name and not _is_standard(name):
        faults.invalid(field, name, "must be a standard resource for quota")
    nano = quantity.nano(text)
    if nano < 0:
        faults.invalid(field, text, "must be greater than or equal to 0")
    if (name in _WHOLE or is_extended(name)) and nano % NANO:
        faults.invalid(field, text, "must be an integer")


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith((HUGEPAGES_PREFIX, REQUESTS_PREFIX + HUGEPAGES_PREFIX))


def _check_scopes(faults: Faults, quota: ResourceQuota) -> None:
    scopes = quota.spec.scopes
    listed = "[" + " ".join(scopes) + "]"
    for scope in scopes:
        if scope not in _SCOPES:
            faults.invalid("scopes", listed, "unsupported scope")
        for name in sorted(quota.spec.hard):
            if _is_standard(name) and not _is_valid_for(scope, name):
                faults.invalid("scopes", listed, "unsupported scope applied to resource")
    if any(pair <= set(scopes) for pair in _CONFLICTS):
        faults.invalid("scopes", listed, "conflicting scopes")


def _check_scope_selector(faults: Faults, quota: ResourceQuota) -> None:
    if quota.spec.scope_selector is None:
        return
    found = quota.spec.scope_selector.match_expressions
    with faults.below("scopeSelector"):
        for one in found:
            if one.scope_name not in _SCOPES:
                faults.invalid("matchExpressions.scopeName", one.scope_name, "unsupported scope")
            for name in sorted(quota.spec.hard):
                if _is_standard(name) and not _is_valid_for(one.scope_name, name):
                    faults.invalid("matchExpressions", one.scope_name, "unsupported scope applied to resource")
            with faults.below("matchExpressions"):
                _check_operator(faults, one)
        if any(pair <= {one.scope_name for one in found} for pair in _CONFLICTS):
            faults.invalid("matchExpressions", ", ".join(one.scope_name for one in found), "conflicting scopes")


def _check_operator(faults: Faults, one: ScopeRequirement) -> None:
    if one.scope_name in _ONLY_EXISTS and one.operator != _EXISTS:
        detail = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        faults.invalid("operator", one.operator, detail)
    if one.operator in ("In", "NotIn"):
        if not one.values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            faults.required("values", detail)
    elif one.operator in (_EXISTS, "DoesNotExist"):
        if one.values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            faults.invalid("values", ", ".join(one.values), detail)
    else:
        faults.invalid("operator", one.operator, "not a valid selector operator")


def _is_valid_for(scope: str, resource: str) -> bool:
    if scope == BEST_EFFORT:
        return resource in _POD_COUNTS
    if scope == VOLUME_ATTRIBUTES_CLASS:
        return resource in _CLAIMS
    return scope not in _SCOPES or resource in _POD_COUNTS or resource in _POD_COMPUTE
