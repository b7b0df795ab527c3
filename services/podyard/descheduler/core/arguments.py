"""What the arguments of several plugins share. Sources: pkg/api/types.go,
pkg/framework/plugins/*/types.go."""

import msgspec

from podyard.objects import selectors
from podyard.objects.errors import SelectorError
from podyard.objects.meta import LabelSelector


class Args(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True):
    """Base of all plugin arguments: an unknown field is an error."""


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

    value: int | None = None
    name: str = ""


EVERY_NAMESPACE = Namespaces()


def namespace_faults(namespaces: Namespaces | None) -> list[str]:
    """What is wrong with a choice of namespaces."""
    if namespaces is not None and namespaces.include and namespaces.exclude:
        return ["only one of Include/Exclude namespaces can be set"]
    return []


def selector_faults(selector: LabelSelector | None) -> list[str]:
    """What is wrong with a label selector."""
    try:
        compiled(selector)
    except SelectorError as error:
        return [f"failed to get label selectors from strategy's params: {selector_sentence(error)}"]
    return []


def compiled(selector: LabelSelector | None) -> selectors.Selector:
    """A selector that is asked; an absent one matches everything here.

    :raises SelectorError: if it makes no sense
    """
    return selectors.EVERYTHING if selector is None else selectors.compile_labels(selector)


def selector_sentence(error: SelectorError) -> str:
    """The fault as the reference words it: its last field name stands before the sentence, but for
    operators."""
    field = error.field.rpartition(".")[2]
    return error.detail if field in ("", "operator") else f"{field}: {error.detail}"
