"""PreEnqueue: plugins that may keep a pod out of activeQ and backoffQ.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins), plugins/defaultpreemption
(PreEnqueue).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from podyard.framework.faults import Faults
from podyard.framework.status import PluginError
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects.core import Pod
from podyard.queue.core.queued_pod import QueuedPod

Gate: TypeAlias = Callable[[Pod], str | None]
"""Why the pod may not enter yet, in words; None if it may."""

DEFAULT_PREEMPTION: Final = "DefaultPreemption"

KEPT_ENDED_BYTES: Final = 256 * 1024
"""What attempts whose preemption has ended may take, some 1,000; semi-arbitrary: a request is repeated within
seconds."""


class NamedGate(NamedTuple):
    """A PreEnqueue plugin of a profile."""

    plugin: str
    gate: Gate


class Gates:
    """The PreEnqueue plugins of all profiles, each profile's in calling order."""

    def __init__(self, profiles: Mapping[str, Sequence[NamedGate]]) -> None:
        self.faults = Faults()
        """What the queue's plugins did amiss."""
        self._profiles = {profile: tuple(gates) for profile, gates in profiles.items()}

    def run(self, pod: QueuedPod) -> bool:
        """Ask the plugins; the first that refuses becomes the pod's gating plugin and one of its rejectors.

        :return: whether the pod may enter
        """
        if pod.gate_failed:
            pod.gate_failed = False
        for plugin, gate in self._profiles.get(pod.profile, ()):
            try:
                message = gate(pod.pod)
            except Exception as error:  # a plugin's fault must not stop the queue: boundary
                fault = PluginError.wrapping(plugin, "PreEnqueue", error)
                self.faults.note(fault)
                message, pod.gate_failed = f"PreEnqueue failed: {fault.detail}", True
            if message is not None:
                pod.unschedulable_plugins = pod.unschedulable_plugins | {plugin}
                pod.gating_plugin = plugin
                pod.gate_message = message
                return False
        if pod.gating_plugin:
            pod.gating_plugin = pod.gate_message = ""
        return True


class _Preemption(NamedTuple):
    session: str
    victim: str


class PreemptionGate:
    """Gates a pod while its asynchronous preemption runs, unless the last victim is already gone or going.

    :param is_going: whether the pod of this uid is deleted or being deleted
    """

    def __init__(self, is_going: Callable[[str], bool]) -> None:
        self._is_going = is_going
        self._running: dict[str, _Preemption] = {}
        self._ended = Kept[str, bool](KEPT_ENDED_BYTES)

    def start(self, uid: str, session: str = "", victim: str = "", attempt: str = "") -> None:
        """Preemption for pod `uid` runs; `victim` is the uid of the last one, "" while it is not known.

        A repeated start that arrives after the end of the same attempt's preemption would never be ended: it
        is ignored.
        """
        if attempt not in self._ended:
            self._running[uid] = _Preemption(session, victim)

    def end(self, uid: str, attempt: str = "") -> bool:
        """It has ended; whether it ran."""
        if attempt:
            self._ended.keep(attempt, True, bytes_of(attempt))
        return self._running.pop(uid, None) is not None

    def of_session(self, session: str) -> list[str]:
        """Pods whose preemption a session runs."""
        return [uid for uid, preemption in self._running.items() if preemption.session == session]

    def __call__(self, pod: Pod) -> str | None:
        """The PreEnqueue rule."""
        preemption = self._running.get(pod.metadata.uid)
        if preemption is None or (preemption.victim and self._is_going(preemption.victim)):
            return None
        return "waiting for the preemption for this pod to be finished"
