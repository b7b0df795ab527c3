"""Which ResourceClaims a pod uses, and what is wrong with them.

Source: v1.36.2, staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/claim.go (Name, IsForPod),
kube-scheduler's plugins/dynamicresources/dynamicresources.go (foreachPodResourceClaim), assumecache
(NotFoundError).
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from podyard.objects.claims import full_name
from podyard.objects.core import Pod
from podyard.objects.pod import PodResourceClaim
from podyard.objects.resource import ResourceClaim

RESOURCE: Final = "resourceclaims"
"""Plural, by which claims are found in the cluster view."""

Claims: TypeAlias = Mapping[tuple[str, str], Any]
"""ResourceClaims by (namespace, name)."""


class ClaimFault(Exception):
    """A claim of the pod is missing, on its way out, or not the pod's own; the text is the reference's."""


def of_pod(pod: Pod, claims: Claims) -> tuple[ResourceClaim, ...]:
    """The pod's claims, in order; those that turned out not to be needed are left out.

    :raises ClaimFault: for the first one that cannot be used
    """
    found: list[ResourceClaim] = []
    for use in pod.spec.resource_claims:
        name = _name(pod, use)
        if name is not None:
            found.append(_usable(pod, use, name, claims.get((pod.metadata.namespace, name))))
    return tuple(found)


def _name(pod: Pod, use: PodResourceClaim) -> str | None:
    """The claim's name; `None` if none was needed."""
    if use.resource_claim_name is not None:
        return use.resource_claim_name
    if use.resource_claim_template_name is None:
        raise ClaimFault(
            f'pod "{full_name(pod.metadata)}", spec.resourceClaim "{use.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == use.name:
            return status.resource_claim_name
    raise ClaimFault(f'pod "{full_name(pod.metadata)}": ResourceClaim not created yet')


def _usable(pod: Pod, use: PodResourceClaim, name: str, claim: ResourceClaim | None) -> ResourceClaim:
    if claim is None:
        raise ClaimFault(f'could not find claim "{pod.metadata.namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimFault(f'resourceclaim "{name}" is being deleted')
    if use.resource_claim_name is None and not _made_for(pod, claim):
        owned = f"ResourceClaim {full_name(claim.metadata)} was not created for pod {full_name(pod.metadata)}"
        raise ClaimFault(f"{owned} (pod is not owner)")
    return claim


def _made_for(pod: Pod, claim: ResourceClaim) -> bool:
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid
