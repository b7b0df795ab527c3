"""`podyard demo` as a reader starts it, and what it does when a step is not seen."""

import re
from pathlib import Path

import anyio
import psutil
import pytest

from podyard.cli.demo.evidence import NotSeenError
from podyard.cli.demo.story import Story
from tests.e2e.stage import cli, stand

WITHIN_S = 90.0
SERVICES = ("api", "queue", "scheduler", "binder", "node_agent", "descheduler", "workloads")

PROMISES = (
    "8 nodes Ready in zone-a, zone-b, zone-c",
    "running on five different nodes: cache-1 on node-",
    "30 pods running on ",
    "A: 0/8 nodes are available: 1 node(s) had untolerated taint",
    "B: 0/8 nodes are available: ",
    "B stays parked, NodeResourcesFit's hint says: ",
    "B moved by NodeResourcesFit's hint (",
    "A moved by TaintToleration's hint (",
    "A runs on node-6",
    " evicted on node-",
    " moved away from node-",
    "Pod default/trainer bound to node-6, Running",
    "attempt 1: unschedulable",
    "NodeUpdateNodeTaint",
    "scheduled on node-6",
)
"""What the story says it saw, step by step, and pod A explained."""


async def test_the_demo_tells_its_story_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with anyio.fail_after(WITHIN_S):
        told = await cli("demo", "--data", str(tmp_path))
    assert told.code == 0, told.out + told.err
    missing = [promise for promise in PROMISES if promise not in _in_one_line(told.out)]
    assert missing == [], told.out
    assert "✗" not in told.out
    started = {name: int(pid) for name, pid in re.findall(r"(\w+) \(pid (\d+)\)", _in_one_line(told.out))}
    assert started.keys() == set(SERVICES)
    assert [name for name, pid in started.items() if psutil.pid_exists(pid)] == []


async def test_a_story_without_node_agent_stops_at_the_step_that_is_not_seen(tmp_path: Path) -> None:
    async with stand(tmp_path, "api,queue,scheduler,binder") as here:
        first = Story(here.do, here.seen, patience_s=1.0).steps()[0]
        await first.act()
        await here.seen.until("the nodes stored", lambda: len(here.seen.view.nodes) == 8, 10)
        with pytest.raises(NotSeenError, match="not seen within 1 s: 8 nodes that their agent reports Ready"):
            await first.see()


def _in_one_line(text: str) -> str:
    """Line breaks and indentation, which depend on the width, as single spaces."""
    return re.sub(r"\s+", " ", text)
