"""The core of the descheduler: when a cycle is due, and the one that is on.

A cycle is a dialogue: it asks for a listing, then for what Prometheus measures, then for one eviction after
the other, and goes on with what it is told. From one cycle to the next only the moves are remembered
(`moves`). Where a plugin goes by what node agents say, the first cycle waits until each has had its time to
say it.

What a cycle raises ends that cycle and not the term, unlike what any other core raises: no half-changed state
is left, since the next cycle lists anew, and a term that ended would have the next leader begin a cycle at
once. That one has all its limits before it again, so that one fault would evict many times what the policy
allows.
"""

from collections.abc import Mapping
from typing import Final

from podyard.cluster.usages import Heard
from podyard.cluster.view import ClusterView
from podyard.descheduler.core import cycle, loading, moves, queries, state
from podyard.descheduler.core.advice import Advisor, Profiles
from podyard.descheduler.core.cycle import Cycle, Timer, untimed
from podyard.descheduler.core.effects import CycleEnded, CycleFailed, Effect, Evict, Finished, List, Query, Remember
from podyard.descheduler.core.errors import PolicyError
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.measured import Measured, QueryResult
from podyard.descheduler.core.messages import (
    Answer,
    Changed,
    EvictionAnswered,
    Listed,
    Message,
    NotListed,
    Queried,
    Relisted,
    Tick,
)
from podyard.descheduler.core.metrics_providers import wants_kubernetes
from podyard.descheduler.core.moves import Moves
from podyard.descheduler.core.node_usage import HEARD_WITHIN_S, metrics
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.triggers import TO_ALL, Triggers
from podyard.framework.status import described
from podyard.proto.moves import MoveRecord

RETRY_S: Final = 5.0
"""From the start of a cycle that could not list the cluster to the next: shorter than the interval, long
enough for NATS to come back."""
AGAIN_S: Final = 30.0
"""From the end of a cycle that failed or broke off to the next, where only events start cycles and its own
have been taken: semi-arbitrary."""


class Descheduler:
    """One term. Owned by one task."""

    def __init__(
        self,
        policy: Policy,
        plugins: Mapping[str, type[Plugin]],
        *,
        interval_s: float | None,
        once: bool = False,
        triggers: Triggers | None = None,
        dry_run: bool = False,
        profiles: Profiles | None = None,
        obey: bool = False,
        timer: Timer = untimed,
    ) -> None:
        """
        :param policy: as of `loading.decode`; what needs the cluster is looked up in each cycle
        :param plugins: by name
        :param interval_s: seconds from the start of one cycle of all plugins to the start of the next; None:
            after the first one of the term only events start cycles
        :param once: one cycle only
        :param triggers: what events start cycles; None: none do
        :param dry_run: nothing moves, so nothing is remembered
        :param profiles: make the scheduling profiles that a plan places pods by; None: nobody plans
        :param obey: pods that should stay by the plan stay
        :param timer: measures the plugins' runs
        """
        self._next_at: float | None = 0.0 if triggers is None else None
        """When the next cycle of all plugins is due, seconds since 1970; None: never. Where events start
        cycles the first one waits until the cluster is followed, so that nothing is lost between the two."""
        self._following = False
        self._at_rest = True
        """No cycle is on."""
        self._triggers = triggers
        self._called = TO_ALL
        """What the cycle that is on is about."""
        self._policy = policy
        self._plugins = plugins
        self._interval_s = interval_s
        self._once = once
        self._began = 0.0
        self._tickets = 0
        self._asked: int | None = None
        """The ticket whose answer is awaited."""
        self._queries = queries.asked(policy)
        self._wants_usage = wants_kubernetes(policy)
        self._listening = queries.goes_by_agents(policy)
        """The first cycle waits for what agents say, and has not begun to."""
        self._earliest = 0.0
        """No cycle begins before."""
        self._heard: Mapping[str, Heard] = {}
        """As of the listing of the cycle that is on."""
        self._has_prometheus = queries.provider(policy) is not None
        self._listed: ClusterView | None = None
        """Of the cycle whose queries are being asked."""
        self._cycle: Cycle | None = None
        self._moves = Moves()
        self._remembers = not dry_run
        self._profiles = profiles
        self._obey = obey
        self._timer = timer
        self._advisor: Advisor | None = None
        """Of the cycle that is on."""
        self._view: ClusterView | None = None
        """Of the cycle that is on."""
        self._wanted: Eviction | None = None
        """The one that is under way."""

    @property
    def wake_at(self) -> float | None:
        """When a `Tick` is due, seconds since 1970: the next cycle. None while one is on, and after the only
        one."""
        if not self._at_rest:
            return None
        called_at = None if self._triggers is None else self._triggers.due_at
        due = [at for at in (self._next_at, called_at) if at is not None]
        return max(min(due), self._earliest) if due else None

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done.

        :param now: seconds since 1970, UTC
        """
        match message:
            case Tick():
                return self._begin(now)
            case Changed(changes):
                if self._triggers is not None:
                    self._triggers.changed(changes, now)
                return []
            case Relisted():
                self._listed_again(now)
                return []
            case _:
                return self._answered(message, now)

    def _listed_again(self, now: float) -> None:
        if not self._following:
            self._following, self._next_at = True, now
        elif self._triggers is not None:
            self._triggers.listed_again(now)

    def _answered(self, message: Answer, now: float) -> list[Effect]:
        if message.ticket != self._asked:
            return []
        self._asked = None
        if isinstance(message, Listed):
            self._heard = message.heard
        match message:
            case Listed(view=view) if self._queries:
                self._listed = view
                return [Query(self._ticket(), self._queries), *self._recall(message, now)]
            case Listed():
                known = self._recall(message, now)
                return [*self._start(message.view, {}, now), *known]
            case Queried():
                assert self._listed is not None, "a cycle queries after its listing"
                return self._start(self._listed, message.results, now)
            case NotListed():
                self._at_rest, self._next_at = True, self._began + RETRY_S
                return [CycleFailed(f"the cluster cannot be listed: {message.reason}", began=self._began)]
            case EvictionAnswered():
                assert self._wanted is not None, "it was asked for"
                known = self._note(self._wanted, message.result, now)
                return [*self._go_on(now, message.result), *self._remember(known)]

    def close(self) -> None:
        """The term ends: the cycle that is on goes no further than the evictions that it was answered."""
        if self._cycle is not None:
            self._cycle.close()

    def _begin(self, now: float) -> list[Effect]:
        """One cycle at a time. That of all plugins sees to what events call for, too."""
        if self.wake_at is None or now < self.wake_at:
            return []
        if self._listening:
            self._listening, self._earliest = False, now + HEARD_WITHIN_S
            return []
        whole = self._next_at is not None and now >= self._next_at
        self._called = TO_ALL if self._triggers is None else self._triggers.take(whole=whole)
        self._at_rest, self._began = False, now
        if whole:
            self._next_at = None
        return [List(self._ticket())]

    def _recall(self, listed: Listed, now: float) -> list[Effect]:
        """What came of earlier moves, as far as this listing says."""
        self._view = listed.view
        self._moves.recall(listed.earlier)
        return self._remember(self._moves.seen(listed.view, now))

    def _note(self, wanted: Eviction, result: EvictionResult, now: float) -> list[MoveRecord]:
        if not self._remembers or self._view is None:
            return []
        record = self._moves.tried(wanted, result, moves.workload_of(wanted.pod, self._view), now)
        return [] if record is None else [record]

    def _note_kept(self, now: float) -> list[Effect]:
        """Pods that stay by the plan, since the last question of the cycle."""
        kept = [] if self._advisor is None else self._advisor.take_kept()
        return self._remember(
            [known for one in kept for known in self._note(one, EvictionFailed(one.planned.problem), now)]
        )

    def _remember(self, known: list[MoveRecord]) -> list[Effect]:
        return [Remember(tuple(known))] if known and self._remembers else []

    def _start(self, view: ClusterView, results: Mapping[str, QueryResult], now: float) -> list[Effect]:
        self._listed = None
        measured = Measured(
            kubernetes=metrics(self._heard, view, now) if self._wants_usage else None,
            prometheus=results if self._has_prometheus else None,
        )
        self._heard = {}
        self._cycle = self._run(view, measured, self._began)
        return self._go_on(now)

    def _run(self, view: ClusterView, measured: Measured, now: float) -> Cycle:
        """
        :raises PolicyError: if the policy cannot be used in this cluster
        """
        found = state.state_of(view)
        found.measured = measured
        policy = loading.with_defaults(self._policy, found.priority_classes)
        if self._profiles is not None:
            self._advisor = Advisor(view, self._profiles, self._moves, now, obey=self._obey, tells_spread=self._once)
        return (yield from cycle.run(policy, self._plugins, found, now, self._called, self._advisor, self._timer))

    def _go_on(self, now: float, result: EvictionResult | None = None) -> list[Effect]:
        assert self._cycle is not None, "its ticket was asked by a cycle"
        if self._triggers is not None and self._wanted is not None and isinstance(result, EvictionDone):
            self._triggers.evicted(self._wanted.pod.metadata.uid)
        try:
            wanted = next(self._cycle) if result is None else self._cycle.send(result)
        except StopIteration as ended:
            kept = self._note_kept(now)
            return [*kept, *self._over(CycleEnded(ended.value, self._began), now)]
        except PolicyError as error:
            return self._over(CycleFailed(str(error), began=self._began), now)
        except Exception as error:  # the boundary of a cycle
            return self._over(CycleFailed(f"it broke off: {described(error)}", error, self._began), now)
        self._wanted = wanted
        return [Evict(self._ticket(), wanted), *self._note_kept(now)]

    def _over(self, told: CycleEnded | CycleFailed, now: float) -> list[Effect]:
        self._cycle = self._view = self._wanted = self._advisor = None
        if self._once:
            return [told, Finished()]
        self._at_rest = True
        if self._called.runs is None and self._interval_s is not None:
            self._next_at = self._began + self._interval_s
        if self._triggers is not None:
            self._triggers.rested(now)
            if self._interval_s is None and (isinstance(told, CycleFailed) or told.record.ended):
                self._next_at = now + max(self._triggers.pause_s, AGAIN_S)
        return [told]

    def _ticket(self) -> int:
        self._tickets += 1
        self._asked = self._tickets
        return self._tickets
