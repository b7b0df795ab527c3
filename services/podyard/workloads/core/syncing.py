"""One look at one key: what is, what should be, what to write.

A pod is removed when nothing of it is left to wait for: it is being deleted, and was released or never bound;
or its node is gone.
Source of the latter two: pkg/controller/podgc/gc_controller.go (gcOrphaned, gcUnscheduledTerminating).
"""

from collections.abc import Container, Sequence
from typing import Final

from podyard.cluster import finalizing
from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.objects import claims
from podyard.objects.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from podyard.objects.batch import CronJob, Job
from podyard.objects.core import Namespace, PersistentVolume, PersistentVolumeClaim, ReplicationController
from podyard.objects.policy import PodDisruptionBudget
from podyard.objects.quotas import QUOTAS, ResourceQuota
from podyard.proto import subjects
from podyard.workloads.core import (
    budgets,
    cron_jobs,
    daemon_sets,
    deployments,
    documents,
    garbage,
    jobs,
    namespaces,
    replica_sets,
    stateful_sets,
    templates,
    volumes,
)
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.actions import Alter, Create, Delete, Document, Remove, Write
from podyard.workloads.core.adoption import DEPLOYMENTS
from podyard.workloads.core.budget_index import BUDGETS, BudgetIndex
from podyard.workloads.core.cron_jobs import CRON_JOBS, JOBS
from podyard.workloads.core.daemon_sets import DAEMON_SETS
from podyard.workloads.core.deployments import REPLICA_SETS
from podyard.workloads.core.looking import NOTHING, Looked, Surroundings, status_write
from podyard.workloads.core.ownership import View, metadata_of
from podyard.workloads.core.quotas import QuotaCounts
from podyard.workloads.core.stateful_sets import STATEFUL_SETS

REPLICATION_CONTROLLERS: Final = "replicationcontrollers"
HANDLED: Final = (
    *(REPLICA_SETS, DEPLOYMENTS, REPLICATION_CONTROLLERS, DAEMON_SETS, STATEFUL_SETS, JOBS, CRON_JOBS),
    *(BUDGETS, QUOTAS, claims.CLAIMS, claims.VOLUMES, finalizing.NAMESPACES),
)
"""Resources with a controller here."""

SCALES: Final = frozenset((REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS, REPLICATION_CONTROLLERS))
"""Resources whose number of replicas a budget counts with."""
_SCALED: Final = {
    "ReplicaSet": REPLICA_SETS,
    "StatefulSet": STATEFUL_SETS,
    "ReplicationController": REPLICATION_CONTROLLERS,
}
"""Those of the kinds that manage pods themselves."""


class Syncing:
    """Looks at keys. Changes nothing but its surroundings."""

    def __init__(
        self, view: View, around: Surroundings, budget_index: BudgetIndex, quotas: QuotaCounts, ended: Container[str]
    ) -> None:
        """
        :param ended: uids of ended pods that are too many
        """
        self._view = view
        self._around = around
        self._ownership = around.ownership
        self._budget_index = budget_index
        self._quotas = quotas
        self._maker = around.maker
        self._receipts = around.receipts
        self._ended = ended

    def look(self, key: ObjectKey, now: float) -> Looked:
        """What there is to be done for a key.

        :raises AdmissionError: if a template makes no valid object
        """
        if key.resource == subjects.PODS:
            return self._pod(key)
        found = self._view.objects(key.resource).get(key.namespaced_name)
        if found is None:
            return self._quotas.gone(key) if key.resource == QUOTAS else NOTHING
        collected = garbage.look(self._ownership, key, metadata_of(found))
        if collected is not None:
            return collected
        match found:
            case Namespace():
                return namespaces.look(self._view, self._around, key, found, now)
            case ReplicaSet():
                return self._replica_set(key, found, now)
            case ReplicationController():
                return self._replication_controller(key, found, now)
            case Deployment():
                return self._deployment(key, found, now)
            case DaemonSet():
                return daemon_sets.look(self._around, key, found, now)
            case StatefulSet():
                return stateful_sets.look(self._around, key, found, now)
            case Job():
                return self._job(key, found, now)
            case CronJob():
                return cron_jobs.look(self._around, key, found, now)
            case PodDisruptionBudget():
                return self._budget(key, found, now)
            case ResourceQuota():
                return self._quotas.look(key, found, now)
            case PersistentVolumeClaim():
                return self._claim(found, now)
            case PersistentVolume():
                return self._volume(key, found)
            case _:
                return NOTHING

    # ---- pods ----------------------------------------------------------------------------------------------

    def _pod(self, key: ObjectKey) -> Looked:
        pod = self._view.pods.get(key.namespaced_name)
        if pod is None:
            return NOTHING
        untracked = self._untracked(key, pod)
        why = self._why_removed(pod)
        if why:
            return Looked(why, [*untracked, Remove(key, pod.uid)])
        collected = garbage.look(self._ownership, key, pod.stored.metadata)
        if collected is not None:
            return collected._replace(writes=[*untracked, *collected.writes])
        return Looked("no job counts it", untracked) if untracked else NOTHING

    def _untracked(self, key: ObjectKey, pod: PodView) -> list[Alter]:
        """The pod without the finalizer by which a job counts it, if no job does. Source: job_controller.go,
        syncOrphanPod."""
        if pod.gone or jobs.FINALIZER not in pod.stored.metadata.finalizers or self._is_uncounted(pod):
            return []
        return [Alter(key, pod.uid, finalizing.taking(jobs.FINALIZER))]

    def _why_removed(self, pod: PodView) -> str:
        """Why the pod's object goes now; empty if it stays."""
        if pod.unknown_place or self._is_uncounted(pod) or _only_finalizers_keep(pod):
            return ""
        if pod.release is not None:
            if pod.release.reason == "nodeGone":
                return f"its node {pod.release.node} is gone"
            return "it has ended" if pod.deleting else self._why_too_many(pod)
        if pod.bound is not None:
            return ""
        return "it was never bound" if pod.deleting else self._why_too_many(pod)

    def _why_too_many(self, pod: PodView) -> str:
        return "there are too many ended pods" if pod.ended and pod.uid in self._ended else ""

    def _is_uncounted(self, pod: PodView) -> bool:
        """Whether its job still has to count it."""
        if jobs.FINALIZER not in pod.stored.metadata.finalizers:
            return False
        controller = pod.stored.metadata.controller
        job = None if controller is None else self._view.objects(JOBS).get((pod.namespace, controller.name))
        return job is not None and controller is not None and job.metadata.uid == controller.uid

    # ---- controllers ---------------------------------------------------------------------------------------

    def _replication_controller(self, key: ObjectKey, controller: ReplicationController, now: float) -> Looked:
        """As the ReplicaSet that it stands for; its status has no `terminatingReplicas`."""
        looked = self._replica_set(key, replica_sets.of_controller(controller), now, without=("terminatingReplicas",))
        return looked._replace(why=looked.why.replace("ReplicaSet", "ReplicationController", 1))

    def _replica_set(self, key: ObjectKey, replica_set: ReplicaSet, now: float, without: Container[str] = ()) -> Looked:
        """
        :param without: fields that its status does not have
        """
        uid = replica_set.metadata.uid
        owned = self._ownership.pods_of(uid)
        plan = replica_sets.plan(replica_set, owned, self._related(replica_set, owned), self._receipts, now)
        document = self._around.document(key, uid)
        if document is None:
            return NOTHING
        writes: list[Write] = []
        if plan.create:
            writes += templates.pods_of(
                document,
                document["spec"]["template"],
                plan.create,
                self._maker,
                now,
                self._around.take_lost(uid, plan.create),
            )
        elif not plan.delete and not plan.waits:
            self._around.forget_lost(uid)
        writes += [Delete(ObjectKey(subjects.PODS, *pod.key), pod.uid) for pod in plan.delete]
        fields = {field: count for field, count in plan.status.items() if field not in without}
        status = status_write(key, uid, document, fields)
        why = f"ReplicaSet {replica_set.metadata.name} wants {replica_sets.wanted(replica_set)} pods"
        return Looked(why, [*writes, *status], again_at=plan.look_again_at)

    def _related(self, replica_set: ReplicaSet, owned: Sequence[PodView]) -> list[PodView]:
        """Active pods of all ReplicaSets of the same owner."""
        controller = replica_set.metadata.controller
        pods = list(owned)
        if controller is not None:
            for sibling in self._ownership.controlled(controller.uid, REPLICA_SETS):
                if sibling.metadata.uid != replica_set.metadata.uid:
                    pods += self._ownership.pods_of(sibling.metadata.uid)
        return [pod for pod in pods if pod_facts.is_active(pod)]

    def _deployment(self, key: ObjectKey, deployment: Deployment, now: float) -> Looked:
        uid = deployment.metadata.uid
        document = self._around.document(key, uid)
        if document is None:
            return NOTHING
        taken = self._around.free_sets.taken_by(deployment, document)
        if taken:
            return Looked(f"Deployment {deployment.metadata.name} takes over what its selector takes", taken)
        owned: list[deployments.OwnedSet] = []
        for typed in self._ownership.controlled(uid, REPLICA_SETS):
            raw = self._around.document(
                ObjectKey(REPLICA_SETS, typed.metadata.namespace, typed.metadata.name), typed.metadata.uid
            )
            if raw is not None:
                owned.append(deployments.OwnedSet(typed, raw))
        rollout = deployments.Rollout(deployment, document, owned, self._runs, now)
        return Looked(f"Deployment {deployment.metadata.name} rolls out", rollout.writes(self._maker))

    def _runs(self, uid: str) -> bool:
        ended = (pod_facts.SUCCEEDED, pod_facts.FAILED)
        return any(not pod.released and pod_facts.phase(pod) not in ended for pod in self._ownership.pods_of(uid))

    def _job(self, key: ObjectKey, job: Job, now: float) -> Looked:
        uid = job.metadata.uid
        document = self._around.document(key, uid)
        if document is None:
            return NOTHING
        plan = jobs.plan(job, document, self._ownership.pods_of(uid), self._receipts, now)
        if plan.tallied:
            return Looked(f"Job {job.metadata.name} counts its pods", together=plan.tallied)
        if plan.expired:
            return Looked("it has been finished for long enough", [Delete(key, uid)])
        template = _job_template(document)
        lost = self._around.take_lost(uid, plan.create)
        writes: list[Write] = [*templates.pods_of(document, template, plan.create, self._maker, now, lost)]
        writes += [Delete(ObjectKey(subjects.PODS, *pod.key), pod.uid) for pod in plan.delete]
        if plan.status is not None:
            writes.append(plan.status)
        return Looked(f"Job {job.metadata.name} runs its pods", writes, again_at=plan.look_again_at)

    def _budget(self, key: ObjectKey, budget: PodDisruptionBudget, now: float) -> Looked:
        uid = budget.metadata.uid
        measured = budgets.measure(budget, self._budget_index.pods_of(key), self._scale_of)
        document = self._around.document(key, uid)
        if document is None:
            return NOTHING

        def alter(current: Document) -> Document | None:
            return current if budgets.set_status(current, measured, now) else None

        again_at = budgets.next_timeout(budget.status.disrupted_pods)
        if alter(document) is None:
            return Looked(again_at=again_at)
        return Looked("its pods have changed", [Alter(key, uid, alter)], again_at=again_at)

    def _scale_of(self, pod: PodView) -> tuple[str, int] | None:
        """The workload that a pod belongs to and its wanted replicas. Source: disruption.go, finders."""
        controller = pod.stored.metadata.controller
        if controller is None:
            return None
        resource = _SCALED.get(controller.kind, "")
        workload = self._view.objects(resource).get((pod.namespace, controller.name))
        if workload is None or workload.metadata.uid != controller.uid:
            return None
        above = workload.metadata.controller
        if above is not None and above.kind == "Deployment":
            deployment = self._view.objects(DEPLOYMENTS).get((pod.namespace, above.name))
            if deployment is not None and deployment.metadata.uid == above.uid:
                workload = deployment
        return workload.metadata.uid, 1 if workload.spec.replicas is None else workload.spec.replicas

    def _claim(self, claim: PersistentVolumeClaim, now: float) -> Looked:
        plan = volumes.plan(claim, self._view.objects, self._view.nodes)
        name = claims.full_name(claim.metadata)
        if plan.bind is not None:
            return Looked(f"claim {name} gets it", together=volumes.bound_together(claim, plan.bind))
        if plan.make is None:
            return NOTHING
        made = self._maker.admit(plan.make, now)
        return Looked(
            f"claim {name} wants a volume", [Create(ObjectKey(claims.VOLUMES, "", made["metadata"]["name"]), made)]
        )

    def _volume(self, key: ObjectKey, volume: PersistentVolume) -> Looked:
        if volumes.is_left_over(volume, self._view.objects):
            return Looked("its claim is gone", [Delete(key, volume.metadata.uid)])
        phase = volumes.first_phase(volume, self._view.objects)
        return NOTHING if phase is None else Looked(f"volume {volume.metadata.name} is new", [phase])


def _only_finalizers_keep(pod: PodView) -> bool:
    """Whether it has been removed but for them, which others take away."""
    metadata = pod.stored.metadata
    foreign = any(one != jobs.FINALIZER for one in metadata.finalizers)
    return foreign and metadata.deletion_timestamp is not None and metadata.deletion_grace_period_seconds == 0


def _job_template(document: Document) -> Document:
    """The template with the labels by which people find a job's pods, and the finalizer that keeps a pod
    until it is counted."""
    metadata = document["metadata"]
    template = document["spec"]["template"]
    for key, value in (
        ("batch.kubernetes.io/job-name", metadata["name"]),
        ("batch.kubernetes.io/controller-uid", metadata["uid"]),
        ("job-name", metadata["name"]),
        ("controller-uid", metadata["uid"]),
    ):
        template = documents.with_label(template, key, value)
    finalizers = template["metadata"].setdefault("finalizers", [])
    if jobs.FINALIZER not in finalizers:
        finalizers.append(jobs.FINALIZER)
    return template
