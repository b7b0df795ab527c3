"""What opens a pod's gates. Source: kube-scheduler v1.36.2, plugins/schedulinggates/scheduling_gates.go."""

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects.core import Pod
from podyard.plugins import hinted
from podyard.plugins.hint_indexes import only_itself
from podyard.proto.actions import ActionType


def after_gates_eliminated(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if this very pod has no gates left."""
    _, changed = hinted.present(Pod, old, new)
    another = hinted.another(pod, changed)
    if another:
        return events.skip(f"the gates of {another}, were removed")
    return events.queue("the pod has no scheduling gates any more")


def registrations() -> tuple[Registration, ...]:
    """The step to no gates left."""
    event = ClusterEvent(events.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    return (Registration(event, after_gates_eliminated, only_itself),)
