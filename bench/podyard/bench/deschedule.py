"""`bench deschedule`: what one cycle of the descheduler costs, in this process, with each plugin's share.

The cycle is that of the service's own core: what it asks is answered at once, as in a dry run, so that
evictions cost what they cost the core, and no more. Times are CPU times of this thread. The cluster has
drifted (`drifted`), all plugins are on, and all ask whether another node would take the pod.
"""

import gc
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

import msgspec
import psutil

from podyard.bench import drifted
from podyard.cluster.view import ClusterView
from podyard.configuration.model import default
from podyard.descheduler.core import effects, loading, messages, registry
from podyard.descheduler.core.advice import Profiles
from podyard.descheduler.core.cycle import CycleRecord
from podyard.descheduler.core.descheduler import Descheduler
from podyard.descheduler.core.evictions import EvictionDone
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.plugins.failed_pods import RemoveFailedPods
from podyard.descheduler.core.policy import Policy

Progress = Callable[[str], None]
FEWEST_NODES: Final = 20
"""With fewer there is none of each sort."""
PLANNED: Final = 500
"""Moves of the plan that is measured."""
OTHER: Final = "the cycle itself"
"""Reading the view, limits, counting what has gone."""
_GENERATORS: Final = ("deschedule", "balance")
_QUESTIONS: Final = ("filter", "pre_eviction_filter")


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin. What it asks of the evictor counts there."""

    plugin: str
    cpu_s: float
    evicted: int


class DescheduleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `bench deschedule` found."""

    nodes: int
    pods: int
    evicted: int
    wall_s: float
    cpu_s: float
    longest_step_s: float
    """Wall time of the longest step between two of the cycle's questions: nobody else computes meanwhile."""
    again_cpu_s: float
    """The same cycle again, with the view that was followed meanwhile."""
    planned: int
    """Moves of a cycle that is limited to `PLANNED`, and places each by the default scheduling profile."""
    placed: int
    """How many of them found a node."""
    plan_cpu_s: float
    """What the same cycle costs more than without a plan: its table, and the places."""
    memory_mib: float
    """Resident memory of the process after all of them, the view with it."""
    shares: tuple[Share, ...]


class IncompleteError(Exception):
    """A cycle that broke off, or a plugin that failed: the figures would be of something else."""


def measure(nodes: int, pods: int, progress: Progress = lambda text: None, *, full: bool = False) -> DescheduleResult:
    """Two cycles on a cluster of this size, and what a plan adds to one; shares and times are those of the
    first.

    :param full: hardly a node has room: whether one would take a pod has to be asked of all
    :raises IncompleteError: if one broke off
    """
    progress(f"{nodes:,} nodes: placing {pods:,} pods")
    view = drifted.view(nodes, pods, full=full)
    gc.collect()
    gc.freeze()
    watch = _Watch()
    plugins: dict[str, type[Plugin]] = {name: _timed(plugin, watch) for name, plugin in registry.by_name().items()}
    policy = _read(drifted.policy(), plugins)
    core = Descheduler(policy, plugins, interval_s=1.0)
    progress(f"{nodes:,} nodes, {pods:,} pods: one cycle")
    first = _Cycle(core, view, drifted.NOW)
    shares = watch.read()
    progress(f"{nodes:,} nodes, {pods:,} pods: once more")
    again = _Cycle(core, view, drifted.NOW + 1.0)
    progress(f"{nodes:,} nodes, {pods:,} pods: a plan of {PLANNED} moves")
    without, planned = _limited(view), _limited(view, default().profiles)
    moves = [one for step in planned.record.steps for one in step.evicted]
    gc.unfreeze()
    evicted = Counter({step.plugin: len(step.evicted) for step in first.record.steps})
    return DescheduleResult(
        nodes=nodes,
        pods=pods,
        evicted=first.record.evicted,
        wall_s=round(first.wall_s, 3),
        cpu_s=round(first.cpu_s, 3),
        longest_step_s=round(first.longest_step_s, 3),
        again_cpu_s=round(again.cpu_s, 3),
        planned=len(moves),
        placed=sum(bool(one.planned_node) for one in moves),
        plan_cpu_s=round(max(0.0, planned.cpu_s - without.cpu_s), 3),
        memory_mib=round(psutil.Process().memory_info().rss / 1024**2, 1),
        shares=(
            *(
                Share(plugin=name, cpu_s=round(seconds, 3), evicted=evicted[name])
                for name, seconds in sorted(shares.items(), key=lambda one: -one[1])
            ),
            Share(plugin=OTHER, cpu_s=round(max(0.0, first.cpu_s - sum(shares.values())), 3), evicted=0),
        ),
    )


def _read(policy: Mapping[str, Any], plugins: Mapping[str, type[Plugin]]) -> Policy:
    return loading.checked(msgspec.json.encode(policy).decode(), plugins).policy


def _limited(view: ClusterView, profiles: Profiles | None = None) -> "_Cycle":
    """One of `PLANNED` moves. Pods that have failed do not move: nothing comes in their place."""
    policy, plugins = drifted.policy(), registry.by_name()
    policy["maxNoOfPodsToEvictTotal"] = PLANNED
    for profile in policy["profiles"]:
        enabled = profile["plugins"]["deschedule"]["enabled"]
        profile["plugins"]["deschedule"]["enabled"] = [name for name in enabled if name != RemoveFailedPods.NAME]
    core = Descheduler(_read(policy, plugins), plugins, interval_s=None, once=True, profiles=profiles)
    return _Cycle(core, view, drifted.NOW)


class _Cycle:
    """One cycle, played when it is made."""

    def __init__(self, core: Descheduler, view: ClusterView, now: float) -> None:
        self.longest_step_s = 0.0
        began, cpu = time.perf_counter(), time.thread_time()
        wanted = self._step(core, messages.Tick(), now)
        while True:
            wanted = [one for one in wanted if not isinstance(one, effects.Remember)]
            match wanted:
                case [effects.List(ticket=ticket), *_]:
                    wanted = self._step(core, messages.Listed(ticket, view), now)
                case [effects.Evict(ticket=ticket), *_]:
                    wanted = self._step(core, messages.EvictionAnswered(ticket, EvictionDone(gone=True)), now)
                case [effects.CycleEnded(record=record), *_]:
                    break
                case _:
                    raise IncompleteError(f"the cycle broke off: {wanted}")
        self.wall_s, self.cpu_s = time.perf_counter() - began, time.thread_time() - cpu
        self.record: CycleRecord = record
        if record.faults:
            raise IncompleteError(f"plugins failed: {record.faults[:3]}")

    def _step(self, core: Descheduler, message: messages.Message, now: float) -> list[effects.Effect]:
        began = time.perf_counter()
        wanted = core.step(message, now)
        self.longest_step_s = max(self.longest_step_s, time.perf_counter() - began)
        return wanted


class _Watch:
    """Whose turn it is, and how long each has had in all."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._turns: list[str] = []
        self._since = 0.0

    def begin(self, name: str) -> None:
        """It is this plugin's turn; whoever asked it waits."""
        self._switch()
        self._turns.append(name)

    def end(self) -> None:
        """Its turn is over."""
        self._switch()
        self._turns.pop()

    def read(self) -> Mapping[str, float]:
        """CPU seconds by plugin."""
        return dict(self._seconds)

    def _switch(self) -> None:
        now = time.thread_time()
        if self._turns:
            turn = self._turns[-1]
            self._seconds[turn] = self._seconds.get(turn, 0.0) + now - self._since
        self._since = now


def _timed(plugin: type[Any], watch: _Watch) -> type[Any]:
    """The plugin, which tells when it is its turn."""
    told = {name: _watched(getattr(plugin, name), plugin.NAME, watch) for name in _QUESTIONS if hasattr(plugin, name)}
    told |= {name: _resumed(getattr(plugin, name), plugin.NAME, watch) for name in _GENERATORS if hasattr(plugin, name)}
    return type(plugin.__name__, (plugin,), told)


def _watched(question: Callable[..., Any], name: str, watch: _Watch) -> Callable[..., Any]:
    def ask(*given: Any) -> Any:
        watch.begin(name)
        try:
            return question(*given)
        finally:
            watch.end()

    return ask


def _resumed(
    begin: Callable[..., Generator[Any, Any, Any]], name: str, watch: _Watch
) -> Callable[..., Generator[Any, Any, Any]]:
    def run(*given: Any) -> Generator[Any, Any, Any]:
        resume = _watched(begin(*given).send, name, watch)
        answer = None
        while True:
            try:
                wanted = resume(answer)
            except StopIteration:
                return
            answer = yield wanted

    return run
