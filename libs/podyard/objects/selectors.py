"""Label selectors and node selectors, compiled once and asked often.

Sources: apimachinery/pkg/labels/selector.go, apimachinery/pkg/apis/meta/v1/helpers.go
(LabelSelectorAsSelector), component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from podyard.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from podyard.objects.errors import SelectorError
from podyard.objects.meta import LabelSelector, LabelSelectorRequirement
from podyard.objects.pod import Pod

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"

LABEL_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
NODE_OPERATORS: Final = (*LABEL_OPERATORS, GT, LT)
NODE_NAME_FIELD: Final = "metadata.name"

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64: Final = range(-(2**63), 2**63)


def whole_number(text: str) -> int | None:
    """`text` as a 64-bit whole number, `None` if it is none. Source: strconv.ParseInt(text, 10, 64)."""
    if len(text) > 20 or _WHOLE_NUMBER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number in _INT64 else None


class Requirement(NamedTuple):
    """One condition on one label. `bound`: the number of Gt and Lt, 0 for the others."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` fulfil it. NotIn holds for an absent label; Gt and Lt never for one that is no
        whole number."""
        held = labels.get(self.key)
        match self.operator:
            case "In":
                return held in self.values
            case "NotIn":
                return held not in self.values
            case "Exists":
                return held is not None
            case "DoesNotExist":
                return held is None
            case _:
                number = None if held is None else whole_number(held)
                return number is not None and (number > self.bound if self.operator == GT else number < self.bound)

    def __str__(self) -> str:
        """As kubectl writes it: `disk=ssd`, `zone in (a, b)`."""
        values = ", ".join(sorted(self.values))
        match self.operator:
            case "In":
                return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
            case "NotIn":
                return f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case _:
                return f"{self.key}{'>' if self.operator == GT else '<'}{self.bound}"


class Selector(NamedTuple):
    """A compiled label selector. No requirements: it matches everything, unless `nothing`."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def everything(self) -> bool:
        """Whether it matches every object."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all requirements hold for `labels`."""
        if self.nothing:
            return False
        for requirement in self.requirements:
            if requirement.operator == IN:
                if labels.get(requirement.key) not in requirement.values:
                    return False
            elif not requirement.matches(labels):
                return False
        return True

    def __str__(self) -> str:
        """Its requirements, separated by commas."""
        return ",".join(map(str, self.requirements)) or ("no label at all" if self.nothing else "any labels")


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


def compile_labels(selector: LabelSelector | None) -> Selector:
    """A label selector ready to be asked: an absent one matches nothing, an empty one everything.

    :raises SelectorError: for an unknown operator or values that do not go with it; `field` is below the
        selector
    """
    if selector is None:
        return NOTHING
    listed = selector.match_expressions
    found = [_equals(key, selector.match_labels[key]) for key in sorted(selector.match_labels)]
    found += [_label_requirement(expression, f"matchExpressions[{at}]") for at, expression in enumerate(listed)]
    return Selector(tuple(found)) if found else EVERYTHING


def compile_map(labels: Mapping[str, str]) -> Selector:
    """A plain map as a selector (Service, ReplicationController, nodeSelector); an empty one matches
    everything."""
    return Selector(tuple(_equals(key, labels[key]) for key in sorted(labels)))


def _equals(key: str, value: str) -> Requirement:
    return Requirement(key, IN, frozenset((value,)))


def _label_requirement(expression: LabelSelectorRequirement, where: str) -> Requirement:
    if expression.operator not in LABEL_OPERATORS:
        raise SelectorError(f"{where}.operator", f'"{expression.operator}" is not a valid label selector operator')
    return _requirement(expression.key, expression.operator, expression.values, where)


def _requirement(key: str, operator: str, values: tuple[str, ...], where: str) -> Requirement:
    """Source: labels.NewRequirement."""
    if operator in (IN, NOT_IN):
        if not values:
            raise SelectorError(
                f"{where}.values", "Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
            )
        return Requirement(key, operator, frozenset(values))
    if operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            shown = ", ".join(values)
            detail = f"Invalid value: [{shown}]: values set must be empty for exists and does not exist"
            raise SelectorError(f"{where}.values", detail)
        return Requirement(key, operator)
    return _comparison(key, operator, values, where)


def _comparison(key: str, operator: str, values: tuple[str, ...], where: str) -> Requirement:
    shown = ", ".join(values)
    if len(values) != 1:
        detail = f"Invalid value: [{shown}]: for 'Gt', 'Lt' operators, exactly one value is required"
        raise SelectorError(f"{where}.values", detail)
    bound = whole_number(values[0])
    if bound is None:
        detail = f"Invalid value: \"{shown}\": for 'Gt', 'Lt' operators, the value must be an integer"
        raise SelectorError(f"{where}.values[0]", detail)
    return Requirement(key, operator, frozenset(values), bound)


class FieldRequirement(NamedTuple):
    """A condition on a field of the node; only `metadata.name` exists, other fields are empty."""

    key: str
    equal: bool
    value: str

    def matches(self, node_name: str) -> bool:
        """Whether the node of that name fulfils it."""
        held = node_name if self.key == NODE_NAME_FIELD else ""
        return (held == self.value) is self.equal

    def __str__(self) -> str:
        """`metadata.name=node-1`."""
        return f"{self.key}{'=' if self.equal else '!='}{self.value}"


class NodeTerm(NamedTuple):
    """One compiled term: all requirements must hold. `fault`: why it could not be compiled; it then matches
    nothing."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    fault: SelectorError | None = None

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Whether a node of these labels and this name fulfils it."""
        if self.fault is not None:
            return False
        return all(field.matches(node_name) for field in self.fields) and all(
            requirement.matches(labels) for requirement in self.labels
        )

    def __str__(self) -> str:
        """Its requirements, separated by commas."""
        return ",".join(map(str, (*self.fields, *self.labels)))


class NodeTerms(NamedTuple):
    """A compiled node selector: one of the terms must hold; without terms it matches no node."""

    terms: tuple[NodeTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Whether a node of these labels and this name fulfils one of the terms.

        :raises SelectorError: if none does and one of them could not be compiled
        """
        if any(term.matches(labels, node_name) for term in self.terms):
            return True
        for term in self.terms:
            if term.fault is not None:
                raise term.fault
        return False


def compile_nodes(selector: NodeSelector) -> NodeTerms:
    """A node selector ready to be asked. Empty terms are left out: they match nothing. Faulty terms carry
    their fault."""
    listed = enumerate(selector.node_selector_terms)
    return NodeTerms(tuple(compile_term(term, f"nodeSelectorTerms[{at}]") for at, term in listed if not is_empty(term)))


def is_empty(term: NodeSelectorTerm) -> bool:
    """Whether a term says nothing: it then matches no node."""
    return not term.match_expressions and not term.match_fields


def compile_term(term: NodeSelectorTerm, where: str = "") -> NodeTerm:
    """One term ready to be asked; a faulty one carries its fault, `field` below `where`."""
    try:
        return NodeTerm(
            tuple(
                _node_requirement(item, at)
                for item, at in _numbered(term.match_expressions, f"{where}.matchExpressions")
            ),
            tuple(_field_requirement(item, at) for item, at in _numbered(term.match_fields, f"{where}.matchFields")),
        )
    except SelectorError as error:
        return NodeTerm(fault=error)


def _numbered(items: Iterable[NodeSelectorRequirement], where: str) -> Iterable[tuple[NodeSelectorRequirement, str]]:
    return ((item, f"{where}[{at}]".lstrip(".")) for at, item in enumerate(items))


def _node_requirement(item: NodeSelectorRequirement, where: str) -> Requirement:
    if item.operator not in NODE_OPERATORS:
        raise SelectorError(f"{where}.operator", f'Unsupported value: "{item.operator}": not a valid selector operator')
    return _requirement(item.key, item.operator, item.values, where)


def _field_requirement(item: NodeSelectorRequirement, where: str) -> FieldRequirement:
    if item.operator not in (IN, NOT_IN):
        detail = f'Unsupported value: "{item.operator}": not a valid field selector operator'
        raise SelectorError(f"{where}.operator", detail)
    if len(item.values) != 1:
        detail = f"Invalid value: {len(item.values)}: must have one element"
        raise SelectorError(f"{where}.values", detail)
    return FieldRequirement(item.key, item.operator == IN, item.values[0])


class RequiredNodeAffinity(NamedTuple):
    """What a pod needs of its node: its nodeSelector and its required node affinity (`None`: it has none)."""

    selector: Selector
    affinity: NodeTerms | None

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Whether a node of these labels and this name will do.

        :raises SelectorError: if no term matches and one of them could not be compiled
        """
        if not self.selector.matches(labels):
            return False
        return self.affinity is None or self.affinity.matches(labels, node_name)


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """What `pod` needs of its node, compiled. Source: nodeaffinity.GetRequiredNodeAffinity."""
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity is not None else None
    return RequiredNodeAffinity(
        compile_map(pod.spec.node_selector), compile_nodes(required) if required is not None else None
    )


class PreferredTerm(NamedTuple):
    """A preference: `weight` points for a node that fulfils `term`."""

    weight: int
    term: NodeTerm


def compile_preferred(terms: Iterable[PreferredSchedulingTerm]) -> tuple[PreferredTerm, ...]:
    """Preferences ready to be asked; those of weight 0 and empty ones are left out.

    :raises SelectorError: if one of them could not be compiled. Source:
        nodeaffinity.NewPreferredSchedulingTerms
    """
    found = tuple(
        PreferredTerm(preferred.weight, compile_term(preferred.preference, f"[{at}]"))
        for at, preferred in enumerate(terms)
        if preferred.weight != 0 and not is_empty(preferred.preference)
    )
    for preferred in found:
        if preferred.term.fault is not None:
            raise preferred.term.fault
    return found
