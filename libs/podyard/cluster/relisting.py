"""What changed between the state before a listing and the one after it."""

from collections.abc import Iterator

import msgspec

from podyard.cluster.changes import Change, Origin
from podyard.cluster.keys import NamespacedName
from podyard.cluster.pods import PodView
from podyard.cluster.tables import Tables
from podyard.objects.kinds import Object
from podyard.proto import subjects
from podyard.proto.placement import Release, release_of


def differences(old: Tables, new: Tables, position: int) -> Iterator[Change]:
    """The steps from `old` to `new`: nodes, other objects, then pods; each marked as relisted.

    An update is a gap, since versions in between may have been missed. A binding that was seen neither to end
    nor to go on is released with reason "terminated": its tombstone has expired, or (if the pod still lives)
    the stream was made again without it.

    :param position: up to where `new` is true
    """
    origin = Origin(sequence=position, why="listed again")
    yield from _nodes(old, new, origin)
    for resource in dict.fromkeys((*old.others, *new.others)):
        yield from _others(resource, old.others.get(resource, {}), new.others.get(resource, {}), origin)
    yield from _pods(old, new, origin)


def _nodes(old: Tables, new: Tables, origin: Origin) -> Iterator[Change]:
    for name, before in old.nodes.items():
        after = new.nodes.get(name)
        if after is None or after.uid != before.uid:
            yield Change(subjects.NODES, before.uid, before, None, origin, relisted=True)
    for name, after in new.nodes.items():
        before = old.nodes.get(name)
        if before is None or before.uid != after.uid:
            yield Change(subjects.NODES, after.uid, None, after, _at(origin, after.sequence), relisted=True)
        elif before.facts() != after.facts():
            yield Change(subjects.NODES, after.uid, before, after, origin, gap=True, relisted=True)


def _others(
    resource: str, old: dict[NamespacedName, Object], new: dict[NamespacedName, Object], origin: Origin
) -> Iterator[Change]:
    for key, before in old.items():
        after = new.get(key)
        if after is None or after.metadata.uid != before.metadata.uid:
            yield Change(resource, before.metadata.uid, before, None, origin, relisted=True)
    for key, after in new.items():
        before = old.get(key)
        if before is None or before.metadata.uid != after.metadata.uid:
            yield Change(resource, after.metadata.uid, None, after, origin, relisted=True)
        elif before != after:
            yield Change(resource, after.metadata.uid, before, after, origin, gap=True, relisted=True)


def _pods(old: Tables, new: Tables, origin: Origin) -> Iterator[Change]:
    for uid, before in old.pods_by_uid.items():
        after = new.pods_by_uid.get(uid)
        if not before.gone and (after is None or after.gone):
            yield Change(subjects.PODS, uid, before, None, origin, relisted=True)
        if before.bound is not None and after is None:
            ended = release_of(before.bound, "terminated")
            yield Change(subjects.PODS, uid, before, None, origin, release=ended, relisted=True)
    for uid, after in new.pods_by_uid.items():
        before = old.pods_by_uid.get(uid)
        if before is None:
            yield Change(subjects.PODS, uid, None, after, _at(origin, after.sequence), relisted=True)
        elif after.gone and before.bound == after.bound:
            continue  # the same room; that the object is gone was said above
        elif before.facts() != after.facts():
            yield Change(
                subjects.PODS,
                uid,
                before,
                after,
                origin,
                bound=before.bound is None and after.bound is not None,
                release=_release_between(before, after),
                gap=True,
                relisted=True,
            )


def _release_between(before: PodView, after: PodView) -> Release | None:
    if before.release is not None:
        return None
    if after.release is None and after.bound is None and before.bound is not None:
        return release_of(before.bound, "terminated")
    return after.release


def _at(origin: Origin, sequence: int) -> Origin:
    return msgspec.structs.replace(origin, sequence=sequence)
