"""Claims of a StatefulSet's pods: made from its templates, and owned so that they go when they should.

Who owns a claim says when it goes: the set if claims are deleted with it, a pod that was scaled down if they
are deleted with that. Who is not this set or pod, and manages the claim, is left alone.

Source: kubernetes v1.36.2, pkg/controller/statefulset/stateful_set_utils.go (getPersistentVolumeClaims,
isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod, hasUnexpectedController), stateful_pod_control.go
(createPersistentVolumeClaims, PodClaimIsStale).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.objects import claims
from podyard.objects.apps import StatefulSet
from podyard.objects.core import PersistentVolumeClaim
from podyard.objects.meta import OwnerReference
from podyard.workloads.core import documents, templates
from podyard.workloads.core.actions import Alter, Create, Document
from podyard.workloads.core.looking import Surroundings

DELETE: Final = "Delete"
_SET: Final = ("apps/v1", "StatefulSet")
_POD: Final = ("v1", "Pod")


class Member(NamedTuple):
    """A pod of the set, there or to come. An empty uid: it is to come."""

    name: str
    ordinal: int
    uid: str
    kept: bool
    """Whether the set still wants that ordinal."""


class Claims:
    """Those of one set."""

    def __init__(self, around: Surroundings, stateful: StatefulSet, document: Document, now: float) -> None:
        """
        :param document: the set as it is stored
        """
        self._around = around
        self._set = stateful
        self._document = document
        self._now = now
        self._policy = stateful.spec.persistent_volume_claim_retention_policy
        self._templates: list[Document] = document["spec"].get("volumeClaimTemplates") or []

    def volumes(self, ordinal: int) -> list[Document]:
        """Of a pod: one for each claim."""
        return [
            {"name": name, "persistentVolumeClaim": {"claimName": self._name(name, ordinal)}} for name in self._names()
        ]

    def missing(self, member: Member) -> list[Create]:
        """Claims of a pod that are not there."""
        known = self._around.objects(claims.CLAIMS)
        return [
            self._create(template, member)
            for template in self._templates
            if (self._set.metadata.namespace, self._name(template["metadata"]["name"], member.ordinal)) not in known
        ]

    def leaving(self, member: Member) -> bool:
        """Whether a claim that the pod needs is being deleted."""
        return any(claim.metadata.deletion_timestamp is not None for claim in self._of(member))

    def stale(self, member: Member) -> bool:
        """Whether a claim still goes with a pod of that name that is no more
        (docs/rules.md, claims-of-a-pod-that-went-are-waited-for)."""
        if self._policy.when_scaled != DELETE:
            return False
        return any(self._is_stale(claim, _POD, member.name, member.uid) for claim in self._of(member))

    def mended(self, member: Member) -> list[Alter]:
        """Claims of a pod whose owners are not those that they should have."""
        return [self._alter(claim, member) for claim in self._of(member) if not self._is_right(claim, member)]

    # ---- which claims --------------------------------------------------------------------------------------

    def _names(self) -> Iterator[str]:
        return (template["metadata"]["name"] for template in self._templates)

    def _name(self, template: str, ordinal: int) -> str:
        return f"{template}-{self._set.metadata.name}-{ordinal}"

    def _of(self, member: Member) -> Iterator[PersistentVolumeClaim]:
        known = self._around.objects(claims.CLAIMS)
        for name in self._names():
            claim = known.get((self._set.metadata.namespace, self._name(name, member.ordinal)))
            if claim is not None:
                yield claim

    def _create(self, template: Document, member: Member) -> Create:
        given: Document = template["metadata"]
        selected: dict[str, str] = self._document["spec"]["selector"].get("matchLabels") or {}
        metadata: dict[str, Any] = {
            "name": self._name(given["name"], member.ordinal),
            "namespace": self._set.metadata.namespace,
            "labels": {**(given.get("labels") or {}), **selected},
            "annotations": dict(given.get("annotations") or {}),
            "ownerReferences": self._owners(member),
        }
        document: Document = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": documents.copied(template["spec"]),
        }
        admitted = self._around.maker.admit(document, self._now)
        return Create(ObjectKey(claims.CLAIMS, metadata["namespace"], metadata["name"]), admitted)

    # ---- owners --------------------------------------------------------------------------------------------

    def _owners(self, member: Member) -> list[Document]:
        """Whom a claim should name, of this set and pod."""
        if self._policy.when_scaled == DELETE and not member.kept:
            return [_reference(_POD, member.name, member.uid)]
        return [templates.controller_reference(self._document)] if self._policy.when_deleted == DELETE else []

    def _is_right(self, claim: PersistentVolumeClaim, member: Member) -> bool:
        meta, owners = self._set.metadata, claim.metadata.owner_references
        if self._is_stale(claim, _SET, meta.name, meta.uid) or self._is_stale(claim, _POD, member.name, member.uid):
            return True
        ours = [owner for owner in owners if owner.uid in (meta.uid, member.uid)]
        if self._is_managed_by_another(owners, member):
            return not ours
        if not all(owner.controller for owner in ours):
            return False
        return {owner.uid for owner in ours} == {owner["uid"] for owner in self._owners(member)}

    def _is_managed_by_another(self, owners: Sequence[OwnerReference], member: Member) -> bool:
        if DELETE not in (self._policy.when_scaled, self._policy.when_deleted):
            return False
        return any(owner.controller and not self._is_ours(owner, member) for owner in owners)

    def _is_ours(self, owner: OwnerReference, member: Member) -> bool:
        named = (owner.api_version, owner.kind), owner.name
        return named in ((_SET, self._set.metadata.name), (_POD, member.name))

    @staticmethod
    def _is_stale(claim: PersistentVolumeClaim, kind: tuple[str, str], name: str, uid: str) -> bool:
        """Whether it names an object of that name under another uid."""
        return any(
            (owner.api_version, owner.kind) == kind and owner.name == name and owner.uid != uid
            for owner in claim.metadata.owner_references
        )

    def _alter(self, claim: PersistentVolumeClaim, member: Member) -> Alter:
        managed = self._is_managed_by_another(claim.metadata.owner_references, member)
        wished = [] if managed else self._owners(member)
        ours = ((*_SET, self._set.metadata.name), (*_POD, member.name))

        def alter(document: Document) -> Document:
            metadata: Document = document["metadata"]
            given: list[Document] = metadata.get("ownerReferences") or []
            kept = [one for one in given if (one.get("apiVersion"), one.get("kind"), one.get("name")) not in ours]
            metadata["ownerReferences"] = [*kept, *wished]
            if not metadata["ownerReferences"]:
                del metadata["ownerReferences"]
            return document

        key = ObjectKey(claims.CLAIMS, claim.metadata.namespace, claim.metadata.name)
        return Alter(key, claim.metadata.uid, alter)


def _reference(kind: tuple[str, str], name: str, uid: str) -> Document:
    api_version, kind_name = kind
    return templates.controller_reference(
        {"apiVersion": api_version, "kind": kind_name, "metadata": {"name": name, "uid": uid}}
    )
