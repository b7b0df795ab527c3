"""Several schedulers pull from one queue: some go and never come back, one goes and comes back; nobody's pods are lost or bound twice."""

import os
import signal
from pathlib import Path
from typing import Final

import anyio
import pytest

from podyard.bus.errors import TemporaryError, Unclear
from tests.e2e import ledger
from tests.e2e.stage import WITHIN_S, Stand, node, pod, stand
from tests.e2e.test_story_with_kills import POLL_S, queue_list

PODS: Final = 200
"""More than two schedulers of such a small cluster take before the binder answers."""
SESSION_ENDS_S: Final = 10.0


@pytest.mark.timeout(180)
async def test_schedulers_that_die_with_pods_in_hand_leave_them_to_the_others(tmp_path: Path) -> None:
    async with stand(tmp_path, "api,queue,scheduler*3,binder") as here:
        await here.do.apply([node(f"node-{number}", cpu="32") for number in range(4)], "nodes of the test")
        binder = here.lab.child("binder")
        os.kill(binder.pid, signal.SIGSTOP)
        await here.do.apply([pod(f"pod-{number:03}") for number in range(PODS)], "pods of the test")
        holding = await sessions_holding(here, 3)
        for name in ("scheduler-1", "scheduler-2"):
            here.lab.child(name).kill(for_good=True)
        here.lab.child("scheduler-3").kill()
        os.kill(binder.pid, signal.SIGCONT)
        await here.seen.until("all pods bound", lambda: bound(here) == PODS, SESSION_ENDS_S + 2 * WITHIN_S)
        left = await sessions_left(here, set(holding))
        assert [one.rpartition("-")[0] for one in left] == ["scheduler-3"]
        assert (await queue_list(here)).counts.get("inFlight", 0) == 0
        ledger.check_commits(await ledger.read_back(here.bus), here.seen.view.nodes)


def bound(here: Stand) -> int:
    return sum(one.bound is not None for one in here.seen.view.pods.values())


async def sessions_holding(here: Stand, number: int) -> list[str]:
    """Wait until so many sessions have pods in hand; returns them."""
    holding: list[str] = []
    with anyio.move_on_after(WITHIN_S):
        while len(holding) < number:
            holding = [session for session, pods in (await queue_list(here)).sessions.items() if pods]
            await anyio.sleep(POLL_S)
        return holding
    raise AssertionError(f"only {holding} hold pods")


async def sessions_left(here: Stand, ended: set[str]) -> list[str]:
    """Wait until the queue knows none of these sessions any more; returns those that it knows."""
    found = list(ended)
    with anyio.move_on_after(WITHIN_S):
        while ended & set(found):
            try:
                found = list((await queue_list(here)).sessions)
            except (TemporaryError, Unclear):
                continue
            await anyio.sleep(POLL_S)
    return found
