"""Running the PreFilter plugins of a profile for one pod; what each said is kept, so that one of them can be
asked again.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins).
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from podyard.framework import answers
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PreFilter, PreFilterResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status

_EXPECTED = frozenset({Code.SUCCESS, Code.SKIP, Code.UNSCHEDULABLE, Code.UNRESOLVABLE})

Outcome: TypeAlias = Literal["same", "other", "begin anew"]
"""All answers are what they were; some is another; now more, or fewer, plugins have to be asked, with an
empty state."""


class PreFiltered(msgspec.Struct, frozen=True, kw_only=True):
    """What all PreFilters together said."""

    status: Status = statuses.SUCCESS
    """A rejection if the pod fits nowhere, with the plugin that said so (none if only their node names
    together left no node)."""
    node_names: frozenset[str] | None = None
    """The only nodes to look at; `None`: all."""
    narrowed_by: frozenset[str] = frozenset()
    """Plugins that named nodes: rejectors too if the pod fits nowhere. None after UNRESOLVABLE, whose plugin
    alone rejects."""

    @property
    def absent(self) -> Status | None:
        """Status of the nodes that are not looked at; `None` if all are."""
        return self.left_out(self.narrowed_by)

    def left_out(self, listed: Iterable[str]) -> Status | None:
        """The same, with these plugins listed as the ones who left nodes out."""
        if not self.status.ok:
            return self.status
        if self.node_names is None:
            return None
        return statuses.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(listed))}]")


class PreFiltering:
    """The PreFilter plugins of one profile for pods of one signature.

    Invariant after `run` and `again`: `result` and the state are what a new run would give.
    """

    __slots__ = ("_answers", "_by_name", "_evaluated", "_plugins", "_state", "result")

    def __init__(self, plugins: tuple[PreFilter, ...], state: CycleState) -> None:
        self._plugins = plugins
        self._state = state
        self._by_name = {plugin.name: plugin for plugin in plugins}
        self._answers: dict[str, PreFilterResult] = {}
        """Of the plugins that were asked: all, or those up to one that stops."""
        self._evaluated: tuple[str, ...] | None = None
        self.result = PreFiltered()

    def run(self, pod: PodInfo, cluster: Snapshot) -> PreFiltered:
        """Ask all in order. Goes on after UNSCHEDULABLE, since preemption needs what the others write
        (docs/rules.md, prefilters-run-before-preemption).

        :raises PluginError: if a plugin answers ERROR or with a code that PreFilter does not know
        """
        names: frozenset[str] | None = None
        for plugin in self._plugins:
            answer = self._answers[plugin.name] = self._ask(plugin, pod, cluster)
            names = _both(names, answer.node_names)
            if _stops(answer, names):
                break
        self.result = self._combined()
        return self.result

    def again(self, names: Iterable[str], pod: PodInfo, cluster: Snapshot) -> Outcome:
        """Ask these plugins again, if they were asked before.

        :raises PluginError: as `run`
        """
        same = True
        for name in names:
            before = self._answers.get(name)
            if before is not None:
                answer = self._answers[name] = self._ask(self._by_name[name], pod, cluster)
                if (answer.status.code == Code.SKIP) != (before.status.code == Code.SKIP):
                    self._evaluated = None
                same = same and (answer is before or answer == before)
        if same:
            return "same"
        if self._reach() != len(self._answers):
            return "begin anew"
        self.result = self._combined()
        return "other"

    def _ask(self, plugin: PreFilter, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        timing = cluster.timing
        started = 0.0 if timing is None else timing.watch()
        try:
            answer = answers.pre_filter(plugin.pre_filter(self._state, pod, cluster))
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(plugin.name, "PreFilter", fault) from fault
        code = answer.status.code
        if timing is not None:
            timing.note(plugin.name, "PreFilter", code.label, started)
        if code not in _EXPECTED:
            raise PluginError(plugin.name, "PreFilter", answer.status.message or f"answered {code.label}")
        if code == Code.SKIP:
            self._state.skip_filter.add(plugin.name)
        else:
            self._state.skip_filter.discard(plugin.name)
        return answer

    @property
    def evaluated(self) -> tuple[str, ...]:
        """Plugins that were asked and did not say Skip; the same object until one changes its mind."""
        if self._evaluated is None:
            self._evaluated = tuple([name for name, answer in self._answers.items() if answer.status.code != Code.SKIP])
        return self._evaluated

    def _reach(self) -> int:
        """How many plugins are to be asked, as far as the answers tell."""
        names: frozenset[str] | None = None
        for count, plugin in enumerate(self._plugins, start=1):
            answer = self._answers.get(plugin.name)
            if answer is None:
                return count
            names = _both(names, answer.node_names)
            if _stops(answer, names):
                return count
        return len(self._plugins)

    def _combined(self) -> PreFiltered:
        rejection: Status | None = None
        names: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        for plugin, answer in self._answers.items():
            code = answer.status.code
            if code == Code.UNRESOLVABLE:
                return PreFiltered(status=answer.status.by(plugin))
            if code == Code.UNSCHEDULABLE:
                rejection = answer.status.by(plugin)
            if answer.node_names is not None:
                narrowed_by.add(plugin)
                names = _both(names, answer.node_names)
                if not names:
                    return PreFiltered(
                        status=_no_node_left(narrowed_by), node_names=names, narrowed_by=frozenset(narrowed_by)
                    )
        return PreFiltered(status=rejection or statuses.SUCCESS, node_names=names, narrowed_by=frozenset(narrowed_by))


def _both(names: frozenset[str] | None, more: frozenset[str] | None) -> frozenset[str] | None:
    if more is None:
        return names
    return more if names is None else names & more


def _stops(answer: PreFilterResult, names: frozenset[str] | None) -> bool:
    """Whether no further plugin is asked after this answer, which leaves these names."""
    return answer.status.code == Code.UNRESOLVABLE or (answer.node_names is not None and not names)


def _no_node_left(narrowed_by: set[str]) -> Status:
    listed = sorted(narrowed_by)
    if len(listed) == 1:
        return statuses.unresolvable(f"node(s) didn't satisfy plugin {listed[0]}")
    return statuses.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(listed)}] simultaneously")
