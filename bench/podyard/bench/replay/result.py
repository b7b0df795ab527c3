"""Replays, as they are shown and kept."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from podyard.bench.machine import Commit, Machine
from podyard.bench.replay import curves, waits
from podyard.bench.replay.curves import Curves
from podyard.bench.replay.plan import Plan
from podyard.bench.replay.playing import Seen
from podyard.bench.replay.waits import Waits
from podyard.bench.scheduler_perf import figures

LATE_MS: Final = 100.0
"""A replay whose creations and deletions are later than this, one of a hundred, is not the planned one."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What is replayed, how, and on what."""

    format: str
    pods_file: str
    nodes_file: str
    nodes: int
    gpus: int
    pods: int
    never_scheduled: int
    """Pods that the recording never scheduled."""
    recorded_wait: Waits | None
    """Of the others, in the recording; its milliseconds are those of the recording, too."""
    begins_s: int
    """Second of the recording at which the replay begins."""
    ends_s: float
    speedup: float
    planned_s: float
    """From the first to the last creation or deletion."""
    pods_stay: bool
    one_node_in: int
    lifetime_p50_ms: float
    """Between a pod's creation and deletion, as planned for the replay."""
    at: float
    machine: Machine
    commit: Commit


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """By how much creations and deletions were behind the plan when they were sent."""

    p50_ms: float
    p99_ms: float
    most_ms: float


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """One replay."""

    config: str
    """The KubeSchedulerConfiguration, as it was named; "": the default one."""
    seconds: float
    bound: int
    """Pods that were bound, whether they have ended or not."""
    never_bound: int
    never_bound_by: dict[str, int]
    """By the plugins that rejected them last."""
    never_scheduled_bound: int
    """Pods that were bound here, and never in the recording."""
    wait: Waits | None
    wait_by_qos: dict[str, Waits]
    wait_by_gpu: dict[str, Waits]
    wait_percentiles_ms: tuple[float, ...]
    """At each hundredth of the bound pods, from the shortest to the longest."""
    curves: Curves
    late: Late
    kept_up: bool
    """Whether the replay was the planned one: else figures are those of a slower one."""
    cpu_us_per_pod: float
    """Of all processes, the benchmark's own included, by pods created."""
    cpu_us_per_pod_by_process: dict[str, float]
    load_before: float
    """Of the machine, over a minute, before the replay."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Replays of one recording."""

    trace: Setting
    runs: tuple[Replay, ...]


def setting(
    plan: Plan,
    *,
    names: tuple[str, str, str],
    stay: bool,
    one_node_in: int,
    at: float,
    machine: Machine,
    commit: Commit,
) -> Setting:
    """
    :param names: of the format, and of the files of pods and nodes
    """
    lifetimes = sorted((pod.deleted - max(pod.created, plan.begins)) / plan.speedup for pod in plan.pods)
    return Setting(
        format=names[0],
        pods_file=names[1],
        nodes_file=names[2],
        nodes=len(plan.nodes),
        gpus=sum(node.gpus for node in plan.nodes),
        pods=len(plan.pods),
        never_scheduled=sum(pod.scheduled is None for pod in plan.pods),
        recorded_wait=waits.of([pod.scheduled - pod.created for pod in plan.pods if pod.scheduled is not None]),
        begins_s=plan.begins,
        ends_s=plan.recorded_at(plan.seconds),
        speedup=plan.speedup,
        planned_s=round(plan.seconds, 3),
        pods_stay=stay,
        one_node_in=one_node_in,
        lifetime_p50_ms=round(figures.at_rank(lifetimes, 50) * 1e3, 1),
        at=at,
        machine=machine,
        commit=commit,
    )


def of(plan: Plan, seen: Seen, *, config: str, cpu: Mapping[str, float], load_before: float) -> Replay:
    """The figures of one replay.

    :param cpu: seconds that each process used
    """
    waited = list(curves.waited(seen.moments))
    rows = plan.pods
    late = _late(seen.late)
    return Replay(
        config=config,
        seconds=round(seen.seconds, 3),
        bound=len(waited),
        never_bound=len(rows) - len(waited),
        never_bound_by=dict(sorted(seen.why_not.items(), key=lambda item: (-item[1], item[0]))),
        never_scheduled_bound=sum(rows[pod].scheduled is None for pod, _ in waited),
        wait=waits.of([seconds for _, seconds in waited]),
        wait_by_qos=waits.by_class((rows[pod].qos, seconds) for pod, seconds in waited),
        wait_by_gpu=waits.by_class((rows[pod].gpu_class, seconds) for pod, seconds in waited),
        wait_percentiles_ms=_hundredths([seconds for _, seconds in waited]),
        curves=curves.fold(plan, seen.moments, seen.seconds),
        late=late,
        kept_up=late.p99_ms <= LATE_MS,
        cpu_us_per_pod=round(sum(cpu.values()) / len(rows) * 1e6, 1),
        cpu_us_per_pod_by_process={name: round(used / len(rows) * 1e6, 1) for name, used in cpu.items()},
        load_before=round(load_before, 2),
    )


def _late(seconds: Sequence[float]) -> Late:
    in_order = sorted(one * 1e3 for one in seconds) or [0.0]
    return Late(
        p50_ms=round(figures.at_rank(in_order, 50), 1),
        p99_ms=round(figures.at_rank(in_order, 99), 1),
        most_ms=round(in_order[-1], 1),
    )


def _hundredths(seconds: Sequence[float]) -> tuple[float, ...]:
    in_order = sorted(seconds)
    return tuple(round(figures.at_rank(in_order, rank) * 1e3, 3) for rank in range(1, 101)) if in_order else ()
