"""What may help a pod that preempts. Source: kube-scheduler v1.36.2,
plugins/defaultpreemption/default_preemption.go (EventsToRegister).
"""

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects.pod import Pod
from podyard.plugins.hint_indexes import EventFilter
from podyard.proto.actions import ActionType


def registrations() -> tuple[Registration, ...]:
    """Pods that go: registered so that a pod that waits for its own preemption is looked at when they do."""
    return (Registration(ClusterEvent(events.POD, ActionType.DELETE), after_deletion, _nobody),)


def _nobody() -> EventFilter:
    return EventFilter(lambda old, new: False)


def after_deletion(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Never a reason by itself: the plugins that rejected the pod say whether the room helps, and the end of
    the preemption activates it.

    Source: isPodSchedulableAfterAssignedPodDeletion.
    """
    return events.skip("the end of the preemption, or the plugin that lacks room, retries the pod")
