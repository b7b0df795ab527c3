"""What was counted so far, by name; and which of the services that share this process does something at the
moment."""

from asyncio import events
from collections import Counter

OUTSIDE = ""
"""No process of the run: the server in memory, or whoever counts."""


class Tally:
    """Only goes up. Names are those of `names`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._service_of: dict[object, str] = {}

    def owns(self, loop: object, service: str) -> None:
        """What happens on this event loop is the service's doing."""
        self._service_of[loop] = service

    def here(self) -> str:
        """The service whose event loop runs now, or OUTSIDE."""
        return self._service_of.get(events._get_running_loop(), OUTSIDE)

    def add(self, name: str, amount: int = 1) -> None:
        """One more, or `amount`."""
        self.counts[name] += amount

    def add_here(self, topic: str, amount: int = 1) -> None:
        """The same under `<topic>.<service>`; what no service does is not counted."""
        service = self.here()
        if service != OUTSIDE:
            self.counts[f"{topic}.{service}"] += amount

    def since(self, before: Counter[str]) -> dict[str, int]:
        """How much was added to each name since `before`, a copy of `counts`."""
        return {name: found - before[name] for name, found in self.counts.items() if found > before[name]}
