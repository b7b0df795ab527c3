"""Objects as their creators wrote them, and bare events for experiments."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from podyard.proto.actions import ActionName
from podyard.proto.bounds import Name, Word
from podyard.proto.message import Message

MOST_ACTIONS: Final = 15
"""Actions of a bare event: as many as there are names for (`actions.NAMES`, `actions.COMPOSITES`)."""


class ClusterEvent(Message, frozen=True, kw_only=True):
    """One version of one object, on `cluster.<resource>.<namespace>.<name>`.

    Sent by whoever writes the kind (api, workloads; deletions also scheduler and descheduler; volumes and
    claims also binder); read by every informer. Each is a compare-and-set on its subject: a duplicate is
    refused by the server. A reader derives typed actions from its own old version and this one; `actions` is
    what the writer believed it did, for people who watch.
    """

    resource: Annotated[str, Meta(min_length=1, description="plural of a core kind, or <plural>.<version>.<group>")]
    name: Annotated[str, Meta(min_length=1)]
    namespace: Annotated[str, Meta(description="empty for cluster-scoped kinds")] = ""
    uid: Annotated[str, Meta(description="metadata.uid of this object")]
    op: Annotated[
        Literal["put", "delete"], Meta(description="delete: a marker with a TTL; `object` is then the last version")
    ] = "put"
    actions: Annotated[tuple[ActionName, ...], Meta(description="what the writer believes it did")] = ()
    who: Annotated[str, Meta(description="the service, and for people the name they gave")]
    why: Annotated[str, Meta(description="reason in words, for people")] = ""
    causes: Annotated[
        tuple[str, ...], Meta(description="traceparents of what led to this, e.g. the eviction a pod replaces")
    ] = ()
    replaces: Annotated[
        str,
        Meta(description="of a pod that its controller makes again: the name of the one whose end `causes` tells of"),
    ] = ""
    object: Annotated[msgspec.Raw, Meta(description="the Kubernetes object as JSON")]


class BareEvent(Message, frozen=True, kw_only=True):
    """A typed event without a change of state, on `events.<resource>.<action>`; not stored.

    Sent by people and experiments; read by the queue, which asks hints and may requeue. `id` is the
    idempotency key: an id that the queue has seen within its memory (1 MiB, some 4,000 ids) is ignored.
    The record of what it moved is kept as `bare-<id>`, of further actions `bare1-<id>` and so on.
    """

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    resource: Annotated[
        str, Meta(min_length=1, max_length=512, description="event resource, e.g. Node, AssignedPod, or a custom one")
    ]
    actions: Annotated[
        tuple[Name, ...],
        Meta(min_length=1, max_length=MOST_ACTIONS, description="action names, or Update, or All"),
    ]
    who: Word
    why: Word = ""
    old: Annotated[msgspec.Raw, Meta(description="the object before, or null")]
    new: Annotated[msgspec.Raw, Meta(description="the object after, or null")]
