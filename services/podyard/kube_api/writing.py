"""Writing: every change goes to the api by `svc.objects`, which alone admits, as a compare-and-set on the
version that it was made from.

A patch is made from the last version that this instance knows, and made again from the next one if somebody
else was faster. The answer is the object as this instance shows it once it has read the write.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import anyio
import msgspec

from podyard.bus.connection import Bus
from podyard.bus.errors import BusError
from podyard.cluster import finalizing, intents
from podyard.cluster.intents import Remove, Stored
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.kube_api.core import deleting, errors, outcomes, statuses, versions
from podyard.kube_api.core.completing import complete, without_completed
from podyard.kube_api.core.deleting import Wanted
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.served import Served
from podyard.kube_api.large import LargeWork
from podyard.objects import secrets
from podyard.objects.documents import Document, copy, is_mapping, mapping
from podyard.objects.kinds import Kind
from podyard.objects.pod import ENDED
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import (
    ApplyRequest,
    DeleteRequest,
    EvictRequest,
    Manner,
    ObjectResult,
    ObjectsReply,
    Propagation,
    RevealReply,
    RevealRequest,
    Validation,
)
from podyard.shell import door_requests

ASK_S: Final = 30.0
"""Seconds for one request to the api, its repeats included."""
SEEN_S: Final = 10.0
"""How long a write may take until it has come back: much longer than it does, or the answer is told without
what others join to the object."""
TRIES: Final = 5
"""Versions that a patch is made from in a row. Source: apiserver/pkg/endpoints/handlers/patch.go,
maxRetryWhenPatchConflicts."""

Change = Callable[[Document], Document]
"""From the object as it is shown to the one that is wanted; raises an `ApiError`."""


class Options(NamedTuple):
    """What a request says of how it is to be done."""

    who: str
    dry_run: bool = False
    validation: Validation = "warn"


class Outcome(NamedTuple):
    """What became of a write."""

    document: Document
    """The object as it is now, or as it would be."""
    warnings: tuple[str, ...] = ()


class Left(NamedTuple):
    """What a deletion leaves."""

    document: Document
    """The object as it was last."""
    gone: bool


class Known(NamedTuple):
    """An object as this instance shows it, and the version that lies in the stream."""

    document: Document
    stored: Stored
    plain: Document
    """The document before it was completed to be shown."""
    viewed: object = None
    """Its typed view."""

    @property
    def size(self) -> int:
        """Bytes of it as it is stored."""
        return len(self.stored.payload)


class Writer:
    """Writes for those who ask this instance."""

    def __init__(
        self,
        bus: Bus,
        work: LargeWork,
        known: Callable[[ObjectKey], Known | None],
        node_of: Callable[[str], NodeView | None],
        reached: Callable[[int], Any],
        now: Callable[[], float],
    ) -> None:
        """
        :param work: done on large objects
        :param known: an object as it is shown here; None: it is not there
        :param node_of: the node of that name; None: it is not there
        :param reached: awaits that this instance has read so far
        :param now: seconds since 1970, UTC
        """
        self._now = now
        self._bus = bus
        self._work = work
        self._known = known
        self._node_of = node_of
        self._reached = reached

    async def create(self, served: Served, document: Document, options: Options) -> Outcome:
        """Create an object, which names its namespace, and itself or the beginning of its name.

        :raises ApiError: it is not created
        """
        once = "" if mapping(document, "metadata").get("name") else "it would be created twice"
        document = versions.stored(document, served)
        request = self._applying(document, options, create_only=True, manner="replace", expected=())
        try:
            return await self._apply(served, request, _name(document), options, once=once)
        except ApiError as error:
            if error.reason == "AlreadyExists" and self._is_deleting(served, document):
                error.message = f"object is being deleted: {error.message}"
            raise

    def _is_deleting(self, served: Served, document: Document) -> bool:
        """Whether an object of this name is there, and deleted. Source: registry/generic/registry/store.go,
        create."""
        assert served.stored is not None, "objects of this resource are stored"
        known = self._known(key_of(served.stored, document["metadata"].get("namespace", ""), _name(document)))
        return known is not None and finalizing.is_deleting(known.document)

    async def change(
        self,
        served: Served,
        key: ObjectKey,
        change: Change,
        options: Options,
        *,
        manner: Manner = "replace",
        size: int = 0,
    ) -> Outcome:
        """Make something else of an object, of its next version if somebody is faster.

        :param change: pure: of a large object it is called in a thread
        :param size: bytes of what the change is made with
        :param manner: `status` for the status alone
        :raises ApiError: it is not changed, and why
        """
        for attempt in range(TRIES):
            known = await self._shown(served, key, options.who)
            shown = versions.shown(known.document, served)
            wanted = await self._work.do(known.size + size, lambda shown=shown: change(shown))
            check_version(served, key, wanted, known.document)
            wanted = versions.stored(wanted, served)
            if manner == "status":
                wanted = self._with_status(served, key, wanted, known)
            try:
                return await self._put(served, wanted, known, options, manner)
            except ApiError as error:
                if error.reason != "Conflict" or attempt == TRIES - 1:
                    raise
            await self._behind()
        raise AssertionError("the last try returned or raised")

    async def delete(self, served: Served, key: ObjectKey, wanted: Wanted, options: Options) -> Left:
        """Delete an object; returns it as it is last shown.

        :raises ApiError: it is not deleted
        """
        known = self.check(served, key, wanted.uid, wanted.version)
        metadata = known.document["metadata"]
        propagation = deleting.policy(served, known.document, wanted.propagation)
        if options.dry_run:
            return self._rehearse_deletion(served, key, known.document, wanted.grace_s, propagation)
        request = DeleteRequest(
            objects=(ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name, uid=metadata["uid"]),),
            grace_period_s=wanted.grace_s,
            who=options.who,
            expected=(known.stored.sequence,) if wanted.version else (),
            propagation=propagation,
        )
        result = await self._ask(subjects.OBJECTS_DELETE, request)
        if result.outcome != "deleted":
            raise _refused(result, served, key.name)
        await self._seen(result.position)
        now = self._known(key)
        if now is not None and _uid(now.document) == metadata["uid"]:
            return Left(versions.shown(now.document, served), gone=False)
        metadata["resourceVersion"] = str(result.position)
        return Left(versions.shown(known.document, served), gone=True)

    def _rehearse_deletion(
        self, served: Served, key: ObjectKey, document: Document, grace_s: int | None, propagation: Propagation | None
    ) -> Left:
        """What a deletion would leave."""
        ended = mapping(document, "status").get("phase") in ENDED
        takes_room = bool(mapping(document, "spec").get("nodeName")) and not ended
        step = intents.deleted(key, document, self._now(), takes_room, grace_s=grace_s, propagation=propagation)
        return Left(versions.shown(document, served), gone=isinstance(step, Remove))

    def check(self, served: Served, key: ObjectKey, uid: str, version: str) -> Known:
        """The object, if it is the one that is meant.

        :param uid: empty: whichever is there
        :param version: resourceVersion; empty: any
        :raises ApiError: 404, it is not there; 409, it is another one
        """
        known = self._found(served, key)
        check_preconditions(served, key, known.document, uid=uid, version=version)
        return known

    async def evict(self, served: Served, key: ObjectKey, *, uid: str, grace_s: int | None, options: Options) -> None:
        """Evict a pod through its budgets.

        :raises ApiError: it is not evicted, and why
        """
        self._found(served, key)
        pod = ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name, uid=uid)
        request = EvictRequest(pods=(pod,), grace_period_s=grace_s, who=options.who, dry_run=options.dry_run)
        result = await self._ask(subjects.OBJECTS_EVICT, request)
        if result.outcome != "evicted":
            raise _refused(result, served, key.name)

    async def reveal(self, key: ObjectKey, who: str) -> Mapping[str, str]:
        """The values of a Secret, in base64 by key.

        :raises ApiError: the api does not show them
        """
        ref = ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name)
        payload = codec.encode(RevealRequest(secrets=(ref,), who=who))
        reply = codec.decode(RevealReply, await self._answer(subjects.OBJECTS_REVEAL, payload, ""))
        fault = reply.refused or (reply.secrets[0].fault if reply.secrets else "no answer about it")
        if fault:
            raise ApiError(500, "InternalError", f"Internal error occurred: the values are not shown: {fault}")
        return reply.secrets[0].data

    # ---- one request ---------------------------------------------------------------------------------------

    def _found(self, served: Served, key: ObjectKey) -> Known:
        known = self._known(key)
        if known is None:
            raise errors.not_found(served.resource, served.group, key.name)
        return known

    async def _shown(self, served: Served, key: ObjectKey, who: str) -> Known:
        """An object as who changes it has to see it: a Secret with its values."""
        known = self._found(served, key)
        if key.resource == secrets.RESOURCE and known.document.get("data"):
            data = {**known.document["data"], **await self.reveal(key, who)}
            known.document["data"], known.plain["data"] = data, data
        return known

    def _with_status(self, served: Served, key: ObjectKey, wanted: Document, known: Known) -> Document:
        """The object with the status that is to be stored."""
        kept = statuses.kept_of(known.viewed, self._node_of)
        about = f'{errors.qualified(served.resource, served.group)} "{key.name}"'
        shown, lying = (versions.stored(one, served) for one in (known.document, known.stored.document()))
        # as both were shown: zeros are nobody's wish
        after = copy(wanted)
        if is_mapping(after.setdefault("status", {})):  # anything else is refused
            complete(key.resource, after)
        return statuses.to_store(shown, after, lying, kept, about)

    async def _put(self, served: Served, document: Document, known: Known, options: Options, manner: Manner) -> Outcome:
        wished = without_completed(document, known.document, known.plain)
        request = self._applying(wished, options, manner=manner, expected=(known.stored.sequence,))
        return await self._apply(served, request, _name(document), options, before=known.document)

    def _applying(
        self,
        document: Document,
        options: Options,
        *,
        manner: Manner,
        expected: tuple[int, ...],
        create_only: bool = False,
    ) -> ApplyRequest:
        return ApplyRequest(
            objects=(msgspec.Raw(msgspec.json.encode(document)),),
            who=options.who,
            create_only=create_only,
            dry_run=options.dry_run,
            admitted=options.dry_run,
            validation=options.validation,
            manner=manner,
            expected=expected,
        )

    async def _apply(
        self,
        served: Served,
        request: ApplyRequest,
        name: str,
        options: Options,
        *,
        once: str = "",
        before: Document | None = None,
    ) -> Outcome:
        result = await self._ask(subjects.OBJECTS_APPLY, request, once=once)
        if result.outcome not in ("created", "configured", "unchanged", "deleted"):
            raise _refused(result, served, name)
        warnings = outcomes.told_warnings(result, served.stored)
        if options.dry_run:
            return Outcome(versions.shown(_rehearsed(result, request, before), served), warnings)
        await self._seen(result.position)
        if result.outcome == "deleted":  # with its last finalizer: what was written is answered all the same
            return Outcome(versions.shown(msgspec.json.decode(request.objects[0]), served), warnings)
        # 404: it came, and has gone again
        now = await self._shown(served, ObjectKey(result.resource, result.namespace, result.name), options.who)
        return Outcome(versions.shown(now.document, served), warnings)

    async def _ask(self, subject: str, request: msgspec.Struct, *, once: str = "") -> ObjectResult:
        payload = await self._answer(subject, codec.encode(request), once)
        reply = codec.decode(ObjectsReply, payload)
        if reply.refused:
            raise errors.bad_request(reply.refused)
        return reply.results[0]

    async def _answer(self, subject: str, payload: bytes, once: str) -> bytes:
        try:
            reply, _ = await door_requests.until_answered(self._bus, subject, payload, ASK_S, once)
        except (BusError, door_requests.AskedOnce) as error:
            raise ApiError(503, "ServiceUnavailable", f"the api did not answer: {error}", retry_after_s=1) from error
        return reply.payload

    async def _seen(self, position: int) -> None:
        """Wait until this instance has read the write."""
        with anyio.move_on_after(SEEN_S):
            await self._reached(position)

    async def _behind(self) -> None:
        """Somebody else was faster: what he wrote is on its way here."""
        await anyio.sleep(0.01)


def _refused(result: ObjectResult, served: Served, name: str) -> ApiError:
    return outcomes.refusal(
        result,
        kind=served.kind,
        group=served.group,
        version=served.version,
        resource=served.resource,
        name=name,
    )


def _rehearsed(result: ObjectResult, request: ApplyRequest, before: Document | None) -> Document:
    """An object as a dry run would store it: at the version that it has now, if it is there."""
    # one that is not admitted stays as it is, or its values are nobody's business
    document = msgspec.json.decode(result.admitted[0] if result.admitted else request.objects[0])
    complete(result.resource, document)
    version = mapping(before or {}, "metadata").get("resourceVersion")
    if version:
        document["metadata"]["resourceVersion"] = version
    return document


def check_version(served: Served, key: ObjectKey, wanted: Document, now: Document) -> None:
    """
    :raises ApiError: 409, if the object is not of the version that was read
    """
    metadata, there = mapping(wanted, "metadata"), now["metadata"]
    version = metadata.get("resourceVersion")
    if version and version != there.get("resourceVersion"):
        raise errors.overtaken(served.resource, served.group, key.name)
    uid = metadata.get("uid")
    if uid and uid != there.get("uid"):
        raise _precondition(served, key, "UID", str(uid), str(there.get("uid")))


def check_preconditions(served: Served, key: ObjectKey, now: Document, *, uid: str, version: str) -> None:
    """
    :param uid: the one that is meant; empty: whichever is there
    :param version: the resourceVersion that is meant; empty: any
    :raises ApiError: 409, another one is there
    """
    metadata = mapping(now, "metadata")
    for what, given, found in (
        ("UID", uid, metadata.get("uid")),
        ("ResourceVersion", version, metadata.get("resourceVersion")),
    ):
        if given and given != found:
            raise _precondition(served, key, what, given, str(found))


def _precondition(served: Served, key: ObjectKey, what: str, given: str, found: str) -> ApiError:
    """Source: apiserver/pkg/storage/interfaces.go, Preconditions.Check."""
    meta = "UID in object meta" if what == "UID" else "ResourceVersion in object meta"
    why = f"Precondition failed: {what} in precondition: {given}, {meta}: {found}"
    return errors.conflict(served.resource, served.group, key.name, why)


def _name(document: Document) -> str:
    metadata = mapping(document, "metadata")
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _uid(document: Document) -> str:
    return str(mapping(document, "metadata").get("uid") or "")


def key_of(kind: Kind, namespace: str, name: str) -> ObjectKey:
    """Where an object of a kind lies."""
    return ObjectKey(kind.resource, namespace if kind.namespaced or kind.custom else "", name)
