"""Running the PostFilter plugins of a profile when no node takes the pod.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins),
schedule_one.go (schedulingCycle).
"""

from collections.abc import Callable, Generator, Mapping
from typing import TypeAlias

import msgspec

from podyard.framework import answers
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.extenders import Answers, Calls, ExtenderError
from podyard.framework.interfaces import NodeVictims, PostFilter, PostFilterResult, PostFilterSteps
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.proto.decisions import Victim


class PostFiltered(msgspec.Struct, frozen=True, kw_only=True):
    """What all PostFilters together said."""

    status: Status
    """SUCCESS, UNSCHEDULABLE, UNRESOLVABLE or ERROR; its message joins the attempt's. Also with ERROR the pod
    counts as unschedulable."""
    nominated_node: str | None = None
    """None leaves the pod's nomination as it is, empty ends it."""
    victims: tuple[Victim, ...] = ()
    asked: tuple[str, ...] = ()
    """Plugins that were asked: all, or those up to one that helped."""


Consult: TypeAlias = Callable[[Mapping[str, NodeVictims]], Generator[Calls, Answers, Mapping[str, NodeVictims]]]
"""Shows candidates to extenders."""


def run(
    plugins: tuple[PostFilter, ...], state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis
) -> PostFiltered:
    """Ask all in order, until one helps.

    :param state: a clone that only PostFilter uses
    :raises PluginError: if a plugin raises
    """
    result, timing = _Result(), cluster.timing
    for plugin in plugins:
        started = 0.0 if timing is None else timing.watch()
        try:
            answer = answers.post_filter(plugin.post_filter(state, pod, cluster, diagnosis))
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(plugin.name, "PostFilter", fault) from fault
        if timing is not None:
            timing.note(plugin.name, "PostFilter", answer.status.code.label, started)
        if result.ends_with(plugin.name, answer):
            break
    return result.together()


def steps(
    plugins: tuple[PostFilter, ...],
    state: CycleState,
    pod: PodInfo,
    cluster: Snapshot,
    diagnosis: Diagnosis,
    consult: Consult,
) -> Generator[Calls, Answers, PostFiltered]:
    """The same with extenders, which are consulted about candidates for preemption.

    :raises PluginError: if a plugin raises
    """
    result, timing = _Result(), cluster.timing
    for plugin in plugins:
        started = 0.0 if timing is None else timing.watch()
        try:
            if isinstance(plugin, PostFilterSteps):
                said = yield from _consulted(plugin.post_filter_steps(state, pod, cluster, diagnosis), consult)
            else:
                said = plugin.post_filter(state, pod, cluster, diagnosis)
            answer = answers.post_filter(said)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(plugin.name, "PostFilter", fault) from fault
        if timing is not None:
            timing.note(plugin.name, "PostFilter", answer.status.code.label, started)
        if result.ends_with(plugin.name, answer):
            break
    return result.together()


def _consulted(
    choosing: Generator[Mapping[str, NodeVictims], Mapping[str, NodeVictims], PostFilterResult], consult: Consult
) -> Generator[Calls, Answers, PostFilterResult]:
    """An extender's failure is the plugin's answer. Source: preemption.go, Preempt."""
    answers.of_type(choosing, Generator)
    try:
        candidates = next(choosing)
        while True:
            candidates = choosing.send((yield from consult(answers.candidates(candidates))))
    except StopIteration as end:
        return end.value
    except ExtenderError as error:
        return PostFilterResult(status=statuses.error(f"preemption: {error}"))
    finally:
        choosing.close()  # a trial that is open within it is undone


class _Result:
    """What was said so far."""

    def __init__(self) -> None:
        self._asked: list[str] = []
        self._reasons: list[str] = []
        self._rejector = ""
        self._nominated: str | None = None
        self._final: PostFiltered | None = None

    def ends_with(self, plugin: str, answer: PostFilterResult) -> bool:
        """Take an answer in; returns whether no further plugin is to be asked."""
        status = answer.status
        self._asked.append(plugin)
        if status.code == Code.UNSCHEDULABLE:
            self._reasons += status.reasons
            self._rejector = self._rejector or plugin
            if answer.nominated_node is not None:
                self._nominated = answer.nominated_node
            return False
        if status.ok:
            self._final = PostFiltered(status=status, nominated_node=answer.nominated_node, victims=answer.victims)
        elif status.code == Code.UNRESOLVABLE:
            self._final = PostFiltered(status=status.by(plugin), nominated_node=answer.nominated_node)
        else:
            self._final = PostFiltered(status=statuses.error(status.message).by(plugin))
        return True

    def together(self) -> PostFiltered:
        """The answer of all."""
        asked = tuple(self._asked)
        if self._final is not None:
            return msgspec.structs.replace(self._final, asked=asked)
        status = statuses.unschedulable(*self._reasons).by(self._rejector)
        return PostFiltered(status=status, nominated_node=self._nominated, asked=asked)
