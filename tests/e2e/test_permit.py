"""A user's Permit plugin, end to end: pods of a group wait with their room for each other, and give it back
if they wait in vain."""

from typing import Any

import pytest_asyncio

from tests.e2e.labs import GROUPS, HASTY_GROUPS
from tests.e2e.stage import WITHIN_S, Stand, node


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    await here.join(node("node-1", cpu="4"), node("node-2", cpu="4"))
    return here


def member(here: Stand, group: str, number: int, size: int, **more: Any) -> dict[str, Any]:
    labels = {"pod-group": group, "pod-group-size": str(size)}
    return here.pod(f"{group}-{number}", labels=labels, **{"schedulerName": GROUPS, **more})


def bound(here: Stand, *names: str) -> list[str]:
    return [name for name in names if here.bound_to(name)]


async def test_a_group_runs_when_it_is_whole_and_nobody_waits_for_it(here: Stand) -> None:
    await here.do.apply([member(here, "trio", 1, 3), member(here, "trio", 2, 3)], "two of three")
    await here.do.apply([here.pod("alone", schedulerName=GROUPS)], "a pod of no group")
    await here.running("alone")
    assert bound(here, "trio-1", "trio-2") == []
    await here.do.apply([member(here, "trio", 3, 3)], "the third")
    await here.running("trio-1", "trio-2", "trio-3")


async def test_a_group_whose_scheduler_dies_while_it_waits_runs_all_the_same(here: Stand) -> None:
    await here.do.apply([member(here, "pair", 1, 2)], "one of two")
    await here.do.apply([here.pod("other", schedulerName=GROUPS)], "a pod that shows that the scheduler works")
    await here.running("other")
    here.lab.child("scheduler").kill()
    await here.do.apply([member(here, "pair", 2, 2)], "the second")
    await here.running("pair-1", "pair-2")


async def test_a_group_that_is_never_whole_gives_its_room_back(here: Stand) -> None:
    big = [member(here, "big", number, 3, cpu="3", schedulerName=HASTY_GROUPS) for number in (1, 2)]
    await here.do.apply(big, "two that take both nodes")
    await here.do.apply([here.pod("next", cpu="3", schedulerName=GROUPS)], "a pod that needs their room")
    await here.attempted("next")
    await here.attempted("big-1")
    await here.attempted("big-2")
    records = {record.name: record for record in here.seen.attempts if record.name.startswith("big")}
    assert {record.unschedulable_plugins for record in records.values()} == {("PodGroup",)}
    assert any("timeout after waiting at plugin PodGroup" in record.message for record in records.values())
    await here.running("next")
    assert await here.seen.until("the room was given back", lambda: bound(here, "next"), WITHIN_S) == ["next"]
    assert bound(here, "big-1", "big-2") == []
