"""Asks the queueing hints whether an event is worth a retry of a pod.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing).
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry, Listener
from podyard.framework.events import ClusterEvent, HintAnswer, Registration
from podyard.objects.core import Pod
from podyard.proto.requeues import HintCall
from podyard.queue.core.effects import Incoming
from podyard.queue.core.queued_pod import QueuedPod


class Strategy(Enum):
    """What becomes of a parked pod after an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "afterBackoff"
    """To activeQ if its backoff is over, else to backoffQ."""
    IMMEDIATELY = "immediately"
    """To activeQ: a plugin that it was pending on says Queue."""


class Verdict(NamedTuple):
    """A strategy, the plugin that decided ("" if no hint was needed), and all answers in profile order."""

    strategy: Strategy
    plugin: str = ""
    calls: tuple[HintCall, ...] = ()

    @property
    def reason(self) -> str:
        """The deciding hint's reason in words."""
        return next((call.reason for call in self.calls if call.plugin == self.plugin), "")


def _is_meant(pod: QueuedPod, incoming: Incoming) -> bool:
    """A wildcard event with a pod is for that pod alone (an activation); without, for everybody."""
    return not isinstance(incoming.new, Pod) or incoming.new.metadata.uid == pod.uid


NO_HINT_NEEDED = Verdict(Strategy.AFTER_BACKOFF)
NOT_CONCERNED = Verdict(Strategy.SKIP)
WITHOUT_HINT = "any such event counts"
"""Reason of a registration that has no hint."""


class Judge:
    """The registries of all profiles, and a timer for the hints.

    :param registries: profile name -> registry
    :param timer: seconds of a monotonic clock; only measures the hints
    """

    def __init__(self, registries: Mapping[str, EventRegistry], timer: Callable[[], float]) -> None:
        self._registries = dict(registries)
        self._timer = timer
        self._listeners: dict[tuple[str, int, bool], dict[str, Mapping[str, Listener]]] = {}
        self._registered: dict[str, int] = {}
        for registry in self._registries.values():
            for resource, registered in registry.actions_by_resource().items():
                self._registered[resource] = self._registered.get(resource, 0) | int(registered)
        self._matching: dict[tuple[str, str, str, int], tuple[Registration, ...]] = {}

    def listeners(self, event: ClusterEvent, missed: bool = False) -> Mapping[str, Mapping[str, Listener]]:
        """Profile -> plugin -> matching registrations, profiles that nobody listens in left out.

        :param missed: all plugins that registered anything of the event's resource
        """
        key = (event.resource, int(event.action), missed)
        known = self._listeners.get(key)
        if known is None:
            known = self._listeners[key] = self._listen(event, missed)
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

    def matching(self, profile: str, plugin: str, event: ClusterEvent) -> tuple[Registration, ...]:
        """The plugin's registrations that match the event."""
        key = (profile, plugin, event.resource, int(event.action))
        known = self._matching.get(key)
        if known is None:
            registered = self._registries[profile].plugins.get(plugin, ())
            known = tuple(entry for entry in registered if events.match(entry.event, event))
            self._matching[key] = known
        return known

    def is_registered(self, event: ClusterEvent) -> bool:
        """Whether any plugin named the event's resource with one of its actions; a registration for everything names none."""
        return bool(self._registered.get(event.resource, 0) & int(event.action))

    def is_interested(self, event: ClusterEvent, missed: bool = False) -> bool:
        """Whether any plugin of any profile listens; wildcard events interest always."""
        return event.is_wildcard or bool(self.listeners(event, missed))

    def verdict(self, pod: QueuedPod, incoming: Incoming) -> Verdict:
        """Ask the hints of all plugins that rejected the pod and listen to the event, in profile order (PITFALLS 31).

        The reference stops at the first decisive answer; here all answer, so that the record is whole and repeatable.
        """
        rejectors = pod.rejectors
        if not rejectors:
            return NO_HINT_NEEDED
        if incoming.event.is_wildcard:
            return NO_HINT_NEEDED if _is_meant(pod, incoming) else NOT_CONCERNED
        listeners = self.listeners(incoming.event, incoming.missed).get(pod.profile)
        if not listeners:
            return NOT_CONCERNED
        calls = tuple(
            [self._ask(listener, pod, incoming) for plugin, listener in listeners.items() if plugin in rejectors]
        )
        decisive = ""
        for call in calls:
            if call.answer != HintAnswer.SKIP.value:
                if call.plugin in pod.pending_plugins:
                    return Verdict(Strategy.IMMEDIATELY, call.plugin, calls)
                decisive = decisive or call.plugin
        return Verdict(Strategy.AFTER_BACKOFF if decisive else Strategy.SKIP, decisive, calls)

    def _ask(self, listener: Listener, pod: QueuedPod, incoming: Incoming) -> HintCall:
        """One plugin's answer: Queue if any of its matching registrations says so; an exception is Queue (PITFALLS 28)."""
        if incoming.missed:
            return HintCall(plugin=listener.plugin, answer="Queue", reason="a change of it was missed")
        started = self._timer()
        answer, reasons = HintAnswer.SKIP, list[str]()
        for hint in listener.hints:
            if hint is None:
                answer, reason = HintAnswer.QUEUE, WITHOUT_HINT
            else:
                try:
                    answer, reason = hint(pod.pod, incoming.old, incoming.new)
                except Exception as error:  # a plugin's fault must not stop the queue: boundary
                    text = f"the hint failed: {type(error).__name__}: {error}"
                    return HintCall(
                        plugin=listener.plugin, answer="Error", reason=text, duration_us=self._since(started)
                    )
            reasons.append(reason)
            if answer is HintAnswer.QUEUE:
                break
        return HintCall(
            plugin=listener.plugin, answer=answer.value, reason="; ".join(reasons), duration_us=self._since(started)
        )

    def _since(self, started: float) -> int:
        return int((self._timer() - started) * 1e6)
