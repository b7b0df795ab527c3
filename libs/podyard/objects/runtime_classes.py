"""Runtime classes (`node.k8s.io/v1`), and what a pod gets from its class on its way in.

Sources: api/node/v1/types.go; kubernetes v1.36.2, plugin/pkg/admission/runtimeclass/admission.go,
pkg/util/tolerations/tolerations.go, pkg/apis/node/validation/validation.go.
"""

from typing import Any, Final

import msgspec

from podyard.objects import quantity
from podyard.objects.affinity import Toleration
from podyard.objects.affinity_validation import check_tolerations
from podyard.objects.containers import ResourceRequirements
from podyard.objects.documents import Document, mapping
from podyard.objects.faults import Faults
from podyard.objects.meta import ObjectMeta, ResourceList, View
from podyard.objects.names import check_labels, label_fault
from podyard.objects.resource_validation import check_requirements
from podyard.objects.taints import NO_EXECUTE

_NO_META: Final = ObjectMeta()


class Overhead(View, frozen=True, kw_only=True):
    """What a pod of the class takes beside its containers."""

    pod_fixed: ResourceList = {}


class Scheduling(View, frozen=True, kw_only=True):
    """Which nodes can run pods of the class."""

    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(View, frozen=True, kw_only=True):
    """A way to run containers. None: no overhead, any node."""

    metadata: ObjectMeta = _NO_META
    handler: str = ""
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None


def check_runtime_class(faults: Faults, runtime_class: RuntimeClass) -> None:
    """Source: ValidateRuntimeClass."""
    if not runtime_class.handler:
        faults.required("handler")
    elif fault := label_fault(runtime_class.handler):
        faults.invalid("handler", runtime_class.handler, fault)
    if runtime_class.overhead is not None:
        with faults.below("overhead"):
            check_requirements(faults, ResourceRequirements(limits=runtime_class.overhead.pod_fixed))
    if runtime_class.scheduling is not None:
        with faults.below("scheduling"):
            check_labels(faults, runtime_class.scheduling.node_selector, "nodeSelector")
            check_tolerations(faults, runtime_class.scheduling.tolerations)


def apply_class(faults: Faults, spec: Document, runtime_class: RuntimeClass | None) -> None:
    """Fill in a new pod's overhead, node selector and tolerations by its class; what differs is refused.

    :param runtime_class: the one that `spec.runtimeClassName` names; None: there is none
    """
    name = spec.get("runtimeClassName")
    if name is not None and runtime_class is None:
        detail = f'pod rejected: RuntimeClass "{name}" not found: create it first, or leave runtimeClassName out'
        faults.forbidden("spec.runtimeClassName", detail)
        return
    _set_overhead(faults, spec, runtime_class)
    if runtime_class is not None and runtime_class.scheduling is not None:
        _set_scheduling(faults, spec, runtime_class.scheduling)


def _set_overhead(faults: Faults, spec: Document, runtime_class: RuntimeClass | None) -> None:
    given = mapping(spec, "overhead")
    if runtime_class is None or runtime_class.overhead is None:
        if "overhead" in spec:
            detail = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            faults.forbidden("spec.overhead", detail)
        return
    fixed = runtime_class.overhead.pod_fixed
    if given and _amounts(given) != _amounts(fixed):
        faults.forbidden("spec.overhead", "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        return
    spec["overhead"] = dict(fixed)


def _amounts(resources: Document) -> dict[str, int]:
    return {name: quantity.nano(text) for name, text in resources.items()}


def _set_scheduling(faults: Faults, spec: Document, scheduling: Scheduling) -> None:
    selector = dict(mapping(spec, "nodeSelector"))
    for key, value in scheduling.node_selector.items():
        if selector.setdefault(key, value) != value:
            detail = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            faults.forbidden(f"spec.nodeSelector[{key}]", detail)
            return
    if selector:
        spec["nodeSelector"] = selector
    theirs: list[Document] = [msgspec.to_builtins(one) for one in scheduling.tolerations]
    merged = _merged([*spec.get("tolerations", ()), *theirs])
    if merged:
        spec["tolerations"] = merged


def _merged(tolerations: list[Document]) -> list[Document]:
    """Without those that another one makes superfluous; of equal ones the first stays. Source:
    MergeTolerations."""
    merged: list[Document] = []
    for at, one in enumerate(tolerations):
        later = (other for other in tolerations[at + 1 :] if other != one)
        if not any(_covers(kept, one) for kept in merged) and not any(_covers(other, one) for other in later):
            merged.append(one)
    return merged


def _covers(wide: Document, one: Document) -> bool:
    """Whether `wide` tolerates all that `one` does. Source: isSuperset."""
    if wide == one:
        return True
    key, operator, effect = (_text(wide, field) for field in ("key", "operator", "effect"))
    if _text(one, "key") != key and (key or operator != "Exists"):
        return False
    if effect and _text(one, "effect") != effect:
        return False
    if effect == NO_EXECUTE and "tolerationSeconds" in wide:
        seconds = one.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if operator == "Exists":
        return True
    return operator in ("", "Equal") and one.get("operator") == "Equal" and _text(one, "value") == _text(wide, "value")


def _text(toleration: Document, field: str) -> Any:
    return toleration.get(field, "")
