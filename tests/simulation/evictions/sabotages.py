"""What keeps budgets and limits, switched off one by one: the checker must see each."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio

from podyard.api import eviction
from podyard.bus import Bus, Outgoing
from podyard.descheduler.core.evictions import EvictionFailed
from podyard.descheduler.eviction_link import EvictionLink
from tests.simulation.evictions.play import EvictionRun

A_MOMENT_S: Final = 0.008
"""About as long as an eviction takes."""


def _budgets_unguarded(run: EvictionRun) -> None:
    """Budgets are written whatever they hold."""
    publish = eviction._publish

    async def unguarded(bus: Bus, messages: Sequence[Outgoing]) -> int:
        pod, *budgets = messages
        return await publish(bus, [pod, *(one.but(expect=None) for one in budgets)])

    eviction._publish = unguarded


def _free_without_holding(run: EvictionRun) -> None:
    """Who is charged to no budget goes whatever his budgets are by then; the api hesitates, so that they have
    changed."""
    going, publish = eviction._Eviction._going, eviction._publish

    def alone(self: Any, pod: Any, stored: Any, held: Any = (), standing: Any = None) -> Any:
        charged = standing is not None and standing.charged
        return going(self, pod, stored, held if charged else {}, standing)

    async def later(bus: Bus, messages: Sequence[Outgoing]) -> int:
        if len(messages) == 1:
            await anyio.sleep(run.clock.random.uniform(0.0, 5.0))
        return await publish(bus, messages)

    eviction._Eviction._going = alone  # type: ignore[method-assign]
    eviction._publish = later


def _replicas_believed(run: EvictionRun) -> None:
    """Who is not ready is taken for that by a direct read; replicas lag."""
    eviction._Eviction._listed = eviction._Eviction._read  # type: ignore[method-assign]
    run.server.stale_read_s = lambda subject: 2.0 if run.clock.random.random() < 0.5 else 0.0


def _budgets_of_before(run: EvictionRun) -> None:
    """Budgets are read once, when a process first evicts in a namespace."""
    listing, known = eviction._Eviction._listing, dict[str, Any]()

    async def once(self: Any, namespace: str) -> Any:
        if namespace not in known:
            known[namespace] = await listing(self, namespace)
        return known[namespace]

    eviction._Eviction._listing = once


def _unanswered_is_refused(run: EvictionRun) -> None:
    """The descheduler waits for a moment, takes an eviction without an answer for refused, and goes on."""
    carry_out, ask = EvictionLink._carried_out, EvictionLink._ask

    async def gone_on(self: Any, wanted: Any, began: float, trace: str) -> Any:
        result = await carry_out(self, wanted, began, trace)
        return EvictionFailed(result.reason) if isinstance(result, EvictionFailed) else result

    async def once(self: Any, request: Any, until: float, trace: str) -> Any:
        return (await ask(self, request, self._service.clock.now() + A_MOMENT_S, trace))._replace(unclear=False)

    EvictionLink._carried_out = gone_on  # type: ignore[method-assign]
    EvictionLink._ask = once  # type: ignore[method-assign]


SABOTAGES: Final[dict[str, Callable[[EvictionRun], None]]] = {
    "compare-and-set of budgets": _budgets_unguarded,
    "budgets of the moment": _budgets_of_before,
    "holding the budgets of who goes free": _free_without_holding,
    "asking the stream who is not ready": _replicas_believed,
    "looking up what was not answered": _unanswered_is_refused,
}
