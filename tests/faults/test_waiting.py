"""Whose replacement a pod's wait is counted for."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

from podyard.proto import subjects
from tests.faults.rolling import Waiting
from tests.support.waiting import eventually


class People:
    """Every pod that they apply is accepted."""

    def __init__(self) -> None:
        self.accepted: dict[str, tuple[tuple[str, str], None]] = {}

    async def apply(self, documents: list[dict[str, Any]]) -> None:
        for document in documents:
            name = document["metadata"]["name"]
            self.accepted[f"uid-{name}"] = ((subjects.PODS, name), None)

    async def delete(self, resource: str, names: list[str]) -> None:
        del resource, names
        await asyncio.sleep(3600.0)  # no more pods


async def test_a_wait_is_counted_for_who_was_replaced_when_the_pod_was_asked_for() -> None:
    recorder = SimpleNamespace(objects={}, placed={})
    stage = SimpleNamespace(people=People(), recorder=recorder)
    waiting = Waiting(cast("Any", stage), cast("Any", SimpleNamespace(made=[])))
    waiting.during = "scheduler-1"
    tasks = [asyncio.ensure_future(waiting.run()), asyncio.ensure_future(waiting.look())]
    await asyncio.sleep(0)
    waiting.during = "binder-2"
    for uid, (key, _) in stage.people.accepted.items():
        recorder.objects[key] = {"metadata": {"uid": uid}}
        recorder.placed[uid] = None
    await eventually("both have their node", lambda: len(waiting.waited_s) == 2)
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert list(waiting.worst) == ["scheduler-1"]
