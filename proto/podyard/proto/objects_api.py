"""The door for people and bridges: `svc.objects.apply`, `delete`, `evict`."""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from podyard.proto.bounds import Word
from podyard.proto.message import Count, Message, ObjectRef

ObjectOutcome: TypeAlias = Literal[
    "created", "configured", "unchanged", "deleted", "evicted", "notFound", "refused", "blocked"
]


class FieldError(Message, frozen=True, kw_only=True):
    """One fault of an object: where, what, and what to do."""

    field: Annotated[str, Meta(description="path, e.g. spec.containers[0].resources.requests.cpu")]
    detail: str
    type: Annotated[str, Meta(description="FieldValueInvalid, FieldValueRequired, ... as Kubernetes names them")] = ""


class ApplyRequest(Message, frozen=True, kw_only=True):
    """Create or replace objects. All are checked before any is written; one fault refuses all, unless
    `partial`."""

    objects: Annotated[tuple[msgspec.Raw, ...], Meta(max_length=256, description="Kubernetes objects as JSON")]
    who: Word = ""
    why: Word = ""
    create_only: Annotated[bool, Meta(description="refuse objects that exist (kubectl create)")] = False
    dry_run: bool = False
    partial: Annotated[bool, Meta(description="write the good ones although others are refused")] = False


class DeleteRequest(Message, frozen=True, kw_only=True):
    """Delete objects. `grace_period_s`, seconds: None means the pod's own; 0 removes the object at once."""

    objects: Annotated[tuple[ObjectRef, ...], Meta(max_length=256)]
    grace_period_s: Count | None = None
    who: Word = ""
    why: Word = ""


class EvictRequest(Message, frozen=True, kw_only=True):
    """Evict pods through their disruption budgets. A refused one is `blocked`, with the budget's name."""

    pods: Annotated[tuple[ObjectRef, ...], Meta(max_length=256)]
    grace_period_s: Count | None = None
    who: Word = ""
    why: Word = ""
    dry_run: bool = False


class ObjectResult(Message, frozen=True, kw_only=True):
    """What became of one object of the request."""

    outcome: ObjectOutcome
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    position: Annotated[Count, Meta(description="CLUSTER sequence of the write; the resourceVersion")] = 0
    errors: tuple[FieldError, ...] = ()
    message: str = ""


class ObjectsReply(Message, frozen=True, kw_only=True):
    """Results in the order of the request; or why the whole request could not be read."""

    results: tuple[ObjectResult, ...] = ()
    refused: str = ""
