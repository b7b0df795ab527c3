"""Several schedulers pull from one queue: some go and never come back, one goes and comes back; nobody's pods
are lost or bound twice."""

from pathlib import Path
from typing import Final

from tests.e2e import ledger
from tests.e2e.labs import SHORT
from tests.e2e.stage import WITHIN_S, Stand, node, paused, stand
from tests.e2e.test_story_with_kills import queue_list
from tests.support.waiting import eventually

PODS: Final = 200
"""More than two schedulers of such a small cluster take before the binder answers."""


async def test_schedulers_that_die_with_pods_in_hand_leave_them_to_the_others(tmp_path: Path) -> None:
    async with stand(tmp_path, "api,queue,scheduler*3,binder", environment=SHORT) as here:
        await here.do.apply([node(f"node-{number}", cpu="32") for number in range(4)], "nodes of the test")
        with paused(here.lab, "binder"):
            await here.do.apply([here.pod(f"pod-{number:03}") for number in range(PODS)], "pods of the test")
            holding = await sessions_holding(here, 3)
            for name in ("scheduler-1", "scheduler-2"):
                here.lab.child(name).kill(for_good=True)
            here.lab.child("scheduler-3").kill()
        await here.seen.until("all pods bound", lambda: bound(here) == PODS, WITHIN_S)
        left = await sessions_left(here, set(holding))
        assert [one.rpartition("-")[0] for one in left] == ["scheduler-3"]
        assert (await queue_list(here)).counts.get("inFlight", 0) == 0
        ledger.check_commits(await ledger.read_back(here.bus), here.seen.view.nodes)


def bound(here: Stand) -> int:
    return sum(one.bound is not None for one in here.seen.view.pods.values())


async def sessions_holding(here: Stand, number: int) -> list[str]:
    """Wait until so many sessions have pods in hand; returns them."""

    async def holding() -> list[str] | None:
        found = [session for session, pods in (await queue_list(here)).sessions.items() if pods]
        return found if len(found) >= number else None

    return await eventually(f"{number} sessions that hold pods", holding, WITHIN_S)


async def sessions_left(here: Stand, ended: set[str]) -> list[str]:
    """Wait until the queue knows none of these sessions any more; returns those that it knows."""

    async def others() -> list[str] | None:
        found = list((await queue_list(here)).sessions)
        return None if ended & set(found) else found

    return await eventually("the end of sessions", others, WITHIN_S)
