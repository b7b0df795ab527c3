"""What can be set of the queue."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from podyard.configuration import Configuration, files
from podyard.configuration import in_force as configured
from podyard.queue.core import leader
from podyard.queue.core.backoff import Backoff
from podyard.queue.core.scheduling_queue import MAX_UNSCHEDULABLE_S
from podyard.runtime.leases import LeaseSettings
from podyard.runtime.service import Effective
from podyard.runtime.settings import ServiceSettings

_BACKOFF: Final = {
    "pod_initial_backoff_s": "podInitialBackoffSeconds",
    "pod_max_backoff_s": "podMaxBackoffSeconds",
}
"""Fields of a KubeSchedulerConfiguration by the settings that take their place."""


class QueueSettings(LeaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `queue` of the options file."""

    pod_initial_backoff_s: Annotated[float, Meta(ge=0)] | None = None
    """Seconds a pod waits after its first failed attempt; doubles with each further one. None:
    podInitialBackoffSeconds of the scheduler configuration, 1 without one."""
    pod_max_backoff_s: Annotated[float, Meta(ge=0)] | None = None
    """Longest such wait; 0 means none at all (kubernetes#131661). None: podMaxBackoffSeconds of the scheduler
    configuration, 10 without one."""
    session_timeout_s: Annotated[float, Meta(gt=0)] = leader.SESSION_TIMEOUT_S
    """Silence after which a scheduler's session counts as dead; heartbeats come every 2 s."""
    binding_timeout_s: Annotated[float, Meta(gt=0)] = leader.BINDING_TIMEOUT_S
    """How long a scheduled pod waits for its binding fact before it is tried again."""
    pop_linger_s: Annotated[float, Meta(ge=0, le=0.1)] = 0.002
    """How long a pop that had to wait goes on waiting for more pods: batches are cheaper than single pods,
    and to decide and commit takes longer than this anyway."""
    max_unschedulable_s: Annotated[float, Meta(ge=0)] = MAX_UNSCHEDULABLE_S
    """Seconds after which a parked pod is tried again though no event has helped it; looked at every 30 s."""
    own_hints: bool = True
    """Whether plugins' own hints count, which retry parked pods that kube-scheduler v1.36 would leave to its
    flush after five minutes."""

    def backoff(self) -> Backoff:
        """How long pods wait."""
        default = Backoff()
        return Backoff(
            initial_s=default.initial_s if self.pod_initial_backoff_s is None else self.pod_initial_backoff_s,
            max_s=default.max_s if self.pod_max_backoff_s is None else self.pod_max_backoff_s,
        )

    def completed(self, configuration: Configuration) -> "QueueSettings":
        """These settings, what is not set taken from the scheduler configuration."""
        values = configuration.values
        given = {
            "pod_initial_backoff_s": values.pod_initial_backoff_seconds,
            "pod_max_backoff_s": values.pod_max_backoff_seconds,
        }
        unset = {name: value for name, value in given.items() if getattr(self, name) is None}
        return msgspec.structs.replace(self, **unset)


def in_force(process: ServiceSettings, own: QueueSettings) -> Effective:
    """What the queue runs by: its own backoff, where set, takes the place of the file's.

    :raises SettingsError: if the file cannot be used
    """
    found = files.of(process)
    settings = files.leading(own.completed(found), found, process)
    document, unwritten = configured.document(found, settings), list[str]()
    for name, field in _BACKOFF.items():
        seconds = getattr(settings, name)
        if float(seconds).is_integer() and seconds > 0:
            document[field] = int(seconds)
        elif seconds != getattr(QueueSettings().completed(found), name):
            unwritten.append(f"queue.{name}: {seconds:g}: {field} takes whole seconds from 1 on")
    return Effective(settings, {configured.SECTION: document}, tuple(unwritten))
