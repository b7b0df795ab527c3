"""A scenario's steps as data. All durations are seconds."""

from typing import Any, Final, Literal, TypeAlias

import msgspec

from podyard.objects import label_text
from podyard.objects.selectors import EVERYTHING, Selector
from podyard.proto.message import ObjectRef
from podyard.proto.signals import NodeSignals

POD_STATES: Final = ("Pending", "Bound", "Running", "Succeeded", "Failed", "Unschedulable", "Gone")
NODE_STATES: Final = ("Ready", "NotReady", "MemoryPressure", "DiskPressure", "PIDPressure", "Gone")
WITHIN_S: Final = 30.0
"""How long a `wait` waits if it does not say."""


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all actions."""


class Apply(_Action, frozen=True, kw_only=True):
    """Create or replace objects."""

    documents: tuple[dict[str, Any], ...]


class Delete(_Action, frozen=True, kw_only=True):
    """Delete objects; those that are not there do not matter."""

    refs: tuple[ObjectRef, ...]
    grace_period_s: int | None = None


class Patch(_Action, frozen=True, kw_only=True):
    """Change some fields of an object: a JSON merge patch (RFC 7386), null removes a field."""

    ref: ObjectRef
    change: dict[str, Any]


class Publish(_Action, frozen=True, kw_only=True):
    """Bare typed events. `rate` is a second, 0 as fast as possible."""

    resource: str
    action: str
    new: dict[str, Any] | None = None
    old: dict[str, Any] | None = None
    count: int = 1
    rate: float = 0.0


class Signals(_Action, frozen=True, kw_only=True):
    """Synthetic usage of a node: it stands until the next one; with `for_s` it is measured every `every_s`
    for so many seconds while later steps run, and then grows old."""

    said: NodeSignals
    """Without who says it, and when."""
    every_s: float = 1.0
    for_s: float = 0.0


class Wait(_Action, frozen=True, kw_only=True):
    """Until `count` pods or nodes are in a state; without a count all that are selected, at least one."""

    what: Literal["pods", "nodes"]
    state: str
    namespace: str = "default"
    name: str = ""
    selector: Selector = EVERYTHING
    count: int | None = None
    within_s: float = WITHIN_S

    def described(self) -> str:
        """In words: `3 pods app=web Running`."""
        number = "all" if self.count is None else str(self.count)
        chosen = self.name or label_text.text_of(self.selector)
        return f"{number} {self.what}{' ' + chosen if chosen else ''} {self.state}"


class Repeat(_Action, frozen=True, kw_only=True):
    """Do steps again and again, `rate` times a second at most (0: without a pause); `${n}` in them is the
    number, from 1."""

    times: int
    rate: float
    body: list[Any]


Action: TypeAlias = Apply | Delete | Patch | Publish | Signals | Wait | Repeat


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One action at one time."""

    title: str
    action: Action
    at_s: float | None = None
    """Since the scenario's start; None: see `after_s`."""
    after_s: float = 0.0
    """Since the end of the step before."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A checked scenario."""

    name: str
    description: str
    steps: tuple[Step, ...]
    directory: str = "."
    """Where `file:` names are looked up."""
