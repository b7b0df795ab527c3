"""How the pods of a workload are: how many run, how many wait and for what, why some are not made. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.objects.apps import DaemonSet, StatefulSet
from podyard.objects.batch import Job, end_of
from podyard.objects.kinds import Kind
from podyard.proto import subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import Count
from podyard.proto.moves import MoveRecord
from podyard.proto.operations import K8sEvent
from podyard.proto.queue_api import QueueListReply
from podyard.telling import advice, waiting
from podyard.telling.entries import Data, Told
from podyard.telling.moves import MoveStory, Opposed
from podyard.telling.waiting import Cause

MAKES: Final[Mapping[str, str]] = {"deployments": "replicasets", "cronjobs": "jobs"}
"""Workloads that make others, which make the pods."""
EXPLAINED: Final = (
    *("deployments", "replicasets", "replicationcontrollers", "statefulsets", "daemonsets"),
    *("jobs", "cronjobs"),
)
MOST_LOOKED_AT: Final = 256
"""Waiting pods whose last attempts are read, semi-arbitrary: those of one workload wait for much the same."""
MOST_TOLD: Final = 3
"""Warnings about the workload that are told, the last ones."""


class Family(NamedTuple):
    """A workload, what it made, and their pods."""

    owners: tuple[ObjectKey, ...]
    """Itself first, if it is there; then what it made that makes pods."""
    item: Any
    """Itself; None: it is not there."""
    pods: tuple[PodView, ...]
    """That live: neither ended nor being deleted, by name."""

    @property
    def waiting(self) -> list[PodView]:
        """Those without a node."""
        return [pod for pod in self.pods if pod.bound is None]


class WorkloadStory(Data, frozen=True, kw_only=True):
    """How many of its pods wait, all causes, and what the descheduler moved of it in the last week."""

    namespace: str
    kind: str
    name: str
    is_there: bool = True
    state: str
    """One sentence."""
    wanted: Annotated[int | None, Meta(description="pods that it is to have now; null: it does not say")] = None
    pods: Count = 0
    running: Count = 0
    starting: Annotated[Count, Meta(description="they have a node and do not run yet")] = 0
    waiting: Annotated[Count, Meta(description="they have no node")] = 0
    looked_at: Annotated[Count, Meta(description="of those that wait, for the causes")] = 0
    causes: tuple[Cause, ...] = ()
    warnings: Annotated[tuple[Told, ...], Meta(description="the last ones about it, if pods are missing")] = ()
    help: Annotated[tuple[str, ...], Meta(description="what would help against these")] = ()
    moves: tuple[MoveRecord, ...] = ()
    opposed: tuple[Opposed, ...] = ()


def family(view: ClusterView, kind: Kind, namespace: str, name: str) -> Family:
    """What belongs to a workload by the controller's uid."""
    item: Any = view.objects(kind.resource).get((namespace, name))
    if item is None:
        return Family((), None, ())
    owners, uids = [ObjectKey(kind.resource, namespace, name)], {item.metadata.uid}
    made = MAKES.get(kind.resource, "")
    for key, one in view.objects(made).items() if made else ():
        owner = one.metadata.controller
        if owner is not None and owner.uid in uids:
            owners.append(ObjectKey(made, *key))
            uids |= {one.metadata.uid}
    return Family(tuple(owners), item, tuple(_pods(view, uids)))


def _pods(view: ClusterView, owners: set[str]) -> Iterator[PodView]:
    for _, pod in sorted(view.pods.items()):
        owner = pod.stored.metadata.controller
        if owner is not None and owner.uid in owners and not (pod.deleting or pod.ended or pod.release):
            yield pod


def story(
    kind: Kind,
    namespace: str,
    name: str,
    found: Family,
    *,
    attempts: Mapping[str, AttemptRecord],
    queue: QueueListReply | None,
    events: Sequence[K8sEvent],
    moves: MoveStory,
) -> WorkloadStory:
    """Put together.

    :param attempts: the last ones of the waiting pods that were looked at, by uid
    :param queue: what it says of its profiles and of pods that nobody schedules; None: no leader answers
    :param events: about the workload and what it made
    """
    waits = found.waiting
    looked_at = waits[:MOST_LOOKED_AT]
    pods = [waiting.of_pod(pod, attempts.get(pod.uid), queue) for pod in looked_at]
    causes = waiting.causes(pods, () if queue is None else queue.profiles)
    running = sum(
        pod.bound is not None and pod.status is not None and pod.status.phase == "Running" for pod in found.pods
    )
    wanted = _wanted(kind.resource, found.item)
    missing = wanted is not None and len(found.pods) < wanted
    warnings = tuple(_warnings(events)) if missing else ()
    helped = (advice.of_message(one.reason, one.message) for one in warnings)
    return WorkloadStory(
        namespace=namespace,
        kind=kind.kind,
        name=name,
        is_there=found.item is not None,
        state=_state(found, wanted, running, causes, len(looked_at)),
        wanted=wanted,
        pods=len(found.pods),
        running=running,
        starting=len(found.pods) - len(waits) - running,
        waiting=len(waits),
        looked_at=len(looked_at),
        causes=causes,
        warnings=warnings,
        help=tuple(dict.fromkeys(filter(None, helped))),
        moves=moves.moves,
        opposed=moves.opposed,
    )


def _state(found: Family, wanted: int | None, running: int, causes: Sequence[Cause], looked_at: int) -> str:
    if found.item is None:
        return "is not there"
    pods, waits = len(found.pods), len(found.waiting)
    of = max(pods, wanted or 0)
    missing = f"; {of - pods} of {of} {'is' if of - pods == 1 else 'are'} not made" if of > pods else ""
    if missing and isinstance(found.item, StatefulSet) and found.item.spec.pod_management_policy != "Parallel":
        missing += ": each waits until the one before is ready"
    paused = _paused(found.item)
    if waits:
        return f"{waits:,} of {of:,} wait{'s' if waits == 1 else ''}{_for(causes, waits, looked_at)}{missing}{paused}"
    if not of:
        return f"has no pods{paused}"
    starting = f", {pods - running} start" if pods > running else ""
    return f"{running:,} of {of:,} run{starting}{missing}{paused}"


def _for(causes: Sequence[Cause], waits: int, looked_at: int) -> str:
    some = f" (of {looked_at} that were looked at)" if looked_at < waits else ""
    if len(causes) > 1:
        return ": " + ", ".join(f"{one.pods:,} for {one.awaits}" for one in causes) + some
    (only,) = causes
    every = "all for" if waits > 1 else "for"
    nearest = f"; the nearest node lacks {only.lacks}" if only.lacks else ""
    return f", {every} {only.awaits}{some}{nearest}"


def _paused(item: Any) -> str:
    spec = item.spec
    if getattr(spec, "paused", False):
        return "; it is paused (spec.paused)"
    return "; it is suspended (spec.suspend)" if getattr(spec, "suspend", False) else ""


def _wanted(resource: str, item: Any) -> int | None:
    """Pods that it is to have now."""
    if item is None:
        return None
    return _WANTED.get(resource, _replicas)(item)


def _replicas(item: Any) -> int:
    """Absent is 1."""
    return 1 if item.spec.replicas is None else item.spec.replicas


def _of_daemon_set(item: DaemonSet) -> int:
    return item.status.desired_number_scheduled


def _of_job(item: Job) -> int:
    """As many as may run at once, of those that still have to succeed."""
    if end_of(item) or item.spec.suspend:
        return 0
    at_once = 1 if item.spec.parallelism is None else item.spec.parallelism
    left = at_once if item.spec.completions is None else item.spec.completions - item.status.succeeded
    return max(min(at_once, left), 0)


def _unknown(item: Any) -> None:
    """A CronJob makes what its time says."""


_WANTED: Final[Mapping[str, Callable[[Any], int | None]]] = {
    "daemonsets": _of_daemon_set,
    "jobs": _of_job,
    "cronjobs": _unknown,
}


def _warnings(events: Sequence[K8sEvent]) -> Iterator[Told]:
    """The last ones, in the order of time."""
    warned = sorted((one for one in events if one.type == "Warning"), key=lambda one: one.at)
    for one in warned[-MOST_TOLD:]:
        yield Told(at=one.at, reason=one.reason, message=one.message.strip(), reporter=one.reporter, times=one.count)


def subjects_of(kind: Kind, namespace: str) -> tuple[str, ...]:
    """What is read of the stream CLUSTER for a workload."""
    kinds = [kind.resource, *([MAKES[kind.resource]] if kind.resource in MAKES else [])]
    return (
        *(subjects.objects(resource, namespace) for resource in kinds),
        subjects.objects(subjects.PODS, namespace),
        subjects.bindings_in(namespace),
        subjects.pod_statuses_in(namespace),
    )
