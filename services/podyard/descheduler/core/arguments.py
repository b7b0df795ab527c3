"""What the arguments of several plugins share.

Sources: pkg/api/types.go, pkg/framework/plugins/*/types.go and validation.go; apimachinery v0.36,
pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector), pkg/labels/selector.go (NewRequirement).
"""

from typing import Annotated, Self, TypeAlias

import msgspec
from msgspec import Meta

from podyard.objects import names, selectors
from podyard.objects.errors import SelectorError
from podyard.objects.meta import LabelSelector, LabelSelectorRequirement

Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Unsigned: TypeAlias = Annotated[int, Meta(ge=0)]


class Args(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True):
    """Base of all parts of plugin arguments: an unknown field is an error."""


class PluginArgs(Args, frozen=True, kw_only=True):
    """Base of the arguments of a plugin."""

    api_version: str = ""
    kind: str = ""
    """Both may be given, and say nothing: the plugin's name says whose arguments these are."""

    def completed(self) -> Self:
        """With the defaults that depend on what was left out. Asked after the arguments were checked."""
        return self


class Expression(Args, frozen=True, kw_only=True):
    """One line of `matchExpressions`. What is left out is empty, and then told as a fault."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class SelectorArgs(Args, frozen=True, kw_only=True):
    """A label selector in a policy."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Expression, ...] = ()


class Namespaces(Args, frozen=True, kw_only=True):
    """Which namespaces a plugin looks at: only those, or all but those."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, namespace: str) -> bool:
        """Whether the plugin looks at `namespace`."""
        if self.include and namespace not in self.include:
            return False
        return namespace not in self.exclude


class PriorityThreshold(Args, frozen=True, kw_only=True):
    """Pods of this priority or above stay: a number, or the name of a PriorityClass."""

    value: Int32 | None = None
    name: str = ""


EVERY_NAMESPACE = Namespaces()


def namespace_faults(namespaces: Namespaces | None) -> list[str]:
    """What is wrong with a choice of namespaces."""
    if namespaces is not None and namespaces.include and namespaces.exclude:
        return ["only one of Include/Exclude namespaces can be set"]
    return []


def selector_faults(selector: SelectorArgs | None) -> list[str]:
    """What is wrong with a label selector."""
    try:
        compiled(selector)
    except SelectorError as error:
        return [f"failed to get label selectors from strategy's params: {error.detail}"]
    return []


def compiled(selector: SelectorArgs | None) -> selectors.Selector:
    """A selector that is asked; an absent one matches everything here.

    :raises SelectorError: if it makes no sense; `detail` is the reference's sentence
    """
    if selector is None:
        return selectors.EVERYTHING
    for key in sorted(selector.match_labels):
        _check(key, selectors.IN, (selector.match_labels[key],))
    for one in selector.match_expressions:
        if one.operator not in selectors.LABEL_OPERATORS:
            raise SelectorError("", f'"{one.operator}" is not a valid label selector operator')
        _check(one.key, one.operator, one.values)
    expressions = tuple(
        LabelSelectorRequirement(key=one.key, operator=one.operator, values=one.values)
        for one in selector.match_expressions
    )
    return selectors.compile_labels(LabelSelector(match_labels=selector.match_labels, match_expressions=expressions))


def _check(key: str, operator: str, values: tuple[str, ...]) -> None:
    """One requirement: all its faults in one sentence. An empty `values` counts as none."""
    found: list[str] = []
    if fault := names.qualified_fault(key):
        found.append(f"key: Invalid value: {_quoted(key)}: {fault}")
    if operator in (selectors.IN, selectors.NOT_IN):
        if not values:
            found.append("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")
    elif values:
        shown = f"[{','.join(map(_quoted, values))}]"
        found.append(f"values: Invalid value: {shown}: values set must be empty for exists and does not exist")
    for at, value in enumerate(values):
        if fault := names.label_value_fault(value):
            found.append(f"values[{at}][{key}]: Invalid value: {_quoted(value)}: {fault}")
    found = list(dict.fromkeys(found))
    if found:
        raise SelectorError("", found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
