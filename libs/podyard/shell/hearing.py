"""Whether we hear the bus: who counts the silence of others counts only while we do."""

from collections.abc import Callable

from podyard.bus import Bus, BusState


class Hearing:
    """Of one term. A connection that was lost is a silence of ours, however short; so is a stream of which
    nothing is heard."""

    def __init__(self, bus: Bus, tell: Callable[[bool], None]) -> None:
        """:param tell: told at every change; until it is told we do not hear"""
        self._bus = bus
        self._tell = tell
        self._connected = self._fresh = self._hears = False
        self._stop: Callable[[], None] | None = None

    def start(self) -> None:
        """From now on connections count."""
        self._stop = self._bus.on_state(self._on_state)

    def stop(self) -> None:
        """The term is over."""
        if self._stop is not None:
            self._stop()

    def contact(self, fresh: bool) -> None:
        """The stream fell silent, or is heard again."""
        self._fresh = fresh
        self._listen()

    def _on_state(self, state: BusState) -> None:
        self._connected = state.connected
        self._listen()

    def _listen(self) -> None:
        hears = self._connected and self._fresh
        if hears != self._hears:
            self._hears = hears
            self._tell(hears)
