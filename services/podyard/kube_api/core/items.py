"""One version of an object as the API tells it, its place in the order of lists, and the step from one
version to the next. Pure.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.objects import decoding
from podyard.objects.documents import Document
from podyard.telling.pod_conditions import NOTHING, Evidence

ITEM_BYTES: Final = 512
"""What a version takes in a history or a queue besides its document."""

_NO_LABELS: Final[Mapping[str, str]] = {}


class Content(Protocol):
    """What is known of an object at one moment: a `Moment` of the store, or `Given`."""

    @property
    def key(self) -> ObjectKey: ...
    @property
    def stored(self) -> Stored: ...
    @property
    def viewed(self) -> Any: ...
    @property
    def fault(self) -> str: ...
    @property
    def evidence(self) -> Evidence: ...
    def document(self, shown: Mapping[str, str]) -> Document: ...


class Given(NamedTuple):
    """An object that does not lie in CLUSTER, e.g. an event: its document is all there is."""

    key: ObjectKey
    stored: Stored
    """Its payload is the document."""
    viewed: Any = None
    """The typed view, for its labels; `None`: it has none."""
    fault: str = ""
    evidence: Evidence = NOTHING

    def document(self, shown: Mapping[str, str]) -> Document:
        return decoding.document(self.stored.payload)


class Item:
    """One version of an object. Its document is made when it is asked for."""

    __slots__ = ("moment", "path", "version")

    def __init__(self, path: str, moment: Content, version: int) -> None:
        """
        :param path: see `path_of`
        :param moment: all that is known of it; another one of the same content may take its place
        :param version: metadata.resourceVersion
        """
        self.path = path
        self.moment = moment
        self.version = version

    @property
    def key(self) -> ObjectKey:
        return self.moment.key

    @property
    def labels(self) -> Mapping[str, str]:
        """None of what cannot be read."""
        viewed = self.moment.viewed
        if viewed is None:
            return _NO_LABELS
        if isinstance(viewed, PodView):
            topology = self.moment.evidence.topology
            return {**dict(topology), **viewed.labels} if topology else viewed.labels
        return viewed.labels if isinstance(viewed, NodeView) else viewed.metadata.labels

    @property
    def bytes(self) -> int:
        """About what it takes while it is held: the stored document and its typed view."""
        return ITEM_BYTES + 2 * len(self.moment.stored.payload)

    def at_version(self, version: int) -> "Item":
        """The same content with another resourceVersion: an object as it was last, when it is deleted."""
        return Item(self.path, self.moment, version)

    def __repr__(self) -> str:
        return f"<Item {self.key} @{self.version}>"


class Step(NamedTuple):
    """One object's step from a version to the next."""

    resource: str
    path: str
    before: Item | None
    """None: the object came."""
    after: Item | None
    """None: the object went."""
    at: int
    """CLUSTER sequence of the message that made it. A watch from there on does not see it."""
    version: int
    """The resourceVersion that it is told with: `at`, or below it where one message makes several steps of a
    resource. Only the last of them has `at`: whoever was cut off among them asks again for what came after
    the version before, and gets them all."""

    @property
    def last(self) -> Item:
        """What the object is now; of one that went, as it was last, with the version of its end."""
        return self.after if self.after is not None else self.gone

    @property
    def gone(self) -> Item:
        """The object as it was before, with the version of this step: what is told to whom it is gone for."""
        before = self.before
        assert before is not None, "an object that has just come is gone for nobody"
        return before.at_version(self.version)

    @property
    def bytes(self) -> int:
        """About what it takes while it is held."""
        return sum(item.bytes for item in (self.before, self.after) if item is not None)


def path_of(key: ObjectKey) -> str:
    """What lists are ordered by, as the reference's store orders them: the namespace, a slash and the name.
    Of objects that are in no namespace the name alone.
    """
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def uid_of(moment: Content) -> str:
    """The object's uid; empty if it cannot be read."""
    viewed = moment.viewed
    if viewed is None:
        return ""
    return viewed.uid if isinstance(viewed, PodView | NodeView) else viewed.metadata.uid
