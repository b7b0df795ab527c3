"""Plugins that only a case has: filters that pass everything, or gates, with registrations and hints as the
case says."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec
import numpy as np

from podyard.framework import events
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.events import ClusterEvent, Hint, HintResult, Registration
from podyard.framework.interfaces import Plugin, Rows, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.objects.core import Pod
from podyard.proto import actions
from podyard.proto.actions import ActionType

REJECTED: Final = "the pod carries the label"


class Registered(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One registration."""

    resource: str
    actions: list[str]
    hint: Literal["none", "Queue", "QueueSkip", "Error"] = "none"


class OutOfTree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A plugin as a case describes it: `events` None registers nothing itself, `gate_label` makes it a
    PreEnqueue plugin."""

    name: str
    events: list[Registered] | None = None
    gate_label: str = ""


class HintFailed(Exception):
    """What a hint with the answer Error raises."""


def plugin_of(described: OutOfTree) -> Plugin:
    """The plugin itself."""
    name, registered = described.name, described.events
    registrations = None if registered is None else tuple(_registration(one) for one in registered)
    made: type[Any] = _gate(described.gate_label) if described.gate_label else _PassAll
    parts: dict[str, Any] = {"name": name}
    if registrations is not None:
        parts["events_to_register"] = lambda self: registrations
    return type(name, (made,), parts)()


class _PassAll:
    """A Filter without an opinion."""

    name: ClassVar[str] = ""
    scope: ClassVar[Literal["row", "cluster"]] = "row"

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return np.zeros(len(rows), dtype=np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return 0

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.SUCCESS


def _gate(label: str) -> type[Any]:
    class Gate:
        """Keeps pods out that carry a label."""

        name: ClassVar[str] = ""

        def pre_enqueue(self, pod: Pod) -> Status:
            return statuses.unschedulable(REJECTED) if label in pod.metadata.labels else statuses.SUCCESS

    return Gate


def _registration(registered: Registered) -> Registration:
    action = ActionType.NONE
    for name in registered.actions:
        action |= actions.parse(name)
    return Registration(ClusterEvent(registered.resource, action), HINTS[registered.hint])


def _answering(result: HintResult) -> Hint:
    def hint(pod: Pod, old: object | None, new: object | None) -> HintResult:
        return result

    return hint


def _failing(pod: Pod, old: object | None, new: object | None) -> HintResult:
    raise HintFailed("as the case says")


HINTS: Final[Mapping[str, Hint | None]] = {
    "none": None,
    "Queue": _answering(events.queue("as the case says")),
    "QueueSkip": _answering(events.skip("as the case says")),
    "Error": _failing,
}
