"""What waits to be sent reaches a sender, however many there are."""

import anyio

from podyard.scheduler.outbox import Outbox


async def test_every_waiting_sender_gets_work_not_only_the_last_that_came():
    outbox: Outbox[int] = Outbox()
    busy: set[str] = set()

    async def sender(name: str) -> None:
        await outbox.take(1)
        busy.add(name)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(sender, name)
            await anyio.wait_all_tasks_blocked()
            for item in range(3):
                outbox.put(item)
    assert busy == {"a", "b", "c"}


async def test_oldest_first_up_to_the_limit():
    outbox: Outbox[int] = Outbox()
    for item in range(5):
        outbox.put(item)
    assert await outbox.take(3) == [0, 1, 2]
    assert list(outbox) == [3, 4]


async def test_so_many_are_carried_out_at_once_and_the_next_when_one_is_done():
    outbox: Outbox[int] = Outbox()
    begun: list[int] = []
    ends = [anyio.Event() for _ in range(4)]

    async def act(item: int) -> None:
        begun.append(item)
        await ends[item].wait()

    for item in range(4):
        outbox.put(item)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.carry_out, 2, act)
            await anyio.wait_all_tasks_blocked()
            assert begun == [0, 1]
            ends[1].set()
            await anyio.wait_all_tasks_blocked()
            assert begun == [0, 1, 2]
            tasks.cancel_scope.cancel()
