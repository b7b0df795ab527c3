"""What the plan says of each pod that a plugin wants to go: where what comes in its place would go, and why
the pod should rather stay. With `plan: obey` it then stays, with `report` that is told alone."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from podyard.cluster.view import ClusterView
from podyard.descheduler.core import spread
from podyard.descheduler.core.evictions import Eviction, Planned
from podyard.descheduler.core.framework import PluginError, PluginFault, RunPlugin, Target, TargetPlugin, Verdict
from podyard.descheduler.core.moves import Moves
from podyard.descheduler.core.planning import Place, Plan
from podyard.descheduler.core.restraint import Restraint
from podyard.descheduler.core.spread import Spread
from podyard.framework.profile import Profile
from podyard.framework.status import described, told
from podyard.objects.pod import Pod

PLAN: Final = "the plan"
"""Stands for a plugin's name in faults."""
MOST_EQUALS: Final = 32
"""Of nodes that the scheduler may choose alike, so many are held against what the plugin wants."""

Profiles = Callable[[], Mapping[str, Profile]]
"""Makes scheduling profiles, by name: each plan has its own."""


class Advisor:
    """Of one cycle. `advise` and then `settle`, pod by pod. The table is made when the first pod is asked
    about: most cycles find none."""

    def __init__(
        self,
        view: ClusterView,
        profiles: Profiles,
        known: Moves,
        now: float,
        *,
        obey: bool,
        tells_spread: bool = False,
    ) -> None:
        """
        :param view: nobody changes it
        :param known: what earlier cycles moved
        :param obey: who should stay stays
        :param tells_spread: how evenly pods are spread is told even if no pod is asked about
        """
        self.obey = obey
        self._tells_spread = tells_spread
        self.faults: list[PluginFault] = []
        """Plugins that could not say whether a node is better."""
        self.kept: list[Eviction] = []
        """Pods that stay because the plan says so, and that nobody has heard of yet."""
        self._view = view
        self._profiles = profiles
        self._restraint = Restraint(known, view, now)
        self._now = now
        self._made: Plan | None = None
        self._before: Spread = {}
        self._place: Place | None = None
        self._broken = ""
        """Why there is no plan any more."""

    def advise(self, pod: Pod, plugin: RunPlugin) -> Planned:
        """What the plan says of a pod that this plugin wants to go. From now on the plan stands as if it had
        gone."""
        problem = self._restraint.why_not(pod)
        if problem and self.obey:
            return Planned(problem=problem)
        if not self._broken:
            try:
                place = self._place = self._plan.place(pod)
                return Planned(place.node, problem or place.trouble or self._objection(place, plugin))
            except Exception as fault:  # the boundary of the plan: nobody needs one to evict
                self._place, self._broken = None, described(fault)
                self.faults.append(PluginFault(PLAN, "place", self._broken))
        return Planned(problem=problem or f"nobody can say where it would go: {self._broken}")

    def keep(self, wanted: Eviction) -> None:
        """It stays, because the plan says so."""
        self.kept.append(wanted)

    def take_kept(self) -> list[Eviction]:
        """Those of `kept` since last asked."""
        taken, self.kept = self.kept, []
        return taken

    def settle(self, *, gone: bool) -> None:
        """Whether the pod that was asked about last has gone."""
        place, self._place = self._place, None
        if place is None:
            return
        if gone:
            self._plan.book(place)
        else:
            self._plan.drop(place)

    def spread(self) -> tuple[Spread, Spread]:
        """How much of nodes is requested: before the cycle, and as planned; empty if no pod was asked
        about."""
        if self._broken or (self._made is None and not self._tells_spread):
            return {}, {}
        after = spread.of(self._plan.table)
        return self._before, after

    # ---- inside --------------------------------------------------------------------------------------------

    @property
    def _plan(self) -> Plan:
        if self._made is None:
            self._made = Plan(self._view, self._profiles(), self._now)
            self._before = spread.of(self._made.table)
        return self._made

    def _objection(self, place: Place, plugin: RunPlugin) -> str:
        if place.choice is None:
            return ""
        own = place.pod.spec.node_name
        if own in place.choice.equals:
            return f"it would come back to {own}"
        undone = self._restraint.why_not_to(place.pod, plugin.NAME, place.node)
        if undone or not hasattr(plugin, "is_better"):
            return undone
        for name in _likely(place):
            verdict = self._judged(place.pod, name, plugin)
            if not verdict.allowed:
                why = f": {', '.join(map(told, verdict.reasons))}" if verdict.reasons else ""
                return f"{name}, where it would go, is no better for {plugin.NAME}{why}"
        return ""

    def _judged(self, pod: Pod, name: str, plugin: RunPlugin) -> Verdict:
        """What the plugin says of a node. One that cannot say finds it no better."""
        target = Target(self._view.nodes[name].node, self._plan.coming)
        try:
            verdict = cast("TargetPlugin", plugin).is_better(pod, target)
            if type(verdict) is not Verdict or type(verdict.allowed) is not bool:
                raise PluginError(f"answered {type(verdict).__name__}, not a Verdict")
        except Exception as fault:  # the boundary to plugins
            failed = str(PluginError.wrapping(fault))
            self.faults.append(PluginFault(plugin.NAME, "is_better", failed))
            return Verdict(False, (f"it failed: {failed}",))
        return verdict


def _likely(place: Place) -> list[str]:
    """Where the scheduler may put what comes: the node that is planned, and others that it likes as much."""
    assert place.choice is not None, "who asks knows that something comes"
    others = [name for name in place.choice.equals if name != place.node]
    return [place.node, *others[: MOST_EQUALS - 1]]
