"""ReplicaSet: as many active pods as wanted.

Source: pkg/controller/replicaset/replica_set.go (manageReplicas), replica_set_utils.go (calculateStatus).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.cluster.pods import PodView
from podyard.objects.apps import ReplicaSet, ReplicaSetSpec
from podyard.objects.core import ReplicationController
from podyard.objects.meta import LabelSelector
from podyard.objects.pod import PodTemplateSpec
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core import scale_down, waits
from podyard.workloads.core.actions import Document
from podyard.workloads.core.receipts import Receipts

BURST: Final = 500
"""Most pods made or deleted in one step. Source: BurstReplicas."""

FIRST_PAUSE_S: Final = 10.0
LAST_PAUSE_S: Final = 300.0
"""After pods that their nodes refused: 10 s, doubling, at most 5 minutes."""


class Plan(NamedTuple):
    """What is to be done for one ReplicaSet."""

    create: int
    waits: bool
    """Whether pods are missing that are not made yet."""
    delete: list[PodView]
    status: Document
    look_again_at: float | None
    """When a pod will have been ready for long enough, or may be made; seconds since 1970."""


def plan(
    replica_set: ReplicaSet, owned: Sequence[PodView], related: Sequence[PodView], receipts: Receipts, now: float
) -> Plan:
    """Compare what there is with what is wanted.

    :param owned: pods that it controls and whose objects live
    :param related: active pods of all ReplicaSets of the same owner
    :param receipts: when it was heard that pods are ready
    """
    active = [pod for pod in owned if pod_facts.is_active(pod)]
    status, look_again_at = _status(replica_set, owned, active, receipts, now)
    if replica_set.metadata.deletion_timestamp is not None:
        return Plan(0, False, [], status, look_again_at)
    missing = wanted(replica_set) - len(active)
    if missing < 0:
        surplus = scale_down.choose(active, min(-missing, BURST), related, now)
        return Plan(0, False, surplus, status, look_again_at)
    free_at = _free_at(owned, receipts, now) if missing else None
    if free_at is None or free_at <= now:
        return Plan(min(missing, BURST), False, [], status, look_again_at)
    return Plan(0, True, [], status, free_at if look_again_at is None else min(free_at, look_again_at))


def _free_at(owned: Sequence[PodView], receipts: Receipts, now: float) -> float | None:
    """When the next pod may be made; None: no node refused one since the last that is ready was made.

    The reference makes the next one at once, for ever (docs/rules.md, refused-pods-are-made-again-slowly).
    """
    refused = [pod for pod in owned if pod.status is not None and pod.status.refused]
    if not refused:
        return None
    good = max((pod_facts.created_at(pod) for pod in owned if pod_facts.is_ready(pod)), default=0.0)
    in_a_row = [pod for pod in refused if pod_facts.created_at(pod) > good]
    if not in_a_row:
        return None
    return max(pod_facts.ended_at(pod, receipts, now) for pod in in_a_row) + waits.doubling_s(
        FIRST_PAUSE_S, LAST_PAUSE_S, len(in_a_row)
    )


def of_controller(controller: ReplicationController) -> ReplicaSet:
    """The ReplicaSet that a ReplicationController stands for. Source:
    pkg/controller/replication/conversion.go."""
    spec = controller.spec
    return ReplicaSet(
        metadata=controller.metadata,
        spec=ReplicaSetSpec(
            replicas=spec.replicas,
            min_ready_seconds=spec.min_ready_seconds,
            selector=LabelSelector(match_labels=spec.selector),
            template=PodTemplateSpec() if spec.template is None else spec.template,
        ),
    )


def wanted(replica_set: ReplicaSet) -> int:
    """How many replicas are asked for; 1 if nothing is said."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def _status(
    replica_set: ReplicaSet, owned: Sequence[PodView], active: Sequence[PodView], receipts: Receipts, now: float
) -> tuple[Document, float | None]:
    template_labels = replica_set.spec.template.metadata.labels.items()
    minimum_s = replica_set.spec.min_ready_seconds
    labeled = ready = available = 0
    look_again_at: float | None = None
    for pod in active:
        labeled += template_labels <= pod.labels.items()
        at = pod_facts.available_at(pod, minimum_s, receipts, now)
        if at is None:
            continue
        ready += 1
        if at <= now:
            available += 1
        elif look_again_at is None or at < look_again_at:
            look_again_at = at
    counts = {
        "replicas": len(active),
        "fullyLabeledReplicas": labeled,
        "readyReplicas": ready,
        "availableReplicas": available,
        "terminatingReplicas": sum(1 for pod in owned if pod_facts.is_terminating(pod)),
        "observedGeneration": replica_set.metadata.generation,
    }
    return {key: count for key, count in counts.items() if count or key == "replicas"}, look_again_at
