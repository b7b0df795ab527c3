"""What is answered about one object. Pure."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from podyard.bus.errors import BusError, Unclear
from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import (
    Contended,
    ObjectExists,
    ObjectMissing,
    PdbBlocked,
    QuotaExceeded,
    VersionMoved,
)
from podyard.cluster.intents import Written
from podyard.cluster.keys import ObjectKey
from podyard.objects.errors import AdmissionError, ObjectError
from podyard.objects.faults import cut
from podyard.proto import codec
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import BudgetAnswer, FieldError, ObjectOutcome, ObjectResult, ObjectsReply
from podyard.shell.writes import Result

ALREADY_EXISTS: Final = "AlreadyExists"
CONFLICT: Final = "Conflict"

REPLY_BYTES: Final = 1024 * 1024
"""Of an answer. Only refusals with many faults each are longer; the server takes four times as much."""


def result(
    outcome: ObjectOutcome, key: ObjectKey, *, uid: str = "", position: int = 0, message: str = ""
) -> ObjectResult:
    """An answer without faults."""
    return ObjectResult(
        outcome=outcome,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        uid=uid,
        position=position,
        message=message,
    )


def evicted(key: ObjectKey, uid: str, position: int, budget: BudgetAnswer | None) -> ObjectResult:
    """The answer for a pod that goes."""
    charged = budget is not None and budget.charged
    message = f"charged to the disruption budget {key.namespace}/{budget.budgets[0]}" if budget and charged else ""
    return replace(result("evicted", key, uid=uid, position=position, message=message), budget=budget)


def fitting(results: tuple[ObjectResult, ...]) -> ObjectsReply:
    """The answer; if it would be too long for one, each refusal with its first fault alone, and how many more
    there are."""
    reply = ObjectsReply(results=results)
    if sum(len(one.message) for one in results) < REPLY_BYTES // 4 or len(codec.encode(reply)) <= REPLY_BYTES:
        return reply
    return ObjectsReply(results=tuple(map(_shortened, results)))


def _shortened(one: ObjectResult) -> ObjectResult:
    first, *others = one.errors or (None,)
    if first is None or not others:
        return one
    message = f"{first.field}: {first.detail}; and {len(others)} more faults, in this object alone"
    return replace(one, errors=(first,), message=message)


def note(view: DocumentView, written: Iterable[Result]) -> None:
    """Let this instance know what it has just written."""
    for one in written:
        if isinstance(one, Written) and one.after is not None:
            view.note(one.key, one.after)


def refused_at_all(key: ObjectKey, why: str) -> ObjectResult:
    """The answer for what nobody may do."""
    fault = FieldError(field="", detail=why, type="Forbidden")
    return replace(result("refused", key, message=why), errors=(fault,))


def forbidden(error: QuotaExceeded | BusError, key: ObjectKey) -> ObjectResult:
    """The answer for an object that a quota does not allow, told before anything was written."""
    refused = failure(error, key)
    if not isinstance(error, QuotaExceeded):
        return refused
    return replace(refused, errors=(FieldError(field="", detail=str(error), type="Forbidden"),))


def failure(error: Exception, key: ObjectKey | ObjectRef) -> ObjectResult:
    """The answer for an object that was not written, and why."""
    outcome: ObjectOutcome = "refused"
    errors: tuple[FieldError, ...] = ()
    message = str(error)
    budget, unclear = None, False
    match error:
        case AdmissionError():
            errors = tuple(
                FieldError(field=fault.field, detail=fault.detail, type=fault.type) for fault in error.faults
            )
        case ObjectExists():
            errors = (FieldError(field="metadata.name", detail=message, type=ALREADY_EXISTS),)
        case VersionMoved():
            errors = (FieldError(field="metadata.resourceVersion", detail=message, type=CONFLICT),)
        case ObjectError():
            errors = (FieldError(field=error.field, detail=error.detail, type="FieldValueInvalid"),)
        case ObjectMissing():
            outcome = "notFound"
        case PdbBlocked():
            outcome, budget = "blocked", error.budget
        case Unclear():
            unclear = True
            message = f"{message}: look whether it was done before you try again"
        case Contended() | BusError():
            message = f"{message}; nothing was written for it: try again"
        case _:
            pass
    return ObjectResult(
        outcome=outcome,
        resource=cut(key.resource),
        namespace=cut(key.namespace),
        name=cut(key.name),
        errors=errors,
        message=message,
        budget=budget,
        unclear=unclear,
    )
