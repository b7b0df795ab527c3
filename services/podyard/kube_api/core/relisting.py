"""Steps out of differences: of one message that changes several objects, and of a listing anew, of which
nobody saw what was in between. Pure.

A version is told to clients, who ask again for what came after it. So no two steps of one resource may have
the same version as the last of them: whoever was cut off between the two would miss the second.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.kube_api.core.definitions import Defined
from podyard.kube_api.core.history import Gap
from podyard.kube_api.core.items import Content, Item, Step, uid_of
from podyard.objects.quotas import QUOTAS, ResourceQuota
from podyard.proto import subjects
from podyard.proto.facts import PodScheduledFact
from podyard.telling.pod_conditions import Evidence

TOPOLOGY: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class Difference(NamedTuple):
    """An object as it was and as it is."""

    resource: str
    path: str
    before: Item | None
    after: Item | None
    ended: int = 0
    """The version of its end, if it is gone."""

    @property
    def version(self) -> int:
        return self.ended if self.after is None else self.after.version


class Places:
    """What a listing says of bindings: when they were last written. Tables keep no versions of them."""

    def __init__(self) -> None:
        self.keys: dict[str, ObjectKey] = {}
        """Of the objects that were listed, by subject: taken apart message by message, not all at its end."""
        self._read: dict[str, tuple[int, float]] = {}
        self.refusals: dict[str, tuple[int, PodScheduledFact]] = {}
        """Why pods are not scheduled, with the sequences of that, by uid."""

    def read(self, uid: str, sequence: int, stored_at: float) -> None:
        """The binding of a pod, or its tombstone; `stored_at` in seconds since 1970."""
        self._read[uid] = sequence, stored_at

    def sequence(self, uid: str) -> int:
        """Of the last version; 0 if the pod is not bound."""
        return self._read.get(uid, (0, 0.0))[0]

    def evidence(self, view: ClusterView, known: dict[str, Evidence]) -> dict[str, Evidence]:
        """Since when pods are bound, by uid. A tombstone does not tell: of those that ended stays what was
        known."""
        found: dict[str, Evidence] = {}
        for uid, (_, stored_at) in self._read.items():
            pod = view.pods_by_uid.get(uid)
            if pod is None:
                continue
            if uid in known:
                found[uid] = known[uid]
            elif pod.bound is not None:
                found[uid] = Evidence(bound_at=stored_at, topology=topology_labels(view, pod.node_name))
        for uid, (_, fact) in self.refusals.items():
            if is_pending(view, uid):
                found[uid] = Evidence(refusal=fact)
        return found


def is_pending(view: ClusterView, uid: str) -> bool:
    """Whether there is a pod of this uid that waits to be scheduled."""
    pod = view.pods_by_uid.get(uid)
    return pod is not None and pod.bound is None and pod.release is None


def topology_labels(view: ClusterView, node: str) -> tuple[tuple[str, str], ...]:
    """The labels that a pod takes over from the node that it is bound to; none if nobody knows the node.

    Source: kubernetes v1.36.2, plugin/pkg/admission/podtopologylabels/admission.go."""
    found = view.nodes.get(node)
    return () if found is None else tuple((key, found.labels[key]) for key in TOPOLOGY if key in found.labels)


def version_of(moment: Content, view: ClusterView, places: Places) -> int:
    """The sequence of the last message that is joined to an object, as far as they are stored."""
    resource, namespace, name = moment.key
    viewed = moment.viewed
    about: list[str] = []
    found = moment.stored.sequence
    if isinstance(viewed, PodView):
        about.append(subjects.nomination(namespace, name, viewed.uid))
        found = max(found, places.sequence(viewed.uid))
        if moment.evidence.refusal is not None:
            found = max(found, places.refusals.get(viewed.uid, (0, None))[0])
        if viewed.bound is not None or viewed.release is not None:
            about.append(subjects.pod_status(viewed.node_name, namespace, name, viewed.uid))
        if viewed.lost is not None:
            about.append(subjects.node_life(viewed.node_name))
    elif isinstance(viewed, NodeView):
        about += (subjects.node_status(name), subjects.node_life(name))
    elif resource == QUOTAS and viewed is not None:
        about.append(subjects.quota_usage(namespace, name, viewed.metadata.uid))
    return max((found, *map(view.version_of, about)))


def end_of(before: Item, view: ClusterView, gap: Gap) -> int:
    """The version of the end of an object that is gone: of its marker, if that is still there."""
    marker = view.version_of(subjects.object_(*before.key))
    return marker if gap.after < marker <= gap.to else gap.to


def same(old: Content, new: Content) -> bool:
    """Whether two readings of an object say the same. What they hold may be other values."""
    return (
        old.stored.sequence == new.stored.sequence
        and old.fault == new.fault
        and old.evidence == new.evidence
        and old.stored.payload == new.stored.payload
        and _joined(old.viewed) == _joined(new.viewed)
        and _standing(old) == _standing(new)
    )


def _joined(viewed: Any) -> object:
    """What others say of it; what its own document says is compared as it is stored."""
    if isinstance(viewed, PodView):
        return (
            viewed.uid, viewed.bound, viewed.release, viewed.status, viewed.nomination, viewed.lost, viewed.unknown_place
        )  # fmt: skip
    if isinstance(viewed, NodeView):
        return viewed.uid, viewed.status, viewed.blind, viewed.life
    return viewed.status if isinstance(viewed, ResourceQuota) else None


def _standing(content: Content) -> object:
    """How a definition stands beside others."""
    return content.standing if isinstance(content, Defined) else None


def _at_once(differences: Iterable[Difference], sequence: int) -> Iterator[Step]:
    """The steps that one message makes of one resource: all but the last have the version before its own.

    An object that has that version already comes last. There is at most one: it was changed by the message
    before, and all others which have it were given it here.
    """
    changed = list(differences)
    late = {one.path for one in changed if one.before is not None and one.before.version == sequence - 1}
    found = sorted(_apart(changed), key=lambda one: (one.path in late, one.path, one.after is not None))
    for left, one in enumerate(found, 1 - len(found)):
        version = sequence if left == 0 else sequence - 1
        if one.after is not None:
            one.after.version = version  # nobody has seen it yet
        yield Step(one.resource, one.path, one.before, one.after, sequence, version)


def in_order(differences: Iterable[Difference], gap: Gap) -> list[Step] | None:
    """The steps of all resources that lead from the state at `gap.after` to the one at `gap.to`, in the order
    of versions; `None` if there is no such order: the stream was made again, or something changed without a
    message.
    """
    found = list(differences)
    if gap.to <= gap.after:
        return None if found or gap.to < gap.after else []
    if gap.to == gap.after + 1:  # one message
        return [step for resource in _by_resource(found) for step in _at_once(resource, gap.to)]
    found = sorted(_apart(found), key=lambda one: (one.version, one.path, one.after is not None))
    steps: list[Step] = []
    for number, one in enumerate(found, 1):
        version = max(one.version, gap.after + 1)
        if version == gap.to and number < len(found):
            version -= 1
        if one.after is not None:
            one.after.version = version  # nobody has seen it yet
        steps.append(Step(one.resource, one.path, one.before, one.after, max(version, one.version), version))
    return steps


def apart_at(items: Iterable[Item], position: int) -> None:
    """Before anybody is told of a state: let one object of a resource at most have the version `position`.
    The next message may change several of them, and gives that version to all but one."""
    same_version = sorted((item for item in items if item.version == position), key=lambda item: item.path)
    for item in same_version[:-1]:
        item.version = position - 1


def _by_resource(differences: Iterable[Difference]) -> Iterable[list[Difference]]:
    found: dict[str, list[Difference]] = {}
    for one in differences:
        found.setdefault(one.resource, []).append(one)
    return found.values()


def _apart(differences: Iterable[Difference]) -> Iterator[Difference]:
    """An object that was made again under the same name went and came."""
    for one in differences:
        if one.before is not None and one.after is not None and _another(one.before.moment, one.after.moment):
            yield Difference(one.resource, one.path, one.before, None, one.after.version - 1)
            yield Difference(one.resource, one.path, None, one.after)
        else:
            yield one


def _another(old: Content, new: Content) -> bool:
    was, is_ = uid_of(old), uid_of(new)
    return bool(was and is_ and was != is_)
