"""What takes the place of a placement that cannot be read, as somebody who knows says. Pure.

A mend is a commit like a binder's: the new version, a record for all readers, last the fence with the next
epoch. Each is a compare-and-set, so it is written as a whole or not at all, and not if a binder has written
anything meanwhile. A binder that leads is deposed by it, as by any other that takes over, and begins anew.
"""

from typing import Final, NamedTuple

from podyard.bus.outgoing import Outgoing
from podyard.cluster.changes import Unreadable
from podyard.cluster.pods import PodView
from podyard.proto import codec, subjects
from podyard.proto.placement import BoundPod, CommitRecord, Fence, Release, binding_of, tombstone_of

_BINDINGS: Final = subjects.ALL_BINDINGS.removesuffix(">")


class MendError(Exception):
    """It cannot be mended so; the text says why, and what to do instead."""


class Standing(NamedTuple):
    """The fence as it is: what a mend builds on."""

    fence: Fence
    sequence: int
    """Of its last version; 0: there is none."""


class Mend(NamedTuple):
    """What is to be written."""

    says: str
    """What comes of it, for people, in whole sentences."""
    messages: tuple[Outgoing, ...]
    """One atomic batch, in this order."""


def is_binding(found: Unreadable) -> bool:
    """Whether it is, or was, the binding of a pod."""
    return found.subject.startswith(_BINDINGS)


def bound(found: Unreadable, pod: PodView | None, node: str, standing: Standing, *, who: str, now: float) -> Mend:
    """The pod was bound to `node`: it takes there what it requests.

    :param pod: the pod of the binding's uid, None if its object is not there or cannot be read
    :param now: seconds since 1970, UTC
    :raises MendError: nobody knows what it takes
    """
    place = subjects.parse_pod(found.subject)
    if pod is None or pod.gone or (pod.namespace, pod.name, pod.uid) != place:
        raise MendError(
            f"the object of pod {place.namespace}/{place.name} (uid {place.uid}) is not there, or cannot be read: what it takes of a node"
            " is not known. If nothing of it runs any more, say --gone"
        )
    placed = pod.bound_to(node, decided_at=pod.sequence, forced=True)
    binding = binding_of(placed, bound_at=now)
    taken = ", ".join(f"{name} {amount}" for name, amount in sorted(placed.usage.requests.items())) or "nothing"
    says = (
        f"pod {place.namespace}/{place.name} (uid {place.uid}) will be bound to node {node}, without judgement, and take what its object"
        f" requests now: {taken} (cpu in thousandths)"
    )
    return _commit(found, codec.encode(binding), says, standing, who, now, bindings=(placed,))


def gone(found: Unreadable, pod: PodView | None, node: str, standing: Standing, *, who: str, now: float) -> Mend:
    """Nothing of the pod runs any more: its binding, if it was one, has ended.

    :param node: the node it was on, for people; may be empty
    """
    place = subjects.parse_pod(found.subject)
    release = Release(namespace=place.namespace, name=place.name, uid=place.uid, node=node, reason="terminated")
    says = f"pod {place.namespace}/{place.name} (uid {place.uid}) will count as ended: it takes no room, and this uid is never bound again"
    lives = pod is not None and not pod.gone
    if lives:
        says += (
            f". Its object stays; `podyard delete pod {place.name} -n {place.namespace} --grace-period 0` removes it"
        )
    payload = codec.encode(tombstone_of(release, released_at=now))
    return _commit(found, payload, says, standing, who, now, releases=(release,), expires=not lives)


def fence(found: Unreadable, epoch: int, *, who: str) -> Mend:
    """A fence above all before. Its number is the stream's sequence: each commit wrote at least two messages,
    so none had a higher one.

    :param epoch: the highest that anybody knows of
    """
    new = Fence(epoch=epoch + 1, n=found.sequence, batch=_batch(found), holder=who)
    says = (
        f"the fence will be written anew, with epoch {new.epoch} and commit number {new.n}, above all before; bindings stay as they are,"
        " and every reader lists the cluster anew"
    )
    return Mend(says, (Outgoing(subjects.FENCE, codec.encode(new), found.sequence),))


def _batch(found: Unreadable) -> str:
    """An id that no other write has: of that version only one mend is ever applied."""
    return f"mend-{found.sequence}"


def _commit(
    found: Unreadable,
    payload: bytes,
    says: str,
    standing: Standing,
    who: str,
    now: float,
    *,
    bindings: tuple[BoundPod, ...] = (),
    releases: tuple[Release, ...] = (),
    expires: bool = False,
) -> Mend:
    before, batch = standing.fence, _batch(found)
    new = Fence(epoch=before.epoch + 1, n=before.n + 1, batch=batch, holder=who)
    record = CommitRecord(
        n=new.n, epoch=new.epoch, batch=batch, bindings=bindings, releases=releases, position=found.sequence, at=now
    )
    messages = (
        Outgoing(found.subject, payload, found.sequence, expires=expires),
        Outgoing(subjects.commit(new.n), codec.encode(record), 0, expires=True),
        Outgoing(subjects.FENCE, codec.encode(new), standing.sequence),
    )
    says += f". It becomes commit {new.n}, if the fence is still at {before.n}; a binder that leads begins anew"
    return Mend(says, messages)
