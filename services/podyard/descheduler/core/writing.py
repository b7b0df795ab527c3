"""A policy as a file says it, with everything that the file left to defaults."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from podyard.descheduler.core import durations
from podyard.descheduler.core.policy import API_VERSION, KIND, Policy


def written(policy: Policy) -> dict[str, Any]:
    """The document; what is absent by default stays so.

    :param policy: of stage default
    """
    return {"apiVersion": API_VERSION, "kind": KIND, **_plain(policy)}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = ((one.encode_name, getattr(value, one.name)) for one in msgspec.structs.fields(value))
        return {name: _plain(found) for name, found in fields if found is not None and not _says_nothing(name, found)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast("Iterable[Any]", value)]
    return msgspec.to_builtins(value, enc_hook=durations.encode)


def _says_nothing(name: str, value: Any) -> bool:
    """Plugin arguments may name a kind."""
    return name in ("apiVersion", "kind") and value == ""
