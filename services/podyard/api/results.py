"""What is answered about one object. Pure."""

from collections.abc import Iterable
from typing import Final

from podyard.bus.errors import BusError, Unclear
from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import Contended, ObjectExists, ObjectMissing, PdbBlocked
from podyard.cluster.intents import Written
from podyard.cluster.keys import ObjectKey
from podyard.cluster.writes import Result
from podyard.objects.errors import AdmissionError, ObjectError
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import FieldError, ObjectOutcome, ObjectResult

ALREADY_EXISTS: Final = "AlreadyExists"


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


def note(view: DocumentView, written: Iterable[Result]) -> None:
    """Let this instance know what it has just written."""
    for one in written:
        if isinstance(one, Written) and one.after is not None:
            view.note(one.key, one.after)


def failure(error: Exception, key: ObjectKey | ObjectRef) -> ObjectResult:
    """The answer for an object that was not written, and why."""
    outcome: ObjectOutcome = "refused"
    errors: tuple[FieldError, ...] = ()
    message = str(error)
    match error:
        case AdmissionError():
            errors = tuple(
                FieldError(field=fault.field, detail=fault.detail, type=fault.type) for fault in error.faults
            )
        case ObjectExists():
            errors = (FieldError(field="metadata.name", detail=message, type=ALREADY_EXISTS),)
        case ObjectError():
            errors = (FieldError(field=error.field, detail=error.detail, type="FieldValueInvalid"),)
        case ObjectMissing():
            outcome = "not found"
        case PdbBlocked():
            outcome = "blocked"
        case Unclear():
            message = f"{message}: look whether it was done before you try again"
        case Contended() | BusError():
            message = f"{message}; nothing was written for it: try again"
        case _:
            pass
    return ObjectResult(
        outcome=outcome,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        errors=errors,
        message=message,
    )
