"""Suite `classify`: from an object's change to cluster events, and to what reaches the queue."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from podyard.cluster.changes import Change
from tests.conformance import profiles
from tests.conformance.differences import Difference, between
from tests.conformance.joined import change_of
from tests.conformance.queue_stage import QueueStage, event_of


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One change, and what came before it."""

    op: Literal["add", "update", "delete"]
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    schedulers: tuple[str, ...] = ("default-scheduler",)
    assumed_on: str = ""


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    queue_calls: list[dict[str, Any]]
    events: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET


def check(given: dict[str, Any], expected: Any) -> None:
    """
    :raises msgspec.ValidationError: if a case has another shape than this suite compares
    """
    msgspec.convert(given, Given)
    msgspec.convert(expected, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """The events of the change, and the calls that the queue's handler makes."""
    case = msgspec.convert(given, Given)
    stage = QueueStage([profiles.named(name) for name in case.schedulers])
    stage.hear_all()
    if case.old is not None:
        stage.apply(change_of(None, case.old))
        if case.assumed_on:
            stage.assume(case.old, case.assumed_on)
    stage.take_calls()
    change = change_of(case.old, case.new)
    stage.apply(change)
    told: dict[str, Any] = {"queueCalls": stage.take_calls()}
    return {"events": _events(case)} | told if case.op == "update" else told


def _events(case: Given) -> list[dict[str, Any]]:
    """The pure classification: what the change would be if it were no binding and no repetition."""
    pure: Any = change_of(
        case.old, {**(case.new or {}), "metadata": {**(case.new or {})["metadata"], "resourceVersion": "0"}}
    )
    change = Change(pure.resource, pure.uid, pure.old, pure.new, pure.origin)
    return [event_of(event.resource, event.action) for event in change.events]


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """Everything exactly, lists in order."""
    return between(expected, got)
