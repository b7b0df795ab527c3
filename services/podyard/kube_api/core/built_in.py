"""The built-in resources that are served: each kind of Kubernetes that is stored, in the one version in which
it is stored, autoscalers in both, and a few that are only asked.

Left out, although the API server can serve them:

- further versions of a stored kind: those on trial of kinds that have a newer one, which an API server does
  not serve either unless it is told to;
- `componentstatuses`, and of the questions those about other people: SubjectAccessReview,
  LocalSubjectAccessReview, and SelfSubjectRulesReview.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from podyard.kube_api.core import autoscalers
from podyard.kube_api.core.event_rules import EVENT, NEW_EVENT
from podyard.kube_api.core.order import METRICS
from podyard.kube_api.core.served import Served, Subresource
from podyard.objects import api_types, kinds

ALL: Final = "all"
EXTENSIONS: Final = "api-extensions"

_IN_ALL: Final = frozenset(
    (
        ("", "Pod"),
        ("", "ReplicationController"),
        ("", "Service"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("batch", "CronJob"),
        ("batch", "Job"),
    )
)
"""What `kubectl get all` shows. Source: kubernetes v1.36.2, api/discovery/aggregated_v2.json."""

_GROUPS_OF_EXTENSIONS: Final = frozenset(
    ("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io")
)
"""All their kinds are of that category. Source: as above."""

_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "delete": ("delete",),
    "deletecollection": ("deletecollection",),
    "get": ("get",),
    "list": ("list", "watch"),
    "patch": ("patch",),
    "post": ("create",),
    "put": ("update",),
}
"""Of the API by those of HTTP in the table: what can be listed can be watched."""

READ_AND_CHANGED: Final = ("get", "patch", "update")
"""What is done to a status and to a scale."""

_CREATED: Final = ("create",)

_METRIC_VERBS: Final = ("get", "list")

_ASKED: Final = frozenset(
    (
        ("authorization.k8s.io", "SelfSubjectAccessReview"),
        ("authentication.k8s.io", "SelfSubjectReview"),
        ("authentication.k8s.io", "TokenReview"),
    )
)

SCALE: Final = Subresource("scale", "Scale", "autoscaling", "v1", READ_AND_CHANGED, "api.autoscaling.v1.Scale")
"""The same of whatever has replicas."""

_EVICTION: Final = Subresource("eviction", "Eviction", "policy", "v1", _CREATED, "api.policy.v1.Eviction")
_BINDING: Final = Subresource("binding", "Binding", "", "v1", _CREATED, "api.core.v1.Binding")
BODIES: Final = (SCALE, _EVICTION, _BINDING)
"""The subresources whose bodies are of kinds of their own."""

_OTHERS: Final = {one.name: one for one in BODIES}


@cache
def built_in() -> tuple[Served, ...]:
    """All of them, in no order."""
    return tuple(_of_table())


@cache
def groups() -> frozenset[str]:
    """Kubernetes' own groups, served or not: no definition may add to them."""
    return frozenset(one.group for one in api_types.table().kinds) | {METRICS}


def _of_table() -> Iterator[Served]:
    stored = {(kind.api_version, kind.kind): kind for kind in (*kinds.KINDS, *kinds.stored())}
    for one in api_types.table().kinds:
        kind = stored.get((f"{one.group}/{one.version}".lstrip("/"), one.kind))
        if (one.resource, one.version) == (autoscalers.RESOURCE, "v1"):
            kind = stored[autoscalers.V2, one.kind]
        if kind is not None:
            yield _stored(one, kind)
        elif one.kind == EVENT.kind:
            kind = EVENT if one.group == EVENT.group else NEW_EVENT
            yield _answered(one, _verbs(one))._replace(short_names=kind.short_names, stored=kind)
        elif (one.group, one.kind) in _ASKED or one.kind == _BINDING.kind:
            yield _answered(one, _CREATED)
    yield _metric("nodes", "NodeMetrics", namespaced=False)
    yield _metric("pods", "PodMetrics", namespaced=True)


def _metric(resource: str, kind: str, *, namespaced: bool) -> Served:
    return Served(
        group=METRICS,
        version="v1beta1",
        resource=resource,
        singular=resource[:-1],
        kind=kind,
        list_kind=f"{kind}List",
        namespaced=namespaced,
        verbs=_METRIC_VERBS,
    )


def _answered(one: api_types.ServedKind, verbs: tuple[str, ...]) -> Served:
    return Served(
        group=one.group,
        version=one.version,
        resource=one.resource,
        singular=one.kind.lower(),
        kind=one.kind,
        list_kind=f"{one.kind}List",
        namespaced=one.scope == "Namespaced",
        verbs=verbs,
        definition=one.definition,
    )


def _verbs(one: api_types.ServedKind) -> tuple[str, ...]:
    return tuple(sorted(verb for method in one.verbs for verb in _VERBS[method]))


def _stored(one: api_types.ServedKind, kind: kinds.Kind) -> Served:
    served = [_subresource(one, name) for name in one.subresources]
    return _answered(one, _verbs(one))._replace(
        short_names=kind.short_names,
        categories=_categories(one),
        subresources=tuple(found for found in served if found is not None),
        unserved=tuple(name for name, found in zip(one.subresources, served, strict=True) if found is None),
        stored=kind,
    )


def _subresource(one: api_types.ServedKind, name: str) -> Subresource | None:
    if name == "status":
        return Subresource(name, one.kind, one.group, one.version, READ_AND_CHANGED, one.definition)
    if name == "finalize":
        return Subresource(name, one.kind, one.group, one.version, ("update",), one.definition)
    return _OTHERS.get(name)


def _categories(one: api_types.ServedKind) -> tuple[str, ...]:
    if (one.group, one.kind) in _IN_ALL:
        return (ALL,)
    return (EXTENSIONS,) if one.group in _GROUPS_OF_EXTENSIONS else ()
