"""What people are told of what workloads writes, as events of the controllers that do so in Kubernetes.

Pods that were made are told from their objects (`podyard.telling.events`): no message more a pod.

Sources: kubernetes v1.36.2, pkg/controller/controller_utils.go (createPods, DeletePod),
pkg/controller/deployment/sync.go (getNewReplicaSet, scaleReplicaSet), pkg/controller/cronjob
(cronjob_controllerv2.go), pkg/controller/statefulset/stateful_pod_control.go (recordClaimEvent),
pkg/controller/job/job_controller.go (recordJobFinished).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from podyard.cluster.errors import ObjectMissing
from podyard.cluster.intents import Put, Remove, Stored, Written
from podyard.cluster.keys import ObjectKey
from podyard.objects import documents
from podyard.proto import subjects
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason
from podyard.shell.event_correlator import Event
from podyard.shell.writes import Result
from podyard.telling.events import CONTROLLERS, SUCCESSFUL_CREATE, pod_message
from podyard.workloads.core.actions import Alter, Create, Delete, Document, Work, Write
from podyard.workloads.core.controller import CREATING, FAILED_CREATE
from podyard.workloads.core.cron_jobs import JOBS
from podyard.workloads.core.jobs import FAILURES

SUCCESSFUL_DELETE: Final = Reason("SuccessfulDelete")
FAILED_DELETE: Final = Reason("FailedDelete")
SCALING: Final = Reason("ScalingReplicaSet")
COMPLETED: Final = Reason("Completed")
_COMPLETE: Final = "Complete"
_ENDS: Final = (_COMPLETE, "Failed")
"""Conditions of a Job that has ended."""


def of_write(work: Work, write: Write, result: Result, uid: str, at: float) -> Iterator[Event]:
    """What the owner's controller tells of one write; nothing of what was there already, or is gone.

    :param uid: of the owner
    """
    if work.owner.resource not in CONTROLLERS or isinstance(result, ObjectMissing):
        return
    if write.key.resource == subjects.PODS:
        yield from _of_pod(work.owner, write, result, uid, at)
    elif write.key == work.owner:
        yield from _of_itself(work.owner, result, uid, at)
    elif write.key.resource in _OF_DEPENDENTS:
        yield from _of_dependent(work.owner, write, result, uid, at)
    elif isinstance(result, Written) and isinstance(write, Create | Alter):
        yield from _of_replica_set(work.owner, write.key.name, result, uid, at)


def told(owner: ObjectKey, uid: str, reason: Reason, message: str, at: float, *, warning: bool = False) -> Event:
    """An event of the owner's controller about the owner."""
    about = ObjectRef(resource=owner.resource, namespace=owner.namespace, name=owner.name, uid=uid)
    return Event(about, reason, message, at, warning=warning, controller=CONTROLLERS.get(owner.resource, ""))


def _of_pod(owner: ObjectKey, write: Write, result: Result, uid: str, at: float) -> Iterator[Event]:
    if isinstance(result, Written):
        if isinstance(write, Delete) and isinstance(result.step, Put | Remove):
            message = pod_message("Delete", owner.resource, owner.name, write.key.name)
            yield told(owner, uid, SUCCESSFUL_DELETE, message, at)
    elif isinstance(write, Delete):
        yield told(owner, uid, FAILED_DELETE, f"Error deleting: {result}", at, warning=True)
    elif isinstance(write, Create):
        yield told(owner, uid, FAILED_CREATE, f"{CREATING}{result}", at, warning=True)


def _of_itself(owner: ObjectKey, result: Result, uid: str, at: float) -> Iterator[Event]:
    """A Job has ended."""
    if owner.resource != JOBS or not isinstance(result, Written) or not isinstance(result.step, Put):
        return
    end = _end(result.after)
    if not end or _end(result.before):
        return
    if end["type"] == _COMPLETE:
        yield told(owner, uid, COMPLETED, "Job completed", at)
    for reason in FAILURES:
        if end["type"] != _COMPLETE and end.get("reason") == reason:
            yield told(owner, uid, reason, str(end.get("message", "")), at, warning=True)


def _end(stored: Stored | None) -> Document:
    """The condition that says that a Job has ended; empty while none does."""
    if stored is None or stored.deleted:
        return {}
    try:
        conditions = documents.mappings(documents.mapping(stored.document(), "status"), "conditions")
    except MessageError:
        return {}
    for one in conditions:
        if one.get("type") in _ENDS and one.get("status") == "True":
            return one
    return {}


def _of_dependent(owner: ObjectKey, write: Write, result: Result, uid: str, at: float) -> Iterator[Event]:
    """A CronJob has made or ended a job, a StatefulSet has made a claim."""
    words = _OF_DEPENDENTS[write.key.resource].get(owner.resource)
    if words is None or not isinstance(write, Create | Delete):
        return
    made = isinstance(write, Create)
    if not isinstance(result, Written):
        reason, message = (
            (FAILED_CREATE, f"{CREATING}{result}") if made else (FAILED_DELETE, f"Error deleting: {result}")
        )
        yield told(owner, uid, reason, message, at, warning=True)
    elif isinstance(result.step, Put | Remove):
        reason, verb = (SUCCESSFUL_CREATE, "Create") if made else (SUCCESSFUL_DELETE, "Delete")
        yield told(owner, uid, reason, words(verb, owner.name, write.key.name), at)


def _job_words(verb: str, owner: str, name: str) -> str:
    del owner
    return f"{verb}d job {name}"


def _claim_words(verb: str, owner: str, name: str) -> str:
    pod = f"{owner}-{name.rpartition('-')[2]}"
    return f"{verb} Claim {name} Pod {pod} in StatefulSet {owner} success"


_OF_DEPENDENTS: Final[Mapping[str, Mapping[str, Callable[[str, str, str], str]]]] = {
    "jobs": {"cronjobs": _job_words},
    "persistentvolumeclaims": {"statefulsets": _claim_words},
}
"""By the dependent's resource and the owner's: how it is worded, of verb, owner and dependent."""


def _of_replica_set(owner: ObjectKey, name: str, result: Written, uid: str, at: float) -> Iterator[Event]:
    """A Deployment has scaled one of its ReplicaSets."""
    if owner.resource != "deployments" or not isinstance(result.step, Put):
        return
    before, now = _replicas(result.before), _replicas(result.after)
    if before != now:
        way = "up" if before < now else "down"
        yield told(owner, uid, SCALING, f"Scaled {way} replica set {name} from {before} to {now}", at)


def _replicas(stored: Stored | None) -> int:
    """How many an object asks for; 0 if it is not there, or says none."""
    if stored is None or stored.deleted:
        return 0
    try:
        found = documents.mapping(stored.document(), "spec").get("replicas")
    except MessageError:
        return 0
    return found if isinstance(found, int) else 0
