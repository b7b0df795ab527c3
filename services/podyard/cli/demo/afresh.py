"""Taking away what an earlier telling of the story left in a stack that goes on running."""

from typing import Final

import anyio

from podyard.cli.demo.actions import GIBIBYTE, Actions
from podyard.cli.demo.evidence import Evidence
from podyard.cluster.pods import PodView
from podyard.objects.meta import is_true

NAMESPACE: Final = "default"
WEB: Final = (NAMESPACE, "web")
APPS: Final = frozenset({"cache", "web", "trainer", "report"})
"""Labels `app` of the story's pods."""

PRESSURE: Final = "MemoryPressure"
REPORT_EVERY_S: Final = 0.5

WHY: Final = "the story begins afresh"


async def begin(do: Actions, seen: Evidence, within_s: float) -> None:
    """Delete the story's objects, if there are any, end the pressure it made, and forget the records about
    it.

    :raises NotSeenError: if they are still there after `within_s` seconds
    :raises RefusedError: with the api's reasons
    """
    if WEB in seen.view.objects("deployments"):
        await do.delete("deployments", *WEB, WHY)
    for pod in _pods(seen):
        if not pod.pod.metadata.owner_references:
            await do.delete("pods", pod.namespace, pod.name, WHY)
    await seen.until("the pods of the last time gone", lambda: not _pods(seen), within_s)
    await _relieve(do, seen, within_s)
    seen.forget_records()


async def _relieve(do: Actions, seen: Evidence, within_s: float) -> None:
    """Report memory enough for nodes under pressure until it is over: the story's sensor ended with the
    story."""

    def report() -> None:
        for node in _pressed(seen):
            do.memory(node, 12 * GIBIBYTE, 16 * GIBIBYTE, {})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(do.repeat, report, REPORT_EVERY_S)
        await seen.until("no node under memory pressure", lambda: not _pressed(seen), within_s)
        tasks.cancel_scope.cancel()


def _pressed(seen: Evidence) -> list[str]:
    return [name for name, node in seen.view.nodes.items() if is_true(node.node.status.conditions, PRESSURE)]


def _pods(seen: Evidence) -> list[PodView]:
    """The story's pods whose object lives, of whatever state."""
    return [pod for pod in seen.view.pods.values() if pod.namespace == NAMESPACE and pod.labels.get("app") in APPS]
