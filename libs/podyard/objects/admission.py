"""What becomes of an object on its way in: names, defaults, priority, checks. As the API server does, in its
order.

Sources: apiserver/pkg/registry/rest/create.go and update.go,
plugin/pkg/admission/{namespace/lifecycle,priority, storage/storageclass/setdefault},
apiserver/pkg/storage/names/generate.go. Not stored: resourceVersion (the position of the write takes its
place) and selfLink; managedFields only of who keeps them (`replace`).
"""

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from podyard.objects import bounds, secrets, structural
from podyard.objects.api_types import definition_of
from podyard.objects.core import PersistentVolumeClaim, Service
from podyard.objects.decoding import convert, view
from podyard.objects.defaults import fill_defaults
from podyard.objects.documents import Document, child, copy, copy_without_nulls, is_mapping, mapping, strip_nulls
from podyard.objects.errors import AdmissionError, FieldFault, ObjectError, QuantityError
from podyard.objects.faults import Faults, cut
from podyard.objects.kind_validation import check_kind, check_metadata
from podyard.objects.kinds import CustomObject, Kind, kind_for
from podyard.objects.limit_ranges import LimitRange, check_claim_limits, check_pod_limits, fill_from_limits
from podyard.objects.meta import ObjectMeta, View
from podyard.objects.pod import Pod
from podyard.objects.priority import PREEMPT_LOWER_PRIORITY, SYSTEM_CLASSES
from podyard.objects.quantity_fields import branches, canonical_text, rewrite
from podyard.objects.quantity_fields import faults as quantity_faults
from podyard.objects.runtime_classes import RuntimeClass, apply_class
from podyard.objects.scheduling import PriorityClass
from podyard.objects.service_addresses import allocate
from podyard.objects.times import rfc3339
from podyard.objects.type_check import Unknown, check_types
from podyard.objects.updates import check_update, merge_apply, merge_finalize, merge_replace, merge_status

ALWAYS_THERE: Final = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
"""Namespaces that exist without being created."""
DEFAULT_NAMESPACE: Final = "default"
DEFAULT_CLASS_ANNOTATION: Final = "storageclass.kubernetes.io/is-default-class"

V = TypeVar("V", bound=View)

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_LONGEST_GENERATED_BASE: Final = 58
_NAME_ATTEMPTS: Final = 8
_COUNTS_GENERATIONS: Final = frozenset(
    (
        *("pods", "deployments", "replicasets", "statefulsets", "daemonsets", "replicationcontrollers"),
        *("jobs", "cronjobs", "poddisruptionbudgets", "priorityclasses", "deviceclasses", "resourceslices"),
        *("customresourcedefinitions", "endpointslices", "ingresses", "ingressclasses", "networkpolicies"),
        *("flowschemas", "podtemplates", "prioritylevelconfigurations"),
        *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations"),
        *("validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"),
    )
)
"""Built-in resources that do; custom ones all do. Source: kubernetes v1.36.2, pkg/registry/*/*/strategy.go;
apiextensions-apiserver, pkg/registry/customresource/strategy.go."""
_NOT_COUNTED: Final = frozenset(("apiVersion", "kind", "metadata", "status"))
UNKNOWN_FIELD: Final = "UnknownField"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
"""Types of faults. Source of the latter: core/v1, NamespaceTerminatingCause."""

_NOT_STORED: Final = ("resourceVersion", "selfLink")
_NOT_FOR_CREATORS: Final = ("deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_OMITTED_EMPTY: Final = ("labels", "annotations", "ownerReferences", "finalizers", "managedFields")
"""Of metadata: empty is as good as not there. Source: apimachinery/pkg/apis/meta/v1/types.go, ObjectMeta."""
_STATUS_FROM_CREATORS: Final = frozenset(("nodes",))
"""Built-in resources whose new objects keep the status that they came with; all others begin without.

Source: Kubernetes v1.36.2, pkg/registry/*/*/strategy.go, PrepareForCreate of each kind."""


Validation: TypeAlias = Literal["strict", "warn", "ignore"]
"""What becomes of fields that a kind does not have: refused, left out and told, left out. Source:
apiserver/pkg/endpoints/handlers/rest.go, fieldValidation."""


Manner: TypeAlias = Literal["apply", "replace", "status", "finalize"]
"""How a document takes the place of the stored one: joined with what others wrote, as it is but for its
status, its status alone, or the finalizers of a namespace's spec."""


class ClusterLookup(Protocol):
    """What admission asks of the cluster: typed views or documents, as the caller has them."""

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """The object, `None` if there is none."""
        ...

    def list(self, resource: str) -> Iterable[Any]:
        """All objects of a resource, in any order."""
        ...


def admit(
    document: Document,
    cluster: ClusterLookup,
    *,
    old: Document | None,
    now: float,
    new_uid: Callable[[], str],
    random: Random,
    validation: Validation = "ignore",
    warnings: list[str] | None = None,
    manner: Manner = "apply",
    schema: Document | None = None,
) -> Document:
    """The document as it is to be stored. `document` and `old` are not changed.

    :param old: the stored version this one replaces, `None` for a new object
    :param now: seconds since 1970, UTC: the time of creation
    :param new_uid: makes the uid of a new object
    :param random: chooses the end of generated names
    :param validation: what becomes of unknown fields
    :param warnings: given a list, what the sender should know is put there
    :param manner: how it takes the place of `old`
    :param schema: of a custom kind: what its definition says; None: nothing is known of it
    :raises AdmissionError: with everything that the API server would refuse
    :raises UnknownKindError: if the document is of no kind
    """
    kind = kind_of(document)
    faults = Faults()
    given = readable(kind, document, faults, validation, warnings, schema)
    if faults and schema is not None:  # the API server does not read on
        raise AdmissionError(kind.kind, _name_of(given), faults.found)
    _drop(given, _NOT_STORED)
    if manner == "apply":
        _drop(given, ("managedFields",))
    if old is not None:
        stored = _MERGES[manner](old, given, kind.resource)
    else:
        stored = given
        if not kind.custom and kind.resource not in _STATUS_FROM_CREATORS:
            stored.pop("status", None)
        if kind.resource == "namespaces":
            _set_spec_finalizer(stored)
        _create_metadata(stored, kind, cluster, now, new_uid, random)
    fill_defaults(kind.resource, stored)
    if schema is not None:
        structural.fill(schema, stored)
        structural.check(faults, schema, stored, old)
    if kind.resource == secrets.RESOURCE:
        secrets.settle(stored)
        secrets.check(faults, stored, old)
    ranges = _limit_ranges(kind, stored, old, cluster)
    if kind.resource == "pods" and old is None:
        fill_from_limits(stored, ranges)
        _set_priority(faults, child(stored, "spec"), cluster)
        _set_runtime_class(faults, child(stored, "spec"), cluster)
    if kind.resource == "services":
        allocate(stored, (_typed(Service, one) for one in cluster.list("services")), old)
    if kind.resource == "persistentvolumeclaims" and old is None:
        _set_storage_class(child(stored, "spec"), cluster)
    _check(faults, kind, stored, old, cluster, ranges)
    if old is not None and not faults:
        check_update(faults, kind.resource, old, _with_uid(stored, document))
        _next_generation(stored, old, kind)
    if not faults:
        _check_size(faults, stored)
    if faults:
        raise AdmissionError(kind.kind, _name_of(stored), faults.found)
    return stored


_MERGES: Final[Mapping[Manner, Callable[[Document, Document, str], Document]]] = {
    "apply": merge_apply,
    "replace": merge_replace,
    "status": merge_status,
    "finalize": merge_finalize,
}


def kind_of(document: Document) -> Kind:
    """The kind that a document names.

    :raises UnknownKindError: if it names none, or one that does not exist
    """
    api_version, kind = document.get("apiVersion", ""), document.get("kind", "")
    return kind_for(api_version if isinstance(api_version, str) else "", kind if isinstance(kind, str) else "")


def _name_of(document: Document) -> str:
    """What refusals call an object, of whatever type its name is."""
    meta = mapping(document, "metadata")
    return cut(str(meta.get("name") or meta.get("generateName") or ""))


def _advised(unknown: Unknown) -> str:
    return f": {unknown.advice}" if unknown.advice else ""


def readable(
    kind: Kind,
    document: Document,
    faults: Faults,
    validation: Validation,
    warnings: list[str] | None,
    schema: Document | None = None,
) -> Document:
    """A copy without nulls and without fields that the kind does not have, of the right shape, with
    quantities in canonical form.

    :param faults: gets those fields, if they are to be refused
    :param validation: what becomes of them
    :param warnings: as of `admit`
    :param schema: as of `admit`
    :raises AdmissionError: it has not the right shape
    """
    given, unknown = _readable(kind, document)
    gone = [(one.field, _advised(one)) for one in unknown]
    if schema is not None:
        gone += ((field, "") for field in structural.prune(schema, given))
    for field, advice in gone:
        if validation == "strict":
            faults.add(field, UNKNOWN_FIELD, f"unknown field{advice}")
        elif validation == "warn" and warnings is not None:
            warnings.append(f'unknown field "{cut(field)}"{advice}')
    return given


def _readable(kind: Kind, document: Document) -> tuple[Document, list[Unknown]]:
    """The copy, and the fields that were left out of it.

    :raises AdmissionError: it has not the right shape
    """
    faults = Faults()
    unknown = check_types(faults, document, None if kind.custom else definition_of(kind.api_version, kind.kind))
    if faults:
        raise AdmissionError(kind.kind, _name_of(document), faults.found)
    given = copy(document) if kind.custom else copy_without_nulls(document)
    if kind.custom:
        strip_nulls(given.get("metadata"))
    if given.get("metadata") is None:
        given["metadata"] = {}
    for key in _OMITTED_EMPTY:
        if not mapping(given, "metadata").get(key, True):
            del given["metadata"][key]
    for one in unknown:
        one.leave_out(given)
    try:
        view(kind, given)
        if not kind.custom:
            rewrite(given, branches(kind.type), canonical_text)
    except QuantityError:
        raise AdmissionError(kind.kind, _name_of(given), list(quantity_faults(given, branches(kind.type)))) from None
    except ObjectError as error:
        fault = FieldFault(field=error.field, type="FieldValueTypeInvalid", detail=error.detail)
        raise AdmissionError(kind.kind, _name_of(given), [fault]) from error
    return given, unknown


def _check_size(faults: Faults, stored: Document) -> None:
    size = len(msgspec.json.encode(stored))
    if size > bounds.OBJECT_BYTES:
        detail = f"Too long: an object may not be more than {bounds.OBJECT_BYTES} bytes, this one has {size}"
        faults.add("", "FieldValueTooLong", detail)


def _drop(document: Document, keys: Iterable[str]) -> None:
    meta = mapping(document, "metadata")
    for key in keys:
        meta.pop(key, None)


def _create_metadata(
    document: Document, kind: Kind, cluster: ClusterLookup, now: float, new_uid: Callable[[], str], random: Random
) -> None:
    """Source: rest.BeforeCreate, FillObjectMetaSystemFields."""
    meta = child(document, "metadata")
    _drop(document, _NOT_FOR_CREATORS)
    if kind.namespaced and not kind.custom:
        if meta.get("namespace") in ("", None):
            meta["namespace"] = DEFAULT_NAMESPACE
    elif not kind.custom:
        meta.pop("namespace", None)
    if not meta.get("name") and meta.get("generateName"):
        space = meta.get("namespace", "")
        meta["name"] = generated_name(
            meta["generateName"], lambda name: cluster.get(kind.resource, space, name) is not None, random
        )
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = rfc3339(now)
    if _counts_generations(kind):
        meta["generation"] = 1


def _set_spec_finalizer(document: Document) -> None:
    """A new namespace goes after its content. Source: pkg/registry/core/namespace/strategy.go,
    PrepareForCreate."""
    spec = child(document, "spec")
    names: list[str] = list(spec.get("finalizers") or ())
    if "kubernetes" not in names:
        spec["finalizers"] = [*names, "kubernetes"]


def generated_name(begins: str, is_taken: Callable[[str], bool], random: Random) -> str:
    """A name for who gave only its beginning. Tries again if it is taken, 8 times in all. Source:
    names.SimpleNameGenerator, rest.Create."""
    base = begins[:_LONGEST_GENERATED_BASE]
    name = ""
    for _ in range(_NAME_ATTEMPTS):
        name = base + "".join(random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
        if not is_taken(name):
            break
    return name


def _check(
    faults: Faults,
    kind: Kind,
    stored: Document,
    old: Document | None,
    cluster: ClusterLookup,
    ranges: list[LimitRange],
) -> None:
    try:
        typed = view(kind, stored)
    except ObjectError as error:
        faults.add(error.field, "FieldValueTypeInvalid", error.detail)
        return
    meta: ObjectMeta = typed.metadata
    check_metadata(faults, kind, meta)
    if old is None and meta.namespace:
        _check_namespace(faults, kind, meta.namespace, cluster)
    if not isinstance(typed, CustomObject):
        check_kind(faults, kind.resource, typed)
    if isinstance(typed, Pod):
        check_pod_limits(faults, typed, ranges)
    elif isinstance(typed, PersistentVolumeClaim):
        check_claim_limits(faults, typed, ranges)
    if kind.resource == "priorityclasses" and isinstance(typed, PriorityClass) and typed.global_default:
        _check_single_default(faults, typed, cluster)


def _limit_ranges(kind: Kind, stored: Document, old: Document | None, cluster: ClusterLookup) -> list[LimitRange]:
    """Those that an object is held to, by name: those of its namespace; of a pod only when it is new."""
    if kind.resource != "persistentvolumeclaims" and (kind.resource != "pods" or old is not None):
        return []
    namespace = mapping(stored, "metadata").get("namespace")
    found = [_typed(LimitRange, one) for one in cluster.list("limitranges")]
    return sorted((one for one in found if one.metadata.namespace == namespace), key=lambda one: one.metadata.name)


def _set_runtime_class(faults: Faults, spec: Document, cluster: ClusterLookup) -> None:
    name = spec.get("runtimeClassName")
    found = None if name is None else cluster.get("runtimeclasses", "", name)
    apply_class(faults, spec, None if found is None else _typed(RuntimeClass, found))


def _check_namespace(faults: Faults, kind: Kind, namespace: str, cluster: ClusterLookup) -> None:
    """Source: admission plugin NamespaceLifecycle."""
    found = cluster.get("namespaces", "", namespace)
    if found is None:
        if namespace not in ALWAYS_THERE:
            faults.add(
                "metadata.namespace", "FieldValueNotFound", f'namespaces "{namespace}" not found: create it first'
            )
    elif _metadata(found).deletion_timestamp is not None:
        detail = f"unable to create new content in namespace {namespace} because it is being terminated"
        faults.add("metadata.namespace", NAMESPACE_TERMINATING, detail)


class _Any(CustomObject, frozen=True, kw_only=True):
    raw: Document = {}


def _metadata(found: Any) -> ObjectMeta:
    return convert(_Any, {"metadata": mapping(found, "metadata")}).metadata if is_mapping(found) else found.metadata


def _typed(type_: type[V], found: Any) -> V:
    return convert(type_, copy(found)) if is_mapping(found) else found


def _set_priority(faults: Faults, spec: Document, cluster: ClusterLookup) -> None:
    """Source: admission plugin Priority, admitPod."""
    name = spec.get("priorityClassName", "")
    chosen = _named_class(name, cluster) if name else _default_class(cluster)
    if name and chosen is None:
        faults.forbidden("spec.priorityClassName", f"no PriorityClass with name {name} was found")
        return
    value = chosen.value if chosen is not None else 0
    policy = (chosen.preemption_policy if chosen is not None else None) or PREEMPT_LOWER_PRIORITY
    if chosen is not None:
        spec["priorityClassName"] = chosen.metadata.name
    computed = "must not be provided in pod spec; priority admission controller computed"
    if spec.setdefault("priority", value) != value:
        detail = (
            f"the integer value of priority ({spec['priority']}) {computed} {value} from the given PriorityClass name"
        )
        faults.forbidden("spec.priority", detail)
    if spec.setdefault("preemptionPolicy", policy) != policy:
        given = spec["preemptionPolicy"]
        detail = f"the string value of PreemptionPolicy ({given}) {computed} {policy} from the given PriorityClass name"
        faults.forbidden("spec.preemptionPolicy", detail)


def _named_class(name: str, cluster: ClusterLookup) -> PriorityClass | None:
    found = cluster.get("priorityclasses", "", name)
    return SYSTEM_CLASSES.get(name) if found is None else _typed(PriorityClass, found)


def _priority_classes(cluster: ClusterLookup) -> Iterable[PriorityClass]:
    return (_typed(PriorityClass, one) for one in cluster.list("priorityclasses"))


def _default_class(cluster: ClusterLookup) -> PriorityClass | None:
    """The global default; of several the lowest, and of those the first by name."""
    marked = [one for one in _priority_classes(cluster) if one.global_default]
    return min(marked, key=lambda found: (found.value, found.metadata.name), default=None)


def _check_single_default(faults: Faults, new: PriorityClass, cluster: ClusterLookup) -> None:
    """Source: admission plugin Priority, validatePriorityClass."""
    for found in _priority_classes(cluster):
        if found.global_default and found.metadata.name != new.metadata.name:
            detail = f"PriorityClass {found.metadata.name} is already marked as default. Only one default can exist"
            faults.forbidden("globalDefault", detail)
            return


def _set_storage_class(spec: Document, cluster: ClusterLookup) -> None:
    """The newest class marked as default, of equally new ones the first by name. Source: DefaultStorageClass,
    GetDefaultClass."""
    if "storageClassName" in spec:
        return
    metas = map(_metadata, cluster.list("storageclasses"))
    marked = [meta for meta in metas if meta.annotations.get(DEFAULT_CLASS_ANNOTATION) == "true"]
    if marked:
        marked.sort(key=lambda meta: meta.name)
        spec["storageClassName"] = max(marked, key=lambda meta: meta.creation_timestamp or "").name


def _with_uid(stored: Document, document: Document) -> Document:
    """`stored` with the uid that the sender gave, if any, so that one meant for a namesake is refused."""
    given = mapping(document, "metadata").get("uid")
    return {**stored, "metadata": {**stored["metadata"], "uid": given}} if given else stored


def _counts_generations(kind: Kind) -> bool:
    return kind.custom or kind.resource in _COUNTS_GENERATIONS


def _next_generation(stored: Document, old: Document, kind: Kind) -> None:
    if _counts_generations(kind):
        before = mapping(old, "metadata").get("generation", 1)
        stored["metadata"]["generation"] = before + _is_changed(stored, old, kind)


def _is_changed(stored: Document, old: Document, kind: Kind) -> bool:
    """Whether somebody wishes for something else. Of a Deployment annotations count, too. Source:
    pkg/registry/apps/deployment/strategy.go, PrepareForUpdate."""
    if kind.resource == "deployments" and _annotations(stored) != _annotations(old):
        return True
    counted = (stored.keys() | old.keys()) - _NOT_COUNTED
    return any(stored.get(key) != old.get(key) for key in counted)


def _annotations(document: Document) -> Document:
    return mapping(document, "metadata", "annotations")
