"""What a deletion asks for, and how it is answered. Pure.

Source: kubernetes v1.36.2, apiserver/pkg/endpoints/handlers/delete.go,
apiserver/pkg/registry/generic/registry/store.go, apimachinery/pkg/apis/meta/v1/validation/validation.go
(ValidateDeleteOptions).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

from podyard.cluster import finalizing
from podyard.kube_api.core import errors
from podyard.kube_api.core.errors import Cause
from podyard.kube_api.core.served import Served
from podyard.objects.documents import Document, mapping
from podyard.proto.objects_api import Propagation

ORPHANED_JOB: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)
"""Source: pkg/registry/batch/job/storage/storage.go."""

_JOBS: Final = ("batch", "jobs")
"""The one resource that is not deleted in the background if nothing is said. Source:
pkg/registry/batch/job/strategy.go, DefaultGarbageCollectionPolicy."""
_ANSWERED_WITH_OBJECTS: Final = frozenset(
    (
        *(("", one) for one in ("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates")),
        *(("", one) for one in ("resourcequotas", "serviceaccounts", "services")),
        *(("resource.k8s.io", one) for one in ("deviceclasses", "resourceclaims", "resourceclaimtemplates")),
        *(("resource.k8s.io", one) for one in ("devicetaintrules", "resourceslices")),
        *(("storage.k8s.io", one) for one in ("csidrivers", "csinodes", "storageclasses", "volumeattachments")),
        ("storage.k8s.io", "volumeattributesclasses"),
    )
)
"""Those of which the object is answered although it is gone. Source: ReturnDeletedObject of each storage."""
_POLICIES: Final = ("Foreground", "Background", "Orphan", "nil")
_MOST: Final = 2**63


class Wanted(NamedTuple):
    """The options of a deletion."""

    propagation: Propagation | None = None
    """None: nothing is said of dependents."""
    waits: bool = False
    """`orphanDependents: false`: an object that stays is answered as accepted."""
    grace_s: int | None = None
    uid: str = ""
    version: str = ""
    """Of the object that is meant; empty: any."""
    dry_run: tuple[Any, ...] = ()


def wanted(options: Document, query: Mapping[str, str]) -> Wanted:
    """What is asked for.

    :param options: the body; empty: there is none, and the query says it
    :raises ApiError: 400, 422: not so
    """
    given: Mapping[str, Any] = options or _of_query(query)
    policy, orphans = given.get("propagationPolicy"), given.get("orphanDependents")
    if policy is not None and orphans is not None:
        raise _invalid(f'Invalid value: "{policy!s:.63}": orphanDependents and deletionPropagation cannot be both set')
    if policy is not None and policy not in get_args(Propagation):
        listed = ", ".join(f'"{one}"' for one in _POLICIES)
        raise _invalid(f'Unsupported value: "{policy!s:.63}": supported values: {listed}', "FieldValueNotSupported")
    if orphans is not None:
        policy = "Orphan" if orphans is True else "Background"
    preconditions = mapping(options, "preconditions")
    return Wanted(
        propagation=policy or None,
        waits=orphans is False,
        grace_s=grace_s(given.get("gracePeriodSeconds")),
        uid=str(preconditions.get("uid") or ""),
        version=str(preconditions.get("resourceVersion") or ""),
        dry_run=tuple(options.get("dryRun") or ()),
    )


def _of_query(query: Mapping[str, str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    if query.get("propagationPolicy"):
        found["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        found["orphanDependents"] = query["orphanDependents"].lower() not in ("false", "0")
    if "gracePeriodSeconds" in query:
        text = query["gracePeriodSeconds"]
        if not text.removeprefix("-").isdecimal():
            raise errors.bad_request(f'gracePeriodSeconds: "{text[:63]}" is no whole number')
        found["gracePeriodSeconds"] = int(text)
    return found


def _invalid(message: str, reason: str = "FieldValueInvalid") -> errors.ApiError:
    return errors.invalid("DeleteOptions", "meta.k8s.io", "", [Cause(reason, message, "propagationPolicy")])


def grace_s(value: Any) -> int | None:
    """Seconds; None: nothing is said. Less than none is a second. Source: rest.BeforeDelete.

    :raises ApiError: 400, it is no whole number
    """
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= _MOST:
        raise errors.bad_request("gracePeriodSeconds: expected a whole number")
    return 1 if value < 0 else value


def orphans_unasked(served: Served, propagation: Propagation | None) -> bool:
    """Whether dependents stay because nothing is said of them."""
    return not propagation and (served.group, served.resource) == _JOBS


def policy(served: Served, document: Document, propagation: Propagation | None) -> Propagation | None:
    """What becomes of the dependents of an object: what is asked for, else what its finalizers say, else as
    is usual for its kind.

    Source: store.go, shouldOrphanDependents.
    """
    said = {finalizing.ORPHAN, finalizing.FOREGROUND} & set(finalizing.finalizers(document))
    return "Orphan" if orphans_unasked(served, propagation) and not said else propagation


def answer(served: Served, document: Document, *, gone: bool) -> Document:
    """The object if it stays, or if its kind is answered so; else the `Status` of its end.

    Source: store.go, finalizeDelete.
    """
    if not gone or (served.group, served.resource) in _ANSWERED_WITH_OBJECTS:
        return document
    metadata = mapping(document, "metadata")
    details = {"name": metadata.get("name", ""), "group": served.group, "kind": served.resource}
    details["uid"] = metadata.get("uid", "")
    return succeeded({key: value for key, value in details.items() if value})


def succeeded(details: Document | None = None) -> Document:
    """The `Status` of what was done.

    :param details: what it was done to
    """
    found: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        found["details"] = details
    return found
