"""Two looks at the services' metrics as the figures of `podyard top`. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from podyard.proto.queue_api import QueueListReply

DECISIONS: Final = "podyard_scheduler_decisions_total"
CONFLICTS: Final = "podyard_scheduler_bind_conflicts_total"
RETRIES: Final = "podyard_scheduler_bind_retries_total"
CHECK: Final = "podyard_ready"

Labels = tuple[tuple[str, str], ...]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What one service process said at one moment. `samples` is empty if it did not answer."""

    service: str
    instance: str
    at: float
    """Seconds on a monotonic clock."""
    samples: dict[str, dict[Labels, float]] = {}

    def total(self, name: str, **labels: str) -> float:
        """Sum over the samples that have these labels, 0 if there is none."""
        wanted = set(labels.items())
        return sum(value for found, value in self.samples.get(name, {}).items() if wanted <= set(found))

    def by(self, name: str, label: str) -> dict[str, float]:
        """Sums by the values of one label, those above 0, sorted by value of the label."""
        found: dict[str, float] = {}
        for labels, value in sorted(self.samples.get(name, {}).items()):
            key = dict(labels).get(label, "")
            found[key] = found.get(key, 0.0) + value
        return {key: value for key, value in found.items() if value > 0}


class SchedulerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler since its start; `_per_s` since the look before, None at the first."""

    instance: str
    session: str = ""
    """As the queue knows it; empty: it knows none."""
    in_flight: int = 0
    popped: int = 0
    popped_per_s: float | None = None
    decisions: int = 0
    decisions_per_s: float | None = None
    share: float = 0.0
    """Of all schedulers' decisions, from 0 to 1."""
    conflicts: int = 0
    conflict_rate: float = 0.0
    """Of its decisions, from 0 to 1."""
    conflict_rate_now: float | None = None
    """Of the decisions since the look before; None: there were none, or no look."""
    conflicts_by_cause: dict[str, int] = {}
    retries: int = 0
    """Decisions that were made again after a conflict, within their attempts."""
    window: int = 0
    """Decisions that may be with the binder at once: fewer while it refuses many."""
    results: dict[str, int] = {}
    """Attempts that it has ended, by outcome."""
    repeated_requests: int = 0
    """Requests to queue and binder that were sent again."""


class AllSchedulers(msgspec.Struct, frozen=True, kw_only=True):
    """Those that answered, together, each since its start."""

    decisions: int
    conflicts: int
    conflict_rate: float
    """Of decisions, from 0 to 1."""
    conflict_rate_now: float | None
    """Of the decisions since the look before; None: there were none, or no look."""
    conflicts_by_cause: dict[str, int]
    retries: int


class BinderRow(msgspec.Struct, frozen=True, kw_only=True):
    """One binder since its start; `_per_s` since the look before, None at the first."""

    instance: str
    leading: bool = False
    bindings: int = 0
    bindings_per_s: float | None = None
    commits: int = 0
    commits_per_s: float | None = None
    batch: float | None = None
    """Mean bindings of a commit since the look before, or since the start at the first; None: there was no
    commit."""
    commit_ms: float | None = None
    """Mean time of a commit, over the same."""
    refused: dict[str, int] = {}
    """Decisions that it did not bind, by result and cause."""


class ServiceRow(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one process is ready, and the names of its checks that are not."""

    service: str
    instance: str
    answers: bool
    ready: bool
    waiting_for: tuple[str, ...] = ()


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All of `podyard top`."""

    schedulers: tuple[SchedulerRow, ...]
    all_schedulers: AllSchedulers
    binders: tuple[BinderRow, ...]
    services: tuple[ServiceRow, ...]
    queue: QueueListReply | None
    """None: no leader answered."""


def parse(text: str, *, buckets: bool = False) -> dict[str, dict[Labels, float]]:
    """Samples by name and labels, of Prometheus' text format.

    :param buckets: those of histograms, too: they are most of what services tell
    :raises ValueError: if it is none
    """
    found: dict[str, dict[Labels, float]] = {}
    lines = [line for line in text.splitlines(keepends=True) if buckets or "_bucket{" not in line]
    for family in text_string_to_metric_families("".join(lines)):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def figures(before: Sequence[Look], now: Sequence[Look], queue: QueueListReply | None) -> Figures:
    """The figures of the looks `now`; rates need those `before` (none: no rates)."""
    earlier = {look.instance: look for look in before if look.samples}
    schedulers = [look for look in now if look.service == "scheduler" and look.samples]
    together = _all(schedulers, earlier)
    return Figures(
        all_schedulers=together,
        schedulers=tuple(
            _scheduler(look, earlier.get(look.instance), together.decisions, queue) for look in schedulers
        ),
        binders=tuple(
            _binder(look, earlier.get(look.instance)) for look in now if look.service == "binder" and look.samples
        ),
        services=tuple(_service(look) for look in now),
        queue=queue,
    )


def _scheduler(look: Look, before: Look | None, all_decisions: float, queue: QueueListReply | None) -> SchedulerRow:
    sessions: Mapping[str, int] = queue.sessions if queue is not None else {}
    session = next((name for name in sessions if name.rpartition("-")[0] == look.instance), "")
    decisions, conflicts = look.total(DECISIONS), look.total(CONFLICTS)
    return SchedulerRow(
        instance=look.instance,
        session=session,
        in_flight=sessions.get(session, 0),
        popped=int(look.total("podyard_scheduler_popped_pods_total")),
        popped_per_s=_rate(look, before, "podyard_scheduler_popped_pods_total"),
        decisions=int(decisions),
        decisions_per_s=_rate(look, before, DECISIONS),
        share=decisions / all_decisions if all_decisions else 0.0,
        conflicts=int(conflicts),
        conflict_rate=conflicts / decisions if decisions else 0.0,
        conflict_rate_now=_conflict_rate_now([(look, before)]),
        conflicts_by_cause=_whole(look.by(CONFLICTS, "cause")),
        retries=int(look.total(RETRIES)),
        window=int(look.total("podyard_scheduler_window_pods")),
        results=_whole(look.by("podyard_scheduler_results_total", "outcome")),
        repeated_requests=int(look.total("podyard_scheduler_repeated_requests_total")),
    )


def _all(looks: Sequence[Look], earlier: Mapping[str, Look]) -> AllSchedulers:
    decisions, conflicts = (sum(look.total(name) for look in looks) for name in (DECISIONS, CONFLICTS))
    causes: dict[str, int] = {}
    for look in looks:
        for cause, count in look.by(CONFLICTS, "cause").items():
            causes[cause] = causes.get(cause, 0) + int(count)
    return AllSchedulers(
        decisions=int(decisions),
        conflicts=int(conflicts),
        conflict_rate=conflicts / decisions if decisions else 0.0,
        conflict_rate_now=_conflict_rate_now([(look, earlier.get(look.instance)) for look in looks]),
        conflicts_by_cause=dict(sorted(causes.items())),
        retries=int(sum(look.total(RETRIES) for look in looks)),
    )


def _conflict_rate_now(looks: Sequence[tuple[Look, Look | None]]) -> float | None:
    """Of the decisions between two looks; processes that were not there at the first count for nothing."""
    known = [(look, before) for look, before in looks if before is not None]
    decisions = sum(_grown(look, before, DECISIONS) for look, before in known)
    return sum(_grown(look, before, CONFLICTS) for look, before in known) / decisions if decisions else None


def _binder(look: Look, before: Look | None) -> BinderRow:
    bindings, commits = "podyard_binder_batch_bindings_sum", "podyard_binder_commits_total"
    done = _grown(look, before, commits)
    seconds = _grown(look, before, "podyard_binder_commit_seconds_sum")
    refused: dict[str, int] = {}
    for found, value in sorted(look.samples.get("podyard_binder_decisions_total", {}).items()):
        labels = dict(found)
        if labels["result"] != "bound" and value:  # one sample a profile and scheduler
            what = " ".join(filter(None, (labels["result"], labels["cause"])))
            refused[what] = refused.get(what, 0) + int(value)
    return BinderRow(
        instance=look.instance,
        leading=look.total("podyard_binder_leading") > 0,
        bindings=int(look.total(bindings)),
        bindings_per_s=_rate(look, before, bindings),
        commits=int(look.total(commits)),
        commits_per_s=_rate(look, before, commits),
        batch=_grown(look, before, bindings) / done if done else None,
        commit_ms=1000 * seconds / done if done else None,
        refused=refused,
    )


def _service(look: Look) -> ServiceRow:
    waiting = tuple(
        sorted(dict(labels).get("check", "") for labels, value in look.samples.get(CHECK, {}).items() if not value)
    )
    known = bool(look.samples.get(CHECK))
    return ServiceRow(
        service=look.service,
        instance=look.instance,
        answers=bool(look.samples),
        ready=known and not waiting,
        waiting_for=waiting,
    )


def _grown(look: Look, before: Look | None, name: str) -> float:
    """How much a counter grew; a process that was started again began at 0."""
    value = look.total(name)
    earlier = before.total(name) if before is not None else 0.0
    return value - earlier if value >= earlier else value


def _rate(look: Look, before: Look | None, name: str) -> float | None:
    if before is None or look.at <= before.at:
        return None
    return _grown(look, before, name) / (look.at - before.at)


def _whole(counts: Mapping[str, float]) -> dict[str, int]:
    return {key: int(value) for key, value in counts.items()}
