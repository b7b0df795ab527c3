"""Server-side apply, and keeping track of who owns which field after every other write.

Sources: kubernetes v1.36.2, apimachinery pkg/util/managedfields/internal: fieldmanager.go,
structuredmerge.go, skipnonapplied.go, versioncheck.go; apiserver pkg/endpoints/handlers/patch.go and
create.go. An object has one version here: the owners of fields in another one own the fields that are
spelled the same in this one.
"""

from collections.abc import Iterable
from typing import Any, Final

from podyard.kube_api.core.errors import bad_request
from podyard.kube_api.core.patching import last_applied
from podyard.kube_api.core.patching.field_ownership import (
    ConflictsError,
    Write,
    after_apply,
    after_update,
    write,
)
from podyard.kube_api.core.patching.managers import (
    Managed,
    applier,
    conflict_error,
    entries,
    is_reset,
    managed_of,
    updater,
)
from podyard.kube_api.core.patching.refusals import check_depth, too_deep, unexpected
from podyard.kube_api.core.patching.shapes import Root, root
from podyard.kube_api.core.patching.typed_values import problems, without_empty
from podyard.objects.documents import Document, child, copy, copy_without_nulls, is_mapping, mapping

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""Who owns what an object had that nobody was tracked on, when somebody applies for the first time."""


def apply(
    live: Document | None,
    wanted: Any,
    manager: str,
    *,
    force: bool,
    definition: str | None,
    schema: Document | None = None,
    api_version: str,
    now: str,
    subresource: str = "",
    reset: Iterable[str] = (),
) -> Document:
    """The object after `manager` has applied `wanted`: what it has is set, what this manager alone owned
    and does not want any more goes. Neither `live` nor `wanted` is changed. Defaults are not filled in.

    :param live: None: the object is created
    :param wanted: as decoded; without `metadata.managedFields`
    :param force: take what belongs to others
    :param definition: of the kind (`api_types.definition_of`); None: a custom resource
    :param schema: of a custom resource, if it has one
    :param api_version: in which the request speaks, `apps/v1`
    :param now: RFC 3339
    :param subresource: of which the request is: status, scale
    :param reset: fields of the object that this endpoint leaves as they were, e.g. `status`: nobody comes
        to own them here
    :raises ApiError: 409 with a cause for each field that belongs to somebody else; 400 for another version
        or with `managedFields`, 500 for what is not of its type, each in the reference's words
    """
    check_depth(wanted)
    wanted = _checked(wanted, live, api_version)
    of = root(definition, schema)
    found = copy(live) if live is not None else {}
    managed = _managed(found)
    mapping(found, "metadata").pop("managedFields", None)
    _check_types(wanted, of, "failed to create typed patch object", duplicates=False)
    _check_types(found, of, "failed to create typed live object", duplicates=True)
    found = without_empty(found, of)
    if not managed:
        by = write(of, updater(BEFORE_FIRST_APPLY, api_version, subresource), api_version, now, reset)
        managed = after_update({}, found, managed, by)
    by = write(of, applier(manager, subresource), api_version, now, reset)
    result, managed = _applied(found, wanted, managed, by, force=force)
    result = without_empty(copy_without_nulls(result), of)
    if manager == last_applied.KUBECTL:
        last_applied.renewed(result, wanted)
    return _with_managed(result, managed)


def tracked(
    before: Document | None,
    after: Document,
    manager: str,
    *,
    definition: str | None,
    schema: Document | None = None,
    api_version: str,
    now: str,
    subresource: str = "",
    reset: Iterable[str] = (),
) -> Document:
    """`after`, which stays as it is, with the owners of its fields: `manager` owns what it has changed. An
    object that nobody was tracked on stays so until somebody applies it.

    :param before: None: the object is created
    :param after: as it is to be stored, defaults filled in; its `metadata.managedFields`, if there are any,
        count instead of those of `before`
    :param manager: of a POST, PUT or PATCH that is no apply
    :param definition: of the kind; None: a custom resource
    :param schema: as of `apply`
    :param api_version: in which the request speaks
    :param now: RFC 3339
    :param subresource: of which the request is
    :param reset: as of `apply`
    """
    result = copy(after)
    mapping(result, "metadata").pop("managedFields", None)
    managed = _managed_before(before or {}, after, subresource)
    if not managed and before is not None:
        return result
    of = root(definition, schema)
    old = copy(before) if before is not None else {}
    mapping(old, "metadata").pop("managedFields", None)
    if any(too_deep(one) or problems(one, of, duplicates=True) for one in (old, result)):
        return result
    by = write(of, updater(manager, api_version, subresource), api_version, now, reset)
    return _with_managed(result, after_update(without_empty(old, of), without_empty(copy(result), of), managed, by))


def _checked(wanted: Any, live: Document | None, api_version: str) -> Document:
    if not is_mapping(wanted):
        raise bad_request("error decoding YAML: what is applied is no mapping")
    version, kind = wanted.get("apiVersion"), wanted.get("kind")
    if version != api_version or (live is not None and kind != live.get("kind", kind)):
        raise bad_request(f"invalid object type: {_gvk(wanted)}")
    if not is_mapping(wanted.get("metadata", {})):
        raise bad_request("error decoding YAML: metadata of what is applied is no mapping")
    if mapping(wanted, "metadata").get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return wanted


def _gvk(document: Document) -> str:
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={document.get('kind', '')}"


def _check_types(document: Document, of: Root, failure: str, *, duplicates: bool) -> None:
    found = problems(document, of, duplicates=duplicates)
    if not found:
        return
    told = [f"{path}: {why}" if path else why for path, why in found]
    listed = told[0] if len(told) == 1 else "\n".join(["errors:", *(f"  {one}" for one in told)])
    metadata = mapping(document, "metadata")
    place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {_gvk(document)}"
    raise unexpected(f"{failure} ({place}): {listed}")


def _managed(live: Document) -> Managed:
    try:
        return managed_of(live)
    except ValueError as error:
        raise unexpected(f"failed to decode managed fields: {error}") from error


def _applied(live: Document, wanted: Document, managed: Managed, by: Write, *, force: bool) -> tuple[Document, Managed]:
    try:
        return after_apply(live, wanted, managed, by, force=force)
    except ConflictsError as error:
        if by.who.name != last_applied.KUBECTL:
            raise conflict_error(error.conflicts) from error
        allowed = last_applied.allowed_paths(live, by.root, by.api_version)
        left = [one for one in error.conflicts if one.path not in allowed]
        if left:
            raise conflict_error(left) from error
    return after_apply(live, wanted, managed, by, force=True)


def _managed_before(before: Document, after: Document, subresource: str) -> Managed:
    """Who owned what, as the request says; as the object says, if it says nothing or nothing that can be
    read."""
    if not subresource:
        if is_reset(after):
            return {}
        if found := _readable(after):
            return found
    return _readable(before)


def _readable(document: Document) -> Managed:
    try:
        return managed_of(document)
    except ValueError:
        return {}


def _with_managed(document: Document, managed: Managed) -> Document:
    if managed:
        child(document, "metadata")["managedFields"] = entries(managed)
    return document
