"""Writing by the api, as a client of the cluster does."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from podyard.bench.versions import AUTHOR
from podyard.bus import Bus, Outgoing
from podyard.bus.errors import BusError
from podyard.cli.errors import CliError
from podyard.cluster.keys import ObjectKey
from podyard.objects.documents import copy
from podyard.proto import codec, streams, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, Manner, ObjectsReply

Document: TypeAlias = dict[str, Any]

ANSWERED_WITHIN_S: Final = 60.0


class RefusedError(CliError):
    """Somebody did not take an object."""


class ThroughApi:
    """Objects go to whichever api answers."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def create(self, batch: Sequence[Outgoing]) -> int:
        """Objects that are not there; where the last of them was stored.

        :param batch: their payloads are documents
        :raises RefusedError: the api refuses one
        """
        objects = tuple(msgspec.Raw(message.payload) for message in batch)
        return _position(await self._apply(ApplyRequest(objects=objects, who=AUTHOR.who, create_only=True)))

    async def replace(self, document: Document) -> int:
        """Put a document, and its status, in the place of a stored one; where it was stored.

        :raises RefusedError: the api refuses it
        """
        wanted = copy(document)
        wanted["metadata"].pop("uid", None)
        manners: tuple[Manner, ...] = ("replace", "status") if "status" in wanted else ("replace",)
        raw, position = msgspec.Raw(msgspec.json.encode(wanted)), 0
        for manner in manners:
            request = ApplyRequest(objects=(raw,), who=AUTHOR.who, manner=manner)
            position = max(position, _position(await self._apply(request)))
        return position

    async def delete(self, keys: Sequence[ObjectKey], grace_s: int | None) -> tuple[int, int]:
        """Delete objects; those that others removed before are passed over.

        :return: how many were deleted, and where the last of that was stored
        :raises RefusedError: the api refuses one
        """
        done = position = 0
        for first in range(0, len(keys), streams.MAX_BATCH):
            refs = tuple(
                ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name)
                for key in keys[first : first + streams.MAX_BATCH]
            )
            request = DeleteRequest(objects=refs, grace_period_s=grace_s, who=AUTHOR.who)
            reply = await self._ask(subjects.OBJECTS_DELETE, codec.encode(request))
            done += sum(one.outcome == "deleted" for one in reply.results)
            position = max(position, _position(reply))
        return done, position

    async def _apply(self, request: ApplyRequest) -> ObjectsReply:
        return await self._ask(subjects.OBJECTS_APPLY, codec.encode(request))

    async def _ask(self, subject: str, payload: bytes) -> ObjectsReply:
        try:
            answer = await self._bus.request(subject, payload, timeout_s=ANSWERED_WITHIN_S)
        except BusError as error:
            raise RefusedError(
                f"the api does not answer: {error}", "see its log: run it again with --data DIR"
            ) from error
        reply = codec.decode(ObjectsReply, answer.payload)
        if reply.refused:
            raise RefusedError(f"the api refuses a request: {reply.refused}")
        for one in reply.results:
            if one.outcome in ("refused", "blocked"):
                raise RefusedError(f"the api refuses {one.resource} {one.name}: {one.reason}")
        return reply


def _position(reply: ObjectsReply) -> int:
    return max((one.position for one in reply.results), default=0)
