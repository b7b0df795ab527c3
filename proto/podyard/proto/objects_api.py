"""The door for people and bridges: `svc.objects.apply`, `delete`, `evict`."""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from podyard.proto.bounds import Moment, Word
from podyard.proto.message import Count, Int64, Message, ObjectRef

ObjectOutcome: TypeAlias = Literal[
    "created", "configured", "unchanged", "deleted", "evicted", "notFound", "refused", "blocked"
]

Validation: TypeAlias = Literal["strict", "warn", "ignore"]

Manner: TypeAlias = Literal["apply", "replace", "status", "finalize"]
"""How an object takes the place of the stored one: what it does not say stays if somebody else wrote it
(`podyard apply`); as it is, but for its status; its status alone; the finalizers of a namespace's spec
alone."""

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
"""What becomes of what a deleted object owns: it is deleted afterwards, or before; or it stays. Source:
kubernetes v1.36.2, apimachinery/pkg/apis/meta/v1/types.go (DeletionPropagation)."""


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
    validation: Annotated[
        Validation,
        Meta(description="what becomes of fields that a kind does not have: refused, left out and told, left out"),
    ] = "warn"
    admitted: Annotated[
        bool, Meta(description="a dry run answers with the request's objects, Secrets apart, as they would be stored")
    ] = False
    manner: Manner = "apply"
    expected: Annotated[
        tuple[Count, ...],
        Meta(
            max_length=256,
            description="for each object the CLUSTER sequence of the version that it takes the place of, 0 for none: "
            "refused if there is another; none: whatever is there",
        ),
    ] = ()


class DeleteRequest(Message, frozen=True, kw_only=True):
    """Delete objects. `grace_period_s`, seconds: None means the pod's own; 0 removes the object at once.

    An object that has finalizers stays, and says since when it is deleted: it goes with the last of them.
    """

    objects: Annotated[tuple[ObjectRef, ...], Meta(max_length=256)]
    grace_period_s: Count | None = None
    who: Word = ""
    why: Word = ""
    expected: Annotated[
        tuple[Count, ...],
        Meta(max_length=256, description="as of `ApplyRequest`; 0 here: whatever is there"),
    ] = ()
    propagation: Annotated[
        Propagation | None, Meta(description="what becomes of dependents; none: as the finalizers say, else Background")
    ] = None


class EvictRequest(Message, frozen=True, kw_only=True):
    """Evict pods through their disruption budgets, as both are at that moment. A refused one is `blocked`,
    and `budget` says by what.

    A repetition changes nothing: a pod that is on its way out is `evicted`, and charged to no budget a second
    time.
    """

    pods: Annotated[tuple[ObjectRef, ...], Meta(max_length=256)]
    grace_period_s: Count | None = None
    who: Word = ""
    why: Word = ""
    dry_run: bool = False
    until: Annotated[
        Moment | None,
        Meta(description="when whoever asks counts on no answer any more: no eviction begins later; none: always"),
    ] = None


BudgetHelp: TypeAlias = Literal["time", "healthyPods", "edit"]
"""What a refused eviction waits for: that its budget is counted, for more healthy pods, or that somebody
changes the budgets."""


class BudgetAnswer(Message, frozen=True, kw_only=True):
    """How the disruption budgets of a pod stood when its eviction was judged."""

    budgets: Annotated[
        tuple[str, ...],
        Meta(description="their names, in the pod's namespace; more than one is not supported; none: not known"),
    ] = ()
    desired_healthy: Annotated[Int64, Meta(description="healthy pods that the budget wants")] = 0
    current_healthy: Annotated[Int64, Meta(description="healthy pods that it has")] = 0
    disruptions_allowed: Annotated[Int64, Meta(description="evictions that it allowed, this one included")] = 0
    charged: Annotated[bool, Meta(description="whether this eviction is one of them")] = False
    code: Annotated[
        int, Meta(ge=0, le=599, description="what the Kubernetes API answers: 429, 403, 500; 0: allowed")
    ] = 0
    retry_after_s: Annotated[Count, Meta(description="when to try again; 0: no time helps, see `waits_for`")] = 0
    waits_for: Annotated[BudgetHelp | None, Meta(description="what a refused eviction waits for")] = None


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
    budget: Annotated[
        BudgetAnswer | None, Meta(description="of an eviction: the budget that it was charged to, or that refused it")
    ] = None
    unclear: Annotated[bool, Meta(description="whether it may have been done all the same, or may yet be")] = False
    warnings: Annotated[
        tuple[str, ...], Meta(description="what the sender should know although it was done, a sentence each")
    ] = ()
    admitted: Annotated[
        tuple[msgspec.Raw, ...],
        Meta(description="of a dry run that asks for it: the object as it would be stored; else none"),
    ] = ()

    @property
    def reason(self) -> str:
        """Why, in words; empty if there is no more to say than the outcome."""
        return self.message or "; ".join(f"{one.field}: {one.detail}" for one in self.errors)


class RevealRequest(Message, frozen=True, kw_only=True):
    """Show the values of Secrets. People alone may ask; the api is the only one that can answer."""

    secrets: Annotated[tuple[ObjectRef, ...], Meta(max_length=256)]
    who: Word = ""


class RevealedSecret(Message, frozen=True, kw_only=True):
    """One Secret's values, or why they are not shown."""

    name: str
    namespace: str = ""
    uid: str = ""
    data: Annotated[dict[str, str], Meta(description="values in base64, by key")] = {}
    fault: str = ""


class RevealReply(Message, frozen=True, kw_only=True):
    """Secrets in the order of the request; or why the whole request could not be read."""

    secrets: tuple[RevealedSecret, ...] = ()
    refused: str = ""


class ObjectsReply(Message, frozen=True, kw_only=True):
    """Results in the order of the request; or why the whole request could not be read."""

    results: tuple[ObjectResult, ...] = ()
    refused: str = ""
