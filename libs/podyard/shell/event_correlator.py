"""Which events for people are worth a message, and what it says: the rules of Kubernetes' recorder. Pure.

Equal events count as one; of ten that differ in their message alone, within ten minutes of each other, the
tenth and all that follow are one whose message is the last of them; and who reports about one object may do
so 25 times at once, and then every five minutes.

Source: client-go v0.36.2, tools/record/events_cache.go (EventCorrelate, EventAggregate, eventObserve,
Filter).
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from podyard.memory.latest import Latest
from podyard.proto.message import ObjectRef
from podyard.proto.operations import ALIKE, ALIKE_S, COMBINED, K8sEvent, Reason, shortened

REMEMBERED: Final = 4096
"""Events, groups of alike ones, and objects with their reporter that are remembered. Source:
maxLruCacheEntries."""
BURST: Final = 25
"""Events of one reporter about one object at once. Source: defaultSpamBurst."""
REFILL_S: Final = 300.0
"""Until there may be one more. Source: defaultSpamQPS."""

_NEARLY: Final = 1 - 1e-9
"""Of a token: sums of fractions fall short of one."""
_NOTHING: Final[Mapping[str, str]] = {}


class Event(NamedTuple):
    """What a service tells people about one object."""

    about: ObjectRef
    reason: Reason
    message: str
    at: float
    """Seconds since 1970, UTC."""
    warning: bool = False
    action: str = ""
    controller: str = ""
    """Who reports, as Kubernetes calls it; empty: the service."""
    host: str = ""
    """Of a kubelet: its node."""
    field_path: str = ""
    annotations: Mapping[str, str] = _NOTHING
    trace: str = ""
    """Traceparent of what it tells of."""


class _Seen(NamedTuple):
    """An event that was told before."""

    id: str
    first_at: float
    times: int


class _Alike(NamedTuple):
    """Events that differ in their message alone."""

    last_at: float
    messages: frozenset[bytes]


class _Budget(NamedTuple):
    """How many more events a reporter may send about an object."""

    at: float
    left: float


class Correlator:
    """Of one process. Time is that of the events."""

    def __init__(self, reporter: str, instance: str) -> None:
        """
        :param reporter: the service
        :param instance: which process of it
        """
        self._reporter = reporter
        self._instance = instance
        self._alike = Latest[bytes, _Alike](REMEMBERED)
        self._seen = Latest[bytes, _Seen](REMEMBERED)
        self._budgets = Latest[bytes, _Budget](REMEMBERED)
        self._stamp = 0
        """Nanoseconds of the last new event: no two events share theirs."""

    def __len__(self) -> int:
        return len(self._alike) + len(self._seen) + len(self._budgets)

    def correlate(self, event: Event) -> K8sEvent | None:
        """The message that tells of an event; None: its object was told of often enough."""
        about = event.about
        said = "Warning" if event.warning else "Normal"
        source = (event.controller, event.host, about.resource, about.namespace, about.name, about.uid, said)
        message = shortened(event.message)
        group = _digest(*source, event.reason)
        key = _digest(*source, event.reason, event.field_path, message)
        if self._is_combined(group, _digest(message), event.at):
            key, message, event = group, shortened(COMBINED + message), event._replace(annotations=_NOTHING)
        seen = self._observe(key, event.at)
        if not self._may_be_sent(_digest(*source), event.at):
            return None
        return K8sEvent(
            regarding=about,
            type=said,
            reason=event.reason,
            message=message,
            reporter=self._reporter,
            at=event.at,
            trace=event.trace,
            id=seen.id,
            first_at=seen.first_at,
            count=seen.times,
            action=event.action,
            controller=event.controller,
            instance=event.host or self._instance,
            field_path=event.field_path,
            annotations=dict(event.annotations),
        )

    def _is_combined(self, group: bytes, message: bytes, at: float) -> bool:
        """Source: EventAggregate. Of ten messages one goes, there any one; here the newest, so that the first
        nine stay what they are."""
        known = self._alike.get(group)
        messages = frozenset[bytes]() if known is None or at - known.last_at > ALIKE_S else known.messages
        together = messages | {message}
        combined = len(together) >= ALIKE
        self._alike.keep(group, _Alike(at, messages if combined else together))
        return combined

    def _observe(self, key: bytes, at: float) -> _Seen:
        """Source: eventObserve."""
        before = self._seen.get(key)
        now = _Seen(self._new_id(at), at, 1) if before is None else before._replace(times=before.times + 1)
        self._seen.keep(key, now)
        return now

    def _may_be_sent(self, key: bytes, at: float) -> bool:
        """Source: Filter, with a token bucket that begins full."""
        known = self._budgets.get(key) or _Budget(at, BURST)
        left = min(known.left + max(at - known.at, 0.0) / REFILL_S, BURST)
        may = left >= _NEARLY
        self._budgets.keep(key, _Budget(max(at, known.at), left - 1 if may else left))
        return may

    def _new_id(self, at: float) -> str:
        """In Kubernetes the nanosecond; here two processes may share one, too."""
        self._stamp = max(int(at * 1e9), self._stamp + 1)
        return blake2b(f"{self._instance} {self._stamp}".encode(errors="replace"), digest_size=8).hexdigest()


def _digest(*parts: str) -> bytes:
    """Stands for these in memory, whatever their length."""
    return blake2b("\0".join(parts).encode(errors="replace"), digest_size=16).digest()
