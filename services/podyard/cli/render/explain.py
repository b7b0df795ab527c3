"""A pod's story as text with colours."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.render import moves, times
from podyard.cli.render.hints import whose
from podyard.proto.decisions import AttemptRecord, NodeScore, Rejection
from podyard.proto.requeues import HintCall
from podyard.telling import entries, words
from podyard.telling.explanation import Explanation
from podyard.telling.queued import waits_now

INDENT: Final = "              "
OUTCOME_STYLES: Final = {
    "scheduled": "green",
    "unschedulable": "red",
    "error": "bold red",
    "bindError": "bold red",
    "gated": "magenta",
}
PREEMPTION: Final = "preemption: "
"""In an attempt's message: what follows says why no other pod makes room."""


def view(pod: Explanation, now: float) -> RenderableType:
    """Heading, then one entry after the other in time order, then where the pod waits."""
    lines = [_heading(pod, now)]
    for entry in pod.entries:
        lines += list(_entry(entry))
    if pod.moves:
        lines += list(moves.section(pod.moves))
    if not pod.entries and not pod.moves:
        lines.append(Text("  nothing is recorded yet", style="dim"))
    lines += list(_waiting(pod, now))
    if pod.help:
        lines.append(Text("what would help", style="bold"))
        lines += [_below(f"{one.plugin}: {one.text}" if one.plugin else one.text, "green") for one in pod.help]
    return Group(*lines)


def _heading(pod: Explanation, now: float) -> Text:
    text = Text(f"Pod {pod.namespace}/{pod.name}", style="bold")
    text.append(f"  {pod.state}", style="green" if pod.node else "yellow")
    details = [f"uid {pod.uid}"] if pod.uid else []
    if pod.priority:
        details.append(f"priority {pod.priority}")
    if pod.created_at:
        details.append(f"created {times.duration(now - pod.created_at)} ago")
    if pod.trace:
        details.append(f"trace {pod.trace.split('-')[1]}")
    if details:
        text.append("\n" + " · ".join(details), style="dim not bold")
    return text


def _entry(entry: entries.Entry) -> Iterator[Text]:
    return _RENDERERS[type(entry)](entry)


def _line(at: float, *parts: tuple[str, str]) -> Text:
    text = Text(f"{times.clock(at):<12}  ", style="dim")
    for part, style in parts:
        text.append(part, style=f"not dim {style}".strip())
    return text


def _below(content: str, style: str = "") -> Text:
    return Text(f"{INDENT}{content}", style=style)


def _attempt(entry: entries.Attempt) -> Iterator[Text]:
    record = entry.record
    outcome = words.spoken(record.outcome)
    chosen = f" on {record.node}" if record.node else ""
    judged = f"  {record.nodes_feasible} of {record.nodes_total} nodes fit" if record.nodes_total else ""
    took = f", {times.duration(record.duration_us / 1e6)}" if record.duration_us else ""
    yield _line(
        entry.at,
        (f"attempt {record.number}: ", "bold"),
        (outcome + chosen, OUTCOME_STYLES.get(record.outcome, "")),
        (judged + took, "dim"),
    )
    if record.queued_at:
        yield _below(_waited(record), "dim")
    for rejection in sorted(record.rejections, key=lambda found: (-found.nodes, found.plugin)):
        yield from _rejection(rejection)
    if record.nearest and len(record.rejections) > 1:
        yield _below(f"{record.nearest} is nearest to taking it")
    yield from _attempt_details(record)


def _waited(record: AttemptRecord) -> str:
    """How long the pod was ready before a scheduler took it, and what was before that. Records of earlier
    releases do not say when it was taken: the cycle began then."""
    taken = record.popped_at or record.at - record.duration_us / 1e6
    before = [
        f"{times.duration(seconds)} {how}"
        for seconds, how in ((record.parked_s, "parked"), (record.backed_off_s, "backing off"))
        if seconds
    ]
    ready = f"was ready for {times.duration(max(0.0, taken - record.queued_at))}"
    return f"{ready}, after {' and '.join(before)}" if before else ready


def _rejection(rejection: Rejection) -> Iterator[Text]:
    yield _rejected(rejection)
    if rejection.detail:
        at = f"{rejection.nearest}: " if rejection.nearest else ""
        yield _below(f"  {at}{rejection.detail}", "yellow")


def _rejected(rejection: Rejection) -> Text:
    text = _below(f"{rejection.plugin} ", "cyan")
    nodes = "1 node" if rejection.nodes == 1 else f"{rejection.nodes} nodes"
    text.append(f"rejected {nodes}: {rejection.reason}", style="default")
    if rejection.examples:
        more = ", ..." if rejection.nodes > len(rejection.examples) else ""
        text.append(f"  ({', '.join(rejection.examples)}{more})", style="dim")
    if rejection.unresolvable:
        text.append("  preemption cannot help", style="dim")
    return text


def _attempt_details(record: AttemptRecord) -> Iterator[Text]:
    if record.scores:
        yield _below("best nodes: " + ", ".join(map(_score, record.scores)))
    if record.pending_plugins:
        yield _below("pending in " + ", ".join(record.pending_plugins))
    if record.nominated_node:
        yield _below(f"nominated to {record.nominated_node}")
    for victim in record.victims:
        broken = ", against its disruption budget" if victim.pdb_violation else ""
        yield _below(f"preempts {victim.namespace}/{victim.name} (priority {victim.priority}{broken})")
    _, found, preemption = record.message.partition(PREEMPTION)
    if found and not all(rejection.unresolvable for rejection in record.rejections):
        yield _below(f"{PREEMPTION}{preemption}")
    if record.message and (record.outcome != "unschedulable" or not record.rejections):
        yield _below(record.message)


def _score(score: NodeScore) -> str:
    points = " + ".join(f"{plugin} {value}" for plugin, value in sorted(score.plugins.items()))
    return f"{score.node} {score.total}" + (f" ({points})" if points else "")


def _woken(entry: entries.Woken) -> Iterator[Text]:
    by = f" of {entry.object}" if entry.object else ""
    yield _line(entry.at, ("woken by ", "green"), (entry.event, "bold"), (by, ""), (_moved_to(entry.to), "dim"))
    yield from _hints(entry.hints, entry.plugin)
    yield from _origin(entry.who, entry.why)


def _moved_to(pool: str) -> str:
    return f"  to {pool}" if pool else ""


def _not_woken(entry: entries.NotWoken) -> Iterator[Text]:
    by = f" of {entry.object}" if entry.object else ""
    times_told = f"{entry.times:,} times since {times.clock(entry.first_at)} " if entry.times > 1 else ""
    last = ", last" if by and times_told else ""
    yield _line(
        entry.at, ("not woken ", "yellow"), (times_told, ""), ("by ", "yellow"), (entry.event, "bold"), (last + by, "")
    )
    yield from _hints(entry.hints, "")
    if entry.counted:
        yield _below("(the record counts by plugin and reason; one of these was this pod's)", "dim")
    yield from _origin(entry.who, entry.why)


def _hints(hints: Sequence[HintCall], decider: str) -> Iterator[Text]:
    for hint in hints:
        text = _below(f"{whose(hint)} ", "cyan")
        text.append(hint.answer, style="green" if hint.answer == "Queue" else "yellow")
        if hint.reason:
            text.append(f": {hint.reason}", style="default")
        yield text
    if not hints and decider:
        yield _below(f"{decider} registered for every such event, no hint needed", "dim")


def _origin(who: str, why: str) -> Iterator[Text]:
    if who:
        yield _below(f"done by {who}" + (f": {why}" if why else ""), "dim")
    elif why:
        yield _below(why, "dim")


def _bound(entry: entries.Bound) -> Iterator[Text]:
    forced = " without judgement: it was created with nodeName" if entry.forced else ""
    yield _line(entry.at, ("bound", "bold green"), (f" to {entry.node}{forced}", ""))


def _started(entry: entries.Started) -> Iterator[Text]:
    yield _line(entry.at, ("started", "bold green"), (f" on {entry.node}, now {entry.phase}", ""))
    if entry.reason or entry.message:
        yield _below(": ".join(filter(None, [entry.reason, entry.message])))


def _released(entry: entries.Released) -> Iterator[Text]:
    yield _line(entry.at, ("released", "bold"), (f" from {entry.node}: {words.spoken(entry.reason)}", ""))


def _told(entry: entries.Told) -> Iterator[Text]:
    repeated = f"  {entry.times} times, last" if entry.times > 1 else ""
    by = f"  ({entry.reporter})"
    yield _line(entry.at, (entry.reason, "bold"), (f": {entry.message}", ""), (by + repeated, "dim"))


_RENDERERS: Final[dict[type[Any], Callable[[Any], Iterator[Text]]]] = {
    entries.Attempt: _attempt,
    entries.Woken: _woken,
    entries.NotWoken: _not_woken,
    entries.Bound: _bound,
    entries.Started: _started,
    entries.Released: _released,
    entries.Told: _told,
}


def _waiting(pod: Explanation, now: float) -> Iterator[Text]:
    queued = pod.queued
    if queued is None or pod.node:
        return
    text = Text("now           ", style="dim")
    text.append(f"in {queued.pool}", style="not dim bold yellow")
    if queued.since:
        text.append(f" for {times.duration(now - queued.since)}", style="not dim")
    if queued.until is not None and queued.until > now:
        text.append(f", for another {times.duration(queued.until - now)}", style="not dim")
    reason = waits_now(queued)
    if reason:
        text.append(f": {reason}", style="not dim")
    yield text
