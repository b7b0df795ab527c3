"""One attempt for one pod: run the cycle, assume, make the decision.

Assuming means counting the pod on its node in the table at once, so that the next pod sees less room. It ends
with the pod's binding fact, which takes its place, or by `forget`.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random
from typing import Protocol

import msgspec

from podyard.cluster.keys import NamespacedName
from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.extenders import Answers, Calls, Extender
from podyard.framework.permits import WaitingPods
from podyard.framework.plugin_times import TIMED_EVERY, PluginTimes
from podyard.framework.profile import Profile
from podyard.framework.snapshot import ObjectsByName, Snapshot
from podyard.framework.volume_choices import CHOSEN
from podyard.proto.binder_api import Decision
from podyard.proto.message import PodRef
from podyard.proto.placement import BoundPod, Release
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core import records, spans
from podyard.scheduler.core.assumptions import NO_PLACE, Assumption, Assumptions, Phase, Place
from podyard.scheduler.core.effects import CycleSpan
from podyard.scheduler.core.measured import CycleTimes, Measuring
from podyard.scheduler.core.own_nominations import OwnNominations


class View(Protocol):
    """What the core reads of the cluster view (`podyard.cluster.view.ClusterView` is one)."""

    @property
    def pods(self) -> Mapping[NamespacedName, PodView]: ...
    @property
    def placements(self) -> Mapping[str, BoundPod | Release]: ...
    @property
    def position(self) -> int: ...
    @property
    def read(self) -> int: ...
    @property
    def read_at(self) -> float: ...
    def objects(self, resource: str) -> ObjectsByName: ...
    def version(self, resource: str) -> int: ...


class Attempted:
    """An attempt's outcome: `assumption` if a node was found (maybe the pod waits at Permit), else only
    `result` and `span`."""

    __slots__ = ("assumption", "given_up", "result", "span")

    def __init__(
        self, result: CycleResult, span: CycleSpan, assumption: Assumption | None, given_up: Place = NO_PLACE
    ) -> None:
        self.result = result
        self.span = span
        self.assumption = assumption
        self.given_up = given_up
        """Where the pod was assumed until Reserve or Permit said no."""


class Placing:
    """Table, cycles and assumptions of one scheduler."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        view: View,
        *,
        stopwatch: Callable[[], float],
        random: Random,
        extenders: Sequence[Extender] = (),
        detailed: bool = False,
    ) -> None:
        """
        :param extenders: in calling order
        :param detailed: every cycle is timed plugin by plugin, and its span says so
        :param stopwatch: seconds of a monotonic clock, for durations in records and spans
        :param random: for span ids
        """
        self.table = NodeTable()
        self.permits = WaitingPods()
        self.assumptions = Assumptions()
        self._view = view
        self._stopwatch = stopwatch
        self._random = random
        self.nominations = OwnNominations(Nominations(schedulers=frozenset(profiles)))
        self.cluster = cluster = Snapshot(self.table, view, self.permits, self.nominations.nominated)
        self.profiles = profiles
        self.extenders = tuple(extenders)
        self._detailed = detailed
        self._plugin_times = plugin_times = PluginTimes(stopwatch, 1 if detailed else TIMED_EVERY)
        self.measuring = Measuring(plugin_times)
        self._cycles = {
            name: Cycle(profile, cluster, stopwatch, extenders, plugin_times) for name, profile in profiles.items()
        }

    def knows(self, profile: str) -> bool:
        """Whether there is a profile of this name."""
        return profile in self._cycles

    def attempt(
        self, popped: PoppedPod, pod: PodView, *, tries: int, session: str, now: float, started: float
    ) -> Generator[Calls, Answers, Attempted]:
        """Find a node for `pod` and assume it there. Yields what to ask extenders, is sent their answers.

        Between a yield and its answer neither the table nor nominations may change.

        :param tries: decisions of this attempt that were refused before
        :param started: when its first cycle began
        """
        cycle, watch = self._cycles[popped.profile], self._stopwatch
        start, position, timed = watch(), self._view.position, self._plugin_times.held
        read, read_at = self._view.read, self._view.read_at
        result = yield from cycle.steps(pod)
        algorithm_s = result.times[-1].end - start if result.times else 0.0
        node = result.node
        number = self.assumptions.next_number() if node else 0
        given_up = NO_PLACE
        if node:
            self.table.place(_placed(pod, popped, node, position))
            if not cycle.confirm(pod, result):
                self.table.remove(pod.uid)
                given_up = Place(node, pod.sequence)
        self.measuring.cycle(
            CycleTimes(popped.profile, algorithm_s, result.times, result.evaluated), result.post_filters
        )
        span = self._span(popped, result, session=session, now=now, start=start, position=position)
        if self._detailed:
            span = msgspec.structs.replace(span, plugins=self._plugin_times.since(timed))
        if not result.node:
            return Attempted(result, span, None, given_up)
        decision = Decision(
            namespace=popped.namespace,
            name=popped.name,
            uid=popped.uid,
            attempt=popped.attempt,
            node=node,
            number=number,
            position=position,
            read=read,
            read_at=read_at,
            profile=popped.profile,
            volumes=() if result.state is None else result.state.find(CHOSEN) or (),
            record=span.record,
            trace=span.trace,
        )
        assumption = Assumption(
            popped=popped,
            pod=pod,
            decision=decision,
            result=result,
            span=span,
            tries=tries + 1,
            session=session,
            phase=Phase.AT_PERMIT if result.waits else Phase.ASKED,
            started=started,
        )
        self.assumptions.add(assumption)
        return Attempted(result, span, assumption)

    def _span(
        self, popped: PoppedPod, result: CycleResult, *, session: str, now: float, start: float, position: int
    ) -> CycleSpan:
        """The span of a cycle that ends now, with its record.

        :param now: when the cycle began, in seconds since 1970, UTC; `start` is the same on the stopwatch
        """
        took = self._stopwatch() - start
        record = records.record_of(popped, result, session=session, at=now + took, duration_s=took, position=position)
        return CycleSpan(
            trace=spans.child(popped.trace, self._random),
            parent=popped.trace,
            start=now,
            end=now + took,
            points=tuple(result.times),
            points_since=now - start,
            record=record,
        )

    def end_nominations(self, node: str, *, below: int) -> tuple[PodRef, ...]:
        """End the nominations to `node` of pods of lower priority than `below`; returns whose.

        Source: preemption/executor.go, getLowerPriorityNominatedPods.
        """
        nominations = self.nominations
        lower = [pod for pod in nominations.nominated.on(node).values() if pod.priority < below]
        for pod in lower:
            nominations.decide(pod, "")
        return tuple(PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid) for pod in lower)

    def forget(self, uid: str) -> Assumption | None:
        """The pod does not get its node: undo Reserve, take it out of the table if it is not bound by now."""
        assumption = self.assumptions.drop(uid)
        if assumption is None:
            return None
        self.permits.forget(uid)
        cycle = self._cycles[assumption.popped.profile]
        failures = cycle.unreserve(assumption.pod, assumption.result.state, assumption.decision.node)
        assumption.trouble = "".join(f"; {failure}" for failure in failures)
        if not isinstance(self._view.placements.get(uid), BoundPod):
            self.table.remove(uid)
        return assumption


def _placed(pod: PodView, popped: PoppedPod, node: str, position: int) -> PlacedPod:
    return pod.with_placement(pod.bound_to(node, attempt=popped.attempt, decided_at=position), None)
