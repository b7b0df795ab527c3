"""How long to wait before what failed is tried again, by key: not at all, then 1 s, doubling, at most 15
minutes.

A key that has been quiet for half an hour begins anew. Source: kubernetes v1.36.2,
cmd/kube-controller-manager/app/apps.go (failedPodsBackoff), client-go/util/flowcontrol/backoff.go (Next,
IsInBackOffSinceUpdate, GC).
"""

from typing import Final

FIRST_S: Final = 1.0
LAST_S: Final = 900.0
FORGOTTEN_S: Final = 2 * LAST_S


class Backoffs:
    """Owned by one core. Lost with the term, as in the reference."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, ...], tuple[float, float]] = {}
        """How long to wait, and since when, seconds since 1970."""
        self._swept_at = 0.0

    def try_again(self, key: tuple[str, ...], now: float) -> float | None:
        """Begin another try, if it may be now: each one makes the next wait longer.

        :return: when it may be, seconds since 1970; None: it is begun
        """
        known = self._entries.get(key)
        if known is not None and now < sum(known):
            return sum(known)
        if known is None or now - known[1] > FORGOTTEN_S:
            self._entries[key] = (FIRST_S, now)
        else:
            self._entries[key] = (min(2 * known[0], LAST_S), now)
        if now - self._swept_at > FORGOTTEN_S:
            self._swept_at = now
            self._entries = {key: entry for key, entry in self._entries.items() if now - entry[1] <= FORGOTTEN_S}
        return None
