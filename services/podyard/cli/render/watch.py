"""Events and decisions as lines: data for JSON, text for people. Pure."""

from typing import Any, Final, Literal

import msgspec
from rich.text import Text

from podyard.cli.options import DEFAULT_NAMESPACE
from podyard.cli.render import tables, times
from podyard.cluster.changes import Change
from podyard.cluster.pods import PodView
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import BareEvent
from podyard.proto.operations import DeadLetter, K8sEvent
from podyard.proto.requeues import RequeueRecord
from podyard.telling import names, queued, words

KINDS: Final = ("change", "attempt", "requeue", "event", "bare", "dead")
"""Kinds of lines, as `--only` names them."""

STYLES: Final = {
    "change": "",
    "bound": "bold green",
    "released": "magenta",
    "attempt": "red",
    "requeue": "yellow",
    "event": "cyan",
    "bare": "blue",
    "dead": "bold red",
    "gap": "bold yellow",
}


WIDE: Final = 100
"""Columns of a terminal from which times have milliseconds."""

LONGEST_NAME: Final = 28
"""Columns of a name on a narrower one: what happened to the object stands behind it."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One thing that happened. `record` is the message it was made from, for JSON."""

    at: float
    kind: str
    act: Literal["", "bound", "released"] = ""
    """Which change it is, if it is a binding or its end."""
    namespace: str = ""
    name: str = ""
    resource: str = ""
    text: str
    position: int = 0
    record: Any = None


def change(found: Change, now: float) -> Line | None:
    """A change of an object, a binding or a release; `None` for what nobody cares about (no event)."""
    key = found.key
    origin = found.origin
    full = names.of_resource(key.resource, key.name)
    labels = ", ".join(event.label for event in found.events)
    text, act = f"{full}: {labels}", ""
    if found.release is not None:
        text, act = f"{full} released from {found.release.node}: {found.release.reason}", "released"
    elif found.bound and found.new is not None:
        text, act = f"{full} bound to {found.new.node_name}", "bound"
    elif phase := _new_phase(found):
        text = f"{full} is {phase}"
    elif not labels:
        return None
    by = f"  by {origin.who}" if origin.who else ""
    why = f" ({origin.why})" if origin.why else ""
    record = {"events": [event.label for event in found.events], "who": origin.who, "why": origin.why}
    return Line(
        at=origin.at or now,
        kind="change",
        act=act,
        namespace=key.namespace,
        name=key.name,
        resource=key.resource,
        text=text + by + why,
        position=origin.sequence,
        record=record,
    )


def _new_phase(found: Change) -> str:
    """A pod's phase, if that is what changed."""
    if not isinstance(found.new, PodView) or not isinstance(found.old, PodView) or found.new.status is None:
        return ""
    before = found.old.status.phase if found.old.status is not None else "Pending"
    phase = found.new.status.phase
    return f"{phase} on {found.new.node_name}" if phase != before else ""


def attempt(record: AttemptRecord) -> Line:
    """An attempt that did not bind: what rejected the pod and why come first: a terminal cuts the end."""
    plugins = ", ".join(record.unschedulable_plugins)
    why = queued.in_short(record.message)
    which = f"attempt {record.number} {words.spoken(record.outcome)}"
    told = f"{plugins}: {why}, {which}" if plugins else f"{which}: {why}"
    return Line(
        at=record.at,
        kind="attempt",
        namespace=record.namespace,
        name=record.name,
        resource="pods",
        text=f"pod/{record.name} {told}".rstrip(": "),
        position=record.position,
        record=record,
    )


def requeue(record: RequeueRecord) -> Line:
    """What an event moved and did not move."""
    by = f" of {record.object}" if record.object else ""
    moved = [
        f"{move.name} to {move.to} ({move.plugin})" if move.plugin else f"{move.name} to {move.to}"
        for move in record.moved
    ]
    skipped = len(record.skipped) or sum(count.pods for count in record.skipped_counts)
    parts = [f"moved {_few(moved)}"] if moved else []
    if skipped:
        reasons = {f"{hint.plugin}: {hint.reason}" for skip in record.skipped for hint in skip.hints if hint.reason}
        reasons |= {f"{count.plugin}: {count.reason}" for count in record.skipped_counts}
        parts.append(f"skipped {skipped}" + (f" ({_few(sorted(reasons))})" if reasons else ""))
    return Line(
        at=record.at,
        kind="requeue",
        resource=record.resource,
        name=record.object,
        text=f"{record.event}{by}: {'; '.join(parts) or 'moved nothing'}",
        position=record.position,
        record=record,
    )


def _few(texts: list[str], most: int = 3) -> str:
    shown = ", ".join(texts[:most])
    return f"{shown}, and {len(texts) - most} more" if len(texts) > most else shown


def event(record: K8sEvent) -> Line:
    """A Kubernetes-like event."""
    about = record.regarding
    full = names.of_resource(about.resource, about.name)
    repeated = "  (deleted)" if record.deleted else f"  ({record.count} times)" if record.count > 1 else ""
    return Line(
        at=record.at,
        kind="event",
        namespace=about.namespace,
        name=about.name,
        resource=about.resource,
        text=f"{full} {record.reason}: {record.message}{repeated}  by {record.reporter}",
        record=record,
    )


def bare(record: BareEvent, now: float) -> Line:
    """A typed event without a change."""
    why = f" ({record.why})" if record.why else ""
    return Line(
        at=now,
        kind="bare",
        resource=record.resource,
        text=f"{record.resource}/{'+'.join(record.actions)} published by {record.who}{why}",
        record=record,
    )


def dead(record: DeadLetter) -> Line:
    """A message that a service could not use."""
    return Line(
        at=record.at,
        kind="dead",
        resource=record.service,
        text=f"{record.service} could not use a message on {record.subject}: {record.reason}",
        record=record,
    )


def text(line: Line, width: int | None = None) -> Text:
    """One line for people.

    :param width: columns of the terminal, at which it is cut; None: it is told whole
    """
    narrow = width is not None and width < WIDE
    at, size = (times.clock(line.at)[:8], 8) if narrow else (times.clock(line.at), 12)
    shown = Text(f"{at:<{size}}  ", style="dim")
    shown.append(f"{line.kind:<8}", style=f"not dim {STYLES[line.act or line.kind]}".strip())
    if line.namespace and (width is None or line.namespace != DEFAULT_NAMESPACE):
        shown.append(f"{line.namespace} ", style="dim")
    told = line.text
    if narrow and line.name:
        told = told.replace(line.name, tables.without_middle(line.name, LONGEST_NAME), 1)
    shown.append(told, style="not dim")
    if width is not None:
        shown.truncate(width, overflow="ellipsis")
    return shown
