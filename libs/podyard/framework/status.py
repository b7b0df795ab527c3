"""What a plugin answers. A rejection is a value; a bug is an exception, which the framework turns into ERROR.

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/framework/interface.go (Code, Status).
"""

from enum import IntEnum
from typing import Final

import msgspec


class Code(IntEnum):
    """What a plugin thinks of a pod (and a node), and what the queue does with the pod because of it."""

    SUCCESS = 0
    """Go on."""
    ERROR = 1
    """The plugin failed. The attempt ends; the pod goes to error backoff and is retried without waiting for
    an event."""
    UNSCHEDULABLE = 2
    """Not here as things are. Preempting pods of the node may help. If no node takes the pod it is parked
    until an event that this plugin registered."""
    UNRESOLVABLE = 3
    """Not here, and preemption cannot help (UnschedulableAndUnresolvable). Parked like UNSCHEDULABLE."""
    WAIT = 4
    """Permit and PreBind: the pod keeps its room until the plugin says otherwise, or its time is up."""
    SKIP = 5
    """PreFilter and PreScore: nothing to do for this pod, skip Filter or Score. Bind: let the next plugin do
    it."""
    PENDING = 6
    """PreEnqueue, Reserve, Permit: the pod waits for something outside. A hint's Queue skips the backoff."""

    @property
    def label(self) -> str:
        """The reference's name of the code."""
        return _LABELS[self]


_LABELS: Final = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

REJECTIONS: Final = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})
"""Codes that say no to the pod, as opposed to a failure of the plugin."""


class Status(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A plugin's answer: a code, reasons in words (none for SUCCESS), and the plugin, which the framework
    fills in."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    obstacles: tuple[str, ...] = ()
    """Of a rejection: what stands in the pod's way, in words that the plugin's own hints know
    (`events.OwnRegistration`)."""

    @property
    def ok(self) -> bool:
        """Whether it says: go on."""
        return self.code == Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """Whether it says no to the pod."""
        return self.code in REJECTIONS

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """The same answer under the name of the plugin that gave it."""
        return Status(code=self.code, reasons=self.reasons, plugin=plugin, obstacles=self.obstacles)


SUCCESS: Final = Status()
SKIP: Final = Status(code=Code.SKIP)


def unschedulable(*reasons: str, obstacles: tuple[str, ...] = ()) -> Status:
    """Not here as things are; preemption may help."""
    return Status(code=Code.UNSCHEDULABLE, reasons=reasons, obstacles=obstacles)


def unresolvable(*reasons: str, obstacles: tuple[str, ...] = ()) -> Status:
    """Not here, and preemption cannot help."""
    return Status(code=Code.UNRESOLVABLE, reasons=reasons, obstacles=obstacles)


def pending(*reasons: str) -> Status:
    """The pod waits for something outside."""
    return Status(code=Code.PENDING, reasons=reasons)


def wait(*reasons: str) -> Status:
    """The pod keeps its room until the plugin says otherwise, or its time is up."""
    return Status(code=Code.WAIT, reasons=reasons)


def error(*reasons: str) -> Status:
    """The plugin could not tell."""
    return Status(code=Code.ERROR, reasons=reasons)


class PluginFault(Exception):
    """What a plugin may raise when it cannot answer; its text goes into the attempt's message as it is."""


_SENTENCES: Final = {
    "filter": 'running "{plugin}" filter plugin: {detail}',
    "Score": 'running Score plugins: plugin "{plugin}" failed with: {detail}',
    "NormalizeScore": 'running Normalize on Score plugins: plugin "{plugin}" failed with: {detail}',
    "weights": 'applying score defaultWeights on Score plugins: plugin "{plugin}" {detail}',
    "AddPod": 'running AddPod on PreFilter plugin "{plugin}": {detail}',
    "RemovePod": 'running RemovePod on PreFilter plugin "{plugin}": {detail}',
}
"""How the reference words a failure, by extension point, where it is not as usual. Source:
pkg/scheduler/framework/runtime/framework.go."""


class PluginError(Exception):
    """A plugin raised, or answered with a code that its extension point does not know. Ends the attempt as an
    error.

    :ivar plugin: whose fault it is
    :ivar point: extension point as the reference spells it in messages, e.g. `filter`, `PreFilter`
    :ivar detail: what happened, in words
    """

    def __init__(self, plugin: str, point: str, detail: str) -> None:
        self.plugin = plugin
        self.point = point
        self.detail = told(detail)
        sentence = _SENTENCES.get(point, 'running {point} plugin "{plugin}": {detail}')
        super().__init__(sentence.format(plugin=plugin, point=point, detail=self.detail))

    @classmethod
    def wrapping(cls, plugin: str, point: str, fault: Exception) -> "PluginError":
        """What a plugin raised, under its name; `fault` itself if it is a PluginError already."""
        return fault if type(fault) is PluginError else cls(plugin, point, described(fault))


def described(fault: Exception) -> str:
    """What a plugin raised, in words: its own if it meant them for people, else with the type of the
    exception.

    Whatever the exception is like: one whose own words cannot be had is told by its type.
    """
    try:
        text = str(fault)
    except Exception:  # the boundary to plugins: the exception's class is theirs, too
        text = "its text cannot be had"
    return told(text if isinstance(fault, PluginFault | PluginError) else f"{type(fault).__name__}: {text}")


LONGEST_TEXT: Final = 8192
"""Characters of one text of a plugin that are kept, since records and messages repeat it; semi-arbitrary."""


def told(text: str) -> str:
    """A plugin's words as they can be sent: not longer than records bear, and without halves of characters,
    which no encoding has."""
    cut = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
    return cut if cut.isascii() else cut.encode(errors="backslashreplace").decode()
