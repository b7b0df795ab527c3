"""Pods that wait at Permit, until every plugin that asked to wait allows them, one rejects them, or time is
up.

While they wait they keep their assumed room.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/waiting_pods_map.go.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from podyard.framework import status as statuses
from podyard.framework.status import Status

LONGEST_WAIT_S: Final = 900.0
"""No plugin may let a pod wait longer. Source: framework.go, maxTimeout."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a wait."""

    uid: str
    status: Status
    """SUCCESS: go on and bind; else a rejection with the plugin that made it."""
    waited_s: float = 0.0
    """Seconds from the begin of the wait."""


class WaitingPods:
    """All waits of one scheduler. Plugins that were given it (a group plugin, preemption) allow and reject;
    the scheduler core settles."""

    def __init__(self) -> None:
        self._deadlines: dict[str, dict[str, float]] = {}
        self._settled: list[Settled] = []
        self._since: dict[str, float] = {}

    def __contains__(self, uid: object) -> bool:
        return uid in self._deadlines

    def __iter__(self) -> Iterator[str]:
        """Uids of the pods that wait, in order of arrival."""
        return iter(self._deadlines)

    def wait(self, uid: str, timeouts_s: Mapping[str, float], now: float) -> None:
        """A pod begins to wait.

        :param timeouts_s: by plugin that answered WAIT; longer than the limit counts as the limit
        """
        self._since[uid] = now
        self._deadlines[uid] = {
            plugin: now + max(0.0, min(timeout_s, LONGEST_WAIT_S)) for plugin, timeout_s in timeouts_s.items()
        }

    def pending(self, uid: str) -> Iterable[str]:
        """Plugins that the pod still waits for, sorted; none if it does not wait."""
        return sorted(self._deadlines.get(uid, ()))

    def until(self, uid: str) -> float | None:
        """When the pod's wait runs out, on the clock of `now`; None if it does not wait."""
        return min(self._deadlines.get(uid, {}).values(), default=None)

    def allow(self, uid: str, plugin: str) -> None:
        """`plugin` has nothing against the pod any more. Ignored if it does not wait for this plugin."""
        waits = self._deadlines.get(uid)
        if waits is None or waits.pop(plugin, None) is None or waits:
            return
        self._settle(uid, statuses.SUCCESS)

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        """`plugin` says no; returns whether the pod was waiting."""
        if uid not in self._deadlines:
            return False
        self._settle(uid, statuses.unschedulable(reason).by(plugin))
        return True

    def waited_s(self, uid: str, now: float) -> float:
        """Seconds since the begin of a pod's wait that is not settled yet; 0 if there is none."""
        return now - self._since.get(uid, now)

    def forget(self, uid: str) -> None:
        """The pod is gone: nothing is to be settled, also if a plugin has ended its wait already."""
        self._deadlines.pop(uid, None)
        self._since.pop(uid, None)
        self._settled = [settled for settled in self._settled if settled.uid != uid]

    def unsettled(self) -> list[str]:
        """Uids of the pods that wait, and of those whose wait has ended and is not settled yet."""
        return [*self._deadlines, *(settled.uid for settled in self._settled)]

    @property
    def has_settled(self) -> bool:
        """Whether a plugin ended a wait since last asked."""
        return bool(self._settled)

    def next_deadline(self) -> float | None:
        """When the next wait runs out, on the clock of `now`; `None` if nobody waits."""
        return min((min(waits.values()) for waits in self._deadlines.values()), default=None)

    def settle(self, now: float) -> list[Settled]:
        """Waits that ended since last asked, those included whose time is up."""
        for uid, waits in list(self._deadlines.items()):
            for plugin, deadline in sorted(waits.items()):
                if deadline <= now:
                    text = f"rejected due to timeout after waiting at plugin {plugin}"
                    self._settle(uid, statuses.unschedulable(text).by(plugin))
                    break
        settled, self._settled = self._settled, []
        return [msgspec.structs.replace(one, waited_s=now - self._since.pop(one.uid, now)) for one in settled]

    def _settle(self, uid: str, status: Status) -> None:
        del self._deadlines[uid]
        self._settled.append(Settled(uid=uid, status=status))
