"""Which kinds there are, how they are called, and how their JSON becomes a typed view.

Built-in kinds are those that Podyard has a type for, the table below, and all others of Kubernetes (`stored`,
from the table of its types), of which readers know the metadata alone. Any other kind with a group of its own
is custom: its resource is `<plural>.<version>.<group>`, it is namespaced exactly if it names a namespace,
unless its definition is stored, and it stays untyped. The plural is guessed as Kubernetes guesses it (source:
apimachinery/pkg/api/meta/restmapper.go, UnsafeGuessKindToResource): the kind in lower case, plus `es` after
an s, `ies` in place of a final y, else `s`; `endpoints` stays.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from podyard.objects import api_types, bounds
from podyard.objects.apps import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from podyard.objects.batch import CronJob, Job
from podyard.objects.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    Service,
)
from podyard.objects.errors import UnknownKindError
from podyard.objects.extensions import DEFINITIONS, CustomResourceDefinition
from podyard.objects.faults import cut
from podyard.objects.limit_ranges import LimitRange
from podyard.objects.meta import ObjectMeta, View
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.quotas import ResourceQuota
from podyard.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from podyard.objects.runtime_classes import RuntimeClass
from podyard.objects.scheduling import PriorityClass
from podyard.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment

KEPT_KINDS: Final = 1024
"""Kinds that are known by their names, built in or custom: 1 KB each."""


class CustomObject(View, frozen=True, kw_only=True):
    """An object of a kind that Podyard has no type for: its metadata, and the whole document as it is."""

    metadata: ObjectMeta
    raw: dict[str, Any]


class StoredObject(View, frozen=True, kw_only=True):
    """An object of a kind of Kubernetes that Podyard has no type for: readers know its metadata."""

    metadata: ObjectMeta = ObjectMeta()


Object: TypeAlias = (
    Pod
    | Node
    | Namespace
    | Service
    | PersistentVolume
    | PersistentVolumeClaim
    | ReplicationController
    | LimitRange
    | ResourceQuota
    | RuntimeClass
    | ReplicaSet
    | Deployment
    | StatefulSet
    | DaemonSet
    | ControllerRevision
    | Job
    | CronJob
    | PodDisruptionBudget
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | PriorityClass
    | ResourceClaim
    | ResourceSlice
    | DeviceClass
    | CustomResourceDefinition
    | StoredObject
    | CustomObject
)
"""A typed view of any object."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind. `resource` is its name in subjects; `event_resource` its name in cluster events and plugin
    registrations."""

    kind: str
    api_version: str
    resource: str
    type: type[Object]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    event_resource: str = ""

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def custom(self) -> bool:
        """Whether it is no built-in kind: its scope is then that of each object."""
        return self.type is CustomObject

    @property
    def singular(self) -> str:
        """What kubectl calls one of them: `pod`, `pod/name`."""
        return self.kind.lower()

    def __str__(self) -> str:
        return f"{self.kind} ({self.api_version})"


def _built_in(api_version: str, resource: str, type_: type[Object], event_resource: str = "", **more: Any) -> Kind:
    group = api_version.rpartition("/")[0]
    kind = type_.__name__
    event = event_resource or (f"{group}/{kind}" if group else kind)
    return Kind(kind=kind, api_version=api_version, resource=resource, type=type_, event_resource=event, **more)


KINDS: Final[tuple[Kind, ...]] = (
    _built_in("v1", "pods", Pod, short_names=("po",)),
    _built_in("v1", "nodes", Node, namespaced=False, short_names=("no",)),
    _built_in("v1", "namespaces", Namespace, namespaced=False, short_names=("ns",)),
    _built_in("v1", "services", Service, short_names=("svc",)),
    _built_in("v1", "persistentvolumes", PersistentVolume, namespaced=False, short_names=("pv",)),
    _built_in("v1", "persistentvolumeclaims", PersistentVolumeClaim, short_names=("pvc",)),
    _built_in("v1", "replicationcontrollers", ReplicationController, short_names=("rc",)),
    _built_in("v1", "limitranges", LimitRange, short_names=("limits",)),
    _built_in("v1", "resourcequotas", ResourceQuota, short_names=("quota",)),
    _built_in("node.k8s.io/v1", "runtimeclasses", RuntimeClass, namespaced=False),
    _built_in("apps/v1", "replicasets", ReplicaSet, short_names=("rs",)),
    _built_in("apps/v1", "deployments", Deployment, short_names=("deploy",)),
    _built_in("apps/v1", "statefulsets", StatefulSet, short_names=("sts",)),
    _built_in("apps/v1", "daemonsets", DaemonSet, short_names=("ds",)),
    _built_in("apps/v1", "controllerrevisions", ControllerRevision),
    _built_in("batch/v1", "jobs", Job),
    _built_in("batch/v1", "cronjobs", CronJob, short_names=("cj",)),
    _built_in("policy/v1", "poddisruptionbudgets", PodDisruptionBudget, short_names=("pdb",)),
    _built_in("scheduling.k8s.io/v1", "priorityclasses", PriorityClass, namespaced=False, short_names=("pc",)),
    _built_in("storage.k8s.io/v1", "storageclasses", StorageClass, namespaced=False, short_names=("sc",)),
    _built_in("storage.k8s.io/v1", "csinodes", CSINode, namespaced=False),
    _built_in("storage.k8s.io/v1", "csidrivers", CSIDriver, namespaced=False),
    _built_in("storage.k8s.io/v1", "csistoragecapacities", CSIStorageCapacity),
    _built_in("storage.k8s.io/v1", "volumeattachments", VolumeAttachment, namespaced=False),
    _built_in("resource.k8s.io/v1", "resourceclaims", ResourceClaim),
    _built_in("resource.k8s.io/v1", "resourceslices", ResourceSlice, namespaced=False),
    _built_in("resource.k8s.io/v1", "deviceclasses", DeviceClass, namespaced=False),
    _built_in(
        "apiextensions.k8s.io/v1",
        DEFINITIONS,
        CustomResourceDefinition,
        namespaced=False,
        short_names=("crd", "crds"),
    ),
)
"""The built-in kinds that Podyard has a type for."""

_SHORT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "certificatesigningrequests": ("csr",),
    "configmaps": ("cm",),
    "endpoints": ("ep",),
    "horizontalpodautoscalers": ("hpa",),
    "ingresses": ("ing",),
    "ipaddresses": ("ip",),
    "networkpolicies": ("netpol",),
    "serviceaccounts": ("sa",),
    "volumeattributesclasses": ("vac",),
}
"""Source: kubernetes v1.36.2, pkg/registry, ShortNames of each kind's storage."""

_NOT_STORED: Final = frozenset(("events",))
"""Kept elsewhere: services tell events, `podyard get events` shows them."""

_REMOVED_GROUPS: Final = frozenset(("extensions",))
"""Groups of Kubernetes that 1.36 serves nothing of."""

_BY_KIND: Final = {(kind.group, kind.kind): kind for kind in KINDS}
_BY_VERSION: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}
_BY_RESOURCE: Final = {kind.resource: kind for kind in KINDS}


def _names(kind: Kind) -> tuple[str, ...]:
    """What people call a kind."""
    return kind.resource, kind.singular, *kind.short_names


_BY_NAME: Final = {name: kind for kind in KINDS for name in _names(kind)}
_BY_EVENT: Final = {kind.event_resource: kind for kind in KINDS} | {
    "AssignedPod": _BY_RESOURCE["pods"],
    "UnschedulablePod": _BY_RESOURCE["pods"],
}
_CUSTOM_RESOURCE: Final = re.compile(r"([a-z][a-z0-9]*)\.(v[0-9][a-z0-9]*)\.([a-z0-9]([-.a-z0-9]*[a-z0-9])?)")
_LONGEST_RESOURCE: Final = bounds.LABEL_BYTES * 2 + bounds.NAME_BYTES + 2
"""Plural, version and group with the dots between them."""
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_API_VERSION: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?/v[0-9][a-z0-9]*")


def plural_of(kind: str) -> str:
    """The plural of a kind, guessed as Kubernetes does (see the module)."""
    singular = kind.lower()
    if singular.endswith("endpoints"):
        return singular
    if singular.endswith("s"):
        return singular + "es"
    return singular[:-1] + "ies" if singular.endswith("y") else singular + "s"


class _Stored(msgspec.Struct, frozen=True):
    """The built-in kinds without a type of their own, in every way in which they are asked for."""

    kinds: tuple[Kind, ...]
    by_version: dict[tuple[str, str], Kind]
    """By apiVersion and kind. One that is served in several versions lives under one resource, and each
    object keeps the version that it came with."""
    by_kind: dict[tuple[str, str], Kind]
    by_resource: dict[str, Kind]
    by_name: dict[str, Kind]
    by_event: dict[str, Kind]
    requests: frozenset[str]
    """Kinds that can be sent and not stored, and those that cannot be sent."""
    groups: frozenset[str]


@cache
def _stored() -> _Stored:
    """Read when somebody asks for a kind that is not in `KINDS`: most processes never do."""
    found: dict[tuple[str, str], list[Kind]] = {}
    requests: set[str] = set()
    served = api_types.table().kinds
    for one in served:
        if (one.group, one.kind) in _BY_KIND:
            continue
        if not {"get", "post"} <= set(one.verbs) or one.resource in _NOT_STORED:
            requests.add(one.kind)
            continue
        kind = Kind(
            kind=one.kind,
            api_version=f"{one.group}/{one.version}".lstrip("/"),
            resource=one.resource,
            type=StoredObject,
            namespaced=one.scope == "Namespaced",
            short_names=_SHORT_NAMES.get(one.resource, ()),
            event_resource=f"{one.group}/{one.kind}".lstrip("/"),
        )
        found.setdefault((one.group, one.kind), []).append(kind)
    newest = {key: max(versions, key=_rank) for key, versions in found.items()}
    return _Stored(
        kinds=tuple(newest.values()),
        by_version={(kind.api_version, kind.kind): kind for versions in found.values() for kind in versions},
        by_kind=newest,
        by_resource={kind.resource: kind for kind in newest.values()},
        by_name={name: kind for kind in newest.values() for name in _names(kind)},
        by_event={kind.event_resource: kind for kind in newest.values()},
        requests=frozenset(requests),
        groups=frozenset(one.group for one in served) | _REMOVED_GROUPS,
    )


def _rank(kind: Kind) -> tuple[bool, bool, str]:
    """Versions that stay before those on trial. Source: apimachinery/pkg/version/helpers.go,
    CompareKubeAwareVersionStrings."""
    version = kind.api_version.rpartition("/")[2]
    return "alpha" not in version, "beta" not in version, version


def stored() -> tuple[Kind, ...]:
    """The built-in kinds that Podyard has no type for, each in the version that Kubernetes prefers."""
    return _stored().kinds


def _named(name: str) -> Kind | None:
    """The built-in kind that is called so."""
    return _BY_NAME.get(name) or _stored().by_name.get(name)


def kind_for(api_version: str, kind: str) -> Kind:
    """The kind that a document names.

    :raises UnknownKindError: for a kind of Kubernetes' own groups that is not built in, a version that is not
        served, or names that are none
    """
    built_in = _BY_VERSION.get((api_version, kind))
    if built_in is not None:
        return built_in
    group = api_version.rpartition("/")[0]
    if group and group not in _stored().groups:
        return _custom(api_version, kind)
    served = _stored().by_version.get((api_version, kind))
    if served is not None:
        return served
    built_in = _BY_KIND.get((group, kind)) or _stored().by_kind.get((group, kind))
    if built_in is not None:
        detail = f'no kind "{kind}" in version "{cut(api_version)}": use apiVersion {built_in.api_version}'
        raise UnknownKindError(detail, "apiVersion")
    raise UnknownKindError(_no_kind(api_version, kind))


def _no_kind(api_version: str, kind: str) -> str:
    unknown = f'no kind "{cut(kind)}" in version "{cut(api_version)}"'
    if kind == "Event":
        return f"{unknown}: events are told by who sees them and not applied; see podyard get events"
    if kind in _stored().requests:
        return f"{unknown} that can be stored: it is a question to an API server"
    for known in (*KINDS, *_stored().kinds):
        if known.kind.lower() == kind.lower():
            return f"{unknown}: use kind {known.kind} with apiVersion {known.api_version}"
    group = api_version.rpartition("/")[0]
    listed = ", ".join(known.kind for known in (*KINDS, *_stored().kinds) if known.group == group)
    if not group:
        return f"{unknown}: the core group has {listed}; kinds of your own need a group"
    there = f"Kubernetes 1.36 has {listed} there" if listed else "Kubernetes 1.36 has nothing there"
    return f"{unknown}: the group {group} is Kubernetes' own, and {there}"


@lru_cache(maxsize=KEPT_KINDS)
def _custom(api_version: str, kind: str) -> Kind:
    group, _, version = api_version.rpartition("/")
    _check_lengths(group, version, "apiVersion")
    if not _API_VERSION.fullmatch(api_version):
        raise UnknownKindError(f'"{api_version}" is no <group>/<version>, such as example.com/v1', "apiVersion")
    if len(plural_of(kind)) > bounds.LABEL_BYTES:
        raise UnknownKindError(f'"{cut(kind)}" is no kind: its plural may not be more than {bounds.LABEL_BYTES} bytes')
    if not _KIND.fullmatch(kind):
        raise UnknownKindError(f'"{kind}" is no kind: a kind has letters and digits only, and starts with a letter')
    resource = f"{plural_of(kind)}.{version}.{group}"
    return Kind(kind=kind, api_version=api_version, resource=resource, type=CustomObject, event_resource=resource)


def _check_lengths(group: str, version: str, field: str) -> None:
    """Source: apiextensions-apiserver/pkg/apis/apiextensions/validation, a group is a DNS subdomain, a
    version a DNS label."""
    for what, name, most in (("group", group, bounds.NAME_BYTES), ("version", version, bounds.LABEL_BYTES)):
        if len(name) > most:
            raise UnknownKindError(f'"{cut(name)}" is no {what}: may not be more than {most} bytes', field)


def resource_for(name: str) -> Kind:
    """The kind that people call `name`: plural, singular, short name, `deployments.apps`, or
    `<plural>.<version>.<group>`.

    A custom kind found by its resource alone has no `kind` name: it is empty.

    :raises UnknownKindError: if there is none; says what exists
    """
    lowered = name.lower()
    if (kind := _named(lowered)) is not None:
        return kind
    plural, _, rest = lowered.partition(".")
    kind = _named(plural)
    if kind is not None and rest in (kind.group, f"{kind.api_version.rpartition('/')[2]}.{kind.group}".rstrip(".")):
        return kind
    return kind_of_resource(lowered)


@lru_cache(maxsize=KEPT_KINDS)
def kind_of_resource(resource: str) -> Kind:
    """The kind whose objects live under `resource` in subjects.

    :raises UnknownKindError: if it is neither built in nor `<plural>.<version>.<group>`
    """
    if (kind := _BY_RESOURCE.get(resource)) is not None:
        return kind
    custom = _CUSTOM_RESOURCE.fullmatch(resource) if len(resource) <= _LONGEST_RESOURCE else None
    if custom is None:
        if (kind := _stored().by_resource.get(resource)) is not None:
            return kind
        raise UnknownKindError(_no_resource(resource))
    _check_lengths(custom[3], custom[2], "resource")
    api_version = f"{custom[3]}/{custom[2]}"
    return Kind(kind="", api_version=api_version, resource=resource, type=CustomObject, event_resource=resource)


def _no_resource(name: str) -> str:
    called = (*_BY_NAME, *_stored().by_name)
    close = get_close_matches(name[: bounds.LABEL_BYTES], called, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else "there are those of Kubernetes 1.36"
    return f'no resource is called "{cut(name)}": {hint}; of your own kinds say <plural>.<version>.<group>'


def kind_of_event(event_resource: str) -> Kind:
    """The kind that a cluster event's resource is about: `Node`, `AssignedPod`, `storage.k8s.io/CSINode`, a
    custom one.

    :raises UnknownKindError: if there is none
    """
    if (kind := _BY_EVENT.get(event_resource) or _stored().by_event.get(event_resource)) is not None:
        return kind
    if len(event_resource) <= _LONGEST_RESOURCE and _CUSTOM_RESOURCE.fullmatch(event_resource):
        return kind_of_resource(event_resource)
    listed = ", ".join(_BY_EVENT)
    raise UnknownKindError(
        f'no event resource is called "{cut(event_resource)}": there are {listed}, <plural>.<version>.<group>'
    )
