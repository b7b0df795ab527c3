"""All of NATS gone for two minutes, with the times that nodes have in earnest: no node is lost."""

from pathlib import Path

import pytest

from tests.e2e.stage import stand
from tests.e2e.test_nodes_in_trouble import outlive

pytestmark = [pytest.mark.timeout(300), pytest.mark.whole_faults]

OUTAGE_S = 120.0
"""A node is lost after 50 s of silence."""


async def test_two_minutes_without_nats_lose_no_node(tmp_path: Path) -> None:
    async with stand(tmp_path, services="api,queue,scheduler,binder,node_agent,workloads") as here:
        await outlive(here, OUTAGE_S)
