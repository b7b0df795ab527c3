"""Deployment: a ReplicaSet for each template, and step by step from the old ones to the new one.

Source: pkg/controller/deployment (sync.go, rolling.go, recreate.go, progress.go), util/deployment_util.go.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.objects import times
from podyard.objects.apps import Deployment, ReplicaSet
from podyard.workloads.core import documents, rollout, templates
from podyard.workloads.core.actions import Alter, Create, Delete, Document, Write
from podyard.workloads.core.replica_sets import wanted
from podyard.workloads.core.templates import POD_TEMPLATE_HASH, Maker

REPLICA_SETS: Final = "replicasets"
REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        "deployment.kubernetes.io/revision-history",
        DESIRED,
        MOST,
        "deprecated.deployment.rollback.to",
    )
)
"""Annotations of a Deployment that its ReplicaSet does not take over. Source: kubernetes v1.36.2,
pkg/controller/deployment/util/deployment_util.go, annotationsToSkip."""
DEFAULT_HISTORY: Final = 10

MOST_DIGITS: Final = 18
"""Of a number in an annotation: any such number is an int64."""


class OwnedSet(NamedTuple):
    """A ReplicaSet of the Deployment."""

    typed: ReplicaSet
    document: Document

    @property
    def revision(self) -> int:
        """0 if it has none."""
        return _number(self, REVISION)


class Rollout:
    """One look at one Deployment. Made, asked for `writes`, thrown away."""

    def __init__(
        self,
        deployment: Deployment,
        document: Document,
        owned: Sequence[OwnedSet],
        runs: Callable[[str], bool],
        now: float,
    ) -> None:
        """
        :param document: the Deployment as it is stored
        :param owned: ReplicaSets that it controls
        :param runs: whether a ReplicaSet, by uid, has pods that have not ended: Recreate waits for their end
        """
        self._deployment = deployment
        self._document = document
        self._now = now
        self._runs = runs
        self._limits = rollout.bounds(deployment)
        self._sets = sorted(owned, key=_age)
        template = document["spec"]["template"]
        same = [
            replica_set
            for replica_set in self._sets
            if templates.same_template(replica_set.document["spec"]["template"], template)
        ]
        self._new = same[0] if same else None
        self._old = [replica_set for replica_set in self._sets if replica_set is not self._new]

    def writes(self, maker: Maker) -> list[Write]:
        """What to write next; empty when all is as it should be.

        :raises AdmissionError: if the template makes no valid ReplicaSet
        """
        if self._deployment.metadata.deletion_timestamp is not None:
            return []
        return [*self._steps(maker), *self._status()]

    # ---- steps ---------------------------------------------------------------------------------------------

    def _steps(self, maker: Maker) -> list[Write]:
        recreates = self._deployment.spec.strategy.type == rollout.RECREATE
        if self._deployment.spec.paused or (self._was_scaled() and not recreates):
            return self._scale_all()
        return self._recreate(maker) if recreates else self._roll(maker)

    def _roll(self, maker: Maker) -> list[Write]:
        if self._new is None:
            return [self._create(maker, rollout.new_set_size(self._deployment, 0, self._total()))]
        revised = self._revise()
        size = rollout.new_set_size(self._deployment, wanted(self._new.typed), self._total())
        if size != wanted(self._new.typed):
            return [self._resize(self._new, size)]
        smaller = rollout.shrink_old(self._limits, self._new.typed, [replica_set.typed for replica_set in self._old])
        if smaller:
            return [
                self._resize(replica_set, smaller[replica_set.typed.metadata.uid])
                for replica_set in self._old
                if replica_set.typed.metadata.uid in smaller
            ]
        return revised or self._clean_up()

    def _recreate(self, maker: Maker) -> list[Write]:
        running = [replica_set for replica_set in self._old if wanted(replica_set.typed)]
        if running:
            return [self._resize(replica_set, 0) for replica_set in running]
        if any(self._runs(replica_set.typed.metadata.uid) for replica_set in self._old):
            return []
        if self._new is None:
            return [self._create(maker, self._limits.replicas)]
        if wanted(self._new.typed) != self._limits.replicas:
            return [self._resize(self._new, self._limits.replicas)]
        return self._revise() or self._clean_up()

    def _was_scaled(self) -> bool:
        """Whether somebody changed `replicas` since sizes were set. Source: isScalingEvent."""
        desired = str(self._limits.replicas)
        return any(
            replica_set.typed.metadata.annotations.get(DESIRED, desired) != desired
            for replica_set in self._sets
            if wanted(replica_set.typed)
        )

    def _scale_all(self) -> list[Write]:
        """Source: sync.go, scale: the only active (or the complete new) ReplicaSet gets all; several keep
        their shares."""
        active = [replica_set for replica_set in self._sets if wanted(replica_set.typed)]
        if len(active) <= 1:
            one = active[0] if active else self._newest()
            return (
                [self._resize(one, self._limits.replicas)]
                if one is not None and self._differs(one, self._limits.replicas)
                else []
            )
        if self._new is not None and self._is_saturated(self._new):
            return [self._resize(replica_set, 0) for replica_set in self._old if wanted(replica_set.typed)]
        if self._deployment.spec.strategy.type == rollout.RECREATE:
            return []
        grows = self._limits.most > self._total()
        active.sort(
            key=lambda replica_set: (
                -wanted(replica_set.typed),
                -replica_set.revision if grows else replica_set.revision,
            )
        )
        before = {replica_set.typed.metadata.uid: _number(replica_set, MOST) for replica_set in active}
        sizes = rollout.spread(self._limits, [replica_set.typed for replica_set in active], before)
        wished = [
            (replica_set, sizes.get(replica_set.typed.metadata.uid, wanted(replica_set.typed)))
            for replica_set in active
        ]
        return [self._resize(replica_set, size) for replica_set, size in wished if self._differs(replica_set, size)]

    def _newest(self) -> OwnedSet | None:
        if self._new is not None:
            return self._new
        return max(self._sets, key=lambda replica_set: replica_set.revision, default=None)

    def _is_saturated(self, replica_set: OwnedSet) -> bool:
        size = wanted(replica_set.typed)
        desired = _number(replica_set, DESIRED)
        return size == self._limits.replicas == desired and replica_set.typed.status.available_replicas == size

    def _differs(self, replica_set: OwnedSet, size: int) -> bool:
        return wanted(replica_set.typed) != size or self._sizes_noted(replica_set) != self._size_annotations()

    # ---- writes --------------------------------------------------------------------------------------------

    def _create(self, maker: Maker, size: int) -> Create:
        """The ReplicaSet of the template. A name that another template has taken counts as a collision."""
        spec, metadata = self._document["spec"], self._document["metadata"]
        collisions = self._deployment.status.collision_count or 0
        hashed = templates.template_hash(spec["template"], collisions)
        name = f"{metadata['name']}-{hashed}"
        while maker.lookup.get(REPLICA_SETS, metadata.get("namespace", ""), name) is not None:
            collisions += 1
            hashed = templates.template_hash(spec["template"], collisions)
            name = f"{metadata['name']}-{hashed}"
        template = documents.with_label(spec["template"], POD_TEMPLATE_HASH, hashed)
        labels: dict[str, str] = template["metadata"]["labels"]
        document: Document = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": metadata.get("namespace", "default"),
                "labels": labels,
                "annotations": {
                    **self._copied_annotations(),
                    **self._size_annotations(),
                    REVISION: str(self._next_revision()),
                },
                "ownerReferences": [templates.controller_reference(self._document)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": self._deployment.spec.min_ready_seconds,
                "selector": documents.selector_with(spec["selector"], POD_TEMPLATE_HASH, hashed),
                "template": template,
            },
        }
        admitted = maker.admit(document, self._now)
        return Create(ObjectKey(REPLICA_SETS, admitted["metadata"]["namespace"], name), admitted)

    def _resize(self, replica_set: OwnedSet, size: int) -> Alter:
        annotations = self._size_annotations()

        def alter(document: Document) -> Document:
            if document["spec"].get("replicas") != size:
                document["spec"]["replicas"] = size
                document["metadata"]["generation"] = int(document["metadata"].get("generation", 0)) + 1
            document["metadata"].setdefault("annotations", {}).update(annotations)
            return document

        return Alter(_key(replica_set), replica_set.typed.metadata.uid, alter)

    def _revise(self) -> list[Write]:
        """The new ReplicaSet has the Deployment's annotations, `kubernetes.io/change-cause` among them, and
        the highest revision, also when it was an old one before (a roll-back). Source:
        SetNewReplicaSetAnnotations."""
        if self._new is None:
            return []
        wished = self._copied_annotations()
        if self._old and self._new.revision <= max(replica_set.revision for replica_set in self._old):
            wished[REVISION] = str(self._next_revision())
        if wished.items() <= self._new.typed.metadata.annotations.items():
            return []

        def alter(document: Document) -> Document:
            document["metadata"].setdefault("annotations", {}).update(wished)
            return document

        return [Alter(_key(self._new), self._new.typed.metadata.uid, alter)]

    def _clean_up(self) -> list[Write]:
        """Old ReplicaSets without pods beyond the history limit go, oldest first, once the rollout is
        complete."""
        limit = self._deployment.spec.revision_history_limit
        if not self._is_complete():
            return []
        unused = sorted(
            (replica_set for replica_set in self._old if _is_unused(replica_set.typed)),
            key=lambda replica_set: replica_set.revision,
        )
        surplus = len(self._old) - (DEFAULT_HISTORY if limit is None else limit)
        return [Delete(_key(replica_set), replica_set.typed.metadata.uid) for replica_set in unused[: max(0, surplus)]]

    def _is_complete(self) -> bool:
        status = self._counts()
        replicas = self._limits.replicas
        return status["updatedReplicas"] == status["replicas"] == status["availableReplicas"] == replicas

    # ---- status --------------------------------------------------------------------------------------------

    def _status(self) -> list[Write]:
        """The status, and on the Deployment itself the revision of the new ReplicaSet."""
        counts = self._counts()
        wished = {key: count for key, count in counts.items() if count}
        wished["observedGeneration"] = self._deployment.metadata.generation
        if self._deployment.status.collision_count:
            wished["collisionCount"] = self._deployment.status.collision_count
        conditions = self._conditions(counts)
        revision = str(self._new.revision) if self._new is not None and self._new.revision else ""
        now = self._now

        def alter(document: Document) -> Document | None:
            changed = documents.set_status(document, wished, conditions, now)
            annotations = document["metadata"].setdefault("annotations", {})
            if revision and annotations.get(REVISION) != revision:
                annotations[REVISION] = revision
                changed = True
            return document if changed else None

        key = ObjectKey("deployments", self._deployment.metadata.namespace, self._deployment.metadata.name)
        if alter(documents.copied(self._document)) is None:
            return []
        return [Alter(key, self._deployment.metadata.uid, alter)]

    def _counts(self) -> dict[str, int]:
        all_sets = [replica_set.typed.status for replica_set in self._sets]
        total = sum(wanted(replica_set.typed) for replica_set in self._sets)
        available = sum(status.available_replicas for status in all_sets)
        new = self._new.typed.status if self._new is not None else None
        return {
            "replicas": sum(status.replicas for status in all_sets),
            "updatedReplicas": new.replicas if new is not None else 0,
            "readyReplicas": sum(status.ready_replicas for status in all_sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, total - available),
            "terminatingReplicas": sum(status.terminating_replicas or 0 for status in all_sets),
        }

    def _conditions(self, counts: dict[str, int]) -> list[Document]:
        enough = counts["availableReplicas"] >= self._limits.least_available
        available: Document = {
            "type": "Available",
            "status": "True" if enough else "False",
            "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            "message": "Deployment has minimum availability."
            if enough
            else "Deployment does not have minimum availability.",
        }
        done = self._is_complete()
        progressing: Document = {
            "type": "Progressing",
            "status": "True",
            "reason": "NewReplicaSetAvailable" if done else "ReplicaSetUpdated",
            "message": f"Deployment {'has successfully progressed' if done else 'is progressing'}.",
        }
        return [available, progressing]

    # ---- facts ---------------------------------------------------------------------------------------------

    def _total(self) -> int:
        return sum(wanted(replica_set.typed) for replica_set in self._sets)

    def _next_revision(self) -> int:
        return max((replica_set.revision for replica_set in self._sets), default=0) + 1

    def _copied_annotations(self) -> dict[str, str]:
        given = self._deployment.metadata.annotations
        return {name: value for name, value in given.items() if name not in _NOT_COPIED}

    def _size_annotations(self) -> dict[str, str]:
        return {DESIRED: str(self._limits.replicas), MOST: str(self._limits.most)}

    def _sizes_noted(self, replica_set: OwnedSet) -> dict[str, str]:
        return {name: replica_set.typed.metadata.annotations.get(name, "") for name in (DESIRED, MOST)}


def _age(replica_set: OwnedSet) -> tuple[float, str]:
    created = replica_set.typed.metadata.creation_timestamp
    return times.seconds_or(created, 0.0), replica_set.typed.metadata.name


def _key(replica_set: OwnedSet) -> ObjectKey:
    return ObjectKey(REPLICA_SETS, replica_set.typed.metadata.namespace, replica_set.typed.metadata.name)


def _number(replica_set: OwnedSet, annotation: str) -> int:
    """What an annotation says; 0 if that is no number of an object."""
    text = replica_set.typed.metadata.annotations.get(annotation, "")
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else 0


def _is_unused(replica_set: ReplicaSet) -> bool:
    """No pods wanted, none there, and its status is of this generation."""
    if wanted(replica_set) or replica_set.status.replicas or replica_set.metadata.deletion_timestamp is not None:
        return False
    return replica_set.status.observed_generation >= replica_set.metadata.generation
