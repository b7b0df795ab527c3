"""A cycle that computes for long keeps nobody else in its process waiting."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podyard.bus import Bus
from podyard.descheduler.core.plugins.node_taints import RemovePodsViolatingNodeTaints
from tests.contract.descheduler.test_descheduler import (
    LIMIT_S,
    POLICY,
    bound,
    deleted,
    one_cycle,
    stage,
    without_api,
    write_policy,
)
from tests.contract.node_agent.stage import Stage
from tests.support.waiting import eventually

__all__ = ["stage", "without_api", "write_policy"]

COMPUTING, MAY_END = threading.Event(), threading.Event()


class Thinking(RemovePodsViolatingNodeTaints):
    """Of the user. Computes until it may end."""

    NAME = "Thinking"

    def deschedule(self, nodes: Any) -> Any:
        COMPUTING.set()
        assert MAY_END.wait(LIMIT_S)
        yield from super().deschedule(nodes)


async def test_the_process_goes_on_while_a_cycle_computes(
    bus: Bus, stage: Stage, write_policy: Callable[[str], Path]
) -> None:
    text = POLICY.format(limits="").replace("RemovePodsViolatingNodeTaints", f"{__name__}:Thinking")
    COMPUTING.clear()
    MAY_END.clear()
    pods = await bound(stage, "web-1")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(one_cycle(bus, stage, write_policy(text)))
        await eventually("it computes", COMPUTING.is_set)
        assert await deleted(stage, pods) == []
        MAY_END.set()

        async def evicted() -> bool:
            return await deleted(stage, pods) == ["web-1"]

        await eventually("the pod goes", evicted)
