"""Is this process alive, and is it ready: named checks, and whether the event loop still runs.

A check of readiness is told, a watch of life is asked. Written by the event loop, and by the HTTP thread for
a check of its own; read by the HTTP thread: single attribute and dict writes, which the interpreter keeps
whole.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import anyio
import prometheus_client

from podyard.runtime import clock
from podyard.runtime.probes import Found

PING = "ping"
"""That somebody answers at all."""
LOOP = "loop"
"""That the event loop runs."""
TICK_S = 0.25
"""How often the loop shows a sign of life: fine enough to see a stall of a second, cheap enough not to
matter."""


class Check(NamedTuple):
    """One condition of readiness."""

    ok: bool
    reason: str
    """What is waited for, or what is wrong; for people."""
    since: float
    """Seconds since 1970, UTC, when `ok` last changed."""


class Health:
    """Readiness by named checks, and liveness by a tick of the event loop."""

    def __init__(
        self,
        *,
        stall_limit_s: float,
        registry: prometheus_client.CollectorRegistry,
        now: Callable[[], float] = clock.now,
    ) -> None:
        """
        :param stall_limit_s: seconds without a tick after which the process counts as dead
        :param now: seconds since 1970, UTC
        """
        self._now = now
        self._checks: dict[str, Check] = {}
        self._watches: dict[str, Callable[[], str]] = {}
        self._stall_limit_s = stall_limit_s
        self._ticked = time.monotonic()
        self._lag = prometheus_client.Histogram(
            "podyard_event_loop_lag_seconds",
            "How late the event loop ran a timer",
            buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0),
            registry=registry,
        )
        self._ready = prometheus_client.Gauge("podyard_ready", "1 if the check is ready", ["check"], registry=registry)

    def set_ready(self, check: str, ok: bool, reason: str = "") -> None:
        """Say whether `check` is ready; a check that was never named does not count.

        :param reason: what is waited for or wrong; shown on `/readyz`
        """
        before = self._checks.get(check)
        since = before.since if before is not None and before.ok == ok else self._now()
        self._checks[check] = Check(ok, reason, since)
        self._ready.labels(check).set(1 if ok else 0)

    def trouble(self, check: str) -> Callable[[str], None]:
        """What tells of `check` by its trouble: not ready for that reason, ready if the text is empty."""
        return lambda reason: self.set_ready(check, not reason, reason)

    def remove(self, check: str) -> None:
        """Forget a check that no longer applies."""
        if self._checks.pop(check, None) is not None:
            self._ready.remove(check)

    def watch(self, name: str, trouble: Callable[[], str]) -> None:
        """Have the process started again when `trouble` says why: a condition of life.

        :param trouble: asked from any thread, whenever somebody asks; an empty text if all is well
        """
        self._watches[name] = trouble

    @property
    def checks(self) -> dict[str, Check]:
        """A copy, by name."""
        return dict(self._checks)

    @property
    def ready(self) -> bool:
        """Whether every check is ready, and there is one."""
        checks = list(self._checks.values())
        return bool(checks) and all(check.ok for check in checks)

    def stalled_s(self) -> float:
        """Seconds since the event loop last ran; any thread may ask."""
        return time.monotonic() - self._ticked

    def life(self) -> list[Found]:
        """What `/livez` and `/healthz` go by; any thread may ask."""
        return [Found(PING, True), *self._conditions()]

    def readiness(self) -> list[Found]:
        """What `/readyz` goes by, by name; any thread may ask."""
        checks = [Found(name, check.ok, check.reason) for name, check in self.checks.items()]
        if not checks:
            checks = [Found("running", False, "nothing is known yet")]
        return sorted((*checks, *self._conditions()))

    def _conditions(self) -> list[Found]:
        stalled_s = self.stalled_s()
        stalled = f"it has not run for {stalled_s:.1f} s" if stalled_s > self._stall_limit_s else ""
        troubles = {LOOP: stalled, **{name: trouble() for name, trouble in list(self._watches.items())}}
        return [Found(name, not trouble, trouble) for name, trouble in troubles.items()]

    def tick(self, late_s: float = 0.0) -> None:
        """The event loop runs; `late_s` seconds later than its timer said."""
        self._ticked = time.monotonic()
        self._lag.observe(max(late_s, 0.0))

    async def keep_ticking(self) -> None:
        """Tick for ever; cancelled at the end of the process."""
        while True:
            due = time.monotonic() + TICK_S
            await anyio.sleep(TICK_S)
            self.tick(time.monotonic() - due)
