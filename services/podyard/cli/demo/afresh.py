"""Taking away what an earlier telling of the story left in a stack that goes on running."""

from typing import Final

from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import Evidence
from podyard.cluster.pods import PodView

NAMESPACE: Final = "default"
WEB: Final = (NAMESPACE, "web")
APPS: Final = frozenset({"cache", "web", "trainer", "report"})
"""Labels `app` of the story's pods."""

WHY: Final = "the story begins afresh"


async def begin(do: Actions, seen: Evidence, within_s: float) -> None:
    """Delete the story's objects, if there are any, and forget the records about them.

    :raises NotSeenError: if they are still there after `within_s` seconds
    :raises RefusedError: with the api's reasons
    """
    if WEB in seen.view.others.get("deployments", {}):
        await do.delete("deployments", *WEB, WHY)
    for pod in _pods(seen):
        if not pod.pod.metadata.owner_references:
            await do.delete("pods", pod.namespace, pod.name, WHY)
    await seen.until("the pods of the last time gone", lambda: not _pods(seen), within_s)
    seen.forget_records()


def _pods(seen: Evidence) -> list[PodView]:
    """The story's pods whose object lives, of whatever state."""
    return [pod for pod in seen.view.pods.values() if pod.namespace == NAMESPACE and pod.labels.get("app") in APPS]
