"""Values of enumerations that an earlier release wrote in another spelling: they are read, and never written.

Values are written in camelCase (`bindError`), but for those of Kubernetes, which are spelled as there
(`NoSchedule`).
"""

from typing import Final

OLD: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b'"outcome":"bind_error"', b'"outcome":"bindError"'),
    (b'"outcome":"not found"', b'"outcome":"notFound"'),
    (b'"result":"already bound"', b'"result":"alreadyBound"'),
    (b'"reason":"node gone"', b'"reason":"nodeGone"'),
)
"""As 0.1 wrote them, and as they are written now. Within a text of a message the quotes would have
backslashes."""


def renewed(payload: bytes | memoryview) -> bytes:
    """`payload` with all values in the spelling of now."""
    found = bytes(payload)
    for old, new in OLD:
        found = found.replace(old, new)
    return found
