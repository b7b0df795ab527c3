"""A plugin of the descheduler raises, or a whole cycle breaks off: the service lives, and the next cycle does
its work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podyard.bus import Bus
from podyard.descheduler.core import state
from podyard.descheduler.core.plugins.node_taints import RemovePodsViolatingNodeTaints
from podyard.descheduler.term import CYCLE
from tests.contract.descheduler.test_descheduler import (
    POLICY,
    bound,
    deleted,
    one_cycle,
    service_of,
    stage,
    without_api,
    write_policy,
)
from tests.contract.node_agent.stage import Stage
from tests.support.services import running
from tests.support.waiting import eventually

__all__ = ["stage", "without_api", "write_policy"]


class Unsound(RemovePodsViolatingNodeTaints):
    """Of the user, as the policy names it. Raises before it wants anything."""

    NAME = "Unsound"

    def deschedule(self, nodes: Any) -> Any:
        raise KeyError("not today")


BOTH = (
    POLICY.format(limits="")
    .replace("  plugins:", f"  - name: {__name__}:Unsound\n    args: {{}}\n  plugins:")
    .replace("enabled: [Remove", f"enabled: ['{__name__}:Unsound', Remove")
)


async def test_a_plugin_that_raises_is_told_and_the_others_evict(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
) -> None:
    pods = await bound(stage, "web-1")
    service = await one_cycle(bus, stage, write_policy(BOTH))
    assert await deleted(stage, pods) == ["web-1"]
    labels = {"plugin": "Unsound", "point": "Deschedule"}
    assert service.metrics.get_sample_value("podyard_descheduler_plugin_faults_total", labels) == 1


async def test_a_cycle_that_breaks_off_is_one_cycle(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    state_of, calls = state.state_of, 0

    def broken_once(view: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RecursionError("nested too deep")
        return state_of(view)

    monkeypatch.setattr(state, "state_of", broken_once)
    pods = await bound(stage, "web-1")
    service = service_of(bus, stage, write_policy(POLICY.format(limits="")), once=False)
    async with running(service):

        async def evicted() -> bool:
            return await deleted(stage, pods) == ["web-1"]

        await eventually("the pod goes", evicted)
        await eventually("all is well again", lambda: service.health.checks[CYCLE].ok)
    assert service.metrics.get_sample_value("podyard_descheduler_cycles_total", {"result": "failed"}) == 1
