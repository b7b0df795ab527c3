"""One scheduling cycle, from PreFilter to Permit, over a live table. Pure: it decides, its caller assumes and
binds.

    run:      PreFilter -> Filter -> (no node: PostFilter) -> PreScore -> Score -> NormalizeScore -> pick
    steps:    the same, and HTTP extenders are asked between Filter and Score, after Score, and in PostFilter
    (the caller assumes the pod on the node)
    confirm:  Reserve -> Permit

Results of PreFilter to NormalizeScore are shared by pods of equal signature (what every plugin says it reads
of a pod) and brought up to date for changed rows only. Among nodes with the highest total a hash of the pod's
uid picks one, so equal input gives equal output.

Source: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go (schedulingCycle, schedulePod).
"""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from podyard.framework import confirming, consulting, diagnosis, extenders, post_filtering
from podyard.framework.cycle_state import CycleState
from podyard.framework.details import Details
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.extenders import Answers, Calls, Extender, ExtenderError, Filtered
from podyard.framework.feasibility import Feasibility
from podyard.framework.interfaces import NodeVictims
from podyard.framework.plugin_times import SUCCESS, Evaluated, PluginTimes
from podyard.framework.pod_info import PodFacts, PodInfo
from podyard.framework.profile import Profile
from podyard.framework.scoring import Scoreboard
from podyard.framework.sharing import Signatures
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status, described
from podyard.memory.kept import Kept
from podyard.proto.decisions import NodeScore, Rejection, Victim

LEADERS: Final = 3
"""Nodes with scores in a record."""

KEPT_BYTES: Final = 256 * 1024 * 1024
"""What the results of all signatures may take together; those not used the longest time go first."""
SIGNATURE_BYTES: Final = 48 * 1024
"""What a signature's results take in a cluster without nodes, its pod apart (measured: 19 to 33 KB) ..."""
ROW_BYTES: Final = 320
"""... and for each row (measured: 60 to 95 bytes, more where zones that fill up in turn are remembered)."""
FEWEST_SIGNATURES: Final = 8
"""So many are kept however large the cluster or their pods are."""


POINTS: Final = {
    "PreFilter": "PreFilter",
    "filter": "Filter",
    "filter_token": "Filter",
    "filter_touched": "Filter",
    "AddPod": "Filter",
    "PostFilter": "PostFilter",
    "PreScore": "PreScore",
    "score_token": "PreScore",
    "Score": "Score",
    "NormalizeScore": "Score",
    "weights": "Score",
}
"""Extension points that a fault's words belong to, as they are timed."""

SCATTER: Final = 2_654_435_761
"""Odd; times it, neighbouring numbers lie far apart in 32 bits (Knuth's multiplicative hashing)."""


class PointTime(msgspec.Struct, frozen=True, gc=False):
    """When an extension point ran, on the caller's stopwatch (seconds)."""

    point: str
    start: float
    end: float
    status: str = SUCCESS
    """Label of what all its plugins together answered."""


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
    nearest: str = ""
    """If no node takes the pod: the one that lacks least."""
    scores: tuple[NodeScore, ...] = ()
    post_filter: Status | None = None
    """What PostFilter said of a pod that fits nowhere; `None` if nobody was asked. The pod counts as
    unschedulable whatever it says."""
    nominated_node: str | None = None
    victims: tuple[Victim, ...] = ()
    waits: dict[str, float] = {}
    """Plugins whose Permit answered WAIT, with their time-outs in seconds."""
    state: CycleState | None = None
    """The pod's own state, for unreserve; only if the profile has Reserve or Permit plugins."""
    times: list[PointTime] = []
    evaluated: list[Evaluated] = []
    """Plugins that took part in judging the pod."""
    post_filters: tuple[str, ...] = ()
    """Plugins of PostFilter that were asked."""


class Choice(NamedTuple):
    """Where a pod would go if it came now, for whoever plans."""

    node: str = ""
    """Which `run` would choose; empty: none takes it."""
    equals: tuple[str, ...] = ()
    """All with the highest total, `node` among them, in order of their names: another uid gets another."""
    rejections: tuple[Rejection, ...] = ()
    """Why none takes it, what most nodes said first."""
    message: str = ""
    """The same as the reference words it."""
    error: str = ""
    """Nobody can say: a plugin's fault, or no nodes at all."""


class _Shared(NamedTuple):
    feasibility: Feasibility
    scoreboard: Scoreboard
    first: PodInfo
    """The pod that it was made for. Plugins are shown it again for each pod of the signature: what they made
    out of it they still know."""
    for_itself: bool
    """The first pod is nominated itself, so that it stands for no other one."""

    def shown(self, pod: PodInfo, cluster: Snapshot) -> PodInfo:
        """Who stands for `pod`: who is to have room before it depends on who asks, all else on the
        signature."""
        return pod if self.for_itself or pod.nominated_node or cluster.rivals else self.first


class Cycle:
    """Scheduling cycles of one profile over one snapshot.

    :param stopwatch: seconds of a monotonic clock, for `times` only: nothing is decided by it
    :param extenders: HTTP extenders in calling order; with any, run `steps` instead of `run`
    :param plugin_times: takes what plugins took in one cycle in ten
    :param leaders: nodes of which results tell the scores
    """

    def __init__(
        self,
        profile: Profile,
        cluster: Snapshot,
        stopwatch: Callable[[], float] = lambda: 0.0,
        extenders: Sequence[Extender] = (),
        plugin_times: PluginTimes | None = None,
        leaders: int = LEADERS,
    ) -> None:
        self._plugin_times = plugin_times
        self._leaders = leaders
        self._untimed = 0
        """Cycles since one was timed plugin by plugin, that one included."""
        self._profile = profile
        self._cluster = cluster
        self._stopwatch = stopwatch
        self._extenders = tuple(extenders)
        judging = {plugin.name: plugin for plugin in (*profile.pre_filter, *profile.filter, *profile.pre_score)}
        judging |= {entry.plugin.name: entry.plugin for entry in profile.score}
        self._signatures = Signatures(judging.values())
        self._shares = self._signatures.complete
        self._shared = Kept[Hashable, _Shared](KEPT_BYTES, fewest=FEWEST_SIGNATURES)
        self._broken = cluster.nodes.broken
        """Of the table's indexes, when all that is shared was computed."""
        self._confirms = bool(profile.reserve or profile.permit)

    def run(self, pod: PodInfo) -> CycleResult:
        """Find a node for `pod`, without asking extenders. Never raises: a plugin that does ends this attempt
        as an error."""
        result = self._begun()
        if result.error:
            return result
        facts, key = PodFacts(pod), None
        try:
            key = self._key(facts)
            self._decide(facts, key, result)
        except Exception as fault:  # the boundary to plugins: their faults end an attempt, not the service
            self._fail(key, result, fault)
        return result

    def steps(self, pod: PodInfo) -> Generator[Calls, Answers, CycleResult]:
        """The same with extenders: yields what they are to be asked, is sent the answers. Between a yield and
        its answer nothing may change in the snapshot. Without extenders it yields nothing.
        """
        if not self._extenders:
            return self.run(pod)
        result = self._begun()
        if result.error:
            return result
        key = None
        try:
            key = self._key(pod)
            yield from self._decide_with_extenders(pod, key, result)
        except Exception as fault:  # the boundary to plugins and extenders
            self._fail(key, result, fault)
        return result

    def choice(self, pod: PodInfo) -> Choice:
        """The same up to the choice: nobody is preempted, and extenders are not asked. Never raises."""
        result = self._begun()
        if result.error:
            return Choice(error=result.error)
        facts, key = PodFacts(pod), None
        try:
            key = self._key(facts)
            return self._choice(facts, key)
        except Exception as fault:  # the boundary to plugins
            self._fail(key, result, fault)
            return Choice(error=result.error)

    def judge(self, pod: PodInfo) -> Feasibility:
        """Only the filter part, up to date.

        :raises PluginError: if a plugin fails
        """
        key = self._key(pod)
        try:
            shared = self._find(pod, key)
            shared.feasibility.refresh(pod)
        except PluginError:
            self._shared.pop(key)
            raise
        return shared.feasibility

    def confirm(self, pod: PodInfo, result: CycleResult) -> bool:
        """Reserve and Permit for the chosen node, on which the caller has assumed the pod by now.

        :return: False if a plugin said no or failed: it is unreserved again, `result` has no node any more
            and says why
        """
        state = result.state
        if state is None:
            return True
        start = self._stopwatch()
        rejection = confirming.reserve(self._profile, state, pod, self._cluster, result.node)
        reserved = self._stopwatch()
        result.times.append(PointTime("Reserve", start, reserved, _label(rejection)))
        if rejection is None:
            rejection, result.waits = confirming.permit(self._profile, state, pod, self._cluster, result.node)
            status = Code.WAIT.label if result.waits else _label(rejection)
            result.times.append(PointTime("Permit", reserved, self._stopwatch(), status))
        if rejection is None:
            return True
        message = "; ".join((rejection.message, *self.unreserve(pod, state, result.node)))
        result.node, result.scores, result.message, result.waits = "", (), message, {}
        if rejection.rejected:
            result.rejection = rejection
        else:
            result.error = message
        return False

    def unreserve(self, pod: PodInfo, state: CycleState | None, node_name: str) -> list[str]:
        """Reserve is undone, in reverse order: the pod does not get the node after all.

        :return: what plugins raised, in words
        """
        return confirming.unreserve(self._profile, state, pod, self._cluster, node_name)

    # ---- what is shared ------------------------------------------------------------------------------------

    def _key(self, pod: PodInfo) -> Hashable:
        """Equal for pods that share results; while any pods are to have room somewhere, priority counts."""
        if not self._shares:
            return None
        signature = self._signatures.of(pod)
        return (signature, pod.priority) if self._cluster.rivals else signature

    def _find(self, pod: PodInfo, key: Hashable) -> _Shared:
        if self._broken != self._cluster.nodes.broken:
            self._broken = self._cluster.nodes.broken
            self._shared.clear()
        if self._shares:
            shared = self._shared.get(key)
            if shared is not None:
                self._shared.use(key)
                return shared
        feasibility = Feasibility(self._profile, pod, self._cluster)
        scoreboard = Scoreboard(self._profile, feasibility, self._cluster, self._stopwatch)
        shared = _Shared(feasibility, scoreboard, pod, bool(pod.nominated_node))
        if self._shares:
            taken = SIGNATURE_BYTES + ROW_BYTES * self._cluster.nodes.capacity + self._signatures.size(pod)
            self._shared.keep(key, shared, taken)
        return shared

    def _begun(self) -> CycleResult:
        result = CycleResult(nodes_total=len(self._cluster.nodes), times=[], evaluated=[])
        if self._plugin_times is not None:
            self._cluster.timing = None if self._untimed else self._plugin_times
            self._untimed = (self._untimed + 1) % self._plugin_times.every
        if not result.nodes_total:
            result.error = result.message = diagnosis.NO_NODES
        return result

    def _fail(self, key: Hashable, result: CycleResult, fault: Exception) -> None:
        """What was computed half-way is thrown away.

        :param key: `None`: the pod could not be signed
        """
        self._shared.pop(key)
        if isinstance(fault, PluginError):
            self._cluster.faults.note(fault)
            if result.times and fault.point in POINTS:
                start = result.times[-1].end
                result.times.append(PointTime(POINTS[fault.point], start, self._stopwatch(), Code.ERROR.label))
        result.node, result.diagnosis, result.scores = "", None, ()
        result.error = result.message = str(fault) if isinstance(fault, ExtenderError) else described(fault)

    # ---- deciding ------------------------------------------------------------------------------------------

    def _decide(self, pod: PodInfo, key: Hashable, result: CycleResult) -> None:
        watch, times = self._stopwatch, result.times
        start = watch()
        shared = self._find(pod, key)
        feasibility, shown = shared.feasibility, shared.shown(pod, self._cluster)
        pre_filtered = watch()
        times.append(PointTime("PreFilter", start, pre_filtered, feasibility.pre_filter_label))
        if pod.nominated_node and feasibility.takes_nominated(pod):
            result.node, result.nodes_feasible = pod.nominated_node, 1
            times.append(PointTime("Filter", pre_filtered, watch()))
            result.evaluated.append(feasibility.evaluated(True))
        else:
            feasibility.refresh(shown)
            result.nodes_feasible = feasibility.feasible_count
            result.rejections = feasibility.rejections()
            filtered = watch()
            times.append(PointTime("Filter", pre_filtered, filtered))
            result.evaluated.append(feasibility.evaluated(result.nodes_feasible > 0))
            if not feasibility.feasible_count:
                self._post_filter(pod, feasibility, result)
                return
            self._pick(pod, shown, shared, result)
            if result.scores:  # where there is one node only, nobody is asked how good it is
                pre_scored = shared.scoreboard.pre_scored
                times.append(PointTime("PreScore", filtered, pre_scored))
                times.append(PointTime("Score", pre_scored, watch()))
                result.evaluated.append(shared.scoreboard.evaluated)
        if self._confirms:
            result.state = feasibility.state.clone()

    def _pick(self, pod: PodInfo, shown: PodInfo, shared: _Shared, result: CycleResult) -> None:
        feasibility, scoreboard = shared.feasibility, shared.scoreboard
        if feasibility.feasible_count == 1:
            result.node = self._cluster.nodes.names[int(feasibility.feasible[0])]
            return
        scoreboard.refresh(shown)
        row = scoreboard.best_at(self._one_of(scoreboard.best_count(), pod))
        result.node = self._cluster.nodes.names[row]
        result.scores = scoreboard.leaders(row, self._leaders)

    def _choice(self, pod: PodFacts, key: Hashable) -> Choice:
        shared = self._find(pod, key)
        feasibility, shown = shared.feasibility, shared.shown(pod, self._cluster)
        feasibility.refresh(shown)
        if not feasibility.feasible_count:
            found = feasibility.diagnosis()
            return Choice(rejections=found.rejections(), message=found.message())
        names = self._cluster.nodes.names
        if feasibility.feasible_count == 1:
            only = names[int(feasibility.feasible[0])]
            return Choice(only, (only,))
        shared.scoreboard.refresh(shown)
        equals = tuple([names[row] for row in shared.scoreboard.best()])
        return Choice(equals[self._one_of(len(equals), pod)], equals)

    def _one_of(self, count: int, pod: PodInfo) -> int:
        """Which of so many equals, chosen by the pod's uid."""
        return 0 if count == 1 else crc32(pod.uid.encode()) * SCATTER % 2**32 * count >> 32

    def _post_filter(self, pod: PodInfo, feasibility: Feasibility, result: CycleResult) -> None:
        found = feasibility.diagnosis()
        start = self._stopwatch()
        said = None
        if self._profile.post_filter:
            state = feasibility.state.clone()
            said = post_filtering.run(self._profile.post_filter, state, pod, self._cluster, found)
        self._diagnose(result, found, feasibility.detailed(pod), said, start)

    def _diagnose(
        self,
        result: CycleResult,
        found: Diagnosis,
        details: Details,
        said: post_filtering.PostFiltered | None,
        start: float,
    ) -> None:
        result.diagnosis = found
        result.rejections, result.nearest = details.joined(found.rejections()), details.nearest
        if said is None:
            result.message = found.message()
            return
        result.post_filter, result.nominated_node, result.victims = said.status, said.nominated_node, said.victims
        result.message = found.message(said.status.message)
        result.post_filters = said.asked
        result.times.append(PointTime("PostFilter", start, self._stopwatch(), said.status.code.label))

    # ---- deciding with extenders ---------------------------------------------------------------------------

    def _decide_with_extenders(
        self, pod: PodInfo, key: Hashable, result: CycleResult
    ) -> Generator[Calls, Answers, None]:
        nodes, watch, times = self._cluster.nodes, self._stopwatch, result.times
        start = watch()
        feasibility, scoreboard, *_ = self._find(pod, key)
        pre_filtered = watch()
        times.append(PointTime("PreFilter", start, pre_filtered, feasibility.pre_filter_label))
        own = yield from self._ask_about_nominated(pod, feasibility)
        if own.nodes:
            result.node, result.nodes_feasible = pod.nominated_node, 1
            times.append(PointTime("Filter", pre_filtered, watch()))
            result.evaluated.append(feasibility.evaluated(True))
        else:
            feasibility.refresh(pod)
            rows: list[int] = feasibility.feasible.tolist()
            passed = [nodes.names[row] for row in rows]
            left = yield from extenders.filter_steps(self._extenders, pod, passed)
            result.nodes_feasible = len(left.nodes)
            reasons = {**own.rejected, **left.rejected}
            found = consulting.rejected_too(feasibility.diagnosis(), nodes, feasibility.feasible, left.nodes, reasons)
            result.rejections = diagnosis.rejections(found.groups)
            filtered = watch()
            times.append(PointTime("Filter", pre_filtered, filtered))
            result.evaluated.append(feasibility.evaluated(bool(rows)))
            if not left.nodes:
                yield from self._post_filter_with_extenders(pod, feasibility, found, result)
                return
            scoreboard = yield from self._pick_with_extenders(pod, feasibility, scoreboard, left.nodes, result)
            if result.scores:
                times.append(PointTime("PreScore", filtered, scoreboard.pre_scored))
                times.append(PointTime("Score", scoreboard.pre_scored, watch()))
                result.evaluated.append(scoreboard.evaluated)
        if self._confirms:
            result.state = feasibility.state.clone()

    def _ask_about_nominated(self, pod: PodInfo, feasibility: Feasibility) -> Generator[Calls, Answers, Filtered]:
        """The pod's own nominated node before all others; an extender that fails is passed over here."""
        if pod.nominated_node and feasibility.takes_nominated(pod):
            with suppress(ExtenderError):
                return (yield from extenders.filter_steps(self._extenders, pod, (pod.nominated_node,)))
        return Filtered(nodes=())

    def _pick_with_extenders(
        self, pod: PodInfo, feasibility: Feasibility, scoreboard: Scoreboard, names: Sequence[str], result: CycleResult
    ) -> Generator[Calls, Answers, Scoreboard]:
        """:return: who scored: another one, if extenders left some nodes out"""
        if len(names) == 1:
            result.node = names[0]
            return scoreboard
        nodes = self._cluster.nodes
        if len(names) != feasibility.feasible_count:
            fewer = consulting.FewerNodes(feasibility.state.clone(), nodes, names)
            scoreboard = Scoreboard(self._profile, fewer, self._cluster, self._stopwatch)
        scoreboard.refresh(pod)
        points = yield from extenders.prioritize_steps(self._extenders, pod, names)
        ranking = consulting.ranking(scoreboard, [nodes.row_of[name] for name in names], points, nodes)
        best = sum(score.total == ranking[0].total for score in ranking)
        chosen = ranking.pop(self._one_of(best, pod))
        result.node = chosen.node
        result.scores = (chosen, *ranking[: self._leaders - 1])
        return scoreboard

    def _post_filter_with_extenders(
        self, pod: PodInfo, feasibility: Feasibility, found: Diagnosis, result: CycleResult
    ) -> Generator[Calls, Answers, None]:
        start = self._stopwatch()
        said = None
        if self._profile.post_filter:

            def consult(victims: Mapping[str, NodeVictims]) -> Generator[Calls, Answers, Mapping[str, NodeVictims]]:
                return extenders.preempt_steps(self._extenders, pod, victims, self._cluster.nodes)

            said = yield from post_filtering.steps(
                self._profile.post_filter, feasibility.state.clone(), pod, self._cluster, found, consult
            )
        self._diagnose(result, found, feasibility.detailed(pod), said, start)


def _label(rejection: Status | None) -> str:
    """Of what Reserve or Permit said."""
    return SUCCESS if rejection is None else rejection.code.label
