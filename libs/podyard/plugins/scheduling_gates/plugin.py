"""Holds a pod back while it has scheduling gates.

Source: kube-scheduler v1.36.2, plugins/schedulinggates/scheduling_gates.go (KEP-3521).
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from podyard.framework import status
from podyard.framework.events import Registration
from podyard.framework.status import Status
from podyard.objects.core import Pod
from podyard.plugins.scheduling_gates import hints

NAME: Final = "SchedulingGates"
REASON_WAITING: Final = "waiting for scheduling gates: {gates}"


def waiting_for(pod: Pod) -> tuple[str, ...]:
    """Names of the pod's gates, in order."""
    return tuple(gate.name for gate in pod.spec.scheduling_gates)


class SchedulingGates:
    """PreEnqueue."""

    name: ClassVar[str] = NAME

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject a pod that has gates."""
        if not pod.spec.scheduling_gates:
            return status.SUCCESS
        return status.unresolvable(REASON_WAITING.format(gates=f"[{' '.join(waiting_for(pod))}]"))

    def hint_signature(self, pod: Pod) -> Hashable:
        return None

    def events_to_register(self) -> Sequence[Registration]:
        """The removal of the pod's last gate."""
        return hints.registrations()
