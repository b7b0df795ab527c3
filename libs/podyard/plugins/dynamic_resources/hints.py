"""What may help a pod whose claims for devices could not be used.

Source: kube-scheduler v1.36.2, plugins/dynamicresources/dynamicresources.go (EventsToRegister,
isSchedulableAfterClaimChange, isSchedulableAfterPodChange).
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects.core import Pod
from podyard.objects.resource import ResourceClaim
from podyard.plugins import hinted
from podyard.plugins.dynamic_resources import claims
from podyard.plugins.dynamic_resources.claims import ClaimFault, Claims
from podyard.plugins.hint_indexes import only_itself
from podyard.proto.actions import ActionType

AllClaims: TypeAlias = Callable[[], Claims]
"""The claims of the cluster as they are now, the event included."""


def after_claim_change(known: AllClaims, pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if all claims of the pod are there, and this one is the pod's and has changed, or it gave devices
    back.
    """
    before, claim = hinted.present(ResourceClaim, old, new)
    name = f"{claim.metadata.namespace}/{claim.metadata.name}"
    try:
        used = claims.of_pod(pod, known())
    except ClaimFault as fault:
        return events.skip(f"the pod still cannot be scheduled: {fault}")
    if before is not None and before.status.allocation is not None and claim.status.allocation is None:
        return events.queue(f"claim {name} gave its devices back")
    if all(one.metadata.uid != claim.metadata.uid for one in used):
        return events.skip(f"the pod does not use claim {name}")
    if before is None:
        return events.queue(f"claim {name} of the pod was created")
    if before.status == claim.status:
        return events.skip(f"the status of the pod's claim {name} is as before")
    return events.queue(f"the status of the pod's claim {name} changed")


def after_pod_change(known: AllClaims, pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if this very pod's claims were made from their templates and are all there."""
    _, changed = hinted.present(Pod, old, new)
    another = hinted.another(pod, changed)
    if another:
        return events.skip(f"claims were made for {another}")
    try:
        claims.of_pod(changed, known())
    except ClaimFault as fault:
        return events.skip(f"the pod still cannot be scheduled: {fault}")
    return events.queue("the pod's claims are there")


def registrations(known: AllClaims) -> tuple[Registration, ...]:
    """Nodes added, with other room or labels; claims, classes and slices added or changed; the pod's claims
    made.
    """
    nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
    changed = ActionType.ADD | ActionType.UPDATE
    made = ClusterEvent(events.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return (
        Registration(ClusterEvent(events.NODE, nodes)),
        Registration(ClusterEvent(events.RESOURCE_CLAIM, changed), partial(after_claim_change, known)),
        Registration(made, partial(after_pod_change, known), only_itself),
        Registration(ClusterEvent(events.DEVICE_CLASS, changed)),
        Registration(ClusterEvent(events.RESOURCE_SLICE, changed)),
    )
