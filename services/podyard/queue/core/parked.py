"""Unschedulable and gated pods, indexed by the plugins that may wake them.

The index keeps an event's cost proportional to the pods that it may concern: an unschedulable pod is found by each of its
rejectors, a gated one by its gating plugin alone (PITFALLS 13).
"""

from collections.abc import Iterable, Iterator, Mapping

from podyard.queue.core.queued_pod import QueuedPod


class Parked:
    """Pods that wait for an event.

    Invariant: a pod of profile P stands under (P, plugin) for exactly the plugins `_watchers` gave when it was put in.
    """

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._watched: dict[str, tuple[str, ...]] = {}
        self._index: dict[str, dict[str, dict[str, QueuedPod]]] = {}
        self._order = 0
        self.gated = 0
        """How many of them are gated."""

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(tuple(self._pods.values()))

    def __contains__(self, pod: QueuedPod) -> bool:
        return pod.uid in self._pods

    def add(self, pod: QueuedPod) -> None:
        """Park `pod`, gated if it has a gating plugin; or index it anew if it is parked already."""
        self._unindex(pod)
        if pod.uid not in self._pods:
            self._order += 1
            pod.park_order = self._order
            self._pods[pod.uid] = pod
        pod.pool = "gated" if pod.gating_plugin else "unschedulable"
        self.gated += pod.pool == "gated"
        plugins = (pod.gating_plugin,) if pod.gating_plugin else tuple(sorted(pod.rejectors))
        self._watched[pod.uid] = plugins
        by_plugin = self._index.setdefault(pod.profile, {})
        for plugin in plugins:
            by_plugin.setdefault(plugin, {})[pod.uid] = pod

    def remove(self, pod: QueuedPod) -> bool:
        """Take `pod` out; whether it was in."""
        if self._pods.pop(pod.uid, None) is None:
            return False
        self._unindex(pod)
        pod.pool = ""
        return True

    def _unindex(self, pod: QueuedPod) -> None:
        plugins = self._watched.pop(pod.uid, None)
        if plugins is None:
            return
        self.gated -= pod.pool == "gated"
        by_plugin = self._index[pod.profile]
        for plugin in plugins:
            pods = by_plugin[plugin]
            del pods[pod.uid]
            if not pods:
                del by_plugin[plugin]

    def waiting_for(self, listeners: Mapping[str, Iterable[str]]) -> list[QueuedPod]:
        """Pods that any of these plugins (profile -> names) may wake, in the order of their parking."""
        found: dict[str, QueuedPod] = {}
        sources = 0
        for profile, plugins in listeners.items():
            by_plugin = self._index.get(profile)
            if by_plugin:
                for plugin in plugins:
                    pods = by_plugin.get(plugin)
                    if pods:
                        found.update(pods)
                        sources += 1
        if sources > 1:
            return sorted(found.values(), key=lambda pod: pod.park_order)
        return list(found.values())
