"""What all objects share: metadata, owners, label selectors, conditions. Source:
apimachinery/pkg/apis/meta/v1/types.go.

Structs here and in the kind modules are typed views for readers: they name the fields that some part of
Podyard reads, in snake case, and ignore all others. The stored truth is the JSON document, which keeps every
field.
"""

from collections.abc import Iterable
from typing import Annotated, Final, Protocol, TypeAlias

import msgspec
from msgspec import Meta

from podyard.proto.message import Int64

QUANTITY: Final = {"quantity": True}
"""Marks the fields of typed views that hold quantities."""

QuantityText: TypeAlias = Annotated[str, Meta(extra=QUANTITY)]
"""A quantity as it is written. `decode` also takes a JSON number and hands out its text."""

ResourceList: TypeAlias = dict[str, QuantityText]
"""Amounts by resource name, e.g. `{"cpu": "500m", "memory": "1Gi"}`."""


class View(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Base of all typed views. Frozen, so that versions may be shared; outside the garbage collector, since
    data has no cycles."""


class OwnerReference(View, frozen=True, kw_only=True):
    """Who owns an object; the one with `controller` manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(View, frozen=True, kw_only=True):
    """Metadata. Times are RFC 3339 in UTC; `resource_version` is empty in stored documents: the position
    takes its place."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object. Source: metav1.GetControllerOf."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class LabelSelectorRequirement(View, frozen=True, kw_only=True):
    """One line of `matchExpressions`: operator is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(View, frozen=True, kw_only=True):
    """All must hold. Empty matches everything; an absent selector (None) matches nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(View, frozen=True, kw_only=True):
    """A condition of a pod, node, workload or budget. `status` is True, False or Unknown."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None
    last_probe_time: str | None = None
    last_update_time: str | None = None
    observed_generation: Int64 = 0


class Stated(Protocol):
    """A condition of an object, or of a fact about one."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...


def is_true(conditions: Iterable[Stated], kind: str) -> bool:
    """Whether the condition of this type is there, and True."""
    return any(one.type == kind and one.status == "True" for one in conditions)


class ObjectReference(View, frozen=True, kw_only=True):
    """Which object is meant, e.g. the claim of a volume."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
