"""What Go writes of a status although nobody said it: fields that are required, and structures that are no
pointers. Clients in other languages refuse a status without them. Pure.

What agents and `workloads` say of an object leaves out what is zero; specs are written by who applies them.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple, cast

from podyard.kube_api.core.event_rules import EVENT
from podyard.kube_api.core.patching.implied_values import implied
from podyard.objects import api_types
from podyard.objects.api_types import LIST
from podyard.objects.documents import Document, is_mapping
from podyard.objects.kinds import kind_of_resource

_STATUS: Final = "status"


class _Shape(NamedTuple):
    """A structure: what its fields hold, and which of them hold structures that have something to fill."""

    zeros: tuple[tuple[str, Any], ...]
    inner: "tuple[tuple[str, _Shape], ...]"


def fill(document: Document, resource: str) -> Document:
    """The object with its status as Go writes it; the same that was given.

    :param resource: where it is stored
    """
    shape = _shape_of(resource)
    if shape is not None:
        _fill(document.setdefault(_STATUS, {}), shape)
    return document


@cache
def _shape_of(resource: str) -> _Shape | None:
    """Of the status of a kind; None: it has none, or is nobody's."""
    if resource == EVENT.resource:
        return None
    kind = kind_of_resource(resource)
    definition = None if kind.custom else api_types.definition_of(kind.api_version, kind.kind)
    if definition is None:
        return None
    status = api_types.table().definitions[definition].fields.get(_STATUS)
    return None if status is None else _shape(status.type, ())


def _shape(definition: str, above: tuple[str, ...]) -> _Shape | None:
    """
    :param above: definitions that this one is in: none holds itself
    """
    found = api_types.table().definitions.get(definition)
    if found is None or not found.fields or definition in above:
        return None
    inner: list[tuple[str, _Shape]] = []
    for name, field in found.fields.items():
        shape = _shape(field.type.removeprefix(LIST), (*above, definition))
        if shape is not None and (shape.zeros or shape.inner):
            inner.append((name, shape))
    return _Shape(tuple(implied(definition).items()), tuple(inner))


def _fill(found: Any, shape: _Shape) -> None:
    if isinstance(found, list | tuple):  # what is joined has tuples
        for one in cast("Sequence[Any]", found):
            _fill(one, shape)
    elif is_mapping(found):
        for name, zero in shape.zeros:
            if name not in found:
                found[name] = {} if zero == {} else zero
        for name, inner in shape.inner:
            if name in found:
                _fill(found[name], inner)
