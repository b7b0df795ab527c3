"""A pod's claims: which are bound, and which get their volume together with the pod.

Source: kube-scheduler v1.36.2, plugins/volumebinding/volume_binding.go (podHasPVCs), binder.go
(GetPodVolumeClaims).
"""

from typing import NamedTuple

from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginFault
from podyard.objects import claims
from podyard.objects.core import PersistentVolumeClaim
from podyard.objects.storage import StorageClass

REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class ClaimFault(Exception):
    """The pod cannot run for now because of a claim; the text is the reason."""


class PodClaims(NamedTuple):
    """Claims in the order of the pod's volumes; one that two volumes name comes twice."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    """Unbound ones that wait for the pod."""


def claims_of(pod: PodInfo, cluster: Snapshot) -> PodClaims:
    """
    :raises ClaimFault: if a claim is missing, lost, being deleted, of another pod, or should have been bound
        without the pod
    :raises PluginFault: if a class does not say when its volumes are bound
    """
    known = cluster.objects(claims.CLAIMS)
    found: list[PersistentVolumeClaim] = []
    for use in claims.claims_of(pod.pod):
        claim: PersistentVolumeClaim | None = known.get((pod.namespace, use.name))
        fault = _fault(pod, use, claim)
        if claim is None or fault:
            raise ClaimFault(fault)
        found.append(claim)
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate = False
    for claim in found:
        if claims.fully_bound(claim):
            bound.append(claim)
        elif waits(claim, cluster) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate = True
    if immediate:
        raise ClaimFault(REASON_IMMEDIATE)
    return PodClaims(tuple(bound), tuple(delayed))


def _fault(pod: PodInfo, use: claims.ClaimUse, claim: PersistentVolumeClaim | None) -> str:
    if claim is None:
        if use.ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        return claims.claim_not_found(use.name)
    name = claim.metadata.name
    if claim.status.phase == claims.LOST:
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return claims.foreign(pod.pod, claim) if use.ephemeral else ""


def waits(claim: PersistentVolumeClaim, cluster: Snapshot) -> bool:
    """Whether a claim gets its volume together with its first pod. Source: volume.IsDelayBindingMode.

    :raises PluginFault: if its class does not say
    """
    name = claims.class_of_claim(claim)
    storage_class: StorageClass | None = cluster.objects(claims.CLASSES).get(("", name)) if name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise PluginFault(f'VolumeBindingMode not set for StorageClass "{name}"')
    return storage_class.volume_binding_mode == claims.WAIT_FOR_FIRST_CONSUMER


def unbound(pod: PodInfo, cluster: Snapshot) -> list[str]:
    """The claims that should be bound before the pod is scheduled and are not, each with why not."""
    known = cluster.objects(claims.CLAIMS)
    found = [known[pod.namespace, use.name] for use in claims.claims_of(pod.pod) if (pod.namespace, use.name) in known]
    return [_why_unbound(one, cluster) for one in found if not claims.fully_bound(one) and not waits(one, cluster)]


def _why_unbound(claim: PersistentVolumeClaim, cluster: Snapshot) -> str:
    name, of_class = claim.metadata.name, claims.class_of_claim(claim)
    if claim.spec.volume_name:
        return f"claim {name} asks for volume {claim.spec.volume_name} and is not bound to it yet"
    if not of_class:
        return f"claim {name} has no storage class, and no volume without one fits it"
    if ("", of_class) not in cluster.objects(claims.CLASSES):
        return f"claim {name} wants storage class {of_class}, and there is no such class"
    return f"claim {name} of class {of_class} (volumeBindingMode Immediate) has no volume yet"
