"""Which selectors, affinity, spreading, taints and tolerations are allowed. Source:
pkg/apis/core/validation/validation.go."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from podyard.objects.affinity import (
    Affinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from podyard.objects.faults import Faults
from podyard.objects.meta import LabelSelector
from podyard.objects.names import check_labels, label_fault, label_value_fault, qualified_fault, subdomain_fault
from podyard.objects.selectors import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NODE_NAME_FIELD, NOT_IN, whole_number
from podyard.objects.taints import EFFECTS, NO_EXECUTE

_HEAVIEST: Final = 100
_EFFECTS: Final = frozenset(EFFECTS)
_POLICIES: Final = ("Honor", "Ignore")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")


def check_label_selector(faults: Faults, selector: LabelSelector) -> None:
    """Source: apimachinery/pkg/apis/meta/v1/validation, ValidateLabelSelector."""
    check_labels(faults, selector.match_labels, "matchLabels")
    for at, item in enumerate(selector.match_expressions):
        with faults.below(f"matchExpressions[{at}]"):
            if item.operator in (IN, NOT_IN):
                if not item.values:
                    faults.required("values", "must be specified when `operator` is 'In' or 'NotIn'")
            elif item.operator in (EXISTS, DOES_NOT_EXIST):
                if item.values:
                    faults.forbidden("values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            else:
                faults.invalid("operator", item.operator, "not a valid selector operator")
            _check_key_and_values(faults, item.key, item.values)


def _check_key_and_values(faults: Faults, key: str, values: Iterable[str]) -> None:
    if fault := qualified_fault(key):
        faults.invalid("key", key, fault)
    for at, value in enumerate(values):
        if fault := label_value_fault(value):
            faults.invalid(f"values[{at}]", value, fault)


def check_affinity(faults: Faults, affinity: Affinity) -> None:
    """Check node affinity, pod affinity and pod anti-affinity."""
    node = affinity.node_affinity
    if node is not None:
        with faults.below("nodeAffinity"):
            required = node.required_during_scheduling_ignored_during_execution
            if required is not None:
                check_node_terms(
                    faults,
                    required.node_selector_terms,
                    "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
                )
            for at, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution):
                with faults.below(f"preferredDuringSchedulingIgnoredDuringExecution[{at}]"):
                    _check_weight(faults, preferred.weight)
                    with faults.below("preference"):
                        _check_node_term(faults, preferred.preference)
    for name, pods in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if pods is not None:
            with faults.below(name):
                _check_pod_affinity(faults, pods)


def check_node_terms(faults: Faults, terms: tuple[NodeSelectorTerm, ...], field: str) -> None:
    """Check a required node selector, of a pod or a volume."""
    if not terms:
        faults.required(field, "must have at least one node selector term")
    for at, term in enumerate(terms):
        with faults.below(f"{field}[{at}]"):
            _check_node_term(faults, term)


def _check_weight(faults: Faults, weight: int) -> None:
    if not 1 <= weight <= _HEAVIEST:
        faults.invalid("weight", weight, "must be in the range 1-100")


def _check_node_term(faults: Faults, term: NodeSelectorTerm) -> None:
    for at, item in enumerate(term.match_expressions):
        with faults.below(f"matchExpressions[{at}]"):
            _check_node_requirement(faults, item)
    for at, item in enumerate(term.match_fields):
        with faults.below(f"matchFields[{at}]"):
            _check_node_field(faults, item)


def _check_node_requirement(faults: Faults, item: NodeSelectorRequirement) -> None:
    match item.operator:
        case "In" | "NotIn":
            if not item.values:
                faults.required("values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if item.values:
                faults.forbidden("values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt":
            if len(item.values) != 1:
                faults.required("values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
            elif whole_number(item.values[0]) is None:
                faults.invalid("values[0]", item.values[0], "for 'Gt', 'Lt' operators, the value must be an integer")
        case _:
            faults.unsupported("operator", item.operator, (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT))
    _check_key_and_values(faults, item.key, item.values if item.operator in (IN, NOT_IN) else ())


def _check_node_field(faults: Faults, item: NodeSelectorRequirement) -> None:
    if item.operator not in (IN, NOT_IN):
        faults.unsupported("operator", item.operator, (IN, NOT_IN))
    elif len(item.values) != 1:
        faults.required("values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
    if item.key != NODE_NAME_FIELD:
        faults.invalid("key", item.key, "not a valid field selector key")
    for at, value in enumerate(item.values):
        if fault := subdomain_fault(value):
            faults.invalid(f"values[{at}]", value, fault)


def _check_pod_affinity(faults: Faults, pods: PodAffinity | PodAntiAffinity) -> None:
    for at, term in enumerate(pods.required_during_scheduling_ignored_during_execution):
        with faults.below(f"requiredDuringSchedulingIgnoredDuringExecution[{at}]"):
            _check_pod_term(faults, term)
    for at, preferred in enumerate(pods.preferred_during_scheduling_ignored_during_execution):
        with faults.below(f"preferredDuringSchedulingIgnoredDuringExecution[{at}]"):
            _check_weight(faults, preferred.weight)
            with faults.below("podAffinityTerm"):
                _check_pod_term(faults, preferred.pod_affinity_term)


def _check_pod_term(faults: Faults, term: PodAffinityTerm) -> None:
    for name, selector in (("labelSelector", term.label_selector), ("namespaceSelector", term.namespace_selector)):
        if selector is not None:
            with faults.below(name):
                check_label_selector(faults, selector)
    for at, namespace in enumerate(term.namespaces):
        if fault := label_fault(namespace):
            faults.invalid(f"namespaces[{at}]", namespace, fault)
    mismatched = frozenset(term.mismatch_label_keys)
    for name, keys in (("matchLabelKeys", term.match_label_keys), ("mismatchLabelKeys", term.mismatch_label_keys)):
        _check_label_keys(faults, name, keys, term.label_selector)
        for at, key in enumerate(keys):
            if name == "matchLabelKeys" and key in mismatched:
                faults.invalid(f"{name}[{at}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
    _check_topology_key(faults, term.topology_key, "can not be empty")


def _check_label_keys(faults: Faults, field: str, keys: tuple[str, ...], selector: LabelSelector | None) -> None:
    if keys and selector is None:
        faults.forbidden(field, "must not be specified when labelSelector is not set")
    for at, key in enumerate(keys):
        if fault := qualified_fault(key):
            faults.invalid(f"{field}[{at}]", key, fault)


def _check_topology_key(faults: Faults, key: str, empty: str) -> None:
    if not key:
        faults.required("topologyKey", empty)
    elif fault := qualified_fault(key):
        faults.invalid("topologyKey", key, fault)


def check_spreading(faults: Faults, constraints: tuple[TopologySpreadConstraint, ...]) -> None:
    """Source: validateTopologySpreadConstraints."""
    seen: set[tuple[str, str]] = set()
    for at, constraint in enumerate(constraints):
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            faults.duplicate(
                f"topologySpreadConstraints[{at}].{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}"
            )
        seen.add(pair)
        with faults.below(f"topologySpreadConstraints[{at}]"):
            _check_constraint(faults, constraint)


def _check_constraint(faults: Faults, constraint: TopologySpreadConstraint) -> None:
    if constraint.max_skew <= 0:
        faults.invalid("maxSkew", constraint.max_skew, "must be greater than zero")
    _check_topology_key(faults, constraint.topology_key, "can not be empty")
    if constraint.when_unsatisfiable not in _UNSATISFIABLE:
        faults.unsupported("whenUnsatisfiable", constraint.when_unsatisfiable, _UNSATISFIABLE)
    domains = constraint.min_domains
    if domains is not None and domains <= 0:
        faults.invalid("minDomains", domains, "must be greater than zero")
    if domains is not None and constraint.when_unsatisfiable != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {constraint.when_unsatisfiable}"
        faults.invalid("minDomains", domains, detail)
    faults.one_of("nodeAffinityPolicy", constraint.node_affinity_policy or "", _POLICIES)
    faults.one_of("nodeTaintsPolicy", constraint.node_taints_policy or "", _POLICIES)
    _check_label_keys(faults, "matchLabelKeys", constraint.match_label_keys, constraint.label_selector)
    if constraint.label_selector is not None:
        with faults.below("labelSelector"):
            check_label_selector(faults, constraint.label_selector)


def check_taints(faults: Faults, taints: tuple[Taint, ...]) -> None:
    """Source: validateNodeTaints."""
    seen: set[tuple[str, str]] = set()
    for at, taint in enumerate(taints):
        with faults.below(f"taints[{at}]"):
            if fault := qualified_fault(taint.key):
                faults.invalid("key", taint.key, fault)
            if fault := label_value_fault(taint.value):
                faults.invalid("value", taint.value, fault)
            if taint.effect not in _EFFECTS:
                faults.unsupported("effect", taint.effect, EFFECTS)
            if (taint.key, taint.effect) in seen:
                faults.duplicate("", f"{taint.key}:{taint.effect}")
        seen.add((taint.key, taint.effect))


def check_tolerations(faults: Faults, tolerations: tuple[Toleration, ...]) -> None:
    """Source: ValidateTolerations. The operators Gt and Lt are off by default in v1.36."""
    for at, toleration in enumerate(tolerations):
        given = len(toleration.key) + len(toleration.value) + len(toleration.operator) + len(toleration.effect)
        if given > LONGEST_TOLERATION or not _is_fine(toleration):
            with faults.below(f"tolerations[{at}]"):
                _check_toleration(faults, toleration)


LONGEST_TOLERATION: Final = 512
"""Letters of a toleration that may be fine: a key of 317, a value of 63 and two short words."""


@lru_cache(maxsize=1024)
def _is_fine(toleration: Toleration) -> bool:
    """Cached: every pod has the same few."""
    faults = Faults()
    _check_toleration(faults, toleration)
    return not faults


def _check_toleration(faults: Faults, toleration: Toleration) -> None:
    key, operator = toleration.key, toleration.operator
    if key and (fault := qualified_fault(key)):
        faults.invalid("key", key, fault)
    if not key and operator != EXISTS:
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        faults.invalid("operator", operator, detail)
    if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
        faults.invalid("effect", toleration.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        if fault := label_value_fault(toleration.value):
            faults.invalid("operator", toleration.value, fault)
    elif operator != EXISTS:
        faults.unsupported("operator", operator, ("Equal", EXISTS))
    elif toleration.value:
        faults.invalid("operator", toleration.value, "value must be empty when `operator` is 'Exists'")
    faults.one_of("effect", toleration.effect, EFFECTS)
