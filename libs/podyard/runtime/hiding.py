"""Takes secrets out of what people are shown: passwords in addresses, keys, and what is called a secret."""

import re
from typing import Any, Final, cast

import msgspec

from podyard.bus.settings import without_secrets

HIDDEN: Final = "***"

_KEY: Final = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|bearer|api_?key|private_?key|^key_?data$|^authorization$",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(r"(file|dir|path|name|ref|reference|namespace|prefix|_s|_mib)$", re.IGNORECASE)
"""Says where a secret is, or how long it holds, not what it is."""


def hidden(value: Any) -> Any:
    """`value` as plain mappings, lists and texts, without the secrets in it."""
    return _hidden(msgspec.to_builtins(value, enc_hook=str, str_keys=True))


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {key: HIDDEN if _is_secret(key, found) else _hidden(found) for key, found in entries.items()}
    if isinstance(value, list | tuple):
        return [_hidden(found) for found in cast("list[Any]", value)]
    return without_secrets(value) if isinstance(value, str) and "@" in value and "://" in value else value


def _is_secret(key: str, value: Any) -> bool:
    """Whether a setting holds a secret itself: by its name, as nobody knows what a plugin's arguments
    mean."""
    return bool(value) and isinstance(value, str) and bool(_KEY.search(key)) and not _PLACE.search(key)
