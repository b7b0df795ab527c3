"""One scheduling cycle, from PreFilter to Permit, over a live table. Pure: it decides, its caller assumes and binds.

    run:      PreFilter -> Filter -> (no node: PostFilter) -> PreScore -> Score -> NormalizeScore -> pick
    (the caller assumes the pod on the node)
    confirm:  Reserve -> Permit

Results of PreFilter to NormalizeScore are shared by pods of equal signature (what every plugin says it reads of a pod) and brought up to
date for changed rows only. Among nodes with the highest total one is picked by a generator seeded with the pod's uid, so equal
input gives equal output.

Source: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go (schedulingCycle, schedulePod).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from random import Random
from typing import Final, NamedTuple

import msgspec

from podyard.framework import diagnosis
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.interfaces import Signed
from podyard.framework.judgement import Judgement
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile
from podyard.framework.scoring import Scoreboard
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.proto.decisions import NodeScore, Rejection, Victim

LEADERS: Final = 3
"""Nodes with scores in a record."""

SIGNATURES: Final = 64
"""Signatures whose results are kept; at 5,000 nodes each takes about half a megabyte."""


class PointTime(NamedTuple):
    """When an extension point ran, on the caller's stopwatch (seconds)."""

    point: str
    start: float
    end: float


class CycleResult(msgspec.Struct, kw_only=True, gc=False):
    """What one cycle found. Exactly one of `node`, `diagnosis`, `rejection` and `error` is set."""

    node: str = ""
    """The chosen node; its room is not taken in the table."""
    diagnosis: Diagnosis | None = None
    """Why no node takes the pod."""
    rejection: Status | None = None
    """Reserve or Permit said no to the chosen node."""
    error: str = ""
    """The attempt failed: a plugin's fault, or no nodes at all."""
    message: str = ""
    """The reference's text about a failure, PostFilter's part included."""
    nodes_total: int = 0
    nodes_feasible: int = 0
    rejections: tuple[Rejection, ...] = ()
    scores: tuple[NodeScore, ...] = ()
    nominated_node: str | None = None
    victims: tuple[Victim, ...] = ()
    waits: dict[str, float] = {}
    """Plugins whose Permit answered WAIT, with their time-outs in seconds."""
    state: CycleState | None = None
    """The pod's own state, for unreserve; only if the profile has Reserve or Permit plugins."""
    times: list[PointTime] = []


class _Shared(NamedTuple):
    judgement: Judgement
    scoreboard: Scoreboard


class Cycle:
    """Scheduling cycles of one profile over one snapshot.

    :param stopwatch: seconds of a monotonic clock, for `times` only: nothing is decided by it
    """

    def __init__(self, profile: Profile, cluster: Snapshot, stopwatch: Callable[[], float] = lambda: 0.0) -> None:
        self._profile = profile
        self._cluster = cluster
        self._stopwatch = stopwatch
        judging = {plugin.name: plugin for plugin in (*profile.pre_filter, *profile.filter, *profile.pre_score)}
        judging |= {entry.plugin.name: entry.plugin for entry in profile.score}
        self._signing = [plugin for plugin in judging.values() if isinstance(plugin, Signed)]
        self._shares = len(self._signing) == len(judging)
        self._shared: OrderedDict[Hashable, _Shared] = OrderedDict()
        self._confirms = bool(profile.reserve or profile.permit)
        self._random = Random()

    def run(self, pod: PodInfo) -> CycleResult:
        """Find a node for `pod`. Never raises: a plugin that does ends this attempt as an error."""
        result = CycleResult(nodes_total=len(self._cluster.nodes), times=[])
        if not result.nodes_total:
            result.error = result.message = diagnosis.NO_NODES
            return result
        signature = self._key(pod)
        try:
            self._decide(pod, signature, result)
        except PluginError as fault:
            self._fail(signature, result, str(fault))
        except Exception as fault:  # the boundary to plugins: whatever they raise ends an attempt, not the service
            self._fail(signature, result, f"{type(fault).__name__}: {fault}")
        return result

    def judge(self, pod: PodInfo) -> Judgement:
        """Only the filter part, up to date.

        :raises PluginError: if a plugin fails
        """
        shared = self._find(pod, self._key(pod))
        shared.judgement.refresh(pod)
        return shared.judgement

    def confirm(self, pod: PodInfo, result: CycleResult) -> bool:
        """Reserve and Permit for the chosen node, on which the caller has assumed the pod by now.

        :return: False if a plugin said no or failed: it is unreserved again, `result` has no node any more and says why
        """
        state = result.state
        if state is None:
            return True
        start = self._stopwatch()
        rejection = self._reserve(pod, state, result.node)
        reserved = self._stopwatch()
        result.times.append(PointTime("Reserve", start, reserved))
        if rejection is None:
            rejection = self._permit(pod, state, result)
            result.times.append(PointTime("Permit", reserved, self._stopwatch()))
        if rejection is None:
            return True
        self.unreserve(pod, state, result.node)
        result.node, result.scores, result.message = "", (), rejection.message
        if rejection.rejected:
            result.rejection = rejection
        else:
            result.error = rejection.message
        return False

    def unreserve(self, pod: PodInfo, state: CycleState | None, node_name: str) -> None:
        """Reserve is undone, in reverse order: the pod does not get the node after all."""
        for plugin in reversed(self._profile.reserve):
            plugin.unreserve(state or CycleState(), pod, self._cluster, node_name)

    # ---- inside --------------------------------------------------------------------------------------------------------------

    def _key(self, pod: PodInfo) -> Hashable:
        """Equal for pods that share results; while pods are nominated their priority counts, and who they are if they are nominated."""
        if not self._shares:
            return None
        signature = tuple([plugin.signature(pod) for plugin in self._signing])
        if not pod.nominated_node and not self._cluster.nominated:
            return signature
        return signature, pod.priority, pod.uid if pod.nominated_node else ""

    def _find(self, pod: PodInfo, signature: Hashable) -> _Shared:
        if self._shares:
            shared = self._shared.get(signature)
            if shared is not None:
                self._shared.move_to_end(signature)
                return shared
        judgement = Judgement(self._profile, pod, self._cluster)
        shared = _Shared(judgement, Scoreboard(self._profile, judgement, self._cluster))
        if self._shares:
            self._shared[signature] = shared
            if len(self._shared) > SIGNATURES:
                self._shared.popitem(last=False)
        return shared

    def _fail(self, signature: Hashable, result: CycleResult, text: str) -> None:
        """What was computed half-way is thrown away."""
        self._shared.pop(signature, None)
        result.node, result.diagnosis, result.scores = "", None, ()
        result.error = result.message = text

    def _decide(self, pod: PodInfo, signature: Hashable, result: CycleResult) -> None:
        watch, times = self._stopwatch, result.times
        start = watch()
        judgement, scoreboard = self._find(pod, signature)
        pre_filtered = watch()
        times.append(PointTime("PreFilter", start, pre_filtered))
        if pod.nominated_node and judgement.takes_nominated(pod):
            result.node, result.nodes_feasible = pod.nominated_node, 1
            times.append(PointTime("Filter", pre_filtered, watch()))
        else:
            judgement.refresh(pod)
            result.nodes_feasible = judgement.feasible_count
            result.rejections = judgement.rejections()
            filtered = watch()
            times.append(PointTime("Filter", pre_filtered, filtered))
            if not judgement.feasible_count:
                self._post_filter(pod, judgement, result)
                return
            self._pick(pod, judgement, scoreboard, result)
            times.append(PointTime("Score", filtered, watch()))
        if self._confirms:
            result.state = judgement.state.clone()

    def _pick(self, pod: PodInfo, judgement: Judgement, scoreboard: Scoreboard, result: CycleResult) -> None:
        if judgement.feasible_count == 1:
            result.node = self._cluster.nodes.names[int(judgement.feasible[0])]
            return
        scoreboard.refresh(pod)
        count = scoreboard.best_count()
        at = 0
        if count > 1:
            self._random.seed(pod.uid)
            at = self._random.randrange(count)
        row = scoreboard.best_at(at)
        result.node = self._cluster.nodes.names[row]
        result.scores = scoreboard.leaders(row, LEADERS)

    def _post_filter(self, pod: PodInfo, judgement: Judgement, result: CycleResult) -> None:
        """Source: framework.go, RunPostFilterPlugins."""
        found = judgement.diagnosis()
        result.rejections = found.rejections()
        start = self._stopwatch()
        texts: list[str] = []
        for plugin in self._profile.post_filter:
            answer = plugin.post_filter(judgement.state.clone(), pod, self._cluster, found)
            if answer.nominated_node is not None:
                result.nominated_node = answer.nominated_node
            if answer.status.ok:
                result.victims, texts = answer.victims, []
                break
            if not answer.status.rejected:
                texts = [answer.status.message]  # and nothing else is said; the pod is parked all the same
                break
            texts += answer.status.reasons
            if answer.status.code == Code.UNRESOLVABLE:
                break
        if self._profile.post_filter:
            result.times.append(PointTime("PostFilter", start, self._stopwatch()))
        result.diagnosis = found
        result.message = found.message(", ".join(texts))

    def _reserve(self, pod: PodInfo, state: CycleState, node_name: str) -> Status | None:
        for plugin in self._profile.reserve:
            try:
                status = plugin.reserve(state, pod, self._cluster, node_name)
            except Exception as fault:  # the boundary to plugins
                status = statuses.error(str(PluginError.wrapping(plugin.name, "Reserve", fault)))
            if not status.ok:
                return status.by(plugin.name)
        return None

    def _permit(self, pod: PodInfo, state: CycleState, result: CycleResult) -> Status | None:
        waits: dict[str, float] = {}
        for plugin in self._profile.permit:
            try:
                answer = plugin.permit(state, pod, self._cluster, result.node)
            except Exception as fault:  # the boundary to plugins
                return statuses.error(str(PluginError.wrapping(plugin.name, "Permit", fault))).by(plugin.name)
            if answer.status.code == Code.WAIT:
                waits[plugin.name] = answer.timeout_s
            elif not answer.status.ok:
                return answer.status.by(plugin.name)
        result.waits = waits
        return None
