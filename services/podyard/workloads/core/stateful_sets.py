"""StatefulSet: pods with names and claims that stay, one after another or all at once.

One after another means: no pod is made, deleted or replaced while one before it is not available. What is
surplus goes from the highest number down, then old pods are replaced, also from there.

Source: kubernetes v1.36.2, pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet,
processReplica, processCondemned, completeRollingUpdate), stateful_set_utils.go
(newVersionedStatefulSetPod, initIdentity, updateStorage).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.pods import PodView
from podyard.objects.apps import StatefulSet
from podyard.objects.pod import ENDED
from podyard.proto import subjects
from podyard.workloads.core import documents, revisions, rollout, templates
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.actions import Alter, Delete, Document, Write
from podyard.workloads.core.claim_retention import Claims, Member
from podyard.workloads.core.looking import NOTHING, Looked, Moments, Surroundings, status_write
from podyard.workloads.core.revisions import POD_LABEL, Revision

STATEFUL_SETS: Final = "statefulsets"
HASH_LABEL: Final = "controller.kubernetes.io/hash"
"""Of a revision."""
NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
BURST: Final = 500
"""Most pods made in one step: of the largest sets the next ones come with the next look."""
_NAME: Final = re.compile(r"(.*)-([0-9]{1,9})", re.DOTALL)


def look(around: Surroundings, key: ObjectKey, stateful: StatefulSet, now: float) -> Looked:
    """What there is to be done for a StatefulSet."""
    document = around.document(key, stateful.metadata.uid)
    return NOTHING if document is None else _Look(around, key, stateful, document, now).found()


def ordinal_of(name: str) -> int:
    """The number in a pod's name; -1 if it has none."""
    found = _NAME.fullmatch(name)
    return -1 if found is None else int(found[2])


def of_claim(claim: ObjectKey, sets: Mapping[NamespacedName, StatefulSet]) -> Iterator[ObjectKey]:
    """The sets that a claim may belong to, by its name: `<template>-<set>-<ordinal>`. They are looked at when
    it comes, changes or goes; the reference looks again after a while."""
    parts = claim.name.split("-")
    for at in range(1, len(parts) - 1):
        name = "-".join(parts[at:-1])
        if (claim.namespace, name) in sets:
            yield ObjectKey(STATEFUL_SETS, claim.namespace, name)


class _Look:
    """One look. Made, asked for what was found, thrown away."""

    def __init__(
        self, around: Surroundings, key: ObjectKey, stateful: StatefulSet, document: Document, now: float
    ) -> None:
        spec = stateful.spec
        self._around = around
        self._key = key
        self._set = stateful
        self._document = document
        self._now = now
        self._claims = Claims(around, stateful, document, now)
        self._history = revisions.history(around, document, HASH_LABEL, stateful.status.collision_count or 0, now)
        self._update = self._history.newest
        self._current = self._history.named(stateful.status.current_revision) or self._update
        self._count = 1 if spec.replicas is None else spec.replicas
        self._start = spec.ordinals.start
        self._ordered = spec.pod_management_policy != "Parallel"
        self._pods = [pod for pod in around.ownership.pods_of(stateful.metadata.uid) if ordinal_of(pod.name) >= 0]
        self._replicas = {ordinal_of(pod.name): pod for pod in self._pods if self._wants(ordinal_of(pod.name))}
        surplus = (pod for pod in self._pods if not self._wants(ordinal_of(pod.name)))
        self._condemned = sorted(surplus, key=lambda pod: -ordinal_of(pod.name))
        self._writes: list[Write] = []
        self._made = 0
        self._moments = Moments(now)

    def found(self) -> Looked:
        if self._set.metadata.deletion_timestamp is None:
            self._writes += self._history.writes
            if self._fill() and self._thin_out():
                self._replace()
            live = {self._current.name, *(pod.labels.get(POD_LABEL, "") for pod in self._pods)}
            limit = self._set.spec.revision_history_limit
            self._writes += revisions.surplus(self._document, self._history, limit, live, live_count=False)
        uid = self._set.metadata.uid
        self._writes += status_write(self._key, uid, self._document, self._status())
        why = f"StatefulSet {self._set.metadata.name} wants {self._count} pods"
        return Looked(why, self._writes, again_at=self._moments.first)

    # ---- steps: each returns whether the next one may follow -----------------------------------------------

    def _fill(self) -> bool:
        """Every ordinal gets its pod, and every pod its claims."""
        for ordinal in self._ordinals():
            pod = self._replicas.get(ordinal)
            goes_on = self._make(ordinal) if pod is None else self._tend(pod)
            if self._ordered and not goes_on:
                return False
            if self._made >= BURST:
                return False
        return True

    def _make(self, ordinal: int) -> bool:
        member = Member(f"{self._set.metadata.name}-{ordinal}", ordinal, "", kept=True)
        if self._claims.stale(member) or self._claims.leaving(member):
            return False
        self._writes += self._claims.missing(member)
        self._writes += self._claims.mended(member)
        self._writes.append(self._create(member))
        self._made += 1
        return False

    def _tend(self, pod: PodView) -> bool:
        """Whether the pod is all that one after it waits for."""
        if _has_ended(pod):
            if not pod.deleting and self._may_go(pod):
                self._delete(pod)
            return False
        member = self._member(pod)
        if pod_facts.phase(pod) == pod_facts.PENDING:
            self._writes += self._claims.missing(member)
        if self._ordered and (pod.deleting or not self._is_available(pod)):
            if pod_facts.phase(pod) == pod_facts.PENDING:
                self._writes += self._claims.mended(member)
            return False
        self._writes += self._claims.mended(member)
        self._writes += _named(pod, member)
        return True

    def _may_go(self, pod: PodView) -> bool:
        """Whether a pod that ended goes now, so that the next one comes; one that its node refused, ever more
        slowly (docs/rules.md, refused-pods-are-made-again-slowly)."""
        if pod.status is None or not pod.status.refused:
            return True
        free_at = self._around.backoffs.try_again((self._set.metadata.uid, pod.name), self._now)
        return free_at is None or self._moments.reached(free_at)

    def _thin_out(self) -> bool:
        """Pods that are surplus go; in order, one after another, and not while one before is unavailable."""
        for pod in self._condemned:
            self._writes += self._claims.mended(self._member(pod))
        sick = self._first_unavailable()
        for pod in self._condemned:
            if pod.deleting:
                if self._ordered:
                    return False
                continue
            if self._ordered and not self._is_available(pod) and pod is not sick:
                return False
            self._delete(pod)
            if self._ordered:
                return False
        return True

    def _replace(self) -> None:
        strategy = self._set.spec.update_strategy
        if strategy.type == "OnDelete":
            return
        rolling = strategy.rolling_update
        lowest = rolling.partition or 0 if rolling is not None else 0
        if rolling is not None and rolling.max_unavailable is not None:
            self._replace_several(lowest, rolling.max_unavailable)
            return
        for pod in self._from_the_top(lowest):
            if pod is None:
                return
            if pod.labels.get(POD_LABEL) != self._update.name and not pod.deleting:
                self._delete(pod)
                return
            if self._is_unavailable(pod):
                return

    def _replace_several(self, lowest: int, most: int | str) -> None:
        """Source: updateStatefulSetAfterInvariantEstablished."""
        allowed = max(1, rollout.scaled(most, self._count, up=False))
        pods = [self._replicas.get(ordinal) for ordinal in self._ordinals()]
        free = allowed - sum(pod is None or self._is_unavailable(pod) for pod in pods)
        for pod in self._from_the_top(lowest):
            if free <= 0:
                return
            if pod is not None and pod.labels.get(POD_LABEL) != self._update.name and not pod.deleting:
                self._delete(pod)
                free -= 1

    # ---- writes --------------------------------------------------------------------------------------------

    def _create(self, member: Member) -> Write:
        revision = self._revision_for(member.ordinal)
        template = documents.copied(revision.template)
        labels: dict[str, str] = template.setdefault("metadata", {}).setdefault("labels", {})
        labels |= {NAME_LABEL: member.name, INDEX_LABEL: str(member.ordinal), POD_LABEL: revision.name}
        spec: Document = template["spec"]
        spec["hostname"] = member.name
        if self._set.spec.service_name:
            spec["subdomain"] = self._set.spec.service_name
        own = self._claims.volumes(member.ordinal)
        taken = {volume["name"] for volume in own}
        given: list[Document] = spec.get("volumes") or []
        spec["volumes"] = [*own, *(volume for volume in given if volume.get("name") not in taken)]
        lost = self._around.take_lost(self._set.metadata.uid, 1)
        return templates.named_pod(self._document, template, member.name, self._around.maker, self._now, lost)

    def _revision_for(self, ordinal: int) -> Revision:
        """Of a pod that is to come (docs/rules.md, pods-below-the-partition-come-back-as-they-were)."""
        strategy = self._set.spec.update_strategy
        kept = 0
        if strategy.rolling_update is not None:
            kept = strategy.rolling_update.partition or 0
        elif strategy.type == "RollingUpdate":
            kept = self._set.status.current_replicas
        return self._current if ordinal < self._start + kept else self._update

    def _delete(self, pod: PodView) -> None:
        self._writes.append(Delete(ObjectKey(subjects.PODS, *pod.key), pod.uid))

    def _status(self) -> Document:
        pods, set_ = self._pods, self._set
        ready = [pod for pod in pods if _runs(pod) and pod_facts.is_ready(pod)]
        available = sum(self._is_available(pod) for pod in ready)
        kept = [pod.labels.get(POD_LABEL) for pod in pods if not pod.deleting]
        current, updated = kept.count(self._current.name), kept.count(self._update.name)
        current_name = self._current.name
        complete = updated == len(ready) == len(pods) == self._count
        if complete and set_.spec.update_strategy.type == "RollingUpdate":
            current, current_name = updated, self._update.name
        counts = {"readyReplicas": len(ready), "currentReplicas": current, "updatedReplicas": updated}
        return {
            "observedGeneration": set_.metadata.generation,
            "replicas": len(pods),
            "availableReplicas": available,
            "currentRevision": current_name,
            "updateRevision": self._update.name,
            "collisionCount": self._history.collisions,
        } | {key: count for key, count in counts.items() if count}

    # ---- facts ---------------------------------------------------------------------------------------------

    def _ordinals(self) -> range:
        return range(self._start, self._start + self._count)

    def _wants(self, ordinal: int) -> bool:
        return ordinal in self._ordinals()

    def _from_the_top(self, lowest: int) -> Sequence[PodView | None]:
        """Pods of the set, highest number first, down to the partition."""
        return [self._replicas.get(ordinal) for ordinal in reversed(self._ordinals()[lowest:])]

    def _member(self, pod: PodView) -> Member:
        ordinal = ordinal_of(pod.name)
        return Member(pod.name, ordinal, pod.uid, self._wants(ordinal))

    def _first_unavailable(self) -> PodView | None:
        pods = [*(self._replicas[ordinal] for ordinal in sorted(self._replicas)), *reversed(self._condemned)]
        return next((pod for pod in pods if self._is_unavailable(pod)), None)

    def _is_unavailable(self, pod: PodView) -> bool:
        return pod.deleting or not self._is_available(pod)

    def _is_available(self, pod: PodView) -> bool:
        at = pod_facts.available_at(pod, self._set.spec.min_ready_seconds, self._around.receipts, self._now)
        return self._moments.reached(at) and _runs(pod)


def _runs(pod: PodView) -> bool:
    return pod_facts.phase(pod) == pod_facts.RUNNING and not pod.released


def _has_ended(pod: PodView) -> bool:
    """In whatever way: what lost its place never runs again."""
    return pod_facts.phase(pod) in ENDED or pod.released


def _named(pod: PodView, member: Member) -> list[Alter]:
    """The pod's own labels, if somebody took one away. Source: identityMatches, updateIdentity."""
    wished = {NAME_LABEL: member.name, INDEX_LABEL: str(member.ordinal)}
    if pod.labels.get(NAME_LABEL) == member.name:
        return []

    def alter(document: Document) -> Document:
        labels: dict[str, str] = document["metadata"].setdefault("labels", {})
        labels |= wished
        return document

    return [Alter(ObjectKey(subjects.PODS, *pod.key), pod.uid, alter)]
