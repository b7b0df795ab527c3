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
