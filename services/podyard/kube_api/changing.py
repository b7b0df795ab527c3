"""Requests that change something: create, update, patch, delete, and what is done to subresources.

Source: kubernetes v1.36.2, apiserver/pkg/endpoints/handlers/create.go, update.go, patch.go, delete.go.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

import msgspec

from podyard.cluster.finalizing import IMMORTAL, NAMESPACES
from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.kube_api import bodies
from podyard.kube_api.binding import Binding
from podyard.kube_api.core import bindings, deleting, errors, go_decoding, scaling
from podyard.kube_api.core.completing import complete
from podyard.kube_api.core.errors import ApiError, Cause
from podyard.kube_api.core.patching.applying import apply, tracked
from podyard.kube_api.core.patching.go_words import quoted
from podyard.kube_api.core.patching.json_patch import json_patch
from podyard.kube_api.core.patching.merge_patch import merge_patch
from podyard.kube_api.core.patching.strategic import strategic
from podyard.kube_api.core.paths import Asked
from podyard.kube_api.core.served import Served, Subresource
from podyard.kube_api.event_writing import EventWriter
from podyard.kube_api.large import LargeWork
from podyard.kube_api.writing import Options, Outcome, Writer, key_of
from podyard.objects import structural, times
from podyard.objects.api_types import definition_of
from podyard.objects.defaults import fill_decoded
from podyard.objects.documents import Document, copy, is_mapping, mapping
from podyard.proto import subjects
from podyard.proto.objects_api import Manner

MANAGED_FIELDS: Final = "managedFields"

T = TypeVar("T")


class Change(NamedTuple):
    """A request that changes something, read."""

    asked: Asked
    served: Served
    body: bytes
    media: str
    query: Mapping[str, str]
    options: Options
    manager: str
    """Who manages the fields that change: `fieldManager`, or the client's name."""

    @property
    def key(self) -> ObjectKey:
        """Of the object in the URL."""
        stored = self.served.stored
        assert stored is not None, "objects of this resource are stored"
        return key_of(stored, self.asked.namespace, self.asked.name)


class Deletion(NamedTuple):
    """What is answered to a DELETE."""

    document: Document
    status: HTTPStatus = HTTPStatus.OK
    warnings: tuple[str, ...] = ()


class Changing:
    """Answers requests that change something."""

    def __init__(
        self,
        writer: Writer,
        work: LargeWork,
        events: EventWriter,
        binding: Binding,
        pod: Callable[[str, str], PodView | None],
        now: Callable[[], float],
    ) -> None:
        """
        :param work: done on bodies
        :param pod: that is known by namespace and name
        :param now: seconds since 1970, UTC
        """
        self._writer = writer
        self._work = work
        self._events = events
        self._binding = binding
        self._pod = pod
        self._now = now

    def _writer_of(self, served: Served) -> Writer | EventWriter:
        return self._events if served.is_events else self._writer

    async def create(self, change: Change) -> Outcome:
        """POST of an object.

        :raises ApiError: it is not created
        """
        served, asked = change.served, change.asked
        document, metadata = await self._read(change, _object)
        if not metadata.get("name") and not metadata.get("generateName"):
            needed = Cause("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")
            raise errors.invalid(served.kind, served.group, "", [needed])
        if metadata.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        _set_namespace(metadata, served, asked)
        tracked = await self._work.do(len(change.body), lambda: self._tracked(None, document, change))
        try:
            return await self._writer_of(served).create(served, tracked, change.options)
        except ApiError as error:
            raise _read_wrongly(error, served, document) from error

    async def replace(self, change: Change) -> Outcome:
        """PUT of an object.

        :raises ApiError: it is not replaced
        """
        served, asked = change.served, change.asked
        document, metadata = await self._read(change, _object)
        given = metadata.setdefault("name", asked.name)
        if given != asked.name:
            raise errors.bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({asked.name})"
            )
        _set_namespace(metadata, served, asked)

        def made(now: Document) -> Document:
            return self._tracked(now, document, change)

        try:
            return await self._writer_of(served).change(
                served, change.key, made, change.options, manner=_manner(asked), size=len(change.body)
            )
        except ApiError as error:
            if error.reason != "NotFound" or not served.is_events:
                raise _read_wrongly(error, served, document) from error
        return await self._events.create(served, self._tracked(None, document, change), change.options)

    async def patch(self, change: Change) -> Outcome:
        """PATCH of an object or its status.

        :raises ApiError: it is not patched
        """
        if change.media == bodies.APPLY_PATCH:
            return await self._apply(change)
        patched = await self._read(change, lambda given: _patch(given, given.served.definition))
        last: Document = {}

        def made(now: Document) -> Document:
            nonlocal last
            last = _unmoved(now, patched(now), change)
            return self._tracked(now, last, change)

        try:
            return await self._writer_of(change.served).change(
                change.served, change.key, made, change.options, manner=_manner(change.asked), size=len(change.body)
            )
        except ApiError as error:
            raise _read_wrongly(error, change.served, last, patch=True) from error

    async def scale(self, change: Change, part: Subresource) -> Document:
        """PUT or PATCH of a scale; returns the scale as it is then.

        :raises ApiError: it is not changed
        """
        served = change.served
        if change.asked.verb == "update":
            document = await self._read(change, _document)
            _check_kind(document, f"{part.group}/{part.version}", part.kind)

            def scaled(now: Document, /) -> Document:
                return document
        else:
            scaled = await self._read(change, lambda given: _patch(given, part.definition))

        def made(now: Document) -> Document:
            wanted = scaled(scaling.scale_of(now, served))
            after = scaling.with_replicas(now, wanted, served)
            return self._tracked(now, after, change) if scaling.has_owner(now, served) else after

        outcome = await self._writer.change(served, change.key, made, change.options, size=len(change.body))
        return scaling.scale_of(outcome.document, served)

    async def delete(self, change: Change, key: ObjectKey | None = None) -> Deletion:
        """DELETE of one object.

        :param key: of a collection's object; None: the one in the URL
        :raises ApiError: it is not deleted
        """
        served = change.served
        options = await self._read(change, lambda given: _document(given) if given.body else {})
        wanted = deleting.wanted(options, change.query)
        key = key or change.key
        if key.resource == NAMESPACES and key.name in IMMORTAL:
            raise errors.forbidden(key.resource, "", key.name, "this namespace may not be deleted")
        how = _rehearsing(change, wanted)
        left = await self._writer_of(served).delete(served, key, wanted, how)
        accepted = wanted.waits and not left.gone
        warned = deleting.orphans_unasked(served, wanted.propagation)
        return Deletion(
            deleting.answer(served, left.document, gone=left.gone),
            HTTPStatus.ACCEPTED if accepted else HTTPStatus.OK,
            (deleting.ORPHANED_JOB,) if warned else (),
        )

    async def evict(self, change: Change) -> Document:
        """POST of an eviction.

        :raises ApiError: 429, a budget does not allow it now
        """
        document = await self._read(change, _document)
        if document.get("kind") not in (None, "Eviction"):
            raise errors.bad_request(f"expected an Eviction, not {document.get('kind')}")
        named = mapping(document, "metadata").get("name") or change.asked.name
        if named != change.asked.name:
            raise errors.bad_request(
                f"name in URL does not match name in Eviction object: {change.asked.name}, {named}"
            )
        wanted = deleting.wanted(mapping(document, "deleteOptions"), {})
        how = _rehearsing(change, wanted)
        await self._writer.evict(change.served, change.key, uid=wanted.uid, grace_s=wanted.grace_s, options=how)
        return {**deleting.succeeded(), "code": 201}

    async def bind(self, change: Change) -> Document:
        """POST of a binding, as somebody else's scheduler decided.

        :raises ApiError: the pod is not bound
        """
        asked = change.asked
        wanted = bindings.read(await self._read(change, _document), asked.name)
        if change.options.dry_run:
            told = "a binding is not rehearsed: what a node takes is judged when it is bound"
            raise ApiError(501, "NotImplemented", told)
        pod = self._pod(asked.namespace, wanted.name)
        if pod is None:
            raise errors.not_found(subjects.PODS, "", wanted.name)
        pods, key = change.served._replace(resource=subjects.PODS), ObjectKey(subjects.PODS, *pod.key)
        self._writer.check(pods, key, wanted.uid, wanted.version)
        refused = bindings.against(pod)
        if refused is not None:
            raise refused
        await self._binding.bind(pod, wanted.node, change.options.who)
        return {**deleting.succeeded(), "code": 201}

    # ---- who manages which field ---------------------------------------------------------------------------

    async def _apply(self, change: Change) -> Outcome:
        """Server-side apply; creates what is not there."""
        served, asked = change.served, change.asked
        wanted = await self._read(change, lambda given: bodies.yaml_document(given.body))
        _check_kind(wanted, served.api_version, served.kind)
        if not change.query.get("fieldManager"):
            raise errors.bad_request(
                "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch"
            )
        metadata = wanted.setdefault("metadata", {})
        if metadata.get("managedFields"):
            raise errors.bad_request("metadata.managedFields must be nil")
        metadata.setdefault("name", asked.name)
        _set_namespace(metadata, served, asked)
        force = change.query.get("force", "").lower() == "true"

        def made(now: Document | None) -> Document:
            return apply(
                now,
                wanted,
                change.manager,
                force=force,
                definition=served.definition,
                schema=served.schema,
                api_version=served.api_version,
                now=times.rfc3339(self._now()),
                subresource=asked.subresource,
                reset=_reset(asked),
            )

        try:
            return await self._writer_of(served).change(
                served, change.key, made, change.options, manner=_manner(asked), size=len(change.body)
            )
        except ApiError as error:
            if error.reason != "NotFound" or asked.subresource:
                raise
        created = await self._work.do(len(change.body), lambda: made(None))
        return await self._writer_of(served).create(served, created, change.options)

    async def _read(self, change: Change, read: Callable[[Change], T]) -> T:
        """What is read in the body."""
        return await self._work.do(len(change.body), lambda: read(change))

    def _tracked(self, before: Document | None, after: Document, change: Change) -> Document:
        """`after` with the owners of its fields: who sends it owns its defaults, too."""
        filled, stored = copy(after), change.served.stored
        if stored is not None and not stored.custom:
            fill_decoded(stored.resource, filled)
            complete(stored.resource, filled)
        elif change.served.schema is not None:
            structural.fill(change.served.schema, filled)
        found = tracked(
            before,
            filled,
            change.manager,
            definition=change.served.definition,
            schema=change.served.schema,
            api_version=change.served.api_version,
            now=times.rfc3339(self._now()),
            subresource=change.asked.subresource,
            reset=_reset(change.asked),
        )
        metadata = {key: value for key, value in mapping(after, "metadata").items() if key != MANAGED_FIELDS}
        owners = mapping(found, "metadata").get(MANAGED_FIELDS)
        return {**after, "metadata": {**metadata, MANAGED_FIELDS: owners} if owners else metadata}


def _rehearsing(change: Change, wanted: deleting.Wanted) -> Options:
    """How a deletion is to be done: its body may say that it is not."""
    given = [str(one) for one in wanted.dry_run]
    return change.options._replace(dry_run=change.options.dry_run or bodies.dry_run(given, "delete"))


def _manner(asked: Asked) -> Manner:
    """How what is written takes the place of what is there."""
    match asked.subresource:
        case "status":
            return "status"
        case "finalize":
            return "finalize"
        case _:
            return "replace"


def _reset(asked: Asked) -> tuple[str, ...]:
    """Fields that a request leaves as they were, whatever it says of them."""
    return ("spec",) if asked.subresource == "status" else ("status",)


def _patch(change: Change, definition: str | None) -> Callable[[Document], Document]:
    """What the patch makes of an object.

    :param definition: of the object's type
    :raises ApiError: 400, 415: it is none
    """
    media, patch = change.media, bodies.value(change.body)
    match media:
        case bodies.JSON_PATCH:
            return lambda document: json_patch(document, patch)
        case bodies.MERGE_PATCH:
            return lambda document: merge_patch(document, patch)
        case bodies.STRATEGIC_PATCH:
            return lambda document: strategic(document, patch, definition)
        case _:
            raise bodies.unsupported(media, bodies.PATCHES)


def _document(change: Change) -> Document:
    return bodies.document(change.body, change.media)


def _object(change: Change) -> tuple[Document, Document]:
    """The object in the body, and its metadata.

    :raises ApiError: 400, 415: there is none, or one of another kind
    """
    document = bodies.document(change.body, change.media, change.served.kind)
    _check_kind(document, change.served.api_version, change.served.kind)
    metadata = document.setdefault("metadata", {})
    if not is_mapping(metadata):
        raise errors.bad_request("metadata: expected a mapping")
    return document, metadata


def _check_kind(document: Document, api_version: str, kind: str) -> None:
    """
    :raises ApiError: 400, the body is of another kind than the URL
    """
    given = document.setdefault("apiVersion", api_version), document.setdefault("kind", kind)
    if given != (api_version, kind):
        raise errors.bad_request(_of_another_kind(str(given[0])[:63], str(given[1])[:63], api_version, kind))


def _of_another_kind(given_version: str, given_kind: str, api_version: str, kind: str) -> str:
    """Source: apiserver/pkg/endpoints/handlers/create.go; apimachinery, pkg/conversion/converter.go."""
    if given_kind == kind:
        return f"the API version in the data ({given_version}) does not match the expected API version ({api_version})"
    _, _, version = given_version.rpartition("/")
    if definition_of(given_version, given_kind) is None:
        why = f'no kind "{given_kind}" is registered for version "{given_version}"'
    else:
        inner = api_version.rpartition("/")[0].partition(".")[0] or "core"
        why = f"converting ({version}.{given_kind}) to ({inner}.{kind}): unknown conversion"
    return f'{given_kind} in version "{version}" cannot be handled as a {kind}: {why}'


def _read_wrongly(error: ApiError, served: Served, document: Document, *, patch: bool = False) -> ApiError:
    """The refusal of an object whose values are not of their types, as the API server words it: it refuses
    them as it reads them.

    :param patch: the document was made by a patch
    """
    if served.definition is None or all(cause.reason != "FieldValueTypeInvalid" for cause in error.causes):
        return error
    told = go_decoding.mismatch(document, served.definition)
    if not told:
        return error
    if not patch:
        return errors.cannot_be_handled(served.kind, served.version, told)
    shown = quoted(msgspec.json.encode(dict(sorted(document.items()))).decode())
    cause = Cause("FieldValueInvalid", f"Invalid value: {shown}: {told}", "patch")
    return errors.invalid("", "", "", [cause])


def _set_namespace(metadata: Document, served: Served, asked: Asked) -> None:
    """
    :raises ApiError: 400, the object names another namespace than the URL
    """
    if not served.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace", asked.namespace) != asked.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = asked.namespace


def _unmoved(now: Document, patched: Document, change: Change) -> Document:
    """
    :raises ApiError: the patch makes another object of it. Source: patch.go, applyPatch; rest.go, checkName
    """
    before, after = mapping(now, "metadata"), mapping(patched, "metadata")
    if before.get("name") != after.get("name"):
        raise errors.bad_request(
            f"the name of the object ({after.get('name', '')!s:.63}) does not match the name on the URL "
            f"({change.asked.name})"
        )
    if before.get("namespace") != after.get("namespace"):
        raise errors.bad_request(
            f"the namespace of the object ({after.get('namespace', '')!s:.63}) does not match the namespace on the "
            f"request ({change.asked.namespace})"
        )
    if after.get("uid") and before.get("uid") != after.get("uid"):
        told = f'Invalid value: "{after["uid"]!s:.63}": field is immutable'
        served = change.served
        cause = Cause("FieldValueInvalid", told, "metadata.uid")
        raise errors.invalid(served.kind, served.group, change.asked.name, [cause])
    for field in ("apiVersion", "kind"):
        if now.get(field) != patched.get(field):
            raise errors.bad_request(f"{field}: a patch cannot change it")
    return patched
