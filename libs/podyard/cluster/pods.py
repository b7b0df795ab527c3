"""One pod as a reader sees it: the object of its creator joined with the facts that others know about it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from podyard.cluster import container_statuses
from podyard.cluster.conditions import joined_conditions
from podyard.cluster.keys import NamespacedName
from podyard.objects import pod_requests
from podyard.objects.core import Pod
from podyard.objects.meta import Condition, ObjectMeta
from podyard.objects.pod import ENDED, PodSpec
from podyard.objects.priority import pod_priority
from podyard.proto import facts
from podyard.proto.facts import Nomination, PodStatusFact
from podyard.proto.placement import BoundPod, Release, Usage, VolumeChoice


class PodView(msgspec.Struct, eq=False, gc=False):
    """A pod at one moment. Never changed: every new fact makes a new view, so old and new can be compared.

    `stored` is the object as written; `pod` is the joined object, made when first asked for. A view without a
    living object (`gone`) is a binding that is not released yet: it still takes room. Its `stored` is then
    the last version that was seen, or what the binding tells of it.
    """

    stored: Pod
    """The object as its creator wrote it."""
    key: NamespacedName
    """Namespace and name."""
    uid: str
    """metadata.uid."""
    sequence: int
    """CLUSTER sequence of the object's version; 0 for one known from its binding only."""
    bound: BoundPod | None = None
    """Its place on a node, None before the binding and after the release."""
    release: Release | None = None
    """The end of its binding: a released uid is never bound again."""
    status: PodStatusFact | None = None
    """What the agent of its node says."""
    nomination: Nomination | None = None
    """The node it preempted for; an empty node means none."""
    gone: bool = False
    """The object is deleted, the binding is not released."""
    lost: facts.Condition | None = None
    """The condition Ready of its node while nothing is heard of that; None if it is heard, and of a pod that
    is not bound."""
    unknown_place: bool = False
    """What is stored about its place cannot be read: it may be bound to any node, or released. Until that is
    mended nobody binds it, and nobody takes it for unbound."""
    _joined: Pod | None = None
    _usage: Usage | None = None

    @property
    def pod(self) -> Pod:
        """The joined object: spec.nodeName from the binding, status from the agent, the nominated node from
        the queue. On a node that is lost it is not ready."""
        if self._joined is None:
            self._joined = _join(self) if self._has_facts else self.stored
        return self._joined

    @property
    def _has_facts(self) -> bool:
        """Whether anything is known of it besides its object."""
        known = self.bound or self.release or self.status or self.nomination or self.lost
        return known is not None

    @property
    def namespace(self) -> str:
        return self.key[0]

    @property
    def name(self) -> str:
        return self.key[1]

    @property
    def labels(self) -> dict[str, str]:
        return self.stored.metadata.labels

    @property
    def released(self) -> bool:
        """The binding has ended: the pod takes no room and is never scheduled again."""
        return self.release is not None

    @property
    def node_name(self) -> str:
        """The node it is, or was, bound to; what its creator wrote if it is not bound; else empty."""
        if self.bound is not None:
            return self.bound.node
        if self.release is not None:
            return self.release.node
        return self.stored.spec.node_name

    @property
    def nominated_node(self) -> str:
        """The node it preempted for, or empty. Of a bound pod what somebody wrote into its status is over.
        Source: kubernetes v1.36.2, pkg/registry/core/pod/storage/storage.go (setPodNodeAndMetadata)."""
        if self.nomination is not None:
            return self.nomination.node
        return "" if self.bound is not None else self.stored.status.nominated_node_name

    @property
    def deleting(self) -> bool:
        """Somebody has asked for its end: the deletion timestamp is set, or the object is gone."""
        return self.gone or self.stored.metadata.deletion_timestamp is not None

    @property
    def ended(self) -> bool:
        """Nothing of it runs any more: phase Succeeded or Failed, or its agent says so."""
        if self.status is not None:
            return self.status.ended or self.status.phase in ENDED
        return self.stored.status.phase in ENDED

    @property
    def priority(self) -> int:
        return pod_priority(self.stored)

    @property
    def usage(self) -> Usage:
        """What it takes from a node.

        Before it is bound, what its object requests. Once bound, what its binding says, unless its object is
        newer than the decision: it may be resized in place, and that counts from the moment when it is
        stored. Of an object that is gone counts what its binding says. So usage is a function of binding and
        object in the stream, and all readers add up alike. What agents report is left out: not all readers
        follow it.

        Source of the resizes: kube-scheduler v1.36, eventhandlers.go (updateAssignedPodInCache).
        """
        bound = self.bound
        if bound is not None and (self.gone or self.sequence <= bound.decided_at):
            return bound.usage
        if self._usage is None:
            self._usage = pod_requests.usage(self.stored)
        return self._usage

    def share_usage(self, usage: Usage) -> None:
        """It takes what an equal pod takes (same spec and status): nobody has to add that up again."""
        if self._usage is None:
            self._usage = usage

    def bound_to(
        self,
        node: str,
        *,
        attempt: str = "",
        decided_at: int = 0,
        volumes: tuple[VolumeChoice, ...] = (),
        forced: bool = False,
        trace: str = "",
    ) -> BoundPod:
        """The pod as the node is to have it."""
        return BoundPod(
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
            node=node,
            attempt=attempt,
            decided_at=decided_at,
            priority=self.priority,
            labels=self.labels,
            usage=self.usage,
            volumes=volumes,
            forced=forced,
            trace=trace,
        )

    def with_placement(self, bound: BoundPod | None, release: Release | None) -> "PodView":
        """The same pod bound, or released."""
        return PodView(
            self.stored,
            self.key,
            self.uid,
            self.sequence,
            bound,
            release,
            self.status,
            self.nomination,
            self.gone,
            _usage=self._usage,
        )

    def without_object(self) -> "PodView":
        """The same pod when its object is gone: its binding holds its room until the release."""
        return PodView(
            self.stored,
            self.key,
            self.uid,
            self.sequence,
            self.bound,
            self.release,
            self.status,
            self.nomination,
            True,
            self.lost,
            _usage=self._usage,
        )

    def facts(self) -> tuple[Any, ...]:
        """All that makes two views of a pod equal, for comparing what two readers see."""
        return (
            self.key, self.uid, self.sequence, self.stored, self.bound, self.release, self.status, self.nomination, self.gone,
            self.lost, self.unknown_place,
        )  # fmt: skip

    def __repr__(self) -> str:
        place = f" on {self.node_name}" if self.node_name else ""
        return f"<PodView {self.namespace}/{self.name} {self.uid}{place} @{self.sequence}>"


def requested_by(pods: Iterable[PodView]) -> dict[str, int]:
    """What they take together, by resource; milli-CPU, bytes, pieces."""
    sums: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod.usage.requests.items():
            sums[resource] = sums.get(resource, 0) + amount
    return sums


def from_binding(bound: BoundPod) -> PodView:
    """A pod of which only the binding is known: enough to count its room, its labels and its priority."""
    metadata = ObjectMeta(name=bound.name, namespace=bound.namespace, uid=bound.uid, labels=bound.labels)
    spec = PodSpec(node_name=bound.node, priority=bound.priority)
    return PodView(Pod(metadata=metadata, spec=spec), (bound.namespace, bound.name), bound.uid, 0, bound, gone=True)


def _join(view: PodView) -> Pod:
    """The stored object with the facts in it; the stored one itself if nothing is to be added."""
    pod = view.stored
    node = view.node_name
    if node != pod.spec.node_name:
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
    status = pod.status
    if view.status is not None:
        status = msgspec.structs.replace(
            status,
            phase=view.status.phase,
            reason=view.status.reason,
            message=view.status.message,
            start_time=view.status.start_time or None,
            conditions=joined_conditions(status.conditions, view.status.conditions),
        )
        if view.status.containers:
            status = msgspec.structs.replace(
                status,
                container_statuses=container_statuses.joined(view.status.containers, pod.spec.containers),
                init_container_statuses=container_statuses.joined(
                    view.status.init_containers, pod.spec.init_containers
                ),
            )
    if view.lost is not None:
        status = msgspec.structs.replace(status, conditions=_not_ready(status.conditions, view.lost))
    if view.nominated_node != status.nominated_node_name:
        status = msgspec.structs.replace(status, nominated_node_name=view.nominated_node)
    if status is not pod.status:
        pod = msgspec.structs.replace(pod, status=status)
    return pod


def _not_ready(conditions: tuple[Condition, ...], lost: facts.Condition) -> tuple[Condition, ...]:
    """A condition Ready is False from the moment when the node was lost; one that is not there stays so.

    Source: kubernetes v1.36.2, pkg/controller/util/node/controller_utils.go (MarkPodsNotReady).
    """
    return tuple(
        msgspec.structs.replace(one, status="False", last_transition_time=lost.last_transition_time or None)
        if one.type == "Ready" and one.status != "False"
        else one
        for one in conditions
    )
