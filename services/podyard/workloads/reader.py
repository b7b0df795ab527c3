"""What workloads sees: the joined view, and the raw documents at the same position."""

from collections.abc import Sequence

from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change, Effect
from podyard.cluster.documents import DocumentView
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.objects.admission import ClusterLookup
from podyard.proto import subjects

_STATUSES = subjects.ALL_POD_STATUS.removesuffix(">")
_NODE_STATUSES = subjects.ALL_NODE_STATUS.removesuffix(">")


class WorkloadsView:
    """Two folds of the same deliveries, fed by one informer."""

    def __init__(self) -> None:
        self.cluster = ClusterView()
        self.documents = DocumentView()

    @property
    def position(self) -> int:
        """Everything up to this CLUSTER sequence is in the view."""
        return self.cluster.position

    def begin_listing(self) -> None:
        """A listing begins."""
        self.documents.begin_listing()
        self.cluster.begin_listing()

    def end_listing(self, position: int) -> list[Change]:
        """The listing is complete."""
        self.documents.end_listing(position)
        return self.cluster.end_listing(position)

    def apply(self, delivery: Delivery) -> list[Change]:
        """Fold one delivery."""
        if not delivery.subject.startswith((_STATUSES, _NODE_STATUSES)):
            self.documents.apply(delivery)
        return self.cluster.apply(delivery)

    def advance(self, position: int) -> None:
        """The stream moved on."""
        self.documents.advance(position)
        self.cluster.advance(position)

    def take_effects(self) -> Sequence[Effect]:
        """What the folds ask for. Both see the same faults: the joined view's words are enough."""
        self.documents.take_effects()
        return self.cluster.take_effects()


def regarded(subject: str) -> ObjectKey | None:
    """The object that a message on `subject` is, or is about; None for what is about none."""
    tokens = [subjects.decode(token) for token in subject.split(".")]
    match tokens:
        case ["cluster", resource, namespace, name] if resource not in subjects.RESERVED_RESOURCES:
            return ObjectKey(resource, namespace, name)
        case ["cluster", subjects.NODE_STATUS, node]:
            return ObjectKey(subjects.NODES, "", node)
        case ["cluster", subjects.POD_STATUS, _, namespace, pod, _] | ["placement", "bindings", namespace, pod, _]:
            return ObjectKey(subjects.PODS, namespace, pod)
        case _:
            return None


class ViewLookup(ClusterLookup):
    """The cluster as admission asks for it."""

    def __init__(self, documents: DocumentView) -> None:
        self._documents = documents

    def get(self, resource: str, namespace: str, name: str) -> object | None:
        """The living object as a typed view, None if there is none."""
        return self._documents.typed(ObjectKey(resource, namespace, name))

    def list(self, resource: str) -> Sequence[object]:
        """All living objects of a resource."""
        return list(self._documents.all(resource))
