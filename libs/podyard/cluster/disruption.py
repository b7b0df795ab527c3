"""Deleting a pod for another's sake, and saying so on it: the condition DisruptionTarget in the same write.
Pure."""

from collections.abc import Callable
from typing import Any, Final

from podyard.cluster import intents
from podyard.cluster.intents import Document, Plan, Put, Step, Stored
from podyard.cluster.keys import ObjectKey
from podyard.objects import times

CONDITION: Final = "DisruptionTarget"
PREEMPTED: Final = "PreemptionByScheduler"
EVICTED: Final = "EvictionByEvictionAPI"
TAINTED: Final = "DeletionByTaintManager"


def deletion(
    key: ObjectKey,
    *,
    uid: str,
    now: float,
    occupies: Callable[[str], bool],
    reason: str,
    message: str,
    grace_s: int | None = None,
) -> Plan:
    """Delete a pod as `intents.deletion` does, with the condition.

    :param reason: `PREEMPTED`, `EVICTED` or `TAINTED`
    :param message: for people
    """
    delete = intents.deletion(key, now=now, occupies=occupies, grace_s=grace_s, uid=uid)

    def plan(stored: Stored | None) -> Step:
        step = delete(stored)
        if isinstance(step, Put):
            _add_condition(step.document, now, reason, message)
        return step

    return plan


def _add_condition(document: Document, now: float, reason: str, message: str) -> None:
    condition: dict[str, Any] = {
        "type": CONDITION,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": times.rfc3339(now),
    }
    status = document.setdefault("status", {})
    kept = [one for one in status.get("conditions", []) if one.get("type") != CONDITION]
    status["conditions"] = [*kept, condition]
