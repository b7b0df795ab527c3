"""`podyard demo` as a reader starts it, and what it does when a step is not seen."""

import re
from pathlib import Path

import anyio
import psutil
import pytest

from podyard.cli.demo.evidence import NotSeenError
from podyard.cli.demo.story import Story
from tests.e2e.stage import Stand, cli, paused
from tests.support import story

WITHIN_S = 90.0
SERVICES = ("api", "kube_api", "queue", "scheduler", "binder", "node_agent", "descheduler", "workloads")


async def test_the_demo_tells_its_story_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with anyio.fail_after(WITHIN_S):
        told = await cli("demo", "--data", str(tmp_path))
    assert told.code == 0, told.out + told.err
    assert story.untold(told.out) == [], told.out
    started = {name: int(pid) for name, pid in re.findall(r"(\w+) \(pid (\d+)\)", story.in_one_line(told.out))}
    assert started.keys() == set(SERVICES)
    assert [name for name, pid in started.items() if psutil.pid_exists(pid)] == []


async def test_a_story_without_node_agent_stops_at_the_step_that_is_not_seen(here: Stand) -> None:
    with paused(here.lab, "node_agent"):
        first = Story(here.do, here.seen, patience_s=1.0).steps()[0]
        await first.act()
        await here.seen.until("the nodes stored", lambda: len(here.seen.view.nodes) == 8, 10)
        with pytest.raises(NotSeenError, match="not seen within 1 s: 8 nodes that their agent reports Ready"):
            await first.see()
