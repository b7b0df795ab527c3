"""What the api answers about an object, as the Kubernetes API's refusals. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from podyard.kube_api.core import errors
from podyard.kube_api.core.errors import ApiError, Cause
from podyard.objects import acting
from podyard.objects.kinds import Kind
from podyard.proto.objects_api import FieldError, ObjectResult

UNCLEAR_RETRY_S: Final = 1
"""When to look again for what may have been done."""
ONE_BUDGET: Final = "DisruptionBudget"
"""Reason of the cause that names a budget. Source: policy/v1, DisruptionBudgetCause."""
_ALREADY_EXISTS: Final = "AlreadyExists"
_CONFLICT: Final = "Conflict"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
_UNKNOWN: Final = re.compile(r'^(unknown field "[^"]*"): did you mean .*$')


def refusal(result: ObjectResult, *, kind: str, group: str, version: str, resource: str, name: str) -> ApiError:
    """Why an object was not written.

    :param name: as it was asked for
    """
    types = {one.type for one in result.errors}
    if result.outcome == "notFound":
        return errors.not_found(resource, group, name)
    if result.outcome == "blocked":
        return _blocked(result)
    if _ALREADY_EXISTS in types:
        return errors.already_exists(resource, group, name)
    if _CONFLICT in types:
        return errors.conflict(resource, group, name, result.errors[0].detail)
    if result.unclear:
        return ApiError(504, "Timeout", result.message, retry_after_s=UNCLEAR_RETRY_S)
    if result.errors:
        return faulty(
            result.errors,
            kind=kind,
            group=group,
            version=version,
            resource=resource,
            name=name,
            namespace=result.namespace,
        )
    return ApiError(503, "ServiceUnavailable", result.message, retry_after_s=UNCLEAR_RETRY_S)


def told_warnings(result: ObjectResult, kind: Kind | None) -> tuple[str, ...]:
    """What is told with a write, as the API server tells it: that nothing acts on a kind it never says, and
    of an unknown field not which one may have been meant.

    :param kind: of the object
    """
    known = "" if kind is None else acting.unheeded(kind)
    return tuple(_UNKNOWN.sub(r"\1", one) for one in result.warnings if one != known)


def faulty(
    faults: Sequence[FieldError], *, kind: str, group: str, version: str, resource: str, name: str, namespace: str
) -> ApiError:
    """What is wrong with an object.

    :param faults: at least one
    """
    ending = next((one for one in faults if one.type == NAMESPACE_TERMINATING), None)
    if ending is not None:
        cause = Cause(ending.type, f"namespace {namespace} is being terminated", ending.field)
        return errors.forbidden(resource, group, name, ending.detail, (cause,))
    unknown = [one for one in faults if one.type == "UnknownField"]
    if unknown:
        return errors.cannot_be_handled(kind, version, f"strict decoding error: {_listed(unknown)}")
    if (
        len(faults) == 1
        and faults[0].type in ("Forbidden", "FieldValueNotFound")
        and not faults[0].field.startswith("spec")
    ):
        if faults[0].type == "FieldValueNotFound":
            return ApiError(404, "NotFound", faults[0].detail.partition(":")[0])
        return errors.forbidden(resource, group, name, faults[0].detail)
    return errors.invalid(kind, group, name, [Cause(one.type, one.detail, one.field) for one in faults])


def _listed(unknown: list[FieldError]) -> str:
    return ", ".join(f'unknown field "{one.field}"' for one in unknown)


def _blocked(result: ObjectResult) -> ApiError:
    """Source: kubernetes v1.36.2, pkg/registry/core/pod/storage/eviction.go, createTooManyRequestsError."""
    budget = result.budget
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    if budget is None or budget.code == 500:
        return ApiError(500, "InternalError", f"Internal error occurred: {result.message}")
    if budget.code == 403:
        return ApiError(403, "Forbidden", result.message)
    named = budget.budgets[0] if budget.budgets else ""
    if budget.waits_for == "time":
        told = f"The disruption budget {named} is still being processed by the server."
    else:
        told = (
            f"The disruption budget {named} needs {budget.desired_healthy} healthy pods and has "
            f"{budget.current_healthy} currently"
        )
    return ApiError(
        429, "TooManyRequests", message, causes=[Cause(ONE_BUDGET, told)], retry_after_s=budget.retry_after_s
    )
