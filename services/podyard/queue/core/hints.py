"""Asks the queueing hints whether an event is worth a retry of a pod.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing).
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import NamedTuple

import msgspec

from podyard.framework import answers, events
from podyard.framework.event_registry import EVENT_BYTES, EVENTS_BYTES, EventRegistry, Listener
from podyard.framework.events import ClusterEvent, HintAnswer, HintResult, OwnHint, OwnRegistration, Registration
from podyard.framework.faults import Faults
from podyard.framework.status import LONGEST_TEXT, PluginError, told
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects.core import Pod
from podyard.plugins.hinted import UnexpectedObjectError
from podyard.proto.requeues import HintCall
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod, Watcher


class Strategy(Enum):
    """What becomes of a parked pod after an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "afterBackoff"
    """To activeQ if its backoff is over, else to backoffQ."""
    IMMEDIATELY = "immediately"
    """To activeQ: a plugin that it was pending on says Queue."""


class Verdict(NamedTuple):
    """A strategy, the plugin that decided ("" if no hint was needed), and all answers in profile order, those
    of own hints last.
    """

    strategy: Strategy
    plugin: str = ""
    calls: tuple[HintCall, ...] = ()
    own: bool = False
    """A hint of the plugin's own decided, where all of the reference's say Skip."""

    @property
    def reason(self) -> str:
        """The deciding hint's reason in words."""
        for call in self.calls:
            if call.plugin == self.plugin and call.own is self.own:
                return call.reason
        return ""


def _is_meant(pod: QueuedPod, incoming: Incoming) -> bool:
    """A wildcard event with a pod is for that pod alone (an activation); without, for everybody."""
    return not isinstance(incoming.new, Pod) or incoming.new.metadata.uid == pod.uid


def _own_hint(
    hint: OwnHint, obstacles: tuple[str, ...], pod: Pod, old: object | None, new: object | None
) -> HintResult:
    """An own hint as one of the reference's: with the obstacles that its plugin named."""
    return hint(pod, obstacles, old, new)


def _weighed(calls: tuple[HintCall, ...], pod: QueuedPod) -> Verdict:
    """What the answers come to: the first that does not say Skip decides, unless a plugin that the pod is
    pending on says so, too.
    """
    decisive: HintCall | None = None
    for call in calls:
        if call.answer != HintAnswer.SKIP.value:
            if call.plugin in pod.pending_plugins:
                return Verdict(Strategy.IMMEDIATELY, call.plugin, calls, call.own)
            decisive = decisive or call
    if decisive is None:
        return Verdict(Strategy.SKIP, "", calls)
    return Verdict(Strategy.AFTER_BACKOFF, decisive.plugin, calls, decisive.own)


NO_HINT_NEEDED = Verdict(Strategy.AFTER_BACKOFF)
NOT_CONCERNED = Verdict(Strategy.SKIP)
NO_LISTENERS: Mapping[str, Listener] = {}
WITHOUT_HINT = "any such event counts"
"""Reason of a registration that has no hint."""
WITHOUT_OBJECT = "the event names no object that the hint could look at: counts as one that helps"
"""Reason of a hint that could make nothing of an event without an object."""


class Hints:
    """The registries of all profiles, and a timer for the hints.

    :param registries: profile name -> registry
    :param timer: seconds of a monotonic clock; only measures the hints
    :param faults: told of hints that fail
    """

    def __init__(
        self, registries: Mapping[str, EventRegistry], timer: Callable[[], float], faults: Faults | None = None
    ) -> None:
        self._faults = Faults() if faults is None else faults
        self._registries = dict(registries)
        self._timer = timer
        self._listeners = Kept[tuple[str, int, bool], dict[str, Mapping[str, Listener]]](EVENTS_BYTES)
        self._watchers = Kept[tuple[str, int, bool], dict[str, tuple[Watcher, ...]]](EVENTS_BYTES)
        self._registered: dict[str, int] = {}
        for registry in self._registries.values():
            for resource, registered in registry.actions_by_resource().items():
                self._registered[resource] = self._registered.get(resource, 0) | int(registered)
        self._matching = Kept[tuple[str, Watcher, str, int], tuple[Registration | OwnRegistration, ...]](EVENTS_BYTES)

    def listeners(self, event: ClusterEvent, missed: bool = False) -> Mapping[str, Mapping[str, Listener]]:
        """Profile -> plugin -> matching registrations, profiles that nobody listens in left out.

        :param missed: all plugins that registered anything of the event's resource
        """
        key = (event.resource, int(event.action), missed)
        known = self._listeners.get(key)
        if known is None:
            known = self._listen(event, missed)
            self._listeners.keep(key, known, EVENT_BYTES + bytes_of(event.resource))
        return known

    def _listen(self, event: ClusterEvent, missed: bool) -> dict[str, Mapping[str, Listener]]:
        found: dict[str, Mapping[str, Listener]] = {}
        for profile, registry in self._registries.items():
            if missed:
                plugins = registry.of_resource(event.resource)
                listeners: Mapping[str, Listener] = {plugin: Listener(plugin, (None,)) for plugin in plugins}
            else:
                listeners = registry.listeners(event)
            if listeners:
                found[profile] = listeners
        return found

    def watchers(self, event: ClusterEvent, missed: bool = False) -> Mapping[str, tuple[Watcher, ...]]:
        """Profile -> who listens, with those whose own hints do; profiles that nobody listens in left out.

        :param missed: as of `listeners`
        """
        key = (event.resource, int(event.action), missed)
        known = self._watchers.get(key)
        if known is None:
            known = dict[str, tuple[Watcher, ...]]()
            for profile, registry in self._registries.items():
                plain = [Watcher(plugin) for plugin in self.listeners(event, missed).get(profile, ())]
                own = [] if missed else [Watcher(plugin, True) for plugin in registry.own_listeners(event)]
                if plain or own:
                    known[profile] = (*plain, *own)
            self._watchers.keep(key, known, EVENT_BYTES + bytes_of(event.resource))
        return known

    def matching(
        self, profile: str, watcher: Watcher, event: ClusterEvent
    ) -> tuple[Registration | OwnRegistration, ...]:
        """The plugin's registrations that match the event: those of the reference, or its own."""
        key = (profile, watcher, event.resource, int(event.action))
        known = self._matching.get(key)
        if known is None:
            registry = self._registries[profile]
            listed = registry.own if watcher.own else registry.plugins
            known = tuple(entry for entry in listed.get(watcher.plugin, ()) if events.match(entry.event, event))
            self._matching.keep(key, known, EVENT_BYTES + bytes_of(event.resource))
        return known

    def is_registered(self, event: ClusterEvent) -> bool:
        """Whether any plugin named the event's resource with one of its actions; a registration for
        everything names none.
        """
        return bool(self._registered.get(event.resource, 0) & int(event.action))

    def is_interested(self, event: ClusterEvent, missed: bool = False) -> bool:
        """Whether any plugin of any profile listens; wildcard events interest always."""
        return event.is_wildcard or bool(self.watchers(event, missed))

    def verdict(self, pod: QueuedPod, incoming: Incoming) -> Verdict:
        """Ask the hints of all plugins that rejected the pod and listen to the event, in profile order
        (docs/rules.md, all-hints-answer-in-order).

        The reference stops at the first decisive answer; here all answer, so that the record is whole and
        repeatable. Own hints are asked only if no hint of the reference helps the pod.
        """
        rejectors = pod.rejectors
        if not rejectors:
            return NO_HINT_NEEDED
        if incoming.event.is_wildcard:
            return NO_HINT_NEEDED if _is_meant(pod, incoming) else NOT_CONCERNED
        listeners = self.listeners(incoming.event, incoming.missed).get(pod.profile, NO_LISTENERS)
        if not listeners and not pod.obstacles:
            return NOT_CONCERNED
        calls = tuple(
            [self._ask(listener, pod, incoming) for plugin, listener in listeners.items() if plugin in rejectors]
        )
        found = _weighed(calls, pod)
        if found.strategy is Strategy.SKIP and pod.obstacles and not incoming.missed:
            calls += tuple(self._ask_own(pod, incoming))
            found = _weighed(calls, pod)
        return found

    def _ask_own(self, pod: QueuedPod, incoming: Incoming) -> Iterator[HintCall]:
        """The answers of own hints of plugins that named obstacles."""
        for plugin, listener in self._registries[pod.profile].own_listeners(incoming.event).items():
            obstacles = pod.obstacles.get(plugin)
            if obstacles is not None:
                hints = tuple([partial(_own_hint, hint, obstacles) for hint in listener.hints])
                yield msgspec.structs.replace(self._ask(Listener(plugin, hints), pod, incoming), own=True)

    def _ask(self, listener: Listener, pod: QueuedPod, incoming: Incoming) -> HintCall:
        """One plugin's answer: Queue if any of its matching registrations says so; an exception is Queue
        (docs/rules.md, failing-hint-means-queue).
        """
        if incoming.missed:
            return HintCall(plugin=listener.plugin, answer="Queue", reason="a change of it was missed")
        old, new = incoming.objects
        started = self._timer()
        answer, reasons = HintAnswer.SKIP, list[str]()
        for hint in listener.hints:
            if hint is None:
                answer, reason = HintAnswer.QUEUE, WITHOUT_HINT
            else:
                try:
                    answer, reason = hint(pod.pod, old, new)
                    if type(answer) is not HintAnswer or type(reason) is not str or len(reason) > LONGEST_TEXT:
                        answer, reason = answers.hint((answer, reason))
                except Exception as error:  # a plugin's fault must not stop the queue: boundary
                    return self._failed(listener.plugin, incoming, error, started)
            reasons.append(reason if reason.isascii() else told(reason))
            if answer is HintAnswer.QUEUE:
                break
        return HintCall(
            plugin=listener.plugin, answer=answer.value, reason="; ".join(reasons), duration_us=self._since(started)
        )

    def _failed(self, plugin: str, incoming: Incoming, error: Exception, started: float) -> HintCall:
        """A hint that raised counts as Queue. It is no fault of the plugin if the event, which somebody made,
        brings nothing to look at, or something of another kind."""
        if not incoming.brings_object:
            return HintCall(plugin=plugin, answer="Queue", reason=WITHOUT_OBJECT, duration_us=self._since(started))
        if isinstance(error, UnexpectedObjectError):
            reason = f"{error}: counts as one that helps"
            return HintCall(plugin=plugin, answer="Queue", reason=reason, duration_us=self._since(started))
        fault = PluginError.wrapping(plugin, "hint", error)
        self._faults.note(fault)
        reason = f"the hint failed: {fault.detail}"
        return HintCall(plugin=plugin, answer="Error", reason=reason, duration_us=self._since(started))

    def _since(self, started: float) -> int:
        return int((self._timer() - started) * 1e6)
