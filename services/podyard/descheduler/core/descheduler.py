"""The core of the descheduler: when a cycle is due, and the one that is on.

A cycle is a dialogue: it asks for a listing, then for what Prometheus measures, then for one eviction after
the other, and goes on with what it is told. Nothing is kept from one cycle to the next.

What a cycle raises ends that cycle and not the term, unlike what any other core raises: no half-changed state
is left, since the next cycle lists anew, and a term that ended would have the next leader begin a cycle at
once. That one has all its limits before it again, so that one fault would evict many times what the policy
allows.
"""

from collections.abc import Mapping
from typing import Final

from podyard.cluster.view import ClusterView
from podyard.descheduler.core import cycle, loading, queries, state
from podyard.descheduler.core.cycle import Cycle, EvictionResult
from podyard.descheduler.core.effects import CycleEnded, CycleFailed, Effect, Evict, Finished, List, Query
from podyard.descheduler.core.errors import PolicyError
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.measured import Measured, QueryResult
from podyard.descheduler.core.messages import EvictionAnswered, Listed, Message, NotListed, Queried, Tick
from podyard.descheduler.core.policy import Policy
from podyard.framework.status import described

RETRY_S: Final = 5.0
"""From the start of a cycle that could not list the cluster to the next: shorter than the interval, long
enough for NATS to come back."""


class Descheduler:
    """One term. Owned by one task."""

    def __init__(
        self, policy: Policy, plugins: Mapping[str, type[Plugin]], *, interval_s: float, once: bool = False
    ) -> None:
        """
        :param policy: as of `loading.decode`; what needs the cluster is looked up in each cycle
        :param plugins: by name
        :param interval_s: seconds from the start of one cycle to the start of the next
        :param once: one cycle only
        """
        self.wake_at: float | None = 0.0
        """When a `Tick` is due, seconds since 1970: the next cycle. None while one is on, and after the only
        one."""
        self._policy = policy
        self._plugins = plugins
        self._interval_s = interval_s
        self._once = once
        self._began = 0.0
        self._tickets = 0
        self._asked: int | None = None
        """The ticket whose answer is awaited."""
        self._queries = queries.asked(policy)
        self._has_prometheus = queries.provider(policy) is not None
        self._listed: ClusterView | None = None
        """Of the cycle whose queries are being asked."""
        self._cycle: Cycle | None = None

    def step(self, message: Message, now: float) -> list[Effect]:
        """Take one message in; returns what is to be done.

        :param now: seconds since 1970, UTC
        """
        if isinstance(message, Tick):
            return self._begin(now)
        if message.ticket != self._asked:
            return []
        self._asked = None
        match message:
            case Listed(view=view) if self._queries:
                self._listed = view
                return [Query(self._ticket(), self._queries)]
            case Listed():
                return self._start(message.view, {})
            case Queried():
                assert self._listed is not None, "a cycle queries after its listing"
                return self._start(self._listed, message.results)
            case NotListed():
                self.wake_at = self._began + RETRY_S
                return [CycleFailed(f"the cluster cannot be listed: {message.reason}")]
            case EvictionAnswered():
                return self._go_on(message.result)

    def close(self) -> None:
        """The term ends: the cycle that is on goes no further than the evictions that it was answered."""
        if self._cycle is not None:
            self._cycle.close()

    def _begin(self, now: float) -> list[Effect]:
        if self.wake_at is None or now < self.wake_at:
            return []
        self.wake_at = None
        self._began = now
        return [List(self._ticket())]

    def _start(self, view: ClusterView, results: Mapping[str, QueryResult]) -> list[Effect]:
        self._listed = None
        self._cycle = self._run(view, Measured(prometheus=results if self._has_prometheus else None), self._began)
        return self._go_on()

    def _run(self, view: ClusterView, measured: Measured, now: float) -> Cycle:
        """
        :raises PolicyError: if the policy cannot be used in this cluster
        """
        found = state.state_of(view)
        found.measured = measured
        policy = loading.with_defaults(self._policy, found.priority_classes)
        return (yield from cycle.run(policy, self._plugins, found, now))

    def _go_on(self, result: EvictionResult | None = None) -> list[Effect]:
        assert self._cycle is not None, "its ticket was asked by a cycle"
        try:
            wanted = next(self._cycle) if result is None else self._cycle.send(result)
        except StopIteration as ended:
            return self._over(CycleEnded(ended.value, self._began))
        except PolicyError as error:
            return self._over(CycleFailed(str(error)))
        except Exception as error:  # the boundary of a cycle
            return self._over(CycleFailed(f"it broke off: {described(error)}", error))
        return [Evict(self._ticket(), wanted)]

    def _over(self, told: CycleEnded | CycleFailed) -> list[Effect]:
        self._cycle = None
        if self._once:
            return [told, Finished()]
        self.wake_at = self._began + self._interval_s
        return [told]

    def _ticket(self) -> int:
        self._tickets += 1
        self._asked = self._tickets
        return self._tickets
