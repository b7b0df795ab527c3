"""A stored message as a reader gets it."""

from collections.abc import Mapping

from podyard.bus import _heads
from podyard.proto import headers
from podyard.proto.streams import MARKER_TTL_S

MARKER_REASON = "Nats-Marker-Reason"
_EMPTY: Mapping[str, str] = {}


class Delivery:
    """One stored message. Cheap to make: its headers are read when first asked for."""

    __slots__ = ("_head", "_headers", "payload", "sequence", "stored_at", "subject")

    def __init__(
        self,
        subject: str,
        payload: bytes,
        sequence: int,
        stored_at: float = 0.0,
        headers: Mapping[str, str] | None = None,
        *,
        head: bytes = b"",
    ) -> None:
        self.subject = subject
        self.payload = payload
        self.sequence = sequence
        """The stream's: resourceVersion and position."""

        self.stored_at = stored_at
        """Seconds since 1970, UTC, by the server's clock."""

        self._headers = headers
        self._head = head

    @property
    def head(self) -> bytes:
        """The header block that it was stored with, empty if it has none."""
        return self._head or (_heads.build(dict(self._headers)) if self._headers else b"")

    @property
    def headers(self) -> Mapping[str, str]:
        """All headers that it was stored with."""
        if self._headers is None:
            self._headers = _heads.parse(self._head) if self._head else _EMPTY
        return self._headers

    @property
    def predecessor(self) -> int | None:
        """The subject's sequence that its writer expected: the version before it; None if written without."""
        value = self.headers.get(headers.EXPECTED_LAST_SUBJECT_SEQUENCE)
        return int(value) if value is not None and value.isdecimal() else None

    @property
    def trace(self) -> str:
        """W3C traceparent of what caused it, empty if none."""
        return self.headers.get(headers.TRACEPARENT, "")

    @property
    def deleted(self) -> bool:
        """Whether it is a deletion marker."""
        found = self.headers
        return found.get(headers.OPERATION) == headers.DELETED or MARKER_REASON in found

    @property
    def ttl_s(self) -> int:
        """Seconds that the server keeps it; those of a deletion marker if it was stored without."""
        value = self.headers.get(headers.TTL, "").removesuffix("s")
        return int(value) if value.isdecimal() else MARKER_TTL_S

    def __repr__(self) -> str:
        what = "marker" if self.deleted else f"{len(self.payload)} bytes"
        return f"<Delivery {self.subject} @{self.sequence} {what}>"
