"""Kubernetes' event correlator as its source reads, step by step: client-go v0.36.2,
tools/record/events_cache.go. Slow and plain; what `podyard.shell.event_correlator` is compared with.

Of ten alike messages the reference forgets any one (`PopAny`); here the one that has just come.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

from podyard.shell.event_correlator import Event


class Observed(NamedTuple):
    """What the reference's EventCorrelate returns, as far as it can be compared."""

    message: str
    count: int
    first: float
    last: float
    name: int
    """The number of the event that has this name: the first of its series."""


class Cache:
    """utils/lru: `Get` and `Add` make an entry the newest; the oldest goes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        if key not in self.entries:
            return None
        self.entries.move_to_end(key)
        return self.entries[key]

    def add(self, key: Any, value: Any) -> None:
        self.entries[key] = value
        self.entries.move_to_end(key)
        if len(self.entries) > self.size:
            self.entries.popitem(last=False)


class Oracle:
    def __init__(self, size: int = 4096) -> None:
        self.aggregates = Cache(size)
        self.observations = Cache(size)
        self.limiters = Cache(size)
        self.names = 0

    def correlate(self, event: Event) -> Observed | None:
        message, key = self.aggregate(event)
        observed = self.observe(message, key, event.at)
        return None if self.filtered(event) else observed

    def aggregate(self, event: Event) -> tuple[str, Any]:
        now = event.at
        full = (*source(event), event.field_path, event.reason, event.message)
        group = (*source(event), event.reason)
        record = self.aggregates.get(group)
        if record is None or now - record["last"] > 600:
            record = {"keys": set(), "last": 0.0}
        came = event.message not in record["keys"]
        record["keys"].add(event.message)
        record["last"] = now
        self.aggregates.add(group, record)
        if len(record["keys"]) < 10:
            return event.message, full
        assert came
        record["keys"].discard(event.message)
        return f"(combined from similar events): {event.message}", group

    def observe(self, message: str, key: Any, now: float) -> Observed:
        last = self.observations.get(key)
        if last is None:
            self.names += 1
            found = Observed(message, 1, now, now, self.names)
        else:
            found = Observed(message, last.count + 1, last.first, now, last.name)
        self.observations.add(key, found)
        return found

    def filtered(self, event: Event) -> bool:
        """A token bucket of 25, one more every 300 s (golang.org/x/time/rate, AllowN)."""
        key = source(event)
        tokens, at = self.limiters.get(key) or (25.0, event.at)
        tokens = min(25.0, tokens + (event.at - at) / 300)
        filtered = tokens < 1 - 1e-9
        self.limiters.add(key, (tokens if filtered else tokens - 1, event.at))
        return filtered


def source(event: Event) -> tuple[Any, ...]:
    """Who reports about which object, and of which type."""
    about = event.about
    return (event.controller, event.host, about.resource, about.namespace, about.name, about.uid, event.warning)
