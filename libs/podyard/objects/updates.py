"""What an update may change, and what stays although the new document does not say it.

Sources: apimachinery/pkg/api/validation/objectmeta.go; pkg/apis/core/validation/validation.go
(ValidatePodUpdate, ValidatePodResize); pkg/apis/apps, batch, scheduling, storage validation.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from podyard.objects import quantity
from podyard.objects.documents import Document, child, content, copy, is_mapping, mapping, mappings
from podyard.objects.errors import QuantityError
from podyard.objects.faults import Faults, cut
from podyard.objects.secrets import check_immutable

_SYSTEM_METADATA: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
_KEPT_METADATA: Final = ("generateName", "finalizers", "ownerReferences", "managedFields")
_KUBERNETES_DOMAINS: Final = ("kubernetes.io", "k8s.io")
_KEPT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "pods": ("priority", "priorityClassName", "preemptionPolicy", "nodeName"),
    "persistentvolumeclaims": ("volumeName", "storageClassName"),
    "persistentvolumes": ("claimRef",),
    "jobs": ("selector",),
    "services": ("clusterIP",),
}
"""Fields of the spec that admission or a controller set: they stay if the new document leaves them out."""
_POD_RULE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_IMMUTABLE: Final = "field is immutable"
_NAMESPACES: Final = "namespaces"
_RESIZABLE: Final = ("cpu", "memory")


def merge_apply(old: Document, new: Document, resource: str = "") -> Document:
    """`new` as the next version of `old`: what it says counts, what it leaves out is gone, except what others
    wrote.

    These stay: uid and times; owners, finalizers, who manages which field, and the annotations of Kubernetes'
    own domains, unless `new` has its own; each part of the status that `new` leaves out; and the fields of
    the spec that admission or a controller set (a pod's priority and node, a claim's volume and class, a
    volume's claim, a job's selector).
    """
    merged = copy(new)
    before, after = mapping(old, "metadata"), child(merged, "metadata")
    for key in _SYSTEM_METADATA:
        after.pop(key, None)
    for key in (*_SYSTEM_METADATA, *_KEPT_METADATA):
        if key in before and not after.get(key):
            after[key] = before[key]
    kept = {key: value for key, value in mapping(before, "annotations").items() if _is_kubernetes(key)}
    if kept:
        after["annotations"] = kept | mapping(after, "annotations")
    if is_mapping(old.get("status")):
        merged["status"] = mapping(old, "status") | mapping(merged, "status")
    spec = mapping(old, "spec")
    for key in _KEPT_FIELDS.get(resource, ()):
        if key in spec and key not in mapping(merged, "spec"):
            child(merged, "spec")[key] = spec[key]
    if resource == _NAMESPACES:
        _keep_spec_finalizers(old, merged)
    return copy(merged)


def merge_replace(old: Document, new: Document, resource: str = "") -> Document:
    """`new` as the next version of `old`, but for what the API server itself keeps: uid, times, generation
    and the status; a pod's node and priority and a service's address, which no update may take away.

    Source: apiserver/pkg/registry/rest/update.go, BeforeUpdate; PrepareForUpdate of each kind.
    """
    merged = copy(new)
    before, after = mapping(old, "metadata"), child(merged, "metadata")
    for key in _SYSTEM_METADATA:
        after.pop(key, None)
        if key in before:
            after[key] = before[key]
    merged.pop("status", None)
    if "status" in old:
        merged["status"] = copy(old["status"])
    if resource in ("pods", "services"):
        spec = mapping(old, "spec")
        for key in _KEPT_FIELDS[resource]:
            if key in spec and key not in mapping(merged, "spec"):
                child(merged, "spec")[key] = spec[key]
    if resource == _NAMESPACES:
        _keep_spec_finalizers(old, merged)
    return copy(merged)


def merge_finalize(old: Document, new: Document, resource: str = "") -> Document:
    """`old` with the finalizers of its spec, and of its metadata, as `new` has them. Source:
    pkg/registry/core/namespace/strategy.go, namespaceFinalizeStrategy."""
    merged = merge_replace(old, new)
    merged["spec"] = copy(mapping(new, "spec"))
    return merged


def _keep_spec_finalizers(old: Document, merged: Document) -> None:
    """Those of a namespace's spec are changed by its subresource alone. Source: namespaceStrategy,
    PrepareForUpdate."""
    kept = mapping(old, "spec").get("finalizers")
    if kept is not None:
        child(merged, "spec")["finalizers"] = kept
    else:
        mapping(merged, "spec").pop("finalizers", None)


def merge_status(old: Document, new: Document, resource: str = "") -> Document:
    """`old` with the status of `new`, and with its word on who manages which field. Source: PrepareForUpdate
    of each kind's status strategy."""
    merged = {key: value for key, value in old.items() if key != "status"}
    if "status" in new:
        merged["status"] = new["status"]
    merged = copy(merged)
    managed = mapping(new, "metadata").get("managedFields")
    if managed:
        child(merged, "metadata")["managedFields"] = managed
    return merged


def _is_kubernetes(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return any(domain == known or domain.endswith("." + known) for known in _KUBERNETES_DOMAINS)


def check_update(faults: Faults, resource: str, old: Document, new: Document) -> None:
    """Add what `new` changes and may not; both are complete (defaults filled in)."""
    given, known = mapping(new, "metadata").get("uid"), mapping(old, "metadata").get("uid")
    if given and known and given != known:
        detail = f"Precondition failed: UID in precondition: {given}, UID in object meta: {known}"
        faults.add("metadata.uid", "FieldValueInvalid", f'Invalid value: "{given}": {detail}')
    _check_finalizers(faults, mapping(old, "metadata"), mapping(new, "metadata"))
    checker = _CHECKERS.get(resource)
    if checker is not None:
        checker(faults, old, new)


def _check_finalizers(faults: Faults, old: Document, new: Document) -> None:
    """Source: ValidateNoNewFinalizers."""
    if not old.get("deletionTimestamp"):
        return
    added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if added:
        listed = ", ".join(f'"{cut(one)}"' for one in added)
        faults.forbidden(
            "metadata.finalizers",
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}",
        )


def _frozen(*paths: str) -> Callable[[Faults, Document, Document], None]:
    """A check that none of the fields changes."""

    def check(faults: Faults, old: Document, new: Document) -> None:
        for path in paths:
            steps = path.split(".")
            before, after = (mapping(doc, *steps[:-1]).get(steps[-1]) for doc in (old, new))
            if before != after and before is not None:
                faults.invalid(path, "changed", _IMMUTABLE)

    return check


def _check_pod(faults: Faults, old: Document, new: Document) -> None:
    """Also takes new requests and limits of cpu and memory: the resize subresource has no door of its own
    here."""
    before, after = copy(mapping(old, "spec")), copy(mapping(new, "spec"))
    _check_gates(faults, before, after)
    _check_tolerations(faults, before, after)
    if before.get("schedulingGates"):
        _check_gated(faults, before, after)
    deadline = before.get("activeDeadlineSeconds")
    if deadline is not None and (after.get("activeDeadlineSeconds") or deadline + 1) > deadline:
        faults.invalid(
            "spec.activeDeadlineSeconds",
            after.get("activeDeadlineSeconds", ""),
            "must be less than or equal to previous value",
        )
    for spec in (before, after):
        for key in ("schedulingGates", "tolerations", "activeDeadlineSeconds"):
            spec.pop(key, None)
        for container in (*mappings(spec, "containers"), *mappings(spec, "initContainers")):
            container.pop("image", None)
            _drop_resizable(container)
    if before != after:
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        faults.forbidden("spec", f"{_POD_RULE}; changed: {', '.join(changed)}")


def _drop_resizable(container: Document) -> None:
    resources = mapping(container, "resources")
    for key in ("requests", "limits"):
        for name in _RESIZABLE:
            mapping(resources, key).pop(name, None)
    for key in [key for key, value in resources.items() if not value]:
        del resources[key]
    if not resources:
        container.pop("resources", None)


def _check_gates(faults: Faults, before: Document, after: Document) -> None:
    """Source: validateSchedulingGates on update: gates may only go."""
    known = {gate.get("name") for gate in mappings(before, "schedulingGates")}
    for at, gate in enumerate(mappings(after, "schedulingGates")):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            faults.forbidden(f"spec.schedulingGates[{at}].name", detail)


def _check_tolerations(faults: Faults, before: Document, after: Document) -> None:
    """Source: validateOnlyAddedTolerations: all that were there stay; only their seconds may change."""

    def plain(toleration: Document) -> bytes:
        return content({key: value for key, value in toleration.items() if key != "tolerationSeconds"})

    kept = {plain(toleration) for toleration in mappings(after, "tolerations")}
    if any(plain(toleration) not in kept for toleration in mappings(before, "tolerations")):
        faults.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _check_gated(faults: Faults, before: Document, after: Document) -> None:
    """A gated pod may get a narrower nodeSelector and node affinity. Source: ValidatePodUpdate,
    validateNodeAffinityMutation."""
    selector, narrowed = before.pop("nodeSelector", {}), after.pop("nodeSelector", {})
    if any(narrowed.get(key) != value for key, value in selector.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        faults.add("spec.nodeSelector", "FieldValueInvalid", f"Invalid value: {narrowed}: {detail}")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = mapping(before, "affinity", "nodeAffinity", required).get("nodeSelectorTerms")
    now = mapping(after, "affinity", "nodeAffinity", required).get("nodeSelectorTerms")
    if terms and not _narrows(terms, now or []):
        detail = "only additions are allowed in each term, and no term may be added or removed"
        faults.add(
            f"spec.affinity.nodeAffinity.{required}.nodeSelectorTerms", "FieldValueInvalid", f"Invalid value: {detail}"
        )
    for spec in (before, after):
        affinity = mapping(spec, "affinity")
        affinity.pop("nodeAffinity", None)
        if not affinity:
            spec.pop("affinity", None)


def _narrows(terms: list[Document], now: list[Document]) -> bool:
    if len(terms) != len(now):
        return False
    for term, narrower in zip(terms, now, strict=True):
        for key in ("matchExpressions", "matchFields"):
            if not set(map(content, mappings(term, key))) <= set(map(content, mappings(narrower, key))):
                return False
    return True


def _check_job(faults: Faults, old: Document, new: Document) -> None:
    _frozen("spec.selector", "spec.completionMode", "spec.podReplacementPolicy")(faults, old, new)
    if mapping(old, "spec").get("completionMode") != "Indexed":
        _frozen("spec.completions")(faults, old, new)
    if not mapping(old, "spec").get("suspend"):
        _frozen("spec.template")(faults, old, new)


def _check_claim(faults: Faults, old: Document, new: Document) -> None:
    """A claim may only grow, and get the volume it has not got. Source:
    ValidatePersistentVolumeClaimUpdate."""
    _frozen("spec.accessModes", "spec.storageClassName", "spec.volumeName", "spec.selector", "spec.volumeMode")(
        faults, old, new
    )
    sizes = [mapping(doc, "spec", "resources", "requests").get("storage") for doc in (old, new)]
    try:
        before, after = (quantity.nano(size) if size is not None else 0 for size in sizes)
    except QuantityError:
        return
    if after < before:
        faults.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _check_stateful_set(faults: Faults, old: Document, new: Document) -> None:
    allowed = {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
    before, after = mapping(old, "spec"), mapping(new, "spec")
    if any(before.get(key) != after.get(key) for key in (before.keys() | after.keys()) - allowed):
        listed = "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        listed += "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
        faults.forbidden("spec", f"updates to statefulset spec for fields other than {listed} are forbidden")


def _check_config_map(faults: Faults, old: Document, new: Document) -> None:
    """Source: ValidateConfigMapUpdate."""
    check_immutable(faults, new, old, ("data", "binaryData"))


def _check_resource_quota(faults: Faults, old: Document, new: Document) -> None:
    """Source: ValidateResourceQuotaUpdate."""
    before: list[str] = mapping(old, "spec").get("scopes") or []
    after: list[str] = mapping(new, "spec").get("scopes") or []
    if set(before) != set(after):
        faults.invalid("spec.scopes", f"[{' '.join(after)}]", _IMMUTABLE)


_CHECKERS: Final[Mapping[str, Callable[[Faults, Any, Any], None]]] = {
    "pods": _check_pod,
    "configmaps": _check_config_map,
    "replicasets": _frozen("spec.selector"),
    "deployments": _frozen("spec.selector"),
    "daemonsets": _frozen("spec.selector"),
    "controllerrevisions": _frozen("data"),
    "statefulsets": _check_stateful_set,
    "jobs": _check_job,
    "persistentvolumeclaims": _check_claim,
    "resourcequotas": _check_resource_quota,
    "storageclasses": _frozen("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "priorityclasses": _frozen("value", "preemptionPolicy"),
}
