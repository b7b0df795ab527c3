"""`delete`: pods that take room get their grace period, what has finalizers stays until they are gone,
everything else gets its marker at once."""

from typing import Final

from podyard.api import naming, results
from podyard.api.lookup import RequestLookup
from podyard.bus.connection import Bus
from podyard.cluster import finalizing, intents
from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Author, Document, Keep, Put, Written
from podyard.cluster.keys import ObjectKey
from podyard.objects.errors import ObjectError
from podyard.proto import placement_reading, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import DeleteRequest, ObjectResult
from podyard.proto.placement import Tombstone
from podyard.shell import writes

_MAY_NOT: Final = "this namespace may not be deleted"
_BESIDE: Final = "nothing was done: another object of the request may not be removed here"
_EACH_EXPECTED: Final = "nothing was done: `expected` names a version for each object, or for none"


async def delete(
    bus: Bus, view: DocumentView, request: DeleteRequest, author: Author, now: float
) -> tuple[ObjectResult, ...]:
    """Carry out a request; results in its order. Each object stands for itself.

    :param now: seconds since 1970, UTC
    :raises BusError: the bus fails; nothing was written
    """
    if request.expected and len(request.expected) != len(request.objects):
        return tuple(results.result("refused", ObjectKey("", "", ""), message=_EACH_EXPECTED) for _ in request.objects)
    answers: list[ObjectResult | None] = []
    meant: list[tuple[ObjectKey, str]] = []
    expected: list[int] = []
    for reference, version in zip(request.objects, request.expected or (0,) * len(request.objects), strict=True):
        try:
            key = _found(reference, view)
            if key.resource == finalizing.NAMESPACES and key.name in finalizing.IMMORTAL:
                answers.append(results.refused_at_all(key, _MAY_NOT))
                continue
            meant.append((key, reference.uid))
            expected.append(version)
            answers.append(None)
        except ObjectError as error:
            answers.append(results.failure(error, reference))
    written = await writes.mark_deleting(
        bus,
        meant,
        author,
        now=now,
        occupies=view.occupies,
        grace_s=request.grace_period_s,
        known=view.stored,
        expected=expected,
        propagation=request.propagation,
    )
    results.note(view, written)
    told = iter(zip(meant, written, strict=True))
    return tuple(_answer(*next(told)) if answer is None else answer for answer in answers)


def _found(reference: ObjectRef, view: DocumentView) -> ObjectKey:
    """Where the object lies that a request means: as it says, or where its kind is stored.

    :raises ObjectError: there can be no such object
    """
    lookup = RequestLookup(view)
    key = naming.key_of(reference, lookup)
    there = view.put_aside(key) or intents.living(view.stored(key)) is not None
    return key if there else naming.as_stored(key, lookup)


async def other_than_ended(bus: Bus, request: DeleteRequest, node: str) -> tuple[ObjectResult, ...]:
    """The refusal of a request for anything but deleted pods whose bindings to this node have ended; empty if
    it names no other.

    :raises BusError: the bus fails
    """
    answers = [await _why_not_ended(bus, one, node) for one in request.objects]
    if not any(answers):
        return ()
    return tuple(
        results.refused_at_all(ObjectKey(one.resource, one.namespace, one.name), why or _BESIDE)
        for one, why in zip(request.objects, answers, strict=True)
    )


async def _why_not_ended(bus: Bus, ref: ObjectRef, node: str) -> str:
    """Why this agent may not have it removed; empty if it may."""
    if ref.resource != subjects.PODS or not ref.uid:
        return f"the agent of node {node} may have its pods removed, by uid, and nothing else"
    try:
        found = await bus.get(streams.CLUSTER.name, subjects.binding(ref.namespace, ref.name, ref.uid))
        placed = None if found is None or found.deleted else placement_reading.decode(found.subject, found.payload)
        stored = await writes.read(bus, ObjectKey(ref.resource, ref.namespace, ref.name))
        living = intents.living(stored, ref.uid)
        deleted = living is None or finalizing.is_deleting(living.document())
    except MessageError as error:
        return f"what is stored of it cannot be read: {error}"
    if not isinstance(placed, Tombstone) or placed.node != node:
        return f"it has not ended on node {node}"
    return "" if deleted else "nobody has deleted it"


def _answer(meant: tuple[ObjectKey, str], written: writes.Result) -> ObjectResult:
    key, uid = meant
    if not isinstance(written, Written):
        return results.failure(written, key)
    uid = uid or (written.before.uid if written.before is not None else "")
    message = ""
    if intents.remains(written.before):
        message = "it could not be read"
    elif isinstance(written.step, Keep):
        message = "it was being deleted already"
    elif isinstance(written.step, Put):
        message = _why_it_stays(key, written.step.document)
    return results.result("deleted", key, uid=uid, position=written.sequence, message=message)


def _why_it_stays(key: ObjectKey, document: Document) -> str:
    grace_s = document["metadata"].get("deletionGracePeriodSeconds")
    if grace_s:
        return f"it has {grace_s} s to end"
    return f"it waits for its finalizers: {', '.join(finalizing.keeps(key.resource, document))}"
