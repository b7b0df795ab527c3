"""Running the PreFilter plugins of a profile for one pod.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins).
"""

import msgspec

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PreFilter
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status

_EXPECTED = frozenset({Code.SUCCESS, Code.SKIP, Code.UNSCHEDULABLE, Code.UNRESOLVABLE})


class PreFiltered(msgspec.Struct, frozen=True, kw_only=True):
    """What all PreFilters together said."""

    status: Status = statuses.SUCCESS
    """A rejection if the pod fits nowhere, with the plugin that said so (none if only their node names together left no node)."""
    node_names: frozenset[str] | None = None
    """The only nodes to look at; `None`: all."""
    narrowed_by: frozenset[str] = frozenset()
    """Plugins that named nodes: rejectors too if the pod fits nowhere."""

    @property
    def absent(self) -> Status | None:
        """Status of the nodes that are not looked at; `None` if all are."""
        if not self.status.ok:
            return self.status
        if self.node_names is None:
            return None
        return statuses.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.narrowed_by))}]")


def run(plugins: tuple[PreFilter, ...], state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFiltered:
    """Ask all in order. Goes on after UNSCHEDULABLE, since preemption needs what the others write (PITFALLS 40).

    :raises PluginError: if a plugin answers ERROR or with a code that PreFilter does not know
    """
    rejection: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: set[str] = set()
    for plugin in plugins:
        try:
            answer = plugin.pre_filter(state, pod, cluster)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(plugin.name, "PreFilter", fault) from fault
        code = answer.status.code
        if code not in _EXPECTED:
            raise PluginError(plugin.name, "PreFilter", answer.status.message or f"answered {code.label}")
        if code == Code.SKIP:
            state.skip_filter.add(plugin.name)
        elif code == Code.UNRESOLVABLE:
            return PreFiltered(status=answer.status.by(plugin.name), narrowed_by=frozenset(narrowed_by))
        elif code == Code.UNSCHEDULABLE:
            rejection = answer.status.by(plugin.name)
        if answer.node_names is not None:
            narrowed_by.add(plugin.name)
            names = answer.node_names if names is None else names & answer.node_names
            if not names:
                return PreFiltered(
                    status=_no_node_left(narrowed_by), node_names=names, narrowed_by=frozenset(narrowed_by)
                )
    return PreFiltered(status=rejection or statuses.SUCCESS, node_names=names, narrowed_by=frozenset(narrowed_by))


def _no_node_left(narrowed_by: set[str]) -> Status:
    listed = sorted(narrowed_by)
    if len(listed) == 1:
        return statuses.unresolvable(f"node(s) didn't satisfy plugin {listed[0]}")
    return statuses.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(listed)}] simultaneously")
