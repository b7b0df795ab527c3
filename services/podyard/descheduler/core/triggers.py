"""Which plugins cluster events concern, and when the cycle of those is due.

Events are gathered for a while, so that a node that gets five taints, or fifty nodes that come at once, make
one cycle. The reference knows intervals only (descheduler#696).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from podyard.cluster.changes import Change, object_of
from podyard.descheduler.core.framework import EventPlugin, Plugin, PluginFault, Registration
from podyard.descheduler.core.policy import Policy, Profile
from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.framework.status import described, told
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of

MOST_CAUSES: Final = 16
"""Events that a cycle names as what started it, the first ones; semi-arbitrary."""
OWN_BYTES: Final = 4 * 1024 * 1024
"""Uids of own evictions that are remembered: some 20,000. A miss costs a cycle that finds nothing to do."""
LISTED_AGAIN: Final = "the cluster was listed again: not all is known that has happened"
WITHOUT_HINT: Final = "any such event counts"

RunOf: TypeAlias = tuple[str, str]
"""Profile and plugin."""


class CycleCause(NamedTuple):
    """An event that a plugin wants to act on."""

    event: str
    """Label, e.g. NodeUpdateNodeTaint; empty: a listing."""
    object: str
    """namespace/name, or name; empty: a listing."""
    plugin: str
    reason: str
    """In the plugin's words."""
    trace: str = ""
    """Traceparent of what made the event."""

    @property
    def told(self) -> str:
        """In a line: event, object, plugin and its words."""
        return f"{f'{self.event} of {self.object}' if self.event else 'a listing'} for {self.plugin}: {self.reason}"


class Called(NamedTuple):
    """What a cycle is about."""

    runs: frozenset[RunOf] | None = None
    """Only these plugins run; None: all, since its time has come."""
    causes: tuple[CycleCause, ...] = ()
    """Events that started it, the first of them."""
    faults: tuple[PluginFault, ...] = ()
    """Hints that failed."""


TO_ALL: Final = Called()


class _Listener(NamedTuple):
    run: RunOf
    registration: Registration


class Triggers:
    """What has happened since the last cycle that it started. Owned by one task."""

    def __init__(self, policy: Policy, plugins: Mapping[str, type[Plugin]], *, gather_s: float, pause_s: float) -> None:
        """
        :param policy: of stage decode or later, usable
        :param plugins: by name
        :param gather_s: seconds from the first event to its cycle
        :param pause_s: seconds from the end of a cycle to the start of one that events start, at least
        """
        self._gather_s = gather_s
        self.pause_s = pause_s
        self._listeners = [one for profile in policy.profiles for one in _listeners(profile, plugins)]
        self._runs: set[RunOf] = set()
        self._causes: list[CycleCause] = []
        self._first_at = 0.0
        self._rested_at = 0.0
        self._own = Kept[str, bool](OWN_BYTES)
        self._faults: dict[str, PluginFault] = {}
        """Hints that failed since the last cycle: each plugin's first."""

    @property
    def due_at(self) -> float | None:
        """When the cycle is to start, seconds since 1970; None: nothing happened that concerns a plugin."""
        return max(self._first_at + self._gather_s, self._rested_at) if self._runs else None

    def changed(self, changes: Iterable[Change], now: float) -> None:
        """The cluster changed. What an own eviction did is no news; `listed_again` is for what a listing
        found."""
        for change in changes:
            if not change.relisted and change.uid not in self._own:
                for resource, action, *_ in change.events:
                    self._happened(ClusterEvent(resource, action), change, now)

    def listed_again(self, now: float) -> None:
        """Changes may have been missed: every plugin that listens has to look."""
        for run in dict.fromkeys(one.run for one in self._listeners):
            self._note(run, CycleCause("", "", run[1], LISTED_AGAIN), now)

    def evicted(self, uid: str) -> None:
        """A pod goes by a cycle of our own."""
        self._own.keep(uid, True, bytes_of(uid))

    def take(self, *, whole: bool) -> Called:
        """A cycle starts that sees all that has happened.

        :param whole: it is of all plugins anyway
        """
        faults = tuple(self._faults.values())
        found = Called(faults=faults) if whole else Called(frozenset(self._runs), tuple(self._causes), faults)
        self._runs, self._causes, self._faults = set(), [], {}
        return found

    def rested(self, now: float) -> None:
        """A cycle has ended."""
        self._rested_at = now + self.pause_s

    def _happened(self, event: ClusterEvent, change: Change, now: float) -> None:
        for run, registration in self._listeners:
            known = run in self._runs and len(self._causes) == MOST_CAUSES
            if not known and _concerns(registration, event, missed=change.gap):
                reason = self._asked(run[1], registration, change)
                if reason:
                    origin = change.origin
                    self._note(run, CycleCause(event.label, change.object_name, run[1], reason, origin.trace), now)

    def _asked(self, plugin: str, registration: Registration, change: Change) -> str:
        """Why the plugin has to look; a hint that fails counts as a yes."""
        if registration.hint is None or change.gap:
            return WITHOUT_HINT
        try:
            reason = registration.hint(object_of(change.old), object_of(change.new))
            return told(reason) if isinstance(cast("object", reason), str) else WITHOUT_HINT
        except Exception as error:  # the boundary to plugins
            detail = f"its hint failed: {described(error)}"
            self._faults.setdefault(plugin, PluginFault(plugin, "hint", detail))
            return detail

    def _note(self, run: RunOf, cause: CycleCause, now: float) -> None:
        if not self._runs:
            self._first_at = now
        self._runs.add(run)
        if len(self._causes) < MOST_CAUSES:
            self._causes.append(cause)


def _concerns(registration: Registration, event: ClusterEvent, *, missed: bool) -> bool:
    """:param missed: versions in between were missed: anything may have happened to the object"""
    wanted = registration.event
    return events.match(wanted, event) or (missed and events.match_resources(wanted.resource, event.resource))


def _listeners(profile: Profile, plugins: Mapping[str, type[Plugin]]) -> list[_Listener]:
    """Of the plugins that are enabled at Deschedule or Balance, by what they registered."""
    enabled = (*profile.plugins.deschedule.enabled, *profile.plugins.balance.enabled)
    args: dict[str, Any] = {one.name: one.args for one in profile.plugin_config}
    return [
        _Listener((profile.name, name), registration)
        for name in dict.fromkeys(enabled)
        for registration in registrations(plugins[name], args.get(name))
    ]


def listens(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> bool:
    """Whether any plugin that the policy enables has registered an event."""
    return any(_listeners(profile, plugins) for profile in policy.profiles)


def registrations(plugin: type[Plugin], args: object) -> Sequence[Registration]:
    """What the plugin wants to hear of; nothing if it does not say so.

    :raises TypeError: if it answers anything but registrations
    """
    if not isinstance(plugin, EventPlugin):
        return ()
    found: list[Registration] = []
    for one in cast("Iterable[object]", plugin.events_to_register(args)):
        if not isinstance(one, Registration) or not isinstance(cast("object", one.event), ClusterEvent):
            raise TypeError(f"events_to_register answered {type(one).__name__}, not Registration(event, hint)")
        found.append(one)
    return found
